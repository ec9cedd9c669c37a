//! The reader: events of the parser → values, with positions on request.

use super::relax::relax;
use super::scalar::{Scalar, is_timestamp, resolve};
use super::{Document, Error, ErrorKind, Inside, Places, Position, Syntax};
use crate::json::{self, MAX_DEPTH, MAX_DUPLICATES, prefix_paths};
use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput, Tag};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use transom_go::encoding::base64_decode;

/// How much all aliases of a document may add to it, in bytes of text plus a fixed weight per value.
const MAX_ALIAS_WEIGHT_BYTES: usize = 16 << 20;
const VALUE_WEIGHT_BYTES: usize = 64;

/// Reads the first document of a text, as sigs.k8s.io/yaml does: an empty text is null, later documents are
/// not looked at, of equal keys the last wins. Use [`read_documents`] for streams.
pub fn read(text: &str) -> Result<Value, Error> {
    if text.trim_start().starts_with('{')
        && let Ok(decoded) = json::decode(text.as_bytes())
    {
        return Ok(decoded.value);
    }
    relaxing(text, |text| {
        let mut reader = Reader::new(text, false)?;
        Ok(reader.next_document()?.map_or(Value::Null, |document| document.value))
    })
}

/// Reads a text; once more with relaxed indentation when that is what is wrong.
fn relaxing<T>(text: &str, read: impl Fn(&str) -> Result<T, Error>) -> Result<T, Error> {
    read(text).or_else(|error| {
        let relaxed = (error.kind == ErrorKind::Syntax(Syntax::Indentation)).then(|| relax(text)).flatten();
        let (relaxed, pad) = relaxed.ok_or(error)?;
        read(&relaxed).map_err(|error| match relaxed.lines().nth(error.line.saturating_sub(1)) {
            Some(line) if line.starts_with(&" ".repeat(pad)) => {
                Error { column: error.column.saturating_sub(pad).max(1), ..error }
            }
            _ => error,
        })
    })
}

/// Reads all documents of a stream, YAML or JSON. Documents without content are left out.
pub fn read_documents(text: &str) -> Result<Vec<Document>, Error> {
    relaxing(text, read_yaml_documents).or_else(|error| {
        // JSON is nearly YAML: tabs, `\/` and documents that follow without separator are not.
        let json = Some(text).filter(|text| text.trim_start().starts_with('{'));
        let documents = json.and_then(|text| json::decode_stream(text.as_bytes()).ok()).ok_or(error)?;
        Ok(documents.into_iter().map(unplaced).collect())
    })
}

/// A document of which only the text as a whole has a position.
fn unplaced(decoded: json::Decoded) -> Document {
    let start = Position { line: 1, column: 1 };
    let places = Places { position: start, alias: true, inside: Inside::Nothing };
    Document { value: decoded.value, duplicates: decoded.duplicates, line: start.line, places }
}

fn read_yaml_documents(text: &str) -> Result<Vec<Document>, Error> {
    let mut reader = Reader::new(text, true)?;
    let mut documents = Vec::new();
    while let Some(document) = reader.next_document()? {
        if !document.value.is_null() {
            documents.push(document);
        }
    }
    Ok(documents)
}

struct Reader<'t> {
    parser: Parser<'t, StrInput<'t>>,
    /// Whether to remember positions.
    positions: bool,
    anchors: HashMap<usize, Anchored>,
    spent: usize,
    duplicates: Vec<String>,
}

struct Anchored {
    value: Value,
    /// What a scalar is when an alias of it is a key; `None` for collections.
    key: Option<Result<String, String>>,
    weight: usize,
    height: usize,
}

/// A value and its positions in the text.
struct Node {
    value: Value,
    places: Places,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str, positions: bool) -> Result<Self, Error> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        refuse_control_characters(text)?;
        let parser = Parser::new_from_str(text);
        Ok(Self { parser, positions, anchors: HashMap::new(), spent: 0, duplicates: Vec::new() })
    }

    fn next_event(&mut self) -> Result<(Event<'t>, Position), Error> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => Ok((event, position(span))),
            Some(Err(fault)) => {
                let at = *fault.marker();
                Err(Error::of_parser(fault.info(), Position { line: at.line(), column: at.col() + 1 }))
            }
            None => Ok((Event::StreamEnd, Position { line: 1, column: 1 })),
        }
    }

    fn next_document(&mut self) -> Result<Option<Document>, Error> {
        loop {
            match self.next_event()?.0 {
                Event::StreamEnd => return Ok(None),
                Event::DocumentStart(_) => break,
                _ => {}
            }
        }
        // Anchors, their budget and duplicates belong to one document.
        self.anchors.clear();
        self.spent = 0;
        let (event, at) = self.next_event()?;
        let node = self.node(event, at, 0)?;
        let duplicates = std::mem::take(&mut self.duplicates);
        Ok(Some(Document { value: node.value, duplicates, line: at.line, places: node.places }))
    }

    fn node(&mut self, event: Event<'t>, at: Position, depth: usize) -> Result<Node, Error> {
        if depth > MAX_DEPTH {
            return Err(Error::new(ErrorKind::Limit, at, "exceeded max depth"));
        }
        let (anchor, node) = match event {
            Event::Alias(id) => return self.alias(id, at, depth),
            Event::Scalar(text, style, anchor, tag) => {
                let (meaning, text) = interpret(&text, style, tag.as_deref(), at)?;
                let value =
                    meaning.clone().into_value(&text).map_err(|message| unsupported_value(at, message))?;
                if anchor != 0 {
                    self.anchor(anchor, &value, Some(meaning.into_key(&text)), at)?;
                }
                return Ok(Node { value, places: placed(at, Inside::Nothing) });
            }
            Event::SequenceStart(anchor, _) => (anchor, self.sequence(at, depth)?),
            Event::MappingStart(anchor, _) => (anchor, self.mapping(at, depth)?),
            _ => {
                let missing = ErrorKind::Syntax(Syntax::MissingContent);
                return Err(Error::new(missing, at, "did not find expected node content"));
            }
        };
        if anchor != 0 {
            self.anchor(anchor, &node.value, None, at)?;
        }
        Ok(node)
    }

    /// A key: a scalar, or the alias of one, as a string.
    fn key(&mut self, event: Event<'t>, at: Position) -> Result<String, Error> {
        let key = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let (meaning, text) = interpret(&text, style, tag.as_deref(), at)?;
                let key = meaning.clone().into_key(&text);
                if anchor != 0 {
                    let value =
                        meaning.into_value(&text).map_err(|message| unsupported_value(at, message))?;
                    self.anchor(anchor, &value, Some(key.clone()), at)?;
                }
                Some(key)
            }
            Event::Alias(id) => self.anchors.get(&id).ok_or_else(|| unknown_anchor(at))?.key.clone(),
            _ => None,
        };
        match key {
            Some(key) => key.map_err(|message| Error::new(ErrorKind::UnsupportedKey, at, message)),
            None => Err(content(at, "invalid map key: only scalars can be keys")),
        }
    }

    fn anchor(
        &mut self,
        id: usize,
        value: &Value,
        key: Option<Result<String, String>>,
        at: Position,
    ) -> Result<(), Error> {
        let (weight, height) = measure(value);
        self.spend(weight, at)?;
        self.anchors.insert(id, Anchored { value: value.clone(), key, weight, height });
        Ok(())
    }

    /// Copies of anchored values count against one budget, so that aliases of aliases cannot explode.
    fn spend(&mut self, weight: usize, at: Position) -> Result<(), Error> {
        self.spent = self.spent.saturating_add(weight);
        if self.spent > MAX_ALIAS_WEIGHT_BYTES {
            Err(Error::new(ErrorKind::Limit, at, "document contains excessive aliasing"))
        } else {
            Ok(())
        }
    }

    fn alias(&mut self, id: usize, at: Position, depth: usize) -> Result<Node, Error> {
        let Some(&Anchored { weight, height, .. }) = self.anchors.get(&id) else {
            return Err(unknown_anchor(at));
        };
        if depth + height > MAX_DEPTH {
            return Err(Error::new(ErrorKind::Limit, at, "exceeded max depth"));
        }
        self.spend(weight, at)?;
        let places = Places { position: at, alias: true, inside: Inside::Nothing };
        Ok(Node { value: self.anchors[&id].value.clone(), places })
    }

    fn sequence(&mut self, at: Position, depth: usize) -> Result<Node, Error> {
        let mut items = Vec::new();
        let mut places = Vec::new();
        loop {
            let (event, item_at) = self.next_event()?;
            if event == Event::SequenceEnd {
                break;
            }
            let known = self.duplicates.len();
            let node = self.node(event, item_at, depth + 1)?;
            if self.duplicates.len() > known {
                prefix_paths(&mut self.duplicates[known..], &format!("[{}]", items.len()));
            }
            items.push(node.value);
            if self.positions {
                places.push(node.places);
            }
        }
        Ok(Node { value: Value::Array(items), places: placed(at, Inside::Items(places)) })
    }

    fn mapping(&mut self, at: Position, depth: usize) -> Result<Node, Error> {
        let mut fields = Fields { map: Map::new(), places: BTreeMap::new(), merged: BTreeSet::new() };
        loop {
            let (event, key_at) = self.next_event()?;
            if event == Event::MappingEnd {
                break;
            }
            let key = if is_merge(&event) { None } else { Some(self.key(event, key_at)?) };
            let (event, value_at) = self.next_event()?;
            let known = self.duplicates.len();
            let node = self.node(event, value_at, depth + 1)?;
            let Some(key) = key else {
                fields.merge(node, value_at)?;
                continue;
            };
            if self.duplicates.len() > known {
                prefix_paths(&mut self.duplicates[known..], &key);
            }
            if self.positions {
                fields.places.insert(key.clone(), Places { position: key_at, ..node.places });
            }
            if fields.set(key.clone(), node.value)
                && self.duplicates.len() < MAX_DUPLICATES
                && !self.duplicates.contains(&key)
            {
                self.duplicates.push(key);
            }
        }
        Ok(Node { value: Value::Object(fields.map), places: placed(at, Inside::Fields(fields.places)) })
    }
}

/// A mapping under construction.
struct Fields {
    map: Map<String, Value>,
    places: BTreeMap<String, Places>,
    /// Keys that came with `<<`: setting them again is not a repetition.
    merged: BTreeSet<String>,
}

impl Fields {
    /// Sets a field; returns whether the mapping itself had set it before.
    fn set(&mut self, key: String, value: Value) -> bool {
        let merged = self.merged.remove(&key);
        self.map.insert(key, value).is_some() && !merged
    }

    /// Takes over the fields of one mapping or of several, of which the first has precedence. As upstream
    /// has it, they override what was set before the `<<` and not what is set after.
    fn merge(&mut self, node: Node, at: Position) -> Result<(), Error> {
        let sources = match node.value {
            Value::Object(map) => vec![Value::Object(map)],
            Value::Array(items) => items,
            _ => vec![Value::Null],
        };
        for source in sources.into_iter().rev() {
            let Value::Object(map) = source else {
                return Err(content(at, "map merge requires map or sequence of maps as the value"));
            };
            for (key, value) in map {
                let place = Places { position: at, alias: true, inside: Inside::Nothing };
                self.places.insert(key.clone(), place);
                self.merged.insert(key.clone());
                self.map.insert(key, value);
            }
        }
        Ok(())
    }
}

fn is_merge(event: &Event<'_>) -> bool {
    match event {
        Event::Scalar(text, ScalarStyle::Plain, _, None) => text == "<<",
        Event::Scalar(text, _, _, Some(tag)) => {
            text == "<<" && tag.is_yaml_core_schema() && tag.suffix == "merge"
        }
        _ => false,
    }
}

/// A scalar by its tag, or by its look if it is plain and has none; and its text, which `!!binary` decodes.
fn interpret<'t>(
    text: &'t str,
    style: ScalarStyle,
    tag: Option<&Tag>,
    at: Position,
) -> Result<(Scalar, Cow<'t, str>), Error> {
    let Some(tag) = tag else {
        let meaning = if style == ScalarStyle::Plain { resolve(text) } else { Scalar::Text };
        return Ok((meaning, Cow::Borrowed(text)));
    };
    let core = tag.is_yaml_core_schema().then_some(tag.suffix.as_str());
    match core {
        Some("binary") => match base64_text(text) {
            Some(decoded) => Ok((Scalar::Text, Cow::Owned(decoded))),
            None => Err(content(at, "!!binary value contains invalid base64 data")),
        },
        Some(wanted @ ("bool" | "int" | "float" | "null" | "timestamp")) => {
            Ok((tagged(wanted, text, at)?, Cow::Borrowed(text)))
        }
        _ => Ok((Scalar::Text, Cow::Borrowed(text))),
    }
}

fn tagged(wanted: &str, text: &str, at: Position) -> Result<Scalar, Error> {
    match (wanted, resolve(text)) {
        #[expect(clippy::cast_precision_loss, reason = "the tag is that of a float")]
        ("float", Scalar::Int(i)) => Ok(Scalar::Float(i as f64)),
        ("timestamp", Scalar::Text) if is_timestamp(text) => Ok(Scalar::Text),
        (_, found) if found.tag().strip_prefix("!!") == Some(wanted) => Ok(found),
        (_, found) => Err(content(at, format!("cannot decode {} `{text}` as a !!{wanted}", found.tag()))),
    }
}

/// Decoded base64. Bytes that are not UTF-8 become U+FFFD, as they would in JSON.
fn base64_text(text: &str) -> Option<String> {
    let bytes = base64_decode(text.as_bytes()).ok()?;
    let mut decoded = String::with_capacity(bytes.len());
    json::push_lossy(&mut decoded, &bytes);
    Some(decoded)
}

/// The weight of a value and how deep it nests.
fn measure(value: &Value) -> (usize, usize) {
    let (weight, height) = match value {
        Value::String(text) => (text.len(), 0),
        Value::Array(items) => {
            items.iter().map(measure).fold((0, 0), |(w, h), (iw, ih)| (w + iw, h.max(ih + 1)))
        }
        Value::Object(map) => map.iter().fold((0, 0), |(w, h), (key, item)| {
            let (item_weight, item_height) = measure(item);
            (w + VALUE_WEIGHT_BYTES + key.len() + item_weight, h.max(item_height + 1))
        }),
        _ => (0, 0),
    };
    (weight + VALUE_WEIGHT_BYTES, height)
}

fn unknown_anchor(at: Position) -> Error {
    const MESSAGE: &str = "alias of an anchor that is unknown here, or whose value contains the alias itself";
    Error::new(ErrorKind::Limit, at, MESSAGE)
}

fn refuse_control_characters(text: &str) -> Result<(), Error> {
    let allowed = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..);
    let Some((at, _)) = text.char_indices().find(|&(_, c)| !allowed(c)) else { return Ok(()) };
    let before = &text[..at];
    let line = 1 + before.matches('\n').count();
    let column = 1 + before.chars().rev().take_while(|&c| c != '\n').count();
    Err(content(Position { line, column }, "control characters are not allowed"))
}

fn position(span: Span) -> Position {
    Position { line: span.start.line(), column: span.start.col() + 1 }
}

fn placed(position: Position, inside: Inside) -> Places {
    Places { position, alias: false, inside }
}

fn unsupported_value(at: Position, message: String) -> Error {
    Error::new(ErrorKind::UnsupportedValue, at, message)
}

fn content(at: Position, message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Content, at, message)
}

//! The rendered text as manifests: a stream of YAML documents, or of JSON objects, read as Kubernetes' decoder reads
//! them.
//!
//! A text that begins with `{` is read as JSON objects until one cannot be; unless more than one was read by then,
//! the rest is YAML. YAML documents end at lines that begin with `---`, whatever is around such a line. Scalars
//! follow YAML 1.1.

use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};
use transom_function::{Resource, Struct};
use transom_go::fmt::sprintf;
use transom_object::json::{self, encode_escaped, go_type, kind_of};
use transom_object::yaml::{self, ErrorKind};

use super::desired::RESOURCE_NAME;
use super::diagnosis;

/// How far into the text its first character other than space is looked for.
const LOOKAHEAD_BYTES: usize = 1024;

/// How much all manifests together may weigh once aliases are expanded: bytes of text plus a fixed weight per value.
const MAX_WEIGHT_BYTES: usize = 64 << 20;
const VALUE_WEIGHT_BYTES: usize = 128;

/// An object a template rendered; it has a kind.
#[derive(Debug)]
pub(super) struct Manifest {
    pub object: Map<String, Value>,
}

/// Why a text cannot be read as manifests.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// It cannot be read.
    Text(String),
    /// It can, but annotations in it are not texts.
    Annotations(String),
}

fn text<'o>(object: &'o Map<String, Value>, field: &str) -> &'o str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Whether an apiVersion has a group at most, and a version.
fn is_version(api_version: &str) -> bool {
    api_version.bytes().filter(|byte| *byte == b'/').count() <= 1
}

impl Manifest {
    pub(super) fn api_version(&self) -> &str {
        text(&self.object, "apiVersion")
    }

    pub(super) fn kind(&self) -> &str {
        text(&self.object, "kind")
    }

    /// Removes an annotation. The last one leaves an empty map behind.
    pub(super) fn take_annotation(&mut self, name: &str) -> Option<String> {
        let annotations = self.object.get_mut("metadata")?.get_mut("annotations")?.as_object_mut()?;
        match annotations.remove(name)? {
            Value::String(value) => Some(value),
            _ => None,
        }
    }

    pub(super) fn into_resource(self) -> Resource {
        Resource { resource: Some(Struct::from(self.object)), ..Resource::default() }
    }

    fn new(object: Value) -> Result<Self, String> {
        match object {
            // With an invalid apiVersion, the original has no kind either.
            Value::Object(object)
                if !text(&object, "kind").is_empty() && is_version(text(&object, "apiVersion")) =>
            {
                Ok(Self { object })
            }
            Value::Object(_) => Err(format!("Object 'Kind' is missing in '{}'", encode_escaped(&object))),
            other => Err(format!(
                "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                kind_of(&other)
            )),
        }
    }

    /// Annotations must all be texts: a template that forgets quotes around `true` would else be misread later.
    fn check_annotations(&self) -> Result<(), Problem> {
        const PATH: &str = ".metadata.annotations";
        let mismatch = |value: &Value| {
            format!(
                "{PATH} accessor error: {} is of the type {}, expected map[string]interface {{}}",
                printed(value),
                go_type(value)
            )
        };
        let annotations = match self.object.get("metadata") {
            None | Some(Value::Null) => return Ok(()),
            Some(Value::Object(metadata)) => metadata.get("annotations"),
            Some(other) => return Err(self.annotations_problem(&Value::Null, &mismatch(other))),
        };
        let Some(annotations) = annotations else { return Ok(()) };
        let Value::Object(entries) = annotations else {
            return Err(self.annotations_problem(&Value::Null, &mismatch(annotations)));
        };
        let Some((key, value)) = entries.iter().find(|(_, value)| !value.is_string()) else { return Ok(()) };
        let problem = format!(
            "{PATH} accessor error: contains non-string value in the map under key {key:?}: {} is of the type {}, expected string",
            printed(value),
            go_type(value)
        );
        Err(self.annotations_problem(annotations, &problem))
    }

    fn annotations_problem(&self, annotations: &Value, problem: &str) -> Problem {
        let name = printed(annotations.get(RESOURCE_NAME).unwrap_or(&Value::Null));
        let (group, version) = self.api_version().split_once('/').unwrap_or(("", self.api_version()));
        let kind = self.kind();
        Problem::Annotations(format!(
            "invalid annotations in resource '{group}/{version}, Kind={kind} resource-name={name}': {problem}"
        ))
    }
}

/// A value as Go's `%v` prints it.
fn printed(value: &Value) -> String {
    sprintf("%v", &[transom_gotemplate::Value::from(value)])
}

/// Reads all manifests of a text.
pub(super) fn read(rendered: &str) -> Result<Vec<Manifest>, Problem> {
    let mut stream = Stream { manifests: Vec::new(), weight: 0, places: Places::new(rendered) };
    let head = rendered.char_indices().find(|(_, letter)| !letter.is_whitespace());
    let rest = match head {
        Some((at, '{')) if at < LOOKAHEAD_BYTES => stream.json(rendered)?,
        _ => Some((rendered, None)),
    };
    if let Some((rest, problem)) = rest {
        let line = 1 + newlines(&rendered[..rendered.len() - rest.len()]);
        stream.yaml(rest, line, problem)?;
    }
    Ok(stream.manifests)
}

/// What is left to be read as YAML, and why it could not be read as JSON.
type Rest<'t> = Option<(&'t str, Option<String>)>;

struct Stream<'t> {
    manifests: Vec<Manifest>,
    weight: usize,
    places: Places<'t>,
}

impl Stream<'_> {
    fn add(&mut self, mut object: Value) -> Result<(), Refused> {
        if object.is_null() {
            return Ok(());
        }
        self.weight = self.weight.saturating_add(round_numbers(&mut object));
        if self.weight > MAX_WEIGHT_BYTES {
            let problem = format!("the rendered manifests expand to more than {MAX_WEIGHT_BYTES} bytes");
            return Err(Refused::Whole(Problem::Text(problem)));
        }
        let manifest = Manifest::new(object).map_err(Refused::Manifest)?;
        manifest.check_annotations().map_err(Refused::Whole)?;
        self.manifests.push(manifest);
        self.places.next();
        Ok(())
    }

    fn json<'t>(&mut self, text: &'t str) -> Result<Rest<'t>, Problem> {
        let mut read = 0;
        let mut rest = text;
        loop {
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>();
            let problem = match values.next() {
                None => return Ok(None),
                Some(Ok(raw)) => match json::decode(raw.get().as_bytes()) {
                    Ok(decoded) => match self.add(decoded.value) {
                        Ok(()) => {
                            read += 1;
                            rest = &rest[values.byte_offset()..];
                            continue;
                        }
                        Err(Refused::Whole(problem)) => return Err(problem),
                        Err(Refused::Manifest(problem)) => problem,
                    },
                    Err(error) => error.to_string(),
                },
                Some(Err(_)) => syntax(rest, read > 1),
            };
            if read > 1 {
                return Err(Problem::Text(problem));
            }
            let blank =
                rest.find(|letter: char| !letter.is_whitespace() || letter == '\n').unwrap_or(rest.len());
            let blank = if rest[blank..].starts_with('\n') { blank + 1 } else { blank };
            return Ok(Some((&rest[blank..], Some(problem))));
        }
    }

    /// Reads documents, the first of which begins on the given line. `problem` is why it is not JSON, which is reported
    /// if it is not YAML either.
    fn yaml(&mut self, text: &str, mut line: usize, mut problem: Option<String>) -> Result<(), Problem> {
        let text = lines(text);
        let mut rest = &*text;
        while !rest.is_empty() {
            let (document, after) =
                split(rest).map_err(|error| Problem::Text(problem.take().unwrap_or(error)))?;
            let outcome = match yaml::read(document) {
                Ok(value) => match self.add(value) {
                    Ok(()) => Ok(()),
                    Err(Refused::Whole(problem)) => return Err(problem),
                    Err(Refused::Manifest(problem)) => {
                        Err(format!("error unmarshaling JSON: while decoding JSON: {problem}"))
                    }
                },
                Err(error) => Err(self.places.show(&error, line)),
            };
            let first = problem.take();
            outcome.map_err(|error| Problem::Text(first.unwrap_or(error)))?;
            line += newlines(&rest[..rest.len() - after.len()]);
            rest = after;
        }
        Ok(())
    }
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

/// Why a document is not taken.
enum Refused {
    /// Another reading of it may be.
    Manifest(String),
    /// Nothing helps.
    Whole(Problem),
}

/// The message of Go's decoder for text that is not JSON; alone once it must be JSON, else with its position.
fn syntax(text: &str, alone: bool) -> String {
    let Err(error) = json::decode(text.as_bytes()) else {
        return "unexpected data after a JSON object".to_owned();
    };
    if alone {
        return error.to_string();
    }
    let before: usize = text.split_inclusive('\n').take(error.line - 1).map(str::len).sum();
    format!("json: offset {}: {error}", before + error.column)
}

/// The text with every line ended by a line feed alone.
fn lines(text: &str) -> std::borrow::Cow<'_, str> {
    if text.ends_with('\n') && !text.contains('\r') {
        return text.into();
    }
    let mut lines = text.replace("\r\n", "\n");
    if !lines.ends_with('\n') && !lines.is_empty() {
        lines.push('\n');
    }
    lines.into()
}

/// The first document of a text, and the text after its separator. A separator with nothing before it belongs to the
/// document.
fn split(text: &str) -> Result<(&str, &str), String> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if let Some(rest) = line.strip_prefix("---") {
            let rest = rest.trim();
            if !rest.is_empty() && !rest.starts_with('#') {
                return Err(format!("invalid Yaml document separator: {rest}"));
            }
            if at > 0 {
                return Ok((&text[..at], &text[at + line.len()..]));
            }
        }
        at += line.len();
    }
    Ok((text, ""))
}

/// Rounds the numbers of a value to doubles, as the protocol does; returns the value's weight.
fn round_numbers(value: &mut Value) -> usize {
    const MAX_EXACT_INTEGER: u64 = 1 << 53;
    VALUE_WEIGHT_BYTES
        + match value {
            Value::Number(number) => {
                if let Some(integer) =
                    number.as_i64().filter(|integer| integer.unsigned_abs() > MAX_EXACT_INTEGER)
                    && let Some(double) = number.as_f64()
                {
                    // A number that rounds up to 2^63 does not fit an integer any more.
                    let fits = double < 9_223_372_036_854_775_808.0;
                    #[expect(clippy::cast_possible_truncation, reason = "integral and within bounds")]
                    let rounded =
                        if fits { Some(Number::from(double as i64)) } else { Number::from_f64(double) };
                    *number = rounded.unwrap_or_else(|| Number::from(integer));
                }
                0
            }
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter_mut().map(round_numbers).sum(),
            Value::Object(fields) => {
                fields.iter_mut().map(|(key, value)| key.len() + round_numbers(value)).sum()
            }
            Value::Null | Value::Bool(_) => 0,
        }
}

/// Which part of the rendered text is being read, as the original counts it for its messages.
struct Places<'t> {
    rendered: &'t str,
    /// The line, counted from one, of the separator before the document.
    start: usize,
    /// The text in which the next separator is looked for; it begins at the line `at` counts next.
    ahead: &'t str,
    at: usize,
    document: usize,
}

impl<'t> Places<'t> {
    fn new(rendered: &'t str) -> Self {
        let ahead = rendered.split_once('\n').map_or("", |(_, ahead)| ahead);
        let mut places = Self { rendered, start: 1, ahead, at: 1, document: 0 };
        places.seek();
        places
    }

    /// Goes on to the next separator. Every line is looked at once, however many documents there are.
    fn seek(&mut self) {
        while !self.ahead.is_empty() {
            let (line, ahead) = self.ahead.split_once('\n').unwrap_or((self.ahead, ""));
            self.ahead = ahead;
            self.at += 1;
            if line.trim() == "---" {
                self.start = self.at;
                return;
            }
        }
    }

    fn next(&mut self) {
        self.seek();
        self.document += 1;
    }

    /// Words an error of the YAML reader in a document that begins on the given line. The original's count of lines
    /// is off when no separator precedes the document; the excerpt shows the place itself.
    fn show(&self, error: &yaml::Error, first_line: usize) -> String {
        let (message, offset) = go_yaml_message(error);
        let line = first_line + error.line - 1;
        let text = self.rendered.split('\n').nth(line - 1).unwrap_or_default();
        let shown = diagnosis::excerpt(text, line, Some(byte_column(text, error.column)), "");
        let Some(offset) = offset else {
            return format!("error converting YAML to JSON: {message}\n{shown}");
        };
        let relative = error.line.saturating_sub(offset);
        let Some(near) = self.rendered.split('\n').nth(self.start + relative - 1).map(str::trim) else {
            return format!("error converting YAML to JSON: yaml: line {relative}: {message}\n{shown}");
        };
        let near = match near.char_indices().find(|(at, letter)| at + letter.len_utf8() > 80) {
            Some((at, _)) => format!("{}...", &near[..at]),
            None => near.to_owned(),
        };
        format!(
            "error converting YAML to JSON: yaml: line {} (document {}, line {relative}) near: '{near}': {message}\n{shown}",
            self.start + relative,
            self.document + 1
        )
    }
}

/// The byte at which a column begins; columns count letters from one.
fn byte_column(text: &str, column: usize) -> usize {
    text.char_indices().nth(column.saturating_sub(1)).map_or(text.len(), |(at, _)| at)
}

/// The message of go-yaml for an error of our reader, and how many lines before ours it reports it; errors that are
/// not of syntax have no line.
fn go_yaml_message(error: &yaml::Error) -> (String, Option<usize>) {
    use yaml::Syntax::*;
    let problem = error.problem();
    let syntax = match error.kind {
        ErrorKind::UnsupportedValue => return (format!("json: {problem}"), None),
        ErrorKind::UnsupportedKey => return (problem.to_owned(), None),
        ErrorKind::UnknownAnchor | ErrorKind::Content => return (format!("yaml: {problem}"), None),
        ErrorKind::Limit => Other,
        ErrorKind::Syntax(syntax) => syntax,
    };
    let (message, offset) = match syntax {
        MissingKey | TextAfterQuoted => ("did not find expected key", 1),
        MissingContent | MisplacedBracket => ("did not find expected node content", 1),
        MissingDash => ("did not find expected '-' indicator", 1),
        MissingCommaOrBrace => ("did not find expected ',' or '}'", 1),
        MissingCommaOrBracket => ("did not find expected ',' or ']'", 1),
        MissingColon => ("could not find expected ':'", 0),
        // As go-yaml spells it.
        HexadecimalEscape => ("did not find expected hexdecimal number", 0),
        TabInIndentation => ("found a tab character that violates indentation", 0),
        UnexpectedCharacter => ("found character that cannot start any token", 0),
        Indentation | Other => (problem, 0),
    };
    (message.to_owned(), Some(offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_looked_at_once() {
        for document in ["---\nkind: A\n", "{\"kind\": \"A\"}\n"] {
            let text = document.repeat(1_000);
            let mut places = Places::new(&text);
            for _ in 0..1_000 {
                places.next();
            }
            // `at` counts the lines that were looked at.
            assert_eq!(places.at, text.lines().count(), "{document}");
        }
    }
}

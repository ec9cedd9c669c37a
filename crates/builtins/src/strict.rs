//! Decoding a step's input as the functions written in Go do: unknown members are refused and names are
//! case-sensitive, null is the same as leaving a field out, and an absent input is an empty one.
//!
//! An input is an ordinary `#[derive(Deserialize)]` struct with `#[serde(default, rename_all = "camelCase")]`; nothing
//! more is needed, because the strictness is in the deserializer. It must not use `#[serde(flatten)]`, which hides the
//! names of the fields. Every input is a Kubernetes object; the members of its header (`apiVersion`, `kind`,
//! `metadata`) are checked here, and the struct describes the rest. Fields of type [`serde_json::Value`] take any JSON.
//!
//! [`input`] stops at the first problem, with the message of Go. [`review`] decodes all the same and notes every problem, for
//! people: see [`crate::review`].

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Value};
use transom_function::{Error as FunctionError, RunFunctionRequest};
use transom_object::quote::quote;

/// Decodes a request's input. `go_type` is what the original calls the type, such as `v1beta1.Resources`: its
/// messages name it.
pub(crate) fn input<T: DeserializeOwned>(
    request: &RunFunctionRequest,
    go_type: &str,
) -> Result<T, FunctionError> {
    let empty = Map::new();
    let fields = request.input.as_ref().map_or(&empty, |input| input.fields());
    object(fields).map_err(|error| {
        FunctionError::fatal(format!(
            "cannot get function input *{go_type} from *v1.RunFunctionRequest: \
             cannot unmarshal JSON from *structpb.Struct into *{go_type}: {}",
            error.describe(go_type)
        ))
    })
}

/// Decodes a Kubernetes object whose header the type leaves out.
pub(crate) fn object<T: DeserializeOwned>(fields: &Map<String, Value>) -> Result<T, Error> {
    decode(fields, None)
}

/// Decodes the same as [`object`], as far as that is possible, and lists all that is wrong with it.
pub(crate) fn review<T: DeserializeOwned>(fields: &Map<String, Value>) -> (Option<T>, Vec<Error>) {
    let notes = Notes::default();
    let decoded = decode(fields, Some(&notes));
    let mut found = notes.found.into_inner();
    match decoded {
        Ok(decoded) => (Some(decoded), found),
        Err(error) => {
            found.push(error);
            (None, found)
        }
    }
}

fn decode<T: DeserializeOwned>(fields: &Map<String, Value>, notes: Option<&Notes>) -> Result<T, Error> {
    for (name, value) in fields.iter().filter(|(name, _)| in_header(name)) {
        Notes::within(notes, name, || match name.as_str() {
            "metadata" => Metadata::deserialize(Strict { value, notes }).map(drop),
            _ => String::deserialize(Strict { value, notes }).map(drop),
        })?;
    }
    T::deserialize(Object { fields, notes })
}

/// Decodes a value that is not an object with a header.
#[cfg(test)]
pub(crate) fn value<T: DeserializeOwned>(value: &Value) -> Result<T, Error> {
    T::deserialize(Strict { value, notes: None })
}

/// The header of an object. It has no effect on a function, but misspelling it is an error.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: String,
    generate_name: String,
    namespace: String,
    self_link: String,
    uid: String,
    resource_version: String,
    generation: i64,
    creation_timestamp: Option<String>,
    deletion_timestamp: Option<String>,
    deletion_grace_period_seconds: Option<i64>,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    owner_references: Vec<Value>,
    finalizers: Vec<String>,
    managed_fields: Vec<Value>,
}

/// Why a value cannot be decoded, and where in it, as a JSON pointer.
#[derive(Debug)]
pub struct Error {
    pub pointer: String,
    pub problem: Problem,
}

#[derive(Debug)]
pub enum Problem {
    /// A member the type does not have, and those it has.
    Unknown {
        name: String,
        known: &'static [&'static str],
    },
    /// JSON of this kind where the type needs that.
    Mismatch {
        found: &'static str,
        wanted: &'static str,
    },
    /// A string that is not one of the known names. Decoding leaves it to the function what to make of it.
    Unsupported {
        found: String,
        known: &'static [&'static str],
    },
    Other(String),
}

impl Error {
    fn at_once(problem: Problem) -> Self {
        Self { pointer: String::new(), problem }
    }

    fn within(mut self, segment: &str) -> Self {
        self.pointer.insert_str(0, &token(segment));
        self
    }

    /// The message of Go's decoder, which names the type that is decoded into; below the root that is any type.
    pub fn describe(&self, go_type: &str) -> String {
        let place = match self.pointer.as_str() {
            "" => String::new(),
            pointer => format!(" within {}", quote(pointer)),
        };
        match &self.problem {
            Problem::Unknown { name, .. } => {
                format!(
                    "json: cannot unmarshal JSON string into Go {go_type}{place}: unknown object member name {}",
                    quote(name)
                )
            }
            Problem::Mismatch { found, wanted } => {
                format!("json: cannot unmarshal JSON {found} into Go {wanted}{place}")
            }
            Problem::Unsupported { found, .. } => {
                format!("json: cannot unmarshal into Go {go_type}{place}: unsupported value {}", quote(found))
            }
            Problem::Other(words) => format!("json: cannot unmarshal into Go {go_type}{place}: {words}"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe("value"))
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: fmt::Display>(words: T) -> Self {
        Self::at_once(Problem::Other(words.to_string()))
    }
}

/// One step of a JSON pointer.
fn token(segment: &str) -> String {
    format!("/{}", segment.replace('~', "~0").replace('/', "~1"))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "boolean",
        other => transom_object::json::kind_of(other),
    }
}

/// Problems that were noted, and where decoding is.
#[derive(Default)]
struct Notes {
    pointer: RefCell<String>,
    found: RefCell<Vec<Error>>,
}

impl Notes {
    fn add(&self, problem: Problem, below: &str) {
        let pointer = format!("{}{below}", self.pointer.borrow());
        self.found.borrow_mut().push(Error { pointer, problem });
    }

    /// Decodes a part. When nothing is noted, an error learns where it is on its way out.
    fn within<T>(
        notes: Option<&Self>,
        segment: &str,
        decode: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let Some(notes) = notes else { return decode().map_err(|error| error.within(segment)) };
        let before = notes.pointer.borrow().len();
        notes.pointer.borrow_mut().push_str(&token(segment));
        let decoded = decode().map_err(|error| error.within(segment));
        notes.pointer.borrow_mut().truncate(before);
        decoded
    }
}

/// A value under the rules above. With notes, what breaks them is noted and read as if it were not there.
struct Strict<'de, 'n> {
    value: &'de Value,
    notes: Option<&'n Notes>,
}

impl<'de> Strict<'de, '_> {
    /// The value if it is of a kind. Null always is.
    fn of(&self, wanted: &'static str, is_of: impl FnOnce(&Value) -> bool) -> Result<&'de Value, Error> {
        if self.value.is_null() || is_of(self.value) {
            return Ok(self.value);
        }
        let problem = Problem::Mismatch { found: kind(self.value), wanted };
        let Some(notes) = self.notes else { return Err(Error::at_once(problem)) };
        notes.add(problem, "");
        Ok(&Value::Null)
    }
}

macro_rules! integers {
    ($($method:ident => $wanted:literal),*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.visit_i64(self.of($wanted, Value::is_i64)?.as_i64().unwrap_or_default())
        }
    )*};
}

impl<'de> Deserializer<'de> for Strict<'de, '_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.value.deserialize_any(visitor).map_err(de::Error::custom)
    }

    integers! {
        deserialize_i8 => "int8", deserialize_i16 => "int16", deserialize_i32 => "int32", deserialize_i64 => "int64",
        deserialize_u8 => "uint8", deserialize_u16 => "uint16", deserialize_u32 => "uint32", deserialize_u64 => "uint64"
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_f64(self.of("float64", Value::is_number)?.as_f64().unwrap_or_default())
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_bool(self.of("bool", Value::is_boolean)?.as_bool().unwrap_or_default())
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_borrowed_str(self.of("string", Value::is_string)?.as_str().unwrap_or_default())
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.value.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let items = self.of("slice", Value::is_array)?.as_array().map_or(&[][..], Vec::as_slice);
        visitor.visit_seq(Items { items, index: 0, notes: self.notes })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(Members::of(self.of("map", Value::is_object)?.as_object(), self.notes))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let fields = self.of("struct", Value::is_object)?.as_object();
        refuse_unknown(fields.into_iter().flat_map(Map::keys), known, self.notes)?;
        visitor.visit_map(Members::of(fields, self.notes))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    /// The names of an enum are those that a text should be one of; which it is, the function finds out itself.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let text = self.of("string", Value::is_string)?.as_str().unwrap_or_default();
        if let Some(notes) = self.notes.filter(|_| !text.is_empty() && !known.contains(&text)) {
            notes.add(Problem::Unsupported { found: text.to_owned(), known }, "");
        }
        visitor.visit_borrowed_str(text)
    }

    serde::forward_to_deserialize_any! { i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any }
}

fn refuse_unknown<'k>(
    names: impl Iterator<Item = &'k String>,
    known: &'static [&'static str],
    notes: Option<&Notes>,
) -> Result<(), Error> {
    for name in names.filter(|name| !known.contains(&name.as_str())) {
        let problem = Problem::Unknown { name: name.clone(), known };
        match notes {
            Some(notes) => notes.add(problem, &token(name)),
            None => return Err(Error::at_once(problem).within(name)),
        }
    }
    Ok(())
}

/// The members of an object, each under the rules above.
struct Members<'de, 'n> {
    rest: Option<serde_json::map::Iter<'de>>,
    current: Option<(&'de str, &'de Value)>,
    without_header: bool,
    notes: Option<&'n Notes>,
}

impl<'de, 'n> Members<'de, 'n> {
    fn of(fields: Option<&'de Map<String, Value>>, notes: Option<&'n Notes>) -> Self {
        Self { rest: fields.map(Map::iter), current: None, without_header: false, notes }
    }
}

fn in_header(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

impl<'de> MapAccess<'de> for Members<'de, '_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let skipped = self.without_header;
        let next = self.rest.as_mut().and_then(|rest| rest.find(|(name, _)| !(skipped && in_header(name))));
        let Some((name, value)) = next else { return Ok(None) };
        self.current = Some((name, value));
        let name: StrDeserializer<'_, Error> = name.as_str().into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let Some((name, value)) = self.current.take() else {
            return Err(de::Error::custom("a value was asked for before its name"));
        };
        let notes = self.notes;
        Notes::within(notes, name, || seed.deserialize(Strict { value, notes }))
    }
}

struct Items<'de, 'n> {
    items: &'de [Value],
    index: usize,
    notes: Option<&'n Notes>,
}

impl<'de> SeqAccess<'de> for Items<'de, '_> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        let Some(value) = self.items.get(self.index) else { return Ok(None) };
        let (index, notes) = (self.index, self.notes);
        self.index += 1;
        let decode = || seed.deserialize(Strict { value, notes });
        match notes {
            Some(_) => Notes::within(notes, &index.to_string(), decode),
            None => decode().map_err(|error| error.within(&index.to_string())),
        }
        .map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len() - self.index)
    }
}

/// The root: a struct without its header.
struct Object<'de, 'n> {
    fields: &'de Map<String, Value>,
    notes: Option<&'n Notes>,
}

impl<'de> Deserializer<'de> for Object<'de, '_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let members = Members { without_header: true, ..Members::of(Some(self.fields), self.notes) };
        MapAccessDeserializer::new(members).deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        refuse_unknown(self.fields.keys().filter(|name| !in_header(name)), known, self.notes)?;
        self.deserialize_any(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use transom_function::testing::RequestBuilder;

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(default, rename_all = "camelCase")]
    struct Input {
        words: Vec<String>,
        how_many: Option<i64>,
        nested: Option<Nested>,
        by_key: BTreeMap<String, Nested>,
        anything: Option<Value>,
        flag: bool,
    }

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(default)]
    struct Nested {
        size: i64,
    }

    fn decode(json: Value) -> Result<Input, String> {
        let request = RequestBuilder::new(json!({})).input(json).build();
        input(&request, "v1.Input").map_err(|e| e.to_string())
    }

    #[test]
    fn inputs_are_decoded() {
        let expected = Input {
            words: vec!["a".to_owned(), String::new()],
            how_many: Some(3),
            nested: Some(Nested { size: 0 }),
            by_key: BTreeMap::from([("k".to_owned(), Nested { size: 7 })]),
            anything: Some(json!({"any": [null]})),
            flag: true,
        };
        let json = json!({
            "apiVersion": "x/v1", "kind": "Input", "metadata": {"name": "n", "labels": {"a": "b"}, "creationTimestamp": null},
            "words": ["a", null], "howMany": 3, "nested": {"size": null}, "byKey": {"k": {"size": 7}},
            "anything": {"any": [null]}, "flag": true,
        });
        assert_eq!(decode(json), Ok(expected));
        let nulls = json!({"words": null, "howMany": null, "nested": null, "byKey": null, "anything": null, "flag": null});
        assert_eq!(decode(nulls), Ok(Input::default()));
        assert_eq!(input::<Input>(&RunFunctionRequest::default(), "v1.Input").ok(), Some(Input::default()));
    }

    #[test]
    fn mistakes_are_refused() {
        for (json, words) in [
            (json!({"word": []}), "unknown object member name \"word\""),
            (json!({"HowMany": 1}), "within \"/HowMany\": unknown object member name \"HowMany\""),
            (
                json!({"nested": {"sizes": 1}}),
                "within \"/nested/sizes\": unknown object member name \"sizes\"",
            ),
            (
                json!({"byKey": {"a/b": {"size": "x"}}}),
                "JSON string into Go int64 within \"/byKey/a~1b/size\"",
            ),
            (json!({"howMany": 1.5}), "JSON number into Go int64 within \"/howMany\""),
            (json!({"words": "x"}), "JSON string into Go slice within \"/words\""),
            (json!({"words": [true]}), "JSON boolean into Go string within \"/words/0\""),
            (json!({"kind": 1}), "JSON number into Go string within \"/kind\""),
            (
                json!({"metadata": {"nam": "x"}}),
                "within \"/metadata/nam\": unknown object member name \"nam\"",
            ),
        ] {
            let error = decode(json.clone()).err().unwrap_or_default();
            let prefix =
                "cannot get function input *v1.Input from *v1.RunFunctionRequest: cannot unmarshal JSON from";
            assert!(error.starts_with(prefix) && error.ends_with(words), "{json}: {error}");
        }
    }

    #[test]
    fn a_review_notes_everything_and_reads_on() {
        let json = json!({
            "kind": 1, "word": [], "howMany": "3", "flag": true,
            "words": ["a", true], "byKey": {"a/b": {"sizes": 1, "size": 7}},
        });
        let (decoded, found) = review::<Input>(json.as_object().unwrap());
        let decoded = decoded.unwrap();
        assert!(decoded.flag && decoded.how_many.unwrap_or_default() == 0);
        assert_eq!((decoded.words.len(), decoded.by_key["a/b"].size), (2, 7));
        let mut pointers: Vec<&str> = found.iter().map(|error| error.pointer.as_str()).collect();
        pointers.sort_unstable();
        assert_eq!(pointers, ["/byKey/a~1b/sizes", "/howMany", "/kind", "/word", "/words/1"]);
        let (_, found) = review::<Input>(json!({"words": ["a"]}).as_object().unwrap());
        assert!(found.is_empty(), "{found:?}");
    }
}

//! Decoding a step's input as the functions written in Go do: unknown members are refused and names are
//! case-sensitive, null is the same as leaving a field out, and an absent input is an empty one.
//!
//! An input is an ordinary `#[derive(Deserialize)]` struct with `#[serde(default, rename_all = "camelCase")]`; nothing
//! more is needed, because the strictness is in the deserializer. It must not use `#[serde(flatten)]`, which hides the
//! names of the fields. Every input is a Kubernetes object; the members of its header (`apiVersion`, `kind`,
//! `metadata`) are checked here, and the struct describes the rest. Fields of type [`serde_json::Value`] take any JSON.

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
pub fn input<T: DeserializeOwned>(request: &RunFunctionRequest, go_type: &str) -> Result<T, FunctionError> {
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
pub fn object<T: DeserializeOwned>(fields: &Map<String, Value>) -> Result<T, Error> {
    for (name, value) in fields {
        let checked = match name.as_str() {
            "apiVersion" | "kind" => String::deserialize(Strict(value)).map(drop),
            "metadata" => Metadata::deserialize(Strict(value)).map(drop),
            _ => Ok(()),
        };
        checked.map_err(|error| error.within(name))?;
    }
    T::deserialize(Object { fields })
}

/// Decodes a value that is no object with a header.
pub fn value<T: DeserializeOwned>(value: &Value) -> Result<T, Error> {
    T::deserialize(Strict(value))
}

/// What the header of an object may say. It is of no consequence to a function, but misspelling it is an error.
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
    pointer: String,
    problem: Problem,
}

#[derive(Debug)]
enum Problem {
    /// A member the type does not have.
    Unknown(String),
    /// JSON of this kind where the type wants that.
    Mismatch {
        found: &'static str,
        wanted: &'static str,
    },
    Other(String),
}

impl Error {
    fn at_once(problem: Problem) -> Self {
        Self { pointer: String::new(), problem }
    }

    fn within(mut self, segment: &str) -> Self {
        let escaped = segment.replace('~', "~0").replace('/', "~1");
        self.pointer.insert_str(0, &format!("/{escaped}"));
        self
    }

    /// The words of Go's decoder, which names the type that is decoded into; below the root that is any type.
    pub fn describe(&self, go_type: &str) -> String {
        let place = match self.pointer.as_str() {
            "" => String::new(),
            pointer => format!(" within {}", quote(pointer)),
        };
        match &self.problem {
            Problem::Unknown(name) => {
                format!(
                    "json: cannot unmarshal JSON string into Go {go_type}{place}: unknown object member name {}",
                    quote(name)
                )
            }
            Problem::Mismatch { found, wanted } => {
                format!("json: cannot unmarshal JSON {found} into Go {wanted}{place}")
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

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "boolean",
        other => transom_object::json::kind_of(other),
    }
}

/// A value under the rules above.
struct Strict<'de>(&'de Value);

impl Strict<'_> {
    fn mismatch(&self, wanted: &'static str) -> Error {
        Error::at_once(Problem::Mismatch { found: kind(self.0), wanted })
    }
}

macro_rules! integers {
    ($($method:ident => $wanted:literal),*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            match self.0 {
                Value::Null => visitor.visit_i64(0),
                Value::Number(number) if number.is_i64() => visitor.visit_i64(number.as_i64().unwrap_or_default()),
                _ => Err(self.mismatch($wanted)),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Strict<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.0.deserialize_any(visitor).map_err(de::Error::custom)
    }

    integers! {
        deserialize_i8 => "int8", deserialize_i16 => "int16", deserialize_i32 => "int32", deserialize_i64 => "int64",
        deserialize_u8 => "uint8", deserialize_u16 => "uint16", deserialize_u32 => "uint32", deserialize_u64 => "uint64"
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Null => visitor.visit_f64(0.0),
            Value::Number(number) => visitor.visit_f64(number.as_f64().unwrap_or_default()),
            _ => Err(self.mismatch("float64")),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Null => visitor.visit_bool(false),
            Value::Bool(truth) => visitor.visit_bool(*truth),
            _ => Err(self.mismatch("bool")),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Null => visitor.visit_borrowed_str(""),
            Value::String(text) => visitor.visit_borrowed_str(text),
            _ => Err(self.mismatch("string")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let items = match self.0 {
            Value::Null => &[][..],
            Value::Array(items) => items,
            _ => return Err(self.mismatch("slice")),
        };
        visitor.visit_seq(Items { items, index: 0 })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Null => visitor.visit_map(Members::of(None)),
            Value::Object(fields) => visitor.visit_map(Members::of(Some(fields))),
            _ => Err(self.mismatch("map")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if let Value::Object(fields) = self.0 {
            refuse_unknown(fields.keys(), known)?;
        } else if !self.0.is_null() {
            return Err(self.mismatch("struct"));
        }
        self.deserialize_map(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.deserialize_enum(name, variants, visitor).map_err(de::Error::custom)
    }

    serde::forward_to_deserialize_any! { i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any }
}

fn refuse_unknown<'k>(names: impl Iterator<Item = &'k String>, known: &[&str]) -> Result<(), Error> {
    for name in names {
        if !known.contains(&name.as_str()) {
            return Err(Error::at_once(Problem::Unknown(name.clone())).within(name));
        }
    }
    Ok(())
}

/// The members of an object, each under the rules above.
struct Members<'de> {
    rest: Option<serde_json::map::Iter<'de>>,
    current: Option<(&'de str, &'de Value)>,
    without_header: bool,
}

impl<'de> Members<'de> {
    fn of(fields: Option<&'de Map<String, Value>>) -> Self {
        Self { rest: fields.map(Map::iter), current: None, without_header: false }
    }
}

fn in_header(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

impl<'de> MapAccess<'de> for Members<'de> {
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
        seed.deserialize(Strict(value)).map_err(|error| error.within(name))
    }
}

struct Items<'de> {
    items: &'de [Value],
    index: usize,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        let Some(item) = self.items.get(self.index) else { return Ok(None) };
        let decoded =
            seed.deserialize(Strict(item)).map_err(|error| error.within(&self.index.to_string()))?;
        self.index += 1;
        Ok(Some(decoded))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len() - self.index)
    }
}

/// The root: a struct without its header.
struct Object<'de> {
    fields: &'de Map<String, Value>,
}

impl<'de> Deserializer<'de> for Object<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let members = Members { without_header: true, ..Members::of(Some(self.fields)) };
        MapAccessDeserializer::new(members).deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        refuse_unknown(self.fields.keys().filter(|name| !in_header(name)), known)?;
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
}

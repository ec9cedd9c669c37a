//! The request as a template sees it: its JSON form, in which whatever is unset or empty is absent, bytes are base64
//! and a number is an integer whenever it can be.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use transom_function::proto::v1::credentials::Source;
use transom_function::{
    Capability, Credentials, Ready, Resource, Resources, RunFunctionRequest, State, Struct,
};
use transom_gotemplate::{Key, Map, MapType, Value};

use std::collections::BTreeMap;

/// The request as the template's dot.
pub(super) fn of(request: &RunFunctionRequest) -> Value {
    let mut dot = Fields::default();
    if let Some(meta) = &request.meta {
        let mut fields = Fields::default();
        if !meta.tag.is_empty() {
            fields.set("tag", Value::str(meta.tag.as_str()));
        }
        if !meta.capabilities.is_empty() {
            let capabilities = meta.capabilities.iter().map(|number| capability(*number));
            fields.set("capabilities", Value::list(capabilities.collect()));
        }
        dot.set("meta", fields.into());
    }
    dot.set_some("observed", request.observed.as_ref().map(state));
    dot.set_some("desired", request.desired.as_ref().map(state));
    dot.set_some("input", request.input.as_ref().map(object));
    dot.set_some("context", request.context.as_ref().map(object));
    dot.set_map("extraResources", &request.extra_resources, resources);
    dot.set_map("credentials", &request.credentials, credentials);
    dot.set_map("requiredResources", &request.required_resources, resources);
    dot.set_map("requiredSchemas", &request.required_schemas, |schema| {
        let mut fields = Fields::default();
        fields.set_some("openapiV3", schema.openapi_v3.as_ref().map(object));
        fields.into()
    });
    // Both names are one map, as in the original: a template that changes it sees it changed under either.
    if request.extra_resources.is_empty()
        && let Some(required) = dot.0.get(&Key::str("requiredResources"))
    {
        dot.set("extraResources", required);
    }
    dot.into()
}

/// An object under construction.
struct Fields(Map);

impl Default for Fields {
    fn default() -> Self {
        Self(Map::new(MapType::StrAny))
    }
}

impl Fields {
    fn set(&mut self, name: &str, value: Value) {
        self.0.insert(Key::str(name), value);
    }

    fn set_some(&mut self, name: &str, value: Option<Value>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }

    fn set_map<T>(&mut self, name: &str, entries: &BTreeMap<String, T>, value: impl Fn(&T) -> Value) {
        if !entries.is_empty() {
            let entries = entries.iter().map(|(key, entry)| (key.as_str(), value(entry)));
            self.set(name, Value::map(entries));
        }
    }
}

impl From<Fields> for Value {
    fn from(fields: Fields) -> Self {
        Value::Map(fields.0)
    }
}

fn capability(number: i32) -> Value {
    match Capability::try_from(number) {
        Ok(capability) => Value::str(capability.as_str_name()),
        Err(_) => Value::int64(number.into()),
    }
}

fn state(state: &State) -> Value {
    let mut fields = Fields::default();
    fields.set_some("composite", state.composite.as_ref().map(resource));
    fields.set_map("resources", &state.resources, resource);
    fields.into()
}

fn resources(resources: &Resources) -> Value {
    let mut fields = Fields::default();
    if !resources.items.is_empty() {
        fields.set("items", Value::list(resources.items.iter().map(resource).collect()));
    }
    fields.into()
}

fn resource(resource: &Resource) -> Value {
    let mut fields = Fields::default();
    fields.set_some("resource", resource.resource.as_ref().map(object));
    fields.set_map("connectionDetails", &resource.connection_details, |bytes| base64(bytes));
    match Ready::try_from(resource.ready) {
        Ok(Ready::Unspecified) => {}
        Ok(ready) => fields.set("ready", Value::str(ready.as_str_name())),
        Err(_) => fields.set("ready", Value::int64(resource.ready.into())),
    }
    fields.into()
}

fn credentials(credentials: &Credentials) -> Value {
    let mut fields = Fields::default();
    if let Some(Source::CredentialData(source)) = &credentials.source {
        let mut data = Fields::default();
        data.set_map("data", &source.data, |bytes| base64(bytes));
        fields.set("credentialData", data.into());
    }
    fields.into()
}

fn base64(bytes: &[u8]) -> Value {
    Value::str(STANDARD.encode(bytes))
}

fn object(object: &Struct) -> Value {
    json(object.as_value())
}

fn json(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(integer) if integer.unsigned_abs() <= MAX_EXACT_INTEGER => Value::int64(integer),
            _ => self::number(number.as_f64().unwrap_or_default()),
        },
        serde_json::Value::Array(items) => Value::list(items.iter().map(json).collect()),
        serde_json::Value::Object(fields) => {
            Value::map(fields.iter().map(|(key, value)| (key.as_str(), json(value))))
        }
        scalar => Value::from(scalar),
    }
}

/// Up to here every integer is a double.
const MAX_EXACT_INTEGER: u64 = 1 << 53;

/// A double on the wire, printed and read back as the original does it: what prints without point and exponent and
/// fits 64 bits is an integer. Large ones print the digits that tell them apart, then zeros.
pub(super) fn number(float: f64) -> Value {
    if float.fract() == 0.0
        && float.abs() < 1e19
        && let Ok(integer) = float.to_string().parse()
    {
        return Value::int64(integer);
    }
    Value::Float(float)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use transom_function::testing::RequestBuilder;

    fn data_as_json(request: &RunFunctionRequest) -> serde_json::Value {
        serde_json::Value::try_from(&of(request)).unwrap()
    }

    #[test]
    fn it_is_the_request_in_json() {
        let mut request = RequestBuilder::new(json!({"kind": "XR", "spec": {"n": 1, "f": 1.5, "z": null}}))
            .observed("a", json!({"kind": "A"}))
            .desired("b", json!({"kind": "B"}))
            .input(json!({"source": "Inline"}))
            .context("k", json!({"v": [1, "x", true]}))
            .credential("aws", "key", b"secret")
            .required("nodes", [json!({"kind": "Node"})])
            .required("none", [])
            .build();
        request.observed.as_mut().unwrap().composite.as_mut().unwrap().connection_details =
            BTreeMap::from([("url".to_owned(), b"x".to_vec())]);
        request.desired.as_mut().unwrap().resources.get_mut("b").unwrap().set_ready(Ready::True);
        request.required_schemas.insert("s".to_owned(), Default::default());
        let mut expected = serde_json::to_value(&request).unwrap();
        expected["extraResources"] = expected["requiredResources"].clone();
        assert_eq!(data_as_json(&request), expected);
        // With a value of its own, the other name is not set.
        request.extra_resources.insert("e".to_owned(), Resources::default());
        assert_eq!(data_as_json(&request), serde_json::to_value(&request).unwrap());
        assert_eq!(data_as_json(&RunFunctionRequest::default()), json!({}));
    }

    #[test]
    fn numbers_are_integers_when_they_can_be() {
        for (given, expected) in [
            (json!(3), "int64 3"),
            (json!(3.0), "int64 3"),
            (json!(-0.0), "int64 0"),
            (json!(3.5), "float64 3.5"),
            (json!(9_007_199_254_740_993_i64), "int64 9007199254740992"),
            (json!(i64::MAX), "float64 9.223372036854776e+18"),
            (json!(-9.3e18), "float64 -9.3e+18"),
            (json!(1e30), "float64 1e+30"),
        ] {
            let value = json(&given);
            let printed = transom_go::fmt::sprintf("%v", std::slice::from_ref(&value));
            assert_eq!(format!("{} {printed}", value.type_name()), expected, "{given}");
        }
    }
}

//! A resource in a request or response: an object seen through field paths or as a type.

use crate::{Error, NotAnObject, Ready, Resource, State, Struct};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use transom_object::{conditions, fieldpath};

static NULL: Value = Value::Null;

impl Resource {
    /// A resource from a JSON object.
    pub fn new(object: Value) -> Result<Self, NotAnObject> {
        Ok(Self { resource: Some(Struct::try_from(object)?), ..Self::default() })
    }

    /// A resource from a type that serializes to an object.
    pub fn from_typed(object: &impl Serialize) -> Result<Self, Error> {
        Ok(Self::new(serde_json::to_value(object)?)?)
    }

    /// The resource as a type.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Error> {
        Ok(T::deserialize(self.object())?)
    }

    /// The same resource with the given readiness.
    #[must_use]
    pub fn with_ready(mut self, ready: Ready) -> Self {
        self.set_ready(ready);
        self
    }

    /// The object; null when there is none.
    pub fn object(&self) -> &Value {
        self.resource.as_ref().map_or(&NULL, Struct::as_value)
    }

    /// The value at a field path such as `spec.rules[0].host`.
    pub fn get(&self, path: &str) -> Result<&Value, fieldpath::Error> {
        fieldpath::get(self.object(), path)
    }

    /// The string at a field path.
    pub fn get_str(&self, path: &str) -> Result<&str, fieldpath::Error> {
        fieldpath::get_string(self.object(), path)
    }

    /// Sets the value at a field path, making the objects and arrays on the way.
    pub fn set(&mut self, path: &str, value: impl Into<Value>) -> Result<(), fieldpath::Error> {
        let object = self.resource.get_or_insert_with(Struct::default);
        object.with_value(|object| fieldpath::set(object, path, value.into()))
    }

    /// `metadata.name`, or an empty string.
    pub fn name(&self) -> &str {
        self.get_str("metadata.name").unwrap_or_default()
    }

    /// `metadata.namespace`, or an empty string.
    pub fn namespace(&self) -> &str {
        self.get_str("metadata.namespace").unwrap_or_default()
    }

    /// The status condition of a type.
    pub fn condition(&self, kind: &str) -> Option<&Value> {
        conditions::find(self.get("status.conditions").ok()?.as_array()?, kind)
    }

    /// Whether the status condition of a type is `True`.
    pub fn has_condition(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|condition| condition["status"] == "True")
    }
}

impl State {
    /// A state with a composite resource and nothing composed.
    pub fn of(composite: Resource) -> Self {
        Self { composite: Some(composite), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeMap;

    #[test]
    fn fields_are_read_and_written_by_path() {
        let mut resource = Resource::default();
        assert!(resource.get("spec").is_err());
        resource.set("spec.items[0].name", "a").unwrap();
        resource.set("metadata.name", "x").unwrap();
        assert_eq!(
            resource.object(),
            &json!({"spec": {"items": [{"name": "a"}]}, "metadata": {"name": "x"}})
        );
        assert_eq!((resource.name(), resource.namespace()), ("x", ""));
        assert!(resource.set("[0]", 1).is_err());
        assert!(resource.object().is_object());
    }

    #[test]
    fn conditions_are_found() {
        let resource =
            Resource::new(json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}));
        let resource = resource.unwrap();
        assert!(resource.has_condition("Ready"));
        assert!(!resource.has_condition("Synced"));
    }

    #[test]
    fn types_go_in_and_out() {
        let typed = BTreeMap::from([("a".to_owned(), 1)]);
        let resource = Resource::from_typed(&typed).unwrap().with_ready(Ready::True);
        assert_eq!(resource.parse::<BTreeMap<String, i32>>().unwrap(), typed);
        assert_eq!(resource.ready(), Ready::True);
        assert!(Resource::from_typed(&[1]).is_err());
    }
}

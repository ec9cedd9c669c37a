//! Where a composite resource keeps what belongs to Crossplane: a legacy one right in its spec, a modern one in
//! `spec.crossplane`.

use serde_json::{Map, Value, json};
use transom_object::meta;

/// The layout of a composite resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schema {
    /// Scope `Namespaced` or `Cluster`.
    #[default]
    Modern,
    /// Scope `LegacyCluster`: every composite resource before version 2.
    Legacy,
}

impl Schema {
    /// The fields that belong to Crossplane.
    pub fn machinery(self, xr: &Value) -> Option<&Map<String, Value>> {
        let spec = xr.get("spec")?;
        match self {
            Self::Legacy => spec.as_object(),
            Self::Modern => spec.get("crossplane")?.as_object(),
        }
    }

    /// A composite resource's spec with nothing but fields that belong to Crossplane.
    fn spec(self, machinery: Value) -> Value {
        match self {
            Self::Legacy => machinery,
            Self::Modern => Map::from_iter([("crossplane".to_owned(), machinery)]).into(),
        }
    }
}

/// A reference to a composed resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    pub api_version: String,
    pub kind: String,
    /// Empty for a resource that was never rendered.
    pub name: String,
    /// Empty when it is cluster-scoped, or in the namespace of its composite resource.
    pub namespace: String,
}

impl Reference {
    /// The reference to an object.
    pub fn to(object: &Value) -> Self {
        Self {
            api_version: meta::api_version(object).to_owned(),
            kind: meta::kind(object).to_owned(),
            name: meta::name(object).to_owned(),
            namespace: meta::namespace(object).to_owned(),
        }
    }

    fn read(value: &Value) -> Self {
        let text = |field| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self {
            api_version: text("apiVersion"),
            kind: text("kind"),
            name: text("name"),
            namespace: text("namespace"),
        }
    }

    fn write(&self) -> Value {
        let mut object = json!({"apiVersion": self.api_version, "kind": self.kind});
        for (field, text) in [("name", &self.name), ("namespace", &self.namespace)] {
            if !text.is_empty() {
                object[field] = text.as_str().into();
            }
        }
        object
    }

    /// Crossplane orders references by these, one right after the other.
    fn order(&self) -> String {
        [&*self.api_version, &self.kind, &self.name, &self.namespace].concat()
    }
}

/// The composed resources that a composite resource refers to.
pub fn references(xr: &Value, schema: Schema) -> Vec<Reference> {
    let list = schema.machinery(xr).and_then(|fields| fields.get("resourceRefs")).and_then(Value::as_array);
    list.into_iter().flatten().map(Reference::read).collect()
}

/// What to apply to a composite resource so that it refers to these resources: its identity and nothing else. A
/// namespaced one does not say its own namespace again.
pub fn with_references(xr: &Value, schema: Schema, mut references: Vec<Reference>) -> Value {
    if !meta::namespace(xr).is_empty() {
        references.iter_mut().for_each(|reference| reference.namespace.clear());
    }
    references.sort_by_cached_key(Reference::order);
    let mut object = identity(xr);
    let references = references.iter().map(Reference::write).collect::<Vec<_>>();
    object["spec"] = schema.spec(json!({"resourceRefs": references}));
    object
}

/// A composite resource without anything but what names it.
pub(crate) fn identity(xr: &Value) -> Value {
    let mut object = json!({
        "apiVersion": meta::api_version(xr), "kind": meta::kind(xr), "metadata": {"name": meta::name(xr)},
    });
    meta::set_namespace(&mut object, meta::namespace(xr));
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_sorted_and_namespaced() {
        let reference = |kind: &str, name: &str| Reference {
            api_version: "v1".into(),
            kind: kind.into(),
            name: name.into(),
            namespace: "n".into(),
        };
        let refs = vec![reference("B", "a"), reference("A", "b"), reference("A", "a")];
        let mut xr = json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "x", "uid": "u"}, "spec": {"a": 1}});
        let cluster = with_references(&xr, Schema::Legacy, refs.clone());
        assert_eq!(
            cluster,
            json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "x"}, "spec": {"resourceRefs": [
                {"apiVersion": "v1", "kind": "A", "name": "a", "namespace": "n"},
                {"apiVersion": "v1", "kind": "A", "name": "b", "namespace": "n"},
                {"apiVersion": "v1", "kind": "B", "name": "a", "namespace": "n"},
            ]}})
        );
        assert_eq!(references(&cluster, Schema::Legacy).len(), 3);
        assert!(references(&cluster, Schema::Modern).is_empty());
        meta::set_namespace(&mut xr, "n");
        let namespaced = with_references(&xr, Schema::Modern, refs);
        assert_eq!(namespaced["metadata"], json!({"name": "x", "namespace": "n"}));
        assert_eq!(
            namespaced["spec"]["crossplane"]["resourceRefs"][0],
            json!({"apiVersion": "v1", "kind": "A", "name": "a"})
        );
    }
}

//! A composite resource's references to what it composes.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use transom_object::meta;
use transom_xapi::composite::Layout;
use transom_xapi::metadata::TypedReference;

/// The composed resources that a composite resource refers to.
pub(crate) fn references(xr: &Value, layout: Layout) -> Vec<TypedReference> {
    let list = layout.machinery(xr).and_then(|fields| fields.get("resourceRefs")).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(|value| TypedReference::deserialize(value).ok()).collect()
}

/// What to apply to a composite resource so that it refers to these resources: its identity and nothing else. A
/// namespaced one does not repeat its own namespace.
pub(crate) fn with_references(xr: &Value, layout: Layout, mut references: Vec<TypedReference>) -> Value {
    if !meta::namespace(xr).is_empty() {
        references.iter_mut().for_each(|reference| reference.namespace.clear());
    }
    // Crossplane orders references by these, one right after the other.
    references.sort_by_cached_key(order);
    let mut object = identity(xr);
    let machinery = json!({"resourceRefs": references});
    object["spec"] = match layout {
        Layout::Legacy => machinery,
        Layout::Modern => Map::from_iter([("crossplane".to_owned(), machinery)]).into(),
    };
    object
}

/// The order of references.
pub(crate) fn order(r: &TypedReference) -> String {
    [&*r.api_version, &r.kind, &r.name, &r.namespace].concat()
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
        let reference = |kind: &str, name: &str| TypedReference {
            api_version: "v1".into(),
            kind: kind.into(),
            name: name.into(),
            namespace: "n".into(),
        };
        let refs = vec![reference("B", "a"), reference("A", "b"), reference("A", "a")];
        let mut xr = json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "x", "uid": "u"}, "spec": {"a": 1}});
        let cluster = with_references(&xr, Layout::Legacy, refs.clone());
        assert_eq!(
            cluster,
            json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "x"}, "spec": {"resourceRefs": [
                {"apiVersion": "v1", "kind": "A", "name": "a", "namespace": "n"},
                {"apiVersion": "v1", "kind": "A", "name": "b", "namespace": "n"},
                {"apiVersion": "v1", "kind": "B", "name": "a", "namespace": "n"},
            ]}})
        );
        assert_eq!(references(&cluster, Layout::Legacy).len(), 3);
        assert!(references(&cluster, Layout::Modern).is_empty());
        meta::set_namespace(&mut xr, "n");
        let namespaced = with_references(&xr, Layout::Modern, refs);
        assert_eq!(namespaced["metadata"], json!({"name": "x", "namespace": "n"}));
        assert_eq!(
            namespaced["spec"]["crossplane"]["resourceRefs"][0],
            json!({"apiVersion": "v1", "kind": "A", "name": "a"})
        );
    }
}

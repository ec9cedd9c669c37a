//! Persisting the references of a composite resource to what it composes.

use crate::composite::{order, references};
use crate::decision::References;
use crate::json_equality::same;
use serde_json::{Value, json};
use transom_object::meta;
use transom_xapi::composite::Layout;
use transom_xapi::metadata::TypedReference;

/// The field with references to what is composed.
const RESOURCE_REFS: &str = "resourceRefs";

/// References to apply to a composite resource, and those that it has.
#[derive(Clone, Debug, PartialEq)]
pub struct PersistReferences {
    /// The identity of the composite resource and the references, nothing else.
    pub intent: Value,
    /// The references that it has now; null if it has none.
    pub live: Value,
    /// Where the composite resource keeps them.
    pub layout: Layout,
    /// Whether they differ from those that the decision was based on.
    pub changed: bool,
}

impl PersistReferences {
    pub(crate) fn new(references: &References, xr: &Value, layout: Layout) -> Self {
        Self {
            intent: references.object.clone(),
            live: list(xr, layout).cloned().unwrap_or_default(),
            layout,
            changed: references.changed,
        }
    }

    /// Whether the composite resource has these references already. Field ownership covers the list as a whole, so the
    /// client that wrote it wrote all of it.
    pub fn is_persisted(&self) -> bool {
        list(&self.intent, self.layout).is_some_and(|wanted| same(wanted, &self.live))
    }

    /// The same, and references to objects that could not be deleted.
    pub(crate) fn keeping(&self, objects: &[&Value]) -> Self {
        let mut all = references(&self.intent, self.layout);
        for object in objects {
            let mut reference = TypedReference::to(object);
            if !meta::namespace(&self.intent).is_empty() {
                reference.namespace.clear();
            }
            all.push(reference);
        }
        all.sort_by_cached_key(order);
        let mut intent = self.intent.clone();
        put(&mut intent, self.layout, json!(all));
        Self { intent, changed: false, ..self.clone() }
    }
}

/// Puts the references of a decision into a composite resource.
pub(crate) fn refer(xr: &mut Value, wanted: &References, layout: Layout) {
    if let Some(wanted) = list(&wanted.object, layout) {
        put(xr, layout, wanted.clone());
    }
}

fn list(xr: &Value, layout: Layout) -> Option<&Value> {
    layout.machinery(xr).and_then(|fields| fields.get(RESOURCE_REFS))
}

fn put(xr: &mut Value, layout: Layout, references: Value) {
    if let Some(fields) = layout.machinery_mut(xr) {
        fields.insert(RESOURCE_REFS.to_owned(), references);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> Value {
        let list: Vec<Value> =
            names.iter().map(|name| json!({"apiVersion": "v1", "kind": "A", "name": name})).collect();
        json!({"metadata": {"name": "x", "namespace": "n"}, "spec": {"crossplane": {"resourceRefs": list}}})
    }

    #[test]
    fn objects_in_use_stay_referenced_in_order() {
        let references = References { object: named(&["a", "c"]), changed: true };
        let persist = PersistReferences::new(&references, &named(&["a", "b", "c"]), Layout::Modern);
        assert!(!persist.is_persisted());
        let in_use = json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "b", "namespace": "n"}});
        let keeping = persist.keeping(&[&in_use]);
        assert_eq!(keeping.intent, named(&["a", "b", "c"]));
        assert!(keeping.is_persisted() && !keeping.changed);
    }

    #[test]
    fn a_composite_resource_without_references_lacks_even_an_empty_list() {
        let references = References { object: named(&[]), changed: false };
        assert!(!PersistReferences::new(&references, &json!({}), Layout::Modern).is_persisted());
    }
}

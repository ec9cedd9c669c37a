//! The kinds of the first design of resource composition (004), translated into today's.
//!
//! The design has `ApplicationDefinition`, `InfrastructureDefinition`, `InfrastructurePublication` and a `Composition` with `from`
//! and `to`, all of `apiextensions.crossplane.io/v1alpha1`, and keeps the fields of an instance that belong to the control
//! plane in `spec.application` or `spec.infrastructure`. They are another layout of definitions, Compositions, composite
//! resources and claims: [`translate`] writes the same in today's layout. `docs/design-004.md` has the table.
//!
//! What breaks a rule of the design is a [`Mistake`]; what today's kinds cannot express is a [`Remark`]. Both name the object
//! and the field. Objects of other kinds are returned as they are.

mod block;
mod catalogue;
mod composition;
mod definition;
mod field;
mod instance;
mod notes;
mod order;
mod part;
mod schema;
mod scope;

pub use field::Field;
pub use notes::{Difference, Mistake, Problem, Remark};

use catalogue::{Catalogue, Role};
use notes::Notes;
use part::Part;
use serde_json::Value;
use transom_object::meta;

/// An object in today's layout.
#[derive(Clone, Debug, PartialEq)]
pub struct Translated {
    /// Which of the given objects it was.
    pub input: usize,
    /// The object.
    pub object: Value,
}

/// What became of the objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Translation {
    /// Today's objects, in the order in which they can be applied.
    pub objects: Vec<Translated>,
    /// What is wrong. The objects that something is wrong with are left out.
    pub mistakes: Vec<Mistake>,
    /// What was left out or read in another way.
    pub remarks: Vec<Remark>,
}

/// Translates objects that belong together: definitions, what publishes them, Compositions and instances, in any order.
pub fn translate(objects: &[Value]) -> Translation {
    let mut notes = Notes::default();
    let catalogue = Catalogue::of(objects, &mut notes);
    let mut translated = Vec::new();
    for (input, object) in objects.iter().enumerate() {
        notes.begin(input, object);
        let object = translate_one(object, &catalogue, &mut notes);
        translated.extend(object.map(|object| Translated { input, object }));
    }
    let Notes { mut mistakes, mut remarks, .. } = notes;
    mistakes.sort_by_key(|mistake| mistake.input);
    remarks.sort_by_key(|remark| remark.input);
    translated.retain(|one| mistakes.iter().all(|mistake| mistake.input != one.input));
    order::applicable(&mut translated);
    Translation { objects: translated, mistakes, remarks }
}

/// Today's object; nothing if it has become a part of another, or cannot be translated.
fn translate_one(object: &Value, catalogue: &Catalogue, notes: &mut Notes) -> Option<Value> {
    match Kind::of(object) {
        Some(Kind::Definition(role)) => definition::translate(&Part::whole(object), role, catalogue, notes),
        // `Catalogue::of` has read it: it is a part of the definition.
        Some(Kind::Publication) => None,
        Some(Kind::Composition) => composition::translate(&Part::whole(object), catalogue, notes),
        None => match catalogue.instance_of(object) {
            Some(found) => instance::translate(&Part::whole(object), &found, notes),
            None => Some(object.clone()),
        },
    }
}

/// The kinds of the design, but for those that it defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Definition(Role),
    Publication,
    Composition,
}

impl Kind {
    fn of(object: &Value) -> Option<Self> {
        if meta::api_version(object) != crate::constants::kind::APIEXTENSIONS_V1ALPHA1 {
            return None;
        }
        match meta::kind(object) {
            "ApplicationDefinition" => Some(Self::Definition(Role::Application)),
            "InfrastructureDefinition" => Some(Self::Definition(Role::Infrastructure)),
            "InfrastructurePublication" => Some(Self::Publication),
            crate::constants::kind::COMPOSITION => Some(Self::Composition),
            _ => None,
        }
    }
}

/// The metadata of an object without what an API server wrote.
fn metadata(object: &Value) -> Value {
    const KEPT: [&str; 5] = ["name", "generateName", "namespace", "labels", "annotations"];
    const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
    let mut metadata = serde_json::Map::new();
    for field in KEPT {
        let value = object.get("metadata").and_then(|m| m.get(field)).filter(|value| !value.is_null());
        metadata.extend(value.map(|value| (field.to_owned(), value.clone())));
    }
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
    }
    metadata.retain(|_, value| !transom_object::json::is_empty(value));
    metadata.into()
}

#[cfg(test)]
mod tests;

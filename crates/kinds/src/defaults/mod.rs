//! What kube-apiserver fills in. Most defaults belong to a type wherever it occurs, so the table is walked
//! and each struct gets the fills of its type; the few that look at several fields are functions.

mod fills;
mod special;
mod workloads;

use super::table::{Shape, Ty, Type, types};
use serde_json::{Map, Value};
use transom_object::GroupVersionKind;

/// A constant that a missing or zero field takes.
#[derive(Clone, Copy, Debug)]
enum Fill {
    Text(&'static str),
    Int(i64),
    Flag(bool),
    Object,
    /// A list of one text.
    List(&'static str),
}

impl Fill {
    fn value(self) -> Value {
        match self {
            Fill::Text(s) => s.into(),
            Fill::Int(i) => i.into(),
            Fill::Flag(b) => b.into(),
            Fill::Object => Value::Object(Map::new()),
            Fill::List(s) => vec![s].into(),
        }
    }
}

/// Fills in the defaults of a built-in object, which must be normalised. Other kinds stay as they are.
pub fn default(value: &mut Value, gvk: &GroupVersionKind) {
    let kind = types().kind(&gvk.group, &gvk.version, &gvk.kind);
    if let Some(index) = kind.and_then(|k| types().index(k.type_name)) {
        walk_struct(value, types().at(index));
    }
}

fn walk_struct(value: &mut Value, ty: &'static Type) {
    let Value::Object(map) = value else { return };
    declared(map, ty);
    let name = ty.name.trim_start_matches("io.k8s.api.");
    if let Some((_, fills)) = fills::FILLS.iter().find(|(of, _)| *of == name) {
        for (field, fill) in *fills {
            if is_zero(map, ty, field) {
                map.insert((*field).to_owned(), fill.value());
            }
        }
    }
    special::apply(name, map);
    for f in &ty.flat {
        if let Some(child) = map.get_mut(f.name) {
            walk(child, &f.ty);
        }
    }
}

fn walk(value: &mut Value, ty: &'static Ty) {
    match (&ty.shape, value) {
        (Shape::Pointer(inner), value) => walk(value, inner),
        (Shape::Struct(index), value) => walk_struct(value, types().at(*index)),
        (Shape::List(inner), Value::Array(items)) => items.iter_mut().for_each(|v| walk(v, inner)),
        (Shape::Map(inner), Value::Object(map)) => map.values_mut().for_each(|v| walk(v, inner)),
        _ => {}
    }
}

/// The defaults that the Go types declare themselves (`+default=`).
fn declared(map: &mut Map<String, Value>, ty: &Type) {
    for f in &ty.flat {
        let Some(default) = &f.default else { continue };
        // A zero default changes nothing in a plain field, but it makes a pointer non-nil.
        let zero = *default == "" || *default == false || *default == 0;
        if is_zero(map, ty, f.name) && (f.ty.is_pointer() || !zero) {
            map.insert(f.name.to_owned(), default.clone());
        }
    }
}

/// Whether Go would see the field's zero value: a nil pointer, or an empty plain value.
fn is_zero(map: &Map<String, Value>, ty: &Type, field: &str) -> bool {
    let Some(value) = map.get(field) else { return true };
    let pointer = ty.field(field).is_some_and(|f| f.ty.is_pointer());
    let empty = value.as_array().is_some_and(Vec::is_empty);
    value.is_null() || (!pointer && (empty || *value == "" || *value == 0 || *value == false))
}

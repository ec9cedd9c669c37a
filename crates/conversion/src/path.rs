//! Paths that name a field by the fields that it is in. Entries of lists have no such path.

use serde_json::{Map, Value};
use std::fmt;
use transom_object::fieldpath::{self, Segment};
use transom_schema::Schema;

/// A field below `spec` or `status`, through objects only.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldPath(Vec<String>);

/// Why a text is not the path of a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// It cannot be read.
    #[error(transparent)]
    Syntax(#[from] fieldpath::Error),
    /// It leads into a list.
    #[error("must not lead into a list: give the path of the whole list, and an expression that converts it")]
    List,
    /// It is not below `spec` or `status`.
    #[error("must be a field below spec or status, such as spec.size")]
    Place,
}

impl FieldPath {
    /// Reads a path such as `spec.parameters.size`.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let names = fieldpath::parse(text)?.into_iter().map(|segment| match segment {
            Segment::Field(name) if name != "*" => Ok(name),
            Segment::Field(_) | Segment::Index(_) => Err(PathError::List),
        });
        let names = names.collect::<Result<Vec<_>, _>>()?;
        let is_below = names.len() > 1 && ["spec", "status"].contains(&names[0].as_str());
        if is_below { Ok(Self(names)) } else { Err(PathError::Place) }
    }

    /// The names of the fields on the way.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// Whether this is the other path, or below it.
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// Whether one of the two is the other one, or below it.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.is_within(other) || other.is_within(self)
    }

    /// The part of a schema that describes the field.
    pub(crate) fn schema<'s>(&self, schema: &'s Schema) -> Option<&'s Schema> {
        self.0.iter().try_fold(schema, |schema, name| schema.property(name).map(|child| &**child))
    }

    pub(crate) fn get<'v>(&self, root: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(root, |value, name| value.get(name))
    }

    /// Takes the value out, and with it the objects around it that held nothing else, but not `spec` or `status`.
    pub(crate) fn take(&self, root: &mut Value) -> Option<Value> {
        take(root, &self.0, 0)
    }

    /// Takes out the objects around the field that hold nothing, but not `spec` or `status`.
    pub(crate) fn take_empty_around(&self, root: &mut Value) {
        for length in (2..self.0.len()).rev() {
            let around = Self(self.0[..length].to_vec());
            if around.get(root).and_then(Value::as_object).is_some_and(Map::is_empty) {
                around.take(root);
            }
        }
    }

    /// Writes a value, with the objects around it. Whatever else is in the place of one of these objects is replaced.
    pub(crate) fn put(&self, root: &mut Value, value: Value) {
        let mut place = root;
        for name in &self.0 {
            if !place.is_object() {
                *place = Value::Object(Map::new());
            }
            place = &mut place[name.as_str()];
        }
        *place = value;
    }
}

fn take(value: &mut Value, names: &[String], depth: usize) -> Option<Value> {
    let (name, below) = names.split_first()?;
    let fields = value.as_object_mut()?;
    if below.is_empty() {
        return fields.remove(name);
    }
    let taken = take(fields.get_mut(name)?, below, depth + 1)?;
    if depth > 0 && fields.get(name).and_then(Value::as_object).is_some_and(Map::is_empty) {
        fields.remove(name);
    }
    Some(taken)
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let segments: Vec<Segment> = self.0.iter().map(|name| Segment::Field(name.clone())).collect();
        f.write_str(&fieldpath::format(&segments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_are_fields_below_spec_or_status() {
        for text in ["spec.size", "status.a.b", "spec['a']", "spec[a.b].c"] {
            assert!(FieldPath::parse(text).is_ok(), "{text}");
        }
        for (text, why) in [
            ("spec", "below spec or status"),
            ("metadata.labels", "below spec or status"),
            ("spec.nodes[0].size", "lead into a list"),
            ("spec.nodes[*].size", "lead into a list"),
            ("spec..x", "unexpected '.'"),
        ] {
            let error = FieldPath::parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn empty_objects_leave_with_their_last_field() {
        let path = FieldPath::parse("spec.a.b.c").unwrap();
        let mut value = json!({"spec": {"a": {"b": {"c": 1}}}});
        assert_eq!(path.take(&mut value), Some(json!(1)));
        assert_eq!(value, json!({"spec": {}}));
        let mut value = json!({"spec": {"a": {"b": {"c": 1}, "x": 2}}});
        path.take(&mut value);
        assert_eq!(value, json!({"spec": {"a": {"x": 2}}}));
        assert_eq!(path.take(&mut value), None);
        path.put(&mut value, json!(3));
        assert_eq!(value, json!({"spec": {"a": {"x": 2, "b": {"c": 3}}}}));
    }
}

//! Kept fields come back. Who writes the object also writes what is kept: any path and any value may be in it. So
//! a field comes back only to a place that the version of the object does not have and the other one has, with a value
//! that the schema of the other version accepts, and all of them together take time in proportion to the object.

use crate::kept::{Kept, Known, Segment, content, keys_of, names_of_keys};
use serde_json::{Map, Value};
use std::collections::HashMap;
use transom_object::field::{Kind, Path};
use transom_schema::{Schema, normalize, validate};

/// The schemas of the version that an object is in, and of the one that its kept fields are of.
#[derive(Clone, Copy)]
pub(crate) struct Between<'s> {
    pub(crate) source: &'s Schema,
    pub(crate) target: &'s Schema,
}

/// A field of an object, or an entry of a list.
#[derive(Clone, Debug)]
enum Location {
    Field(String),
    Entry(usize),
}

/// Puts kept fields back where the object still has what they were in, unless the field has a value by now. `place` gives the names
/// that the beginning of a path has in this object. Returns whether there are such fields.
pub(crate) fn restore(
    object: &mut Value,
    fields: Vec<Kept>,
    between: Between<'_>,
    place: impl Fn(&[String]) -> Option<Vec<String>>,
) -> bool {
    let mut lists = Lists::default();
    let mut placed: Vec<(Vec<Location>, Value)> = Vec::new();
    for mut kept in fields {
        if !accept(&mut kept, between.target) {
            continue;
        }
        if let Some(names) = place(&kept.leading_names()) {
            kept.rename(names);
        }
        if let Some(places) = locate(object, &kept.path, between.source, &mut lists) {
            placed.push((places, kept.value));
        }
    }
    let any = !placed.is_empty();
    for (places, value) in placed {
        insert(object, &places, value);
    }
    any
}

/// Whether the version that a field is of has it, and would accept its value. What is required around it is not looked at: a part of an
/// object may be kept, and the rest come by a move.
fn accept(kept: &mut Kept, target: &Schema) -> bool {
    let mut schema = Some(target);
    for segment in &kept.path {
        schema = match (segment, schema) {
            (Segment::Field(name), Some(fields)) => match Known::of(name, fields) {
                Known::By(schema) => schema,
                // Nothing is said of what is in it.
                Known::AsItIs => return true,
                Known::No => return false,
            },
            (Segment::Keys(_) | Segment::Entry(..), Some(list)) => list.items.as_deref(),
            (_, None) => return false,
        };
    }
    // Of a field without a schema an API server keeps plain values alone.
    let Some(schema) = schema else { return !kept.value.is_object() && !kept.value.is_array() };
    normalize::prune(&mut kept.value, schema, false);
    normalize::drop_nulls(&mut kept.value, schema);
    normalize::default(&mut kept.value, schema);
    let mut errors = validate::validate(&kept.value, None, schema, &Path::root());
    errors.extend(validate::list_types(&kept.value, None, schema, &Path::root()));
    errors.iter().all(|error| error.kind == Kind::Required)
}

/// Where a path leads in an object that nothing was put back into yet.
fn locate(object: &Value, path: &[Segment], schema: &Schema, lists: &mut Lists) -> Option<Vec<Location>> {
    let (Segment::Field(last), way) = path.split_last()? else { return None };
    let (mut value, mut schema) = (object, Some(schema));
    let mut places = Vec::new();
    for (depth, segment) in way.iter().enumerate() {
        match segment {
            Segment::Field(name) => {
                schema = match schema.map(|schema| Known::of(name, schema))? {
                    Known::By(below) => below,
                    Known::No if depth == 0 => None,
                    Known::No | Known::AsItIs => return None,
                };
                places.push(Location::Field(name.clone()));
                // `spec` and `status` are made if there is none yet.
                value = if depth == 0 { value.get(name).unwrap_or(&NOTHING) } else { value.get(name)? };
            }
            Segment::Keys(_) | Segment::Entry(..) => {
                let list = schema.filter(|schema| !schema.preserve_unknown)?;
                let index = lists.find(value.as_array()?, segment, list)?;
                schema = list.items.as_deref();
                places.push(Location::Entry(index));
                value = value.get(index)?;
            }
        }
    }
    let is_new = schema.is_none_or(|schema| matches!(Known::of(last, schema), Known::No));
    places.push(Location::Field(last.clone()));
    is_new.then_some(places)
}

static NOTHING: Value = Value::Null;

/// The lists of an object, each looked through once however many paths lead into it.
#[derive(Default)]
struct Lists {
    /// By the address of the first entry: the object does not change while places are looked for.
    by_address: HashMap<*const Value, List>,
    /// How many entries were looked at.
    work: usize,
}

/// Where the entries of a list are: the first one of several that are alike.
#[derive(Default)]
struct List {
    keys: Option<HashMap<String, usize>>,
    contents: Option<(Vec<String>, HashMap<String, usize>)>,
}

impl Lists {
    fn find(&mut self, entries: &[Value], segment: &Segment, schema: &Schema) -> Option<usize> {
        let list = self.by_address.entry(entries.as_ptr()).or_default();
        let work = &mut self.work;
        match segment {
            Segment::Field(_) => None,
            Segment::Keys(keys) => {
                let names = names_of_keys(schema)?;
                let index = list.keys.get_or_insert_with(|| {
                    *work += entries.len();
                    firsts(entries.iter().map(|entry| keys_of(entry.as_object()?, names)))
                });
                (keys.len() == names.len()).then_some(())?;
                index.get(&keys_of(keys, names)?).copied()
            }
            Segment::Entry(at, text) => {
                let (contents, index) = list.contents.get_or_insert_with(|| {
                    *work += entries.len();
                    let of_entries = schema.items.as_deref();
                    let contents: Vec<String> =
                        entries.iter().map(|entry| content(entry, of_entries)).collect();
                    let index = firsts(contents.iter().cloned().map(Some));
                    (contents, index)
                });
                let here = contents.get(*at).filter(|found| *found == text).map(|_| *at);
                here.or_else(|| index.get(text).copied())
            }
        }
    }
}

fn firsts(entries: impl Iterator<Item = Option<String>>) -> HashMap<String, usize> {
    let mut index = HashMap::new();
    for (at, entry) in entries.enumerate() {
        if let Some(entry) = entry {
            index.entry(entry).or_insert(at);
        }
    }
    index
}

fn insert(object: &mut Value, places: &[Location], value: Value) {
    let Some((Location::Field(last), way)) = places.split_last() else { return };
    let parent = way.iter().try_fold(object, |value, place| match place {
        Location::Field(name) if value.is_object() => Some(&mut value[name.as_str()]),
        Location::Field(_) => None,
        Location::Entry(index) => value.get_mut(*index),
    });
    let Some(parent) = parent else { return };
    if parent.is_null() {
        *parent = Value::Object(Map::new());
    }
    if let Some(fields) = parent.as_object_mut() {
        fields.entry(last.clone()).or_insert(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kept::KeptFields;
    use serde_json::json;
    use transom_schema::structural;

    const ENTRIES: usize = 2_000;
    const PATHS: usize = 5_000;

    fn list(entries: &Value, of_list: &Value) -> Schema {
        let mut list = json!({"type": "array", "items": {"type": "object", "properties": entries}});
        list.as_object_mut().unwrap().extend(of_list.as_object().unwrap().clone());
        let spec = json!({"type": "object", "properties": {"l": list}});
        structural::parse(&json!({"type": "object", "properties": {"spec": spec}})).unwrap()
    }

    /// How many entries are looked at to find the places of forged fields in a long list.
    fn work_of(of_list: &Value, segment: impl Fn(usize) -> Value) -> usize {
        let schema = list(&json!({"name": {"type": "string"}}), of_list);
        let entries: Vec<Value> = (0..ENTRIES).map(|i| json!({"name": format!("n{i}")})).collect();
        let kept: Vec<Value> = (0..PATHS).map(|i| json!([["spec", "l", segment(i), "a"], 0])).collect();
        let annotation = json!({"v2": kept}).to_string();
        let object =
            json!({"metadata": {"annotations": {crate::ANNOTATION: annotation}}, "spec": {"l": entries}});
        let fields = KeptFields::of(&object).take("v2");
        assert_eq!(fields.len(), PATHS);
        let mut lists = Lists::default();
        let found = fields.iter().filter(|kept| locate(&object, &kept.path, &schema, &mut lists).is_some());
        assert!(found.count() <= ENTRIES);
        lists.work
    }

    #[test]
    fn a_list_is_looked_through_once() {
        assert_eq!(work_of(&json!({}), |i| json!([i, format!("{i:016x}")])), ENTRIES);
        let keyed = json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]});
        assert_eq!(work_of(&keyed, |i| json!({"name": format!("n{i}")})), ENTRIES);
        // By keys that the list does not have nothing is found, and nothing looked for.
        assert_eq!(work_of(&json!({}), |i| json!({"name": format!("n{i}")})), 0);
    }
}

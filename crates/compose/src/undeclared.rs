//! Fields that the kind of a composed resource does not declare.
//!
//! Crossplane v1 wrote composed resources with patches, of which the API server drops what the schema of the kind does
//! not have. Server-side apply refuses such fields instead, and names all of them. So the composed resources of
//! Compositions of mode `Resources` are applied again without the fields that were named.

use crate::condition::Event;
use crate::decision::Application;
use crate::plan::{Refusal, RefusalKind};
use serde_json::Value;
use transom_object::meta;
use transom_xapi::constants::event;

/// Kubernetes has no reason for undeclared fields: the API server refuses them with an error that has a message and
/// nothing else, so they can be recognised by this text only.
const UNDECLARED: &str = ": field not declared in schema";

/// What is left of a composed resource without the fields that a refusal names as undeclared; `None` if it names none
/// that can be left out.
pub(crate) fn without(application: &Application, refusal: &Refusal) -> Option<Application> {
    if refusal.kind != RefusalKind::Other {
        return None;
    }
    let mut undeclared = application.undeclared.clone()?;
    let mut object = application.object.clone();
    let named = undeclared_fields(&refusal.message);
    let removed: Vec<String> = named.into_iter().filter(|path| remove(&mut object, path)).collect();
    if removed.is_empty() {
        return None;
    }
    undeclared.extend(removed);
    Some(Application { object, undeclared: Some(undeclared), ..application.clone() })
}

/// A warning to the author of the template.
pub(crate) fn warning(application: &Application, undeclared: &[String]) -> Event {
    let object = &application.object;
    let (kind, version) = (meta::kind(object), meta::api_version(object));
    let (name, fields) = (&application.name, undeclared.join(", "));
    let message = format!(
        "composed resource {name:?} was applied without {fields}: {kind} ({version}) does not declare this; remove it \
         from the template"
    );
    Event::warning(event::composite::COMPOSE, message)
}

/// The paths of the fields that a refusal calls undeclared.
fn undeclared_fields(answer: &str) -> Vec<String> {
    let paths = answer.lines().filter_map(|line| line.strip_suffix(UNDECLARED));
    paths.map(|line| line.rsplit_once("): ").map_or(line, |(_, path)| path).trim().to_owned()).collect()
}

/// Removes the field at a path like `.spec.ports[name="http"].colour`. Returns whether it was there.
fn remove(object: &mut Value, path: &str) -> bool {
    match object {
        Value::Object(fields) => {
            let Some(path) = path.strip_prefix('.') else { return false };
            // Names may hold dots themselves, so the longest name that fits is meant.
            let fits = |name: &&String| {
                path.strip_prefix(name.as_str()).is_some_and(|r| r.is_empty() || r.starts_with(['.', '[']))
            };
            let Some(name) = fields.keys().filter(fits).max_by_key(|name| name.len()).cloned() else {
                return false;
            };
            match path.get(name.len()..).unwrap_or_default() {
                "" => fields.remove(&name).is_some(),
                rest => fields.get_mut(&name).is_some_and(|inner| remove(inner, rest)),
            }
        }
        Value::Array(items) => {
            let Some((element, rest)) = path.strip_prefix('[').and_then(element) else { return false };
            let index = match &element {
                Element::Index(index) => Some(*index),
                Element::Keyed(keys) => {
                    items.iter().position(|item| keys.iter().all(|(k, v)| item.get(k) == Some(v)))
                }
            };
            index.and_then(|index| items.get_mut(index)).is_some_and(|item| remove(item, rest))
        }
        _ => false,
    }
}

/// An item of a list, by its index or by the values of its keys.
enum Element {
    Index(usize),
    Keyed(Vec<(String, Value)>),
}

/// Reads `0]…` or `name="http",port=80]…`.
fn element(text: &str) -> Option<(Element, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    if let (Ok(index), Some(rest)) = (text[..digits].parse(), text[digits..].strip_prefix(']')) {
        return Some((Element::Index(index), rest));
    }
    let (mut keys, mut rest) = (Vec::new(), text);
    loop {
        let (key, value) = rest.split_once('=')?;
        let mut values = serde_json::Deserializer::from_str(value).into_iter::<Value>();
        keys.push((key.to_owned(), values.next()?.ok()?));
        rest = value.get(values.byte_offset()..)?;
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => return Some((Element::Keyed(keys), rest.strip_prefix(']')?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn all_fields_that_an_answer_names_are_found() {
        let one = "cannot apply: failed to create typed patch object (a/b; g/v1, Kind=K): .spec.x: field not declared in schema";
        assert_eq!(undeclared_fields(one), [".spec.x"]);
        let two = "failed to create typed patch object (a/b; g/v1, Kind=K): errors:\n  .spec.x: field not declared in schema\n  \
                   .spec.y[0].z: field not declared in schema";
        assert_eq!(undeclared_fields(two), [".spec.x", ".spec.y[0].z"]);
        assert_eq!(undeclared_fields("spec.x: expected map, got string"), Vec::<String>::new());
    }

    #[test]
    fn fields_are_removed_wherever_they_are() {
        let object = json!({"spec": {
            "x": 1, "a.b": {"c": 1, "d": 2}, "list": [{"p": 1}, {"p": 2, "q": 3}],
            "ports": [{"name": "a]", "port": 80, "bad": 1}, {"name": "b", "port": 80, "bad": 2}],
        }});
        for (path, place) in [
            (".spec.x", "/spec/x"),
            (".spec.a.b.c", "/spec/a.b/c"),
            (".spec.list[1].q", "/spec/list/1/q"),
            (".spec.ports[name=\"a]\",port=80].bad", "/spec/ports/0/bad"),
            (".spec.ports[name=\"b\",port=80].bad", "/spec/ports/1/bad"),
        ] {
            let mut pruned = object.clone();
            assert!(remove(&mut pruned, path), "{path}");
            assert!(object.pointer(place).is_some() && pruned.pointer(place).is_none(), "{path}: {pruned}");
        }
        for path in
            ["", "spec", ".spec.none", ".spec.list[7].q", ".spec.list[name=].q", ".spec.x.y", ".spec.ports[1"]
        {
            assert!(!remove(&mut object.clone(), path), "{path}");
        }
    }
}

//! Migrating objects that were once written without server-side apply, so that fields can be removed from them.
//!
//! It takes two passes: the first forgets all owners, whereupon the next apply gives what it does not mention to a
//! manager named `before-first-apply`; the second removes that manager.

use serde_json::{Value, json};
use transom_object::meta;

const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The JSON patch that brings an object one step further, if any is left. `is_ours` recognises the field owner that
/// applies it. The patch fails when the object changed in the meantime.
pub fn upgrade(object: &Value, is_ours: impl Fn(&str) -> bool) -> Option<Value> {
    // An object that was never created has nothing to upgrade.
    if meta::uid(object).is_empty() && text(object, "creationTimestamp").is_empty() {
        return None;
    }
    let entries = object.get("metadata").and_then(|m| m.get("managedFields")).and_then(Value::as_array);
    let managers = || {
        let name =
            |entry: &'_ Value| entry.get("manager").and_then(Value::as_str).unwrap_or_default().to_owned();
        entries.into_iter().flatten().map(name)
    };
    let version = json!({
        "op": "replace", "path": "/metadata/resourceVersion", "value": meta::resource_version(object),
    });
    let ours = managers().any(|manager| is_ours(&manager));
    let before = managers().collect::<Vec<_>>().iter().rposition(|manager| manager == BEFORE_FIRST_APPLY);
    match (ours, before) {
        (true, None) => None,
        (true, Some(index)) => {
            let path = format!("/metadata/managedFields/{index}");
            Some(json!([{"op": "remove", "path": path}, version]))
        }
        (false, _) => {
            Some(json!([{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}, version]))
        }
    }
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get("metadata").and_then(|m| m.get(field)).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_upgraded_once() {
        let object = |managers: &[&str]| {
            let fields: Vec<Value> = managers.iter().map(|m| json!({"manager": m})).collect();
            json!({"metadata": {"uid": "u", "resourceVersion": "7", "managedFields": fields}})
        };
        let run = |managers: &[&str]| {
            upgrade(&object(managers), |m| m.starts_with(transom_xapi::constants::owner::COMPOSED_PREFIX))
        };
        let ours = "apiextensions.crossplane.io/composed/x";
        let version = json!({"op": "replace", "path": "/metadata/resourceVersion", "value": "7"});
        assert_eq!(run(&[ours, "kubectl"]), None);
        assert_eq!(
            run(&[ours, BEFORE_FIRST_APPLY]),
            Some(json!([{"op": "remove", "path": "/metadata/managedFields/1"}, version]))
        );
        let clear = json!([{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}, version]);
        assert_eq!(run(&["crossplane", BEFORE_FIRST_APPLY]), Some(clear.clone()));
        assert_eq!(run(&[]), Some(clear));
        assert_eq!(upgrade(&json!({"metadata": {}}), |_| false), None);
    }
}

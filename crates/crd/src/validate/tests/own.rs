//! Definitions of all kinds, good and bad, with the errors and warnings that kube-apiserver 1.36 has for them, word
//! for word and in its order. Each row edits the definition in the first line; updates start from another edit.

use super::super::{validate, validate_status, warnings};
use serde_json::{Value, json};
use transom_object::field::Path;
use transom_object::{GroupVersionKind, meta, names};

/// Sets values at JSON pointers; `null` removes one.
fn edited(base: &Value, edits: &Value) -> Value {
    let mut value = base.clone();
    for edit in edits.as_array().into_iter().flatten() {
        let (parents, last) = edit[0].as_str().unwrap().rsplit_once('/').unwrap();
        let mut at = &mut value;
        for step in parents.split('/').skip(1) {
            at = match at {
                Value::Array(items) => &mut items[step.parse::<usize>().unwrap()],
                object => &mut object[step],
            };
        }
        match (at, &edit[1]) {
            (Value::Array(items), new) => {
                let i: usize = last.parse().unwrap();
                items.truncate(i);
                items.push(new.clone());
            }
            (object, Value::Null) => drop(object.as_object_mut().unwrap().remove(last)),
            (object, new) => object[last] = new.clone(),
        }
    }
    value
}

/// As the server has it before it is judged.
fn normalized(mut definition: Value) -> Value {
    let gvk = GroupVersionKind::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    transom_kinds::normalize(&mut definition, transom_kinds::type_of(&gvk)).unwrap();
    transom_kinds::default(&mut definition, &gvk);
    definition
}

#[test]
fn definitions() {
    let mut lines =
        include_str!("definitions.jsonl").lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let base = lines.next().unwrap()["base"].take();
    let mut wrong = Vec::new();
    let mut count = 0;
    for row in lines {
        let old = row.get("old").map(|edits| edited(&base, edits));
        let new = normalized(edited(old.as_ref().unwrap_or(&base), &row["edits"]));
        let old = old.map(normalized);
        let mut errors = Vec::new();
        if old.is_none() {
            let (rule, at) = (names::name_is_dns_subdomain, Path::new("metadata"));
            errors.extend(meta::validate_object_meta(&new["metadata"], false, rule, &at));
        }
        errors.extend(validate(&new, old.as_ref()));
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let got = (json!(errors), json!(warnings(&new, old.as_ref())));
        let list = |key: &str| row.get(key).cloned().unwrap_or(json!([]));
        let want = (list("errors"), list("warnings"));
        if got != want {
            wrong.push(format!("{}\n  got  {got:#?}\n  want {want:#?}", row["name"]));
        }
        count += 1;
    }
    assert!(count > 100, "{count} rows");
    assert!(wrong.is_empty(), "{} of {count} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_status_is_judged_by_its_names_only() {
    let new = json!({"spec": {"versions": []}, "status": {"acceptedNames": {"plural": "No"}, "storedVersions": []}});
    let errors = validate_status(&new);
    let fields: Vec<&str> = errors.iter().map(|e| e.field.as_str()).collect();
    assert_eq!(fields, ["status.acceptedNames.plural"]);
}

//! Selecting other resources by labels, and putting what was found in an order: what `function-environment-configs`
//! and `function-extra-resources` have in common.

use serde::Deserialize;
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use transom_function::Resource;
use transom_object::fieldpath;
use transom_object::json::go_type_in_struct;
use transom_object::quote::quote;

use crate::named::{OneOf, names};

names! {
    /// How resources are named.
    SourceType: "Reference", "Selector";
    /// Where the value of a label comes from.
    LabelSource: "Value", "FromCompositeFieldPath";
    /// Whether a missing resource is an error.
    Presence: "Required", "Optional";
}

/// A resource by its name.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Reference {
    pub name: String,
}

/// One label that selected resources must have.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct LabelMatcher {
    r#type: OneOf<LabelSource>,
    key: String,
    value: Option<String>,
    value_from_field_path: Option<String>,
    from_field_path_policy: OneOf<Presence>,
}

/// Whether what is selected must exist.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Policy {
    resolution: OneOf<Presence>,
}

impl Policy {
    pub(crate) fn is_optional(&self) -> bool {
        &*self.resolution == "Optional"
    }
}

/// The labels that matchers name. A label whose value the composite resource does not have is an error, unless it is
/// optional: then it is left out.
pub(crate) fn labels(
    matchers: &[LabelMatcher],
    composite: &Value,
) -> Result<BTreeMap<String, String>, String> {
    let mut labels = BTreeMap::new();
    for matcher in matchers {
        let value = match &*matcher.r#type {
            "Value" => matcher.value.clone().ok_or("Value cannot be nil for type 'Value'")?,
            "" | "FromCompositeFieldPath" => {
                let path = matcher.value_from_field_path.as_deref();
                let path =
                    path.ok_or("ValueFromFieldPath cannot be nil for type 'FromCompositeFieldPath'")?;
                match fieldpath::get_string(composite, path) {
                    Ok(value) => value.to_owned(),
                    Err(_) if &*matcher.from_field_path_policy == "Optional" => continue,
                    Err(error) => {
                        return Err(format!("cannot get value from field path {}: {error}", quote(path)));
                    }
                }
            }
            _ => continue,
        };
        labels.insert(matcher.key.clone(), value);
    }
    Ok(labels)
}

/// The path to sort by: that of the names unless another is given.
pub(crate) fn sort_path(given: &str) -> &str {
    if given.is_empty() { "metadata.name" } else { given }
}

/// Sorts by what is at a path: all texts, or all numbers. What has nothing there counts as empty or zero.
pub(crate) fn sort(resources: &mut [&Resource], path: &str) -> Result<(), String> {
    if path.is_empty() {
        return Err("cannot sort by empty field path".to_owned());
    }
    let mut keyed = Vec::with_capacity(resources.len());
    let mut kind: Option<&str> = None;
    for resource in resources.iter() {
        let value = match resource.get(path) {
            Ok(value) => Some(value).filter(|value| !value.is_null()),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error.to_string()),
        };
        if let Some(value) = value {
            let found = go_type_in_struct(value);
            let first = *kind.get_or_insert(found);
            if first != found {
                let (first, found) = (quote(first), quote(found));
                return Err(format!("cannot sort values of different types {first} and {found}"));
            }
        }
        keyed.push((value, *resource));
    }
    match kind {
        Some("string" | "float64") => keyed.sort_by(|(a, _), (b, _)| compare(*a, *b)),
        // With nothing to compare, nothing is wrong.
        Some(kind) if keyed.len() > 1 => {
            let kind =
                kind.find(['[', ' ']).map_or(kind, |_| if kind.starts_with('[') { "slice" } else { "map" });
            return Err(format!("unsupported type {} for sorting", quote(kind)));
        }
        _ => {}
    }
    for (slot, (_, resource)) in resources.iter_mut().zip(keyed) {
        *slot = resource;
    }
    Ok(())
}

fn compare(a: Option<&Value>, b: Option<&Value>) -> Ordering {
    match (a, b) {
        (Some(Value::String(_)), _) | (_, Some(Value::String(_))) => {
            let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
            text(a).cmp(&text(b))
        }
        _ => {
            let number = |value: Option<&Value>| value.and_then(Value::as_f64).unwrap_or_default();
            number(a).partial_cmp(&number(b)).unwrap_or(Ordering::Equal)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream;
    use serde_json::json;

    fn sorted(values: &[Value], path: &str) -> Result<Vec<Value>, String> {
        let resources: Vec<Resource> =
            values.iter().map(|v| Resource::new(v.clone()).unwrap_or_default()).collect();
        let mut order: Vec<&Resource> = resources.iter().collect();
        sort(&mut order, path)?;
        Ok(order.into_iter().map(|resource| resource.object().clone()).collect())
    }

    #[test]
    fn sorting_puts_what_is_missing_first_and_keeps_ties() {
        let [a, b, none] = [json!({"n": 2, "id": 1}), json!({"n": 10}), json!({"id": 2})];
        let tie = json!({"n": 2, "id": 3});
        let order = sorted(&[b.clone(), a.clone(), tie.clone(), none.clone()], "n").unwrap();
        assert_eq!(order, [none, a, tie, b]);
        let [x, y] = ["10", "9"].map(|name| json!({"metadata": {"name": name}}));
        assert_eq!(sorted(&[y.clone(), x.clone()], sort_path("")), Ok(vec![x, y]));
        assert_eq!(sorted(&[json!({"a": true})], "a"), Ok(vec![json!({"a": true})]));
    }

    #[test]
    fn what_has_no_order_is_refused() {
        for (values, path, expected) in [
            (
                [json!({"a": 1}), json!({"a": "b"})],
                "a",
                r#"cannot sort values of different types "float64" and "string""#,
            ),
            ([json!({"a": true}), json!({"a": false})], "a", r#"unsupported type "bool" for sorting"#),
            ([json!({"a": {}}), json!({"a": {}})], "a", r#"unsupported type "map" for sorting"#),
            ([json!({"a": []}), json!({})], "a", r#"unsupported type "slice" for sorting"#),
            ([json!({"a": 1}), json!({})], "a.b", "a: not an object"),
        ] {
            assert_eq!(sorted(&values, path), Err(expected.to_owned()), "{values:?}");
        }
    }

    #[test]
    fn upstream_tables() {
        for (table, list) in [
            ("function-environment-configs/fn/TestSortRequiredByFieldPath", "requiredResources"),
            ("function-extra-resources/fn/TestSortExtrasByFieldPath", "extras"),
        ] {
            for case in upstream::cases(table) {
                let objects = |side: &Value| -> Vec<Value> {
                    side[list].as_array().into_iter().flatten().map(|item| item["Resource"].clone()).collect()
                };
                let path = case["inputs"]["path"].as_str().unwrap_or_default();
                let expected = case["wantErr"].is_null().then(|| objects(&case["expected"]));
                assert_eq!(sorted(&objects(&case["inputs"]), path).ok(), expected, "{case}");
            }
        }
    }
}

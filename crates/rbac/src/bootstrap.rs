//! The roles and bindings that every API server has, and how stored ones are brought up to them.
//!
//! `policy.json` is what kube-apiserver 1.36 makes, recorded by `conformance/rbac/record.py`. At every start missing rules
//! and subjects are added to what is stored; what an administrator added stays. An object with the annotation
//! `rbac.authorization.kubernetes.io/autoupdate: "false"` is left alone.

use crate::aggregation::Selectors;
use crate::escalation::missing_rules;
use crate::rule::Rule;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use transom_object::labels::Labels;

const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// The four kinds: the plural and the kind, roles before the bindings that refer to them.
pub const KINDS: [(&str, &str); 4] = [
    ("clusterroles", "ClusterRole"),
    ("clusterrolebindings", "ClusterRoleBinding"),
    ("roles", "Role"),
    ("rolebindings", "RoleBinding"),
];

/// One object of the default policy.
pub struct PolicyObject {
    /// The plural name of its kind.
    pub plural: &'static str,
    /// The object.
    pub value: Value,
}

/// Kubernetes' own policy.
pub fn policy() -> Vec<PolicyObject> {
    let recorded: Value = serde_json::from_str(include_str!("policy.json")).unwrap_or_default();
    let of_kind = |(plural, kind): (&'static str, &'static str)| {
        let items = recorded[plural].as_array().cloned().unwrap_or_default();
        items.into_iter().map(move |item| {
            let mut value = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind});
            if let (Some(value), Value::Object(item)) = (value.as_object_mut(), item) {
                value.extend(item);
            }
            PolicyObject { plural, value }
        })
    };
    KINDS.into_iter().flat_map(of_kind).collect()
}

/// The rules that the aggregated ClusterRoles of a policy collect from the others, by name: they have them from the start.
pub fn aggregated_rules(policy: &[PolicyObject]) -> BTreeMap<String, Vec<Value>> {
    let roles: Vec<(&str, Labels, &Value)> = policy
        .iter()
        .filter(|object| object.plural == "clusterroles")
        .map(|object| (name_of(&object.value), labels_of(&object.value), &object.value))
        .collect();
    let listed: Vec<(&str, &Labels)> = roles.iter().map(|(name, labels, _)| (*name, labels)).collect();
    let mut rules: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    // A role may select another aggregated one, which may select a third.
    for _ in 0..4 {
        for (name, _, value) in &roles {
            let Some(selectors) = Selectors::of(value) else { continue };
            let collected = selectors.collect(name, &listed, |other| {
                let own =
                    || roles.iter().find(|(name, ..)| *name == other).map(|(_, _, role)| &role["rules"]);
                let own = || own().and_then(Value::as_array).cloned().unwrap_or_default();
                rules.get(other).cloned().unwrap_or_else(own)
            });
            rules.insert((*name).to_owned(), collected);
        }
    }
    rules
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn labels_of(object: &Value) -> Labels {
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// What has to be done about a stored object of the policy.
#[derive(Clone, Debug, PartialEq)]
pub enum Reconciled {
    /// It has all that is expected.
    Unchanged,
    /// It is written again, with what was missing.
    Updated(Value),
    /// It is deleted and created: a binding cannot change the role that it refers to.
    Replaced,
}

/// Brings a stored role or binding up to what is expected.
pub fn reconcile(stored: &Value, expected: &Value) -> Reconciled {
    if stored["metadata"]["annotations"][AUTO_UPDATE] == "false" {
        return Reconciled::Unchanged;
    }
    let mut new = stored.clone();
    for field in ["labels", "annotations"] {
        merge_missing(&mut new["metadata"], field, &expected["metadata"][field]);
    }
    if expected.get("roleRef").is_some() {
        if stored["roleRef"] != expected["roleRef"] {
            return Reconciled::Replaced;
        }
        add_missing(&mut new, "subjects", expected["subjects"].as_array().into_iter().flatten());
    } else {
        let missing = missing_rules(&Rule::all_of(stored), &Rule::all_of(expected));
        let missing: Vec<Value> = missing.iter().map(Rule::to_value).collect();
        add_missing(&mut new, "rules", missing.iter());
        reconcile_aggregation(&mut new, expected);
    }
    if new == *stored { Reconciled::Unchanged } else { Reconciled::Updated(new) }
}

fn reconcile_aggregation(new: &mut Value, expected: &Value) {
    let is_aggregated = |role: &Value| role.get("aggregationRule").is_some_and(|rule| !rule.is_null());
    if !is_aggregated(expected) {
        if is_aggregated(new) {
            new.as_object_mut().map(|role| role.remove("aggregationRule"));
        }
        return;
    }
    let selectors = expected["aggregationRule"]["clusterRoleSelectors"].as_array();
    if !is_aggregated(new) {
        new["aggregationRule"] = json!({});
    }
    add_missing(&mut new["aggregationRule"], "clusterRoleSelectors", selectors.into_iter().flatten());
}

/// Labels or annotations that the stored object does not have; what it has wins.
fn merge_missing(metadata: &mut Value, field: &str, expected: &Value) {
    let Some(expected) = expected.as_object().filter(|expected| !expected.is_empty()) else { return };
    if !metadata[field].is_object() {
        metadata[field] = Value::Object(Map::new());
    }
    for (key, value) in expected {
        if metadata[field].get(key).is_none() {
            metadata[field][key] = value.clone();
        }
    }
}

fn add_missing<'a>(object: &mut Value, field: &str, expected: impl Iterator<Item = &'a Value>) {
    for item in expected {
        let listed = object[field].as_array().is_some_and(|list| list.contains(item));
        if listed {
            continue;
        }
        if !object[field].is_array() {
            object[field] = json!([]);
        }
        if let Some(list) = object[field].as_array_mut() {
            list.push(item.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Value {
        policy().into_iter().find(|each| each.value["metadata"]["name"] == name).unwrap().value
    }

    #[test]
    fn the_policy_is_complete_and_each_object_is_as_expected_of_itself() {
        let all = policy();
        let of = |plural: &str| all.iter().filter(|each| each.plural == plural).count();
        assert!(
            of("clusterroles") > 60 && of("clusterrolebindings") > 45 && of("roles") == 7,
            "{}",
            all.len()
        );
        for each in &all {
            assert_eq!(
                reconcile(&each.value, &each.value),
                Reconciled::Unchanged,
                "{}",
                each.value["metadata"]
            );
        }
    }

    #[test]
    fn aggregated_roles_have_what_those_that_they_select_collect() {
        let rules = aggregated_rules(&policy());
        let reads = |name: &str| {
            rules[name].iter().filter(|rule| rule["resources"].to_string().contains("configmaps")).count()
        };
        assert!(reads("view") == 1 && reads("edit") > 1 && reads("admin") > 1, "{:?}", rules.keys());
        assert!(rules["view"].iter().all(|rule| rules["admin"].contains(rule)), "admin has all of view");
    }

    #[test]
    fn missing_rules_and_labels_are_added_and_additions_stay() {
        let expected = named("system:discovery");
        let mut stored = expected.clone();
        stored["rules"] = json!([{"verbs": ["get"], "nonResourceURLs": ["/mine"]}]);
        stored["metadata"]["labels"] = json!({"mine": "yes"});
        let Reconciled::Updated(new) = reconcile(&stored, &expected) else { panic!("not updated") };
        assert_eq!(new["rules"][0]["nonResourceURLs"], json!(["/mine"]));
        assert_eq!(
            new["metadata"]["labels"],
            json!({"mine": "yes", "kubernetes.io/bootstrapping": "rbac-defaults"})
        );
        assert_eq!(reconcile(&new, &expected), Reconciled::Unchanged, "the second time");
        stored["metadata"]["annotations"][AUTO_UPDATE] = "false".into();
        assert_eq!(reconcile(&stored, &expected), Reconciled::Unchanged, "protected");
    }

    #[test]
    fn a_binding_to_another_role_is_replaced_and_subjects_are_added() {
        let expected = named("system:basic-user");
        let binding = policy()
            .into_iter()
            .find(|each| {
                each.plural == "clusterrolebindings" && each.value["metadata"]["name"] == "cluster-admin"
            })
            .unwrap()
            .value;
        assert!(expected.get("rules").is_some());
        let mut stored = binding.clone();
        stored["subjects"] = json!([{"kind": "User", "name": "root"}]);
        let Reconciled::Updated(new) = reconcile(&stored, &binding) else { panic!("not updated") };
        assert_eq!(new["subjects"].as_array().map(Vec::len), Some(2));
        stored["roleRef"]["name"] = "view".into();
        assert_eq!(reconcile(&stored, &binding), Reconciled::Replaced);
    }

    #[test]
    fn aggregated_roles_get_their_selectors_back() {
        let expected = named("admin");
        let mut stored = expected.clone();
        stored["aggregationRule"] = Value::Null;
        let Reconciled::Updated(new) = reconcile(&stored, &expected) else { panic!("not updated") };
        assert_eq!(new["aggregationRule"], expected["aggregationRule"]);
    }
}

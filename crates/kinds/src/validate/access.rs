//! Validates Roles, ClusterRoles and bindings as kube-apiserver does.

use super::At;
use serde_json::{Value, json};
use transom_object::field::Error;
use transom_object::{labels, names};

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn rules(object: &At<'_>, namespaced: bool, errors: &mut Vec<Error>) {
    for rule in object.get("rules").items() {
        let empty = |field| rule.get(field).items().len() == 0;
        if empty("verbs") {
            errors.push(Error::required(&rule.path.child("verbs"), "verbs must contain at least one value"));
        }
        let urls = rule.get("nonResourceURLs");
        if urls.items().len() > 0 {
            if namespaced {
                urls.invalid(vec!["namespaced rules cannot apply to non-resource URLs".into()], errors);
            }
            if !(empty("apiGroups") && empty("resources") && empty("resourceNames")) {
                let why = "rules cannot apply to both regular resources and non-resource URLs";
                urls.invalid(vec![why.into()], errors);
            }
            continue;
        }
        if empty("apiGroups") {
            let why = "resource rules must supply at least one api group";
            errors.push(Error::required(&rule.path.child("apiGroups"), why));
        }
        if empty("resources") {
            let why = "resource rules must supply at least one resource";
            errors.push(Error::required(&rule.path.child("resources"), why));
        }
    }
}

pub(super) fn cluster_role(object: &At<'_>, errors: &mut Vec<Error>) {
    rules(object, false, errors);
    let aggregation = object.get("aggregationRule");
    if aggregation.is_null() {
        return;
    }
    let selectors = aggregation.get("clusterRoleSelectors");
    if selectors.items().len() == 0 {
        let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(Error::required(&selectors.path, why));
    }
    for selector in selectors.items() {
        errors.extend(labels::validate_label_selector(selector.value, &selector.path));
        if labels::Selector::from_label_selector(selector.value).is_err() {
            errors.push(Error::invalid(&selector.path, Value::Null, "invalid label selector."));
        }
    }
}

pub(super) fn binding(object: &At<'_>, old: Option<&Value>, namespaced: bool, errors: &mut Vec<Error>) {
    let role = object.get("roleRef");
    role.get("apiGroup").one_of(&[GROUP], errors);
    role.get("kind").one_of(if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] }, errors);
    match role.text("name") {
        "" => errors.push(Error::required(&role.path.child("name"), "")),
        name => role.get("name").invalid(names::is_path_segment_name(name), errors),
    }
    for s in object.get("subjects").items() {
        subject(&s, namespaced, errors);
    }
    if old.is_some_and(|old| old.get("roleRef") != Some(role.value)) {
        let shown =
            json!({"APIGroup": role.text("apiGroup"), "Kind": role.text("kind"), "Name": role.text("name")});
        errors.push(Error::invalid(&role.path, shown, "cannot change roleRef"));
    }
}

fn subject(subject: &At<'_>, namespaced: bool, errors: &mut Vec<Error>) {
    let (name, group) = (subject.get("name"), subject.get("apiGroup"));
    if name.str().is_empty() {
        errors.push(Error::required(&name.path, ""));
    }
    match subject.text("kind") {
        "ServiceAccount" => {
            if !name.str().is_empty() {
                name.invalid(names::name_is_dns_subdomain(name.str(), false), errors);
            }
            group.one_of(&[""], errors);
            if !namespaced && subject.text("namespace").is_empty() {
                errors.push(Error::required(&subject.path.child("namespace"), ""));
            }
        }
        "User" | "Group" => group.one_of(&[GROUP], errors),
        _ => subject.get("kind").one_of(&["ServiceAccount", "User", "Group"], errors),
    }
}

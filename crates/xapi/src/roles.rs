//! The ClusterRoles that belong to a definition or to the revision of a provider, as Crossplane's RBAC manager makes them, and
//! those of the control plane itself.
//!
//! Names, labels and rules are Crossplane's: roles that it made are left as they are, and the other way round.

mod control_plane;

pub use control_plane::{
    COMPOSED_RESOURCES, CONTROLLERS, ROLE_MANAGER, accounts_of_control_plane, of_control_plane,
};

use crate::constants::{group, kind};
use crate::definition::Definition;
use crate::package::PackageRevision;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const ALL: &[&str] = &["*"];
const VIEW: &[&str] = &["get", "list", "watch"];
const UPDATE: &[&str] = &["update"];
const SYSTEM: &[&str] = &["get", "list", "watch", "update", "patch", "create"];
const AGGREGATE: &str = "rbac.crossplane.io/aggregate-to-";

/// The roles of a definition: for the control plane, and for people who edit, view and browse.
pub fn of_definition(definition: &Definition) -> Vec<Value> {
    let spec = &definition.spec;
    let of = |plural: &str, verbs: &[&str]| rule(&spec.group, &[plural, &format!("{plural}/status")], verbs);
    let finalizers = |plural: &str| rule(&spec.group, &[&format!("{plural}/finalizers")], UPDATE);
    let plural = spec.names.plural.as_str();
    let mut system = vec![of(plural, ALL), finalizers(plural)];
    let (mut edit, mut view, browse) =
        (vec![of(plural, ALL)], vec![of(plural, VIEW)], vec![of(plural, VIEW)]);
    if let Some(claim) = &spec.claim_names {
        system.extend([of(&claim.plural, ALL), finalizers(&claim.plural)]);
        edit.push(of(&claim.plural, ALL));
        view.push(of(&claim.plural, VIEW));
    }
    let owner = json!({
        "apiVersion": format!("{}/v1", group::APIEXTENSIONS), "kind": kind::XRD,
        "name": definition.metadata.name, "uid": definition.metadata.uid,
        "controller": true, "blockOwnerDeletion": true,
    });
    let name =
        |suffix: &str| format!("crossplane:composite:{}:aggregate-to-{suffix}", definition.metadata.name);
    vec![
        role(&name("crossplane"), &["crossplane"], &owner, &system),
        role(&name("edit"), &["admin", "ns-admin", "edit", "ns-edit"], &owner, &edit),
        role(&name("view"), &["view", "ns-view"], &owner, &view),
        role(&name("browse"), &["browse"], &owner, &browse),
    ]
}

/// The roles of a provider's revision for the kinds that it installed; none without kinds. The last is that of the
/// provider's own service account.
pub fn of_provider(revision: &PackageRevision, kinds: &[(String, String)]) -> Vec<Value> {
    let mut by_group: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut sorted: Vec<&(String, String)> = kinds.iter().collect();
    sorted.sort_by_key(|(plural, group)| format!("{plural}{group}"));
    for (plural, group) in sorted {
        by_group.entry(group).or_default().extend([plural.clone(), format!("{plural}/status")]);
    }
    if by_group.is_empty() {
        return Vec::new();
    }
    let rules = |verbs: &[&str]| -> Vec<Value> {
        by_group.iter().map(|(group, plurals)| rule_of(&[group], plurals, verbs)).collect()
    };
    let mut system = rules(SYSTEM);
    let groups: Vec<&str> = by_group.keys().copied().collect();
    system.push(rule_of(&groups, &["*/finalizers"], UPDATE));
    system.push(rule_of(&["", "coordination.k8s.io"], &["secrets", "configmaps", "events", "leases"], ALL));
    let owner = owned_by(revision);
    let name = |suffix: &str| provider_role(revision, suffix);
    let mut own = role(&system_role(revision), &[], &owner, &system);
    own["metadata"]["labels"] = json!({"rbac.crossplane.io/system": revision.metadata.name});
    vec![
        role(&name("aggregate-to-edit"), &["crossplane", "admin", "edit"], &owner, &rules(ALL)),
        role(&name("aggregate-to-view"), &["view"], &owner, &rules(VIEW)),
        own,
    ]
}

/// The name of the role of a provider's own service account, and of the binding of it.
pub fn system_role(revision: &PackageRevision) -> String {
    provider_role(revision, "system")
}

fn provider_role(revision: &PackageRevision, suffix: &str) -> String {
    format!("crossplane:provider:{}:{suffix}", revision.metadata.name)
}

fn owned_by(revision: &PackageRevision) -> Value {
    json!({
        "apiVersion": format!("{}/v1", group::PKG), "kind": "ProviderRevision",
        "name": revision.metadata.name, "uid": revision.metadata.uid, "controller": true, "blockOwnerDeletion": true,
    })
}

/// The binding of the role of a provider's revision to service accounts of a namespace.
pub fn binding_of_provider(revision: &PackageRevision, namespace: &str, accounts: &[String]) -> Value {
    let name = system_role(revision);
    let subject =
        |account: &String| json!({"kind": "ServiceAccount", "namespace": namespace, "name": account});
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": name, "ownerReferences": [owned_by(revision)]},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": accounts.iter().map(subject).collect::<Vec<_>>(),
    })
}

/// Whether a stored binding is as it should be, by any client.
pub fn binds_as_wanted(stored: &Value, wanted: &Value) -> bool {
    let subjects = |binding: &Value| binding["subjects"].as_array().cloned().unwrap_or_default();
    subjects(stored) == subjects(wanted)
        && stored["roleRef"] == wanted["roleRef"]
        && has_owners(stored, wanted)
}

fn has_owners(stored: &Value, wanted: &Value) -> bool {
    let owners = stored["metadata"]["ownerReferences"].as_array();
    let owned = |owner: &Value| owners.is_some_and(|owners| owners.iter().any(|o| o["uid"] == owner["uid"]));
    wanted["metadata"]["ownerReferences"].as_array().is_some_and(|wanted| wanted.iter().all(owned))
}

/// Whether a stored role is as it should be, by any client.
pub fn is_as_wanted(stored: &Value, wanted: &Value) -> bool {
    let labels = |role: &Value| role["metadata"]["labels"].as_object().cloned().unwrap_or_default();
    let (has, wants) = (labels(stored), labels(wanted));
    stored["rules"] == wanted["rules"]
        && wants.iter().all(|(key, value)| has.get(key) == Some(value))
        && has_owners(stored, wanted)
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    rule_of(&[group], resources, verbs)
}

fn rule_of(groups: &[&str], resources: &[impl AsRef<str>], verbs: &[&str]) -> Value {
    let resources: Vec<&str> = resources.iter().map(AsRef::as_ref).collect();
    json!({"apiGroups": groups, "resources": resources, "verbs": verbs})
}

fn role(name: &str, aggregated_to: &[&str], owner: &Value, rules: &[Value]) -> Value {
    let labels: BTreeMap<String, &str> =
        aggregated_to.iter().map(|to| (format!("{AGGREGATE}{to}"), "true")).collect();
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": name, "labels": labels, "ownerReferences": [owner]},
        "rules": rules,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition() -> Definition {
        serde_json::from_value(json!({
            "metadata": {"name": "xapps.example.org", "uid": "u"},
            "spec": {
                "group": "example.org", "names": {"plural": "xapps", "kind": "XApp"},
                "claimNames": {"plural": "apps", "kind": "App"}, "versions": [],
            },
        }))
        .unwrap()
    }

    #[test]
    fn a_definition_has_crossplanes_four_roles() {
        let roles = of_definition(&definition());
        let names: Vec<&str> = roles.iter().map(|role| role["metadata"]["name"].as_str().unwrap()).collect();
        let prefix = "crossplane:composite:xapps.example.org:aggregate-to-";
        assert_eq!(names, ["crossplane", "edit", "view", "browse"].map(|to| format!("{prefix}{to}")));
        let system = json!([
            {"apiGroups": ["example.org"], "resources": ["xapps", "xapps/status"], "verbs": ["*"]},
            {"apiGroups": ["example.org"], "resources": ["xapps/finalizers"], "verbs": ["update"]},
            {"apiGroups": ["example.org"], "resources": ["apps", "apps/status"], "verbs": ["*"]},
            {"apiGroups": ["example.org"], "resources": ["apps/finalizers"], "verbs": ["update"]},
        ]);
        assert_eq!(roles[0]["rules"], system);
        assert_eq!(roles[1]["metadata"]["labels"].as_object().unwrap().len(), 4);
        assert_eq!(roles[3]["rules"].as_array().unwrap().len(), 1, "browsers do not see claims");
    }

    #[test]
    fn a_role_that_another_client_wrote_is_left_alone() {
        let wanted = &of_definition(&definition())[0];
        let mut stored = wanted.clone();
        stored["metadata"]["labels"]["more"] = "x".into();
        stored["metadata"]["resourceVersion"] = "7".into();
        assert!(is_as_wanted(&stored, wanted));
        stored["rules"][0]["verbs"] = json!(["get"]);
        assert!(!is_as_wanted(&stored, wanted));
        let mut lost = wanted.clone();
        lost["metadata"]["ownerReferences"] = Value::Null;
        assert!(!is_as_wanted(&lost, wanted));
    }

    #[test]
    fn a_provider_has_roles_for_its_kinds() {
        let revision: PackageRevision =
            serde_json::from_value(json!({"metadata": {"name": "p-1", "uid": "u"}, "spec": {}})).unwrap();
        assert!(of_provider(&revision, &[]).is_empty());
        let kinds = [("b".to_owned(), "y.org".to_owned()), ("a".to_owned(), "x.org".to_owned())];
        let roles = of_provider(&revision, &kinds);
        assert_eq!(roles[0]["rules"][0]["resources"], json!(["a", "a/status"]));
        assert_eq!(roles[2]["metadata"]["labels"], json!({"rbac.crossplane.io/system": "p-1"}));
        assert_eq!(roles[2]["rules"].as_array().unwrap().len(), 4);
    }

    #[test]
    fn the_role_of_a_provider_is_bound_to_its_accounts() {
        let revision: PackageRevision =
            serde_json::from_value(json!({"metadata": {"name": "p-1", "uid": "u"}, "spec": {}})).unwrap();
        let binding = binding_of_provider(&revision, "n", &["p-1".to_owned()]);
        let kinds = [("a".to_owned(), "x.org".to_owned())];
        let role = of_provider(&revision, &kinds).pop().unwrap();
        assert_eq!(binding["roleRef"]["name"], role["metadata"]["name"]);
        assert_eq!(binding["subjects"], json!([{"kind": "ServiceAccount", "namespace": "n", "name": "p-1"}]));
        let mut stored = binding.clone();
        stored["metadata"]["resourceVersion"] = "7".into();
        assert!(binds_as_wanted(&stored, &binding));
        assert!(!binds_as_wanted(&stored, &binding_of_provider(&revision, "n", &[])));
        stored["metadata"]["ownerReferences"] = Value::Null;
        assert!(!binds_as_wanted(&stored, &binding));
    }
}

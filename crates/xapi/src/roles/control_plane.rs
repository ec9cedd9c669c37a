//! The roles and bindings of a control plane itself.
//!
//! `crossplane-admin`, `crossplane-edit`, `crossplane-view` and `crossplane-browse` are aggregated ClusterRoles, to which the
//! roles of definitions and providers are added.

use crate::account::AccountReference;
use serde_json::{Map, Value, json};

const API_VERSION: &str = "rbac.authorization.k8s.io/v1";
const VIEW: [&str; 3] = ["get", "list", "watch"];
const WRITE: [&str; 7] = ["get", "list", "watch", "create", "update", "patch", "delete"];

/// The service account of the controllers, in the namespace of the control plane.
pub const CONTROLLERS: &str = "crossplane";
/// The service account that makes the roles of definitions.
pub const ROLE_MANAGER: &str = "rbac-manager";
/// The ClusterRole that allows the controllers to compose under the service accounts that definitions name.
const IMPERSONATED_ACCOUNTS: &str = "transom:impersonated-accounts";
/// The ClusterRole that allows the controllers to compose every kind.
pub const COMPOSED_RESOURCES: &str = "transom:composed-resources";

fn rule(groups: &[&str], resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": groups, "resources": resources, "verbs": verbs})
}

fn labels(aggregate_to: &[&str]) -> Value {
    let label = |to: &&str| (format!("rbac.crossplane.io/aggregate-to-{to}"), json!("true"));
    Value::Object(aggregate_to.iter().map(label).collect::<Map<_, _>>())
}

fn role(name: &str, aggregate_to: &[&str], rules: &[Value]) -> Value {
    let metadata = json!({"name": name, "labels": labels(aggregate_to)});
    json!({"apiVersion": API_VERSION, "kind": "ClusterRole", "metadata": metadata, "rules": rules})
}

/// A role with the rules of all roles that are labelled for it.
fn aggregate(name: &str, of: &str) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": "ClusterRole", "metadata": {"name": name},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": labels(&[of])}]},
    })
}

fn binding(name: &str, role: &str, subject: &Value) -> Value {
    let reference = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role});
    json!({
        "apiVersion": API_VERSION, "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": reference, "subjects": [subject],
    })
}

/// The service accounts that a control plane is to its server.
pub fn accounts_of_control_plane(namespace: &str) -> Vec<AccountReference> {
    let account = |name: &str| AccountReference { namespace: namespace.to_owned(), name: name.to_owned() };
    [CONTROLLERS, ROLE_MANAGER].map(account).to_vec()
}

/// The roles and bindings of a control plane whose service accounts are in `namespace`.
pub fn of_control_plane(namespace: &str) -> Vec<Value> {
    let account = |name: &str| json!({"kind": "ServiceAccount", "name": name, "namespace": namespace});
    let masters =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "crossplane:masters"});
    let mut all = vec![
        aggregate(CONTROLLERS, "crossplane"),
        role("crossplane:system:aggregate-to-crossplane", &["crossplane"], &controllers()),
        role(COMPOSED_RESOURCES, &["crossplane"], &[rule(&["*"], &["*"], &WRITE)]),
        role(
            IMPERSONATED_ACCOUNTS,
            &["crossplane"],
            &[rule(&[""], &["serviceaccounts"], &["get", "list", "watch", "impersonate"])],
        ),
        binding(CONTROLLERS, CONTROLLERS, &account(CONTROLLERS)),
        role("crossplane-rbac-manager", &[], &role_manager()),
        binding("crossplane-rbac-manager", "crossplane-rbac-manager", &account(ROLE_MANAGER)),
        binding("crossplane-admin", "crossplane-admin", &masters),
    ];
    for (name, rules) in people() {
        all.push(aggregate(&format!("crossplane-{name}"), name));
        all.push(role(&format!("crossplane:aggregate-to-{name}"), &[name], &rules));
    }
    all
}

const OWN_GROUPS: [&str; 4] =
    ["apiextensions.crossplane.io", "ops.crossplane.io", "pkg.crossplane.io", "protection.crossplane.io"];

/// What the controllers need for Crossplane's own kinds.
fn controllers() -> Vec<Value> {
    let webhooks = ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"];
    vec![
        rule(&["", "events.k8s.io"], &["events"], &["create", "update", "patch", "delete"]),
        rule(
            &["apiextensions.k8s.io"],
            &["customresourcedefinitions", "customresourcedefinitions/status"],
            &["*"],
        ),
        rule(&[""], &["secrets"], &WRITE),
        // Not every verb: one of them is impersonate, which is given separately, and another is use, which is not given.
        rule(&[""], &["serviceaccounts", "services"], &WRITE),
        rule(&OWN_GROUPS, &["*"], &["*"]),
        rule(&["nop.crossplane.io", "nop.m.crossplane.io"], &["*"], &["*"]),
        rule(&["apps"], &["deployments"], &WRITE),
        rule(&["", "coordination.k8s.io"], &["configmaps", "leases"], &WRITE),
        rule(&["admissionregistration.k8s.io"], &webhooks, &WRITE),
    ]
}

/// What makes the roles of definitions. It grants what it does not have, so nothing else runs as this account.
fn role_manager() -> Vec<Value> {
    let rbac = "rbac.authorization.k8s.io";
    let roles = ["get", "list", "watch", "create", "update", "patch", "escalate"];
    vec![
        rule(&["", "events.k8s.io"], &["events"], &["create", "update", "patch", "delete"]),
        rule(&["apiextensions.crossplane.io"], &["compositeresourcedefinitions"], &VIEW),
        rule(&["apiextensions.crossplane.io"], &["compositeresourcedefinitions/finalizers"], &["update"]),
        rule(&["pkg.crossplane.io"], &["providerrevisions"], &VIEW),
        rule(&["pkg.crossplane.io"], &["providerrevisions/finalizers"], &["update"]),
        rule(&[rbac], &["clusterroles"], &roles),
    ]
}

/// What people may do with Crossplane's own kinds.
fn people() -> [(&'static str, Vec<Value>); 4] {
    let events = || rule(&[""], &["events"], &VIEW);
    let own = |verbs: &[&str]| rule(&OWN_GROUPS, &["*"], verbs);
    let rbac = "rbac.authorization.k8s.io";
    let admin = vec![
        events(),
        rule(&[""], &["secrets", "namespaces"], &["*"]),
        rule(&[rbac], &["clusterroles", "roles"], &VIEW),
        rule(&[rbac], &["clusterrolebindings", "rolebindings"], &["*"]),
        own(&["*"]),
        rule(&["apiextensions.k8s.io"], &["customresourcedefinitions"], &VIEW),
    ];
    let namespaces = || rule(&[""], &["namespaces"], &VIEW);
    let edit = vec![events(), rule(&[""], &["secrets"], &["*"]), namespaces(), own(&["*"])];
    let browse = vec![events(), rule(&["apiextensions.crossplane.io"], &["*"], &VIEW)];
    [("admin", admin), ("edit", edit), ("view", vec![events(), namespaces(), own(&VIEW)]), ("browse", browse)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use transom_object::meta;

    #[test]
    fn only_the_manager_of_roles_may_escalate_and_one_role_allows_to_impersonate() {
        let objects = of_control_plane("crossplane-system");
        for object in objects.iter().filter(|object| object["kind"] == "ClusterRole") {
            let (name, rules) = (meta::name(object), object["rules"].to_string());
            assert_eq!(rules.contains("escalate"), name == "crossplane-rbac-manager", "{name}");
            assert_eq!(rules.contains("impersonate"), name == IMPERSONATED_ACCOUNTS, "{name}");
            assert!(!rules.contains("\"bind\""), "{name}");
            // What is composed names no accounts in definitions.
            assert!(!rules.contains("\"use\""), "{name}");
            let all_verbs = |rule: &&Value| rule["verbs"].to_string().contains('*');
            let mut given = object["rules"].as_array().into_iter().flatten().filter(all_verbs);
            assert!(!given.any(|rule| rule["resources"].to_string().contains("serviceaccounts")), "{name}");
        }
    }
}

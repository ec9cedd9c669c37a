//! Decisions over roles and bindings that come, change and go; and an index that agrees with a plain search.

use super::*;
use serde_json::json;
use transom_testkit::rng::Rng;

fn role(resource: &str, verb: &str) -> Value {
    json!({"rules": [{"verbs": [verb], "apiGroups": [""], "resources": [resource]}]})
}

fn binding(kind: &str, role: &str, subjects: &Value) -> Value {
    json!({"roleRef": {"apiGroup": crate::GROUP, "kind": kind, "name": role}, "subjects": subjects})
}

fn decide(
    index: &Index,
    name: &str,
    groups: &[&str],
    verb: &str,
    resource: &str,
    namespace: &str,
) -> Decision {
    let groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
    let request = Request { verb, resource, namespace, ..Request::default() };
    index.decide(&User { name, groups: &groups }, &request)
}

#[test]
fn bindings_and_roles_come_change_and_go_in_any_order() {
    let mut index = Index::default();
    let jane = json!([{"kind": "User", "name": "jane"}]);
    index.put_binding("team", "b", &binding("Role", "reader", &jane));
    let denied = decide(&index, "jane", &[], "get", "maps", "team");
    assert_eq!(denied.reason, r#"RBAC: role.rbac.authorization.k8s.io "reader" not found"#);
    index.put_role("team", "reader", &role("maps", "get"));
    let allowed = decide(&index, "jane", &[], "get", "maps", "team");
    assert_eq!(allowed.reason, r#"RBAC: allowed by RoleBinding "b/team" of Role "reader" to User "jane""#);
    assert!(!decide(&index, "jane", &[], "get", "maps", "other").allowed);
    assert!(!decide(&index, "jane", &[], "get", "maps", "").allowed, "not in all namespaces");
    index.put_role("team", "reader", &role("secrets", "get"));
    assert!(!decide(&index, "jane", &[], "get", "maps", "team").allowed, "the role changed");
    assert!(decide(&index, "jane", &[], "get", "secrets", "team").allowed);
    index.put_binding("team", "b", &binding("Role", "reader", &json!([{"kind": "Group", "name": "devs"}])));
    assert!(!decide(&index, "jane", &[], "get", "secrets", "team").allowed, "the binding changed");
    assert!(decide(&index, "joe", &["devs"], "get", "secrets", "team").allowed);
    index.remove_role("team", "reader");
    assert!(!decide(&index, "joe", &["devs"], "get", "secrets", "team").allowed);
    index.remove_binding("team", "b");
    assert!(
        index.users.is_empty() && index.groups.is_empty() && index.referring.is_empty(),
        "nothing is left"
    );
}

#[test]
fn service_accounts_are_users_and_a_cluster_binding_needs_their_namespace() {
    let mut index = Index::default();
    index.put_role("", "reader", &role("maps", "get"));
    let local = json!([{"kind": "ServiceAccount", "name": "bot"}]);
    index.put_binding("team", "b", &binding("ClusterRole", "reader", &local));
    index.put_binding("", "b", &binding("ClusterRole", "reader", &local));
    let bot = "system:serviceaccount:team:bot";
    let allowed = decide(&index, bot, &[], "get", "maps", "team");
    assert_eq!(
        allowed.reason,
        r#"RBAC: allowed by RoleBinding "b/team" of ClusterRole "reader" to ServiceAccount "bot/team""#
    );
    assert!(!decide(&index, bot, &[], "get", "maps", "other").allowed);
    let named = json!([{"kind": "ServiceAccount", "name": "bot", "namespace": "team"}]);
    index.put_binding("", "b", &binding("ClusterRole", "reader", &named));
    assert!(decide(&index, bot, &[], "get", "maps", "other").allowed);
    index.put_binding("", "c", &binding("Role", "reader", &json!([{"kind": "User", "name": "x"}])));
    assert!(
        !decide(&index, "x", &[], "get", "maps", "team").allowed,
        "a ClusterRoleBinding to a Role gives nothing"
    );
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Every binding and rule, searched one by one as upstream does.
fn searched(
    objects: &BTreeMap<(bool, String, String), Value>,
    user: &User<'_>,
    request: &Request<'_>,
) -> bool {
    objects.iter().filter(|((is_role, ..), _)| !is_role).any(|((_, namespace, _), binding)| {
        let in_scope = namespace.is_empty() || namespace == request.namespace;
        let applies = binding["subjects"].as_array().unwrap().iter().any(|subject| {
            match holder(subject, namespace).0 {
                Some(Holder::User(name)) => *name == *user.name,
                Some(Holder::Group(name)) => user.groups.iter().any(|group| **group == *name),
                None => false,
            }
        });
        let of = RoleRef::of(binding);
        let place = if of.kind == "Role" { namespace.clone() } else { String::new() };
        let role = objects
            .get(&(true, place, of.name.clone()))
            .filter(|_| of.kind != "Role" || !namespace.is_empty());
        in_scope
            && applies
            && role.is_some_and(|role| Rule::all_of(role).iter().any(|rule| rule.allows(request)))
    })
}

#[test]
fn the_index_agrees_with_a_search_after_every_change() {
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let mut index = Index::default();
        let mut objects = BTreeMap::new();
        for _ in 0..120 {
            change(&mut rng, &mut index, &mut objects);
            for _ in 0..10 {
                let groups = vec![pick(&mut rng).to_owned()];
                let user = User { name: pick(&mut rng), groups: &groups };
                let request = Request {
                    verb: pick(&mut rng),
                    resource: pick(&mut rng),
                    subresource: ["", "a", "b"][rng.index(3)],
                    namespace: ["", "a", "b"][rng.index(3)],
                    name: pick(&mut rng),
                    ..Request::default()
                };
                let found = index.decide(&user, &request);
                assert_eq!(
                    found.allowed,
                    searched(&objects, &user, &request),
                    "seed {seed}: {user:?} {request:?}"
                );
            }
        }
    }
}

fn pick(rng: &mut Rng) -> &'static str {
    NAMES[rng.index(NAMES.len())]
}

fn change(rng: &mut Rng, index: &mut Index, objects: &mut BTreeMap<(bool, String, String), Value>) {
    let (is_role, namespace, name) = (rng.index(2) == 0, ["", "a", "b"][rng.index(3)], pick(rng));
    let key = (is_role, namespace.to_owned(), name.to_owned());
    if rng.index(4) == 0 {
        objects.remove(&key);
        if is_role {
            index.remove_role(namespace, name);
        } else {
            index.remove_binding(namespace, name);
        }
        return;
    }
    let value = if is_role {
        let resource = ["a", "b", "*", "*/a", "a/b"][rng.index(5)];
        let verb = ["a", "b", "*"][rng.index(3)];
        let names = if rng.index(3) == 0 { json!([pick(rng)]) } else { json!([]) };
        json!({"rules": [{"verbs": [verb], "apiGroups": [""], "resources": [resource, pick(rng)], "resourceNames": names}]})
    } else {
        let kind = ["User", "Group"][rng.index(2)];
        let subjects = json!([{"kind": kind, "name": pick(rng)}, {"kind": "User", "name": pick(rng)}]);
        binding(["Role", "ClusterRole"][rng.index(2)], pick(rng), &subjects)
    };
    if is_role {
        index.put_role(namespace, name, &value);
    } else {
        index.put_binding(namespace, name, &value);
    }
    objects.insert(key, value);
}

/// What a decision costs must not grow with bindings of others: counted, because a time would depend on the machine.
#[test]
fn a_decision_reads_nothing_of_other_subjects() {
    let mut index = Index::default();
    for i in 0..1_000 {
        let name = format!("r{i}");
        index.put_role("", &name, &role(&format!("things{i}"), "get"));
        let subjects = json!([{"kind": "User", "name": format!("user{i}")}]);
        index.put_binding("", &name, &binding("ClusterRole", &name, &subjects));
        let team = json!([{"kind": "Group", "name": "team"}]);
        index.put_binding("", &format!("team{i}"), &binding("ClusterRole", &name, &team));
    }
    assert!(decide(&index, "user7", &[], "get", "things7", "x").allowed);
    let compiled = |grants: &HashMap<Arc<str>, Grants>| {
        grants.values().filter(|grants| grants.cluster.compiled.get().is_some()).count()
    };
    assert_eq!((compiled(&index.users), compiled(&index.groups)), (1, 0), "one subject was looked at");
    assert!(decide(&index, "x", &["team"], "get", "things999", "x").allowed);
    let team = index.groups["team"].cluster.compiled.get().unwrap();
    assert_eq!(team.by_resource["things999"].len(), 1, "of 1,000 rules of the group one names the resource");
}

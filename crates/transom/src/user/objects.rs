//! What a user is on the control plane.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use transom_console::Failure;
use transom_object::{GroupVersionKind, meta, names};

/// The namespace of the service accounts.
pub(super) const NAMESPACE: &str = "transom-users";
/// On everything that belongs to a user: its name.
pub(super) const USER_LABEL: &str = "transom.dev/user";

const GROUP: &str = "rbac.authorization.k8s.io";

/// A kind of Kubernetes' RBAC.
pub(super) fn rbac(kind: &str) -> GroupVersionKind {
    GroupVersionKind::new(GROUP, "v1", kind)
}

/// What a user is given.
pub(super) struct Grants<'a> {
    pub(super) user: &'a str,
    pub(super) namespace: Option<&'a str>,
    pub(super) roles: &'a [String],
    pub(super) resources: &'a [String],
    pub(super) verbs: &'a [String],
}

impl Grants<'_> {
    /// Whether the name can be that of a service account, and of a label.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let wrong = names::is_dns1123_label(self.user);
        match wrong.first() {
            None => Ok(()),
            Some(why) => Err(Failure::new(format!("{:?} is not a name for a user: {why}", self.user))
                .remedy("write it like jane or team-a-ci")),
        }
    }

    /// Namespace, service account, roles and bindings.
    pub(super) fn objects(&self) -> Vec<Value> {
        let mut objects = vec![
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
            self.object("v1", "ServiceAccount", Some(NAMESPACE), self.user, json!({})),
        ];
        for role in self.roles {
            objects.push(self.binding(&format!("transom:user:{}:{role}", self.user), "ClusterRole", role));
        }
        if !self.resources.is_empty() {
            let name = format!("transom:user:{}", self.user);
            let rules: Vec<Value> = self.resources.iter().map(|resource| self.rule(resource)).collect();
            let kind = if self.namespace.is_some() { "Role" } else { "ClusterRole" };
            let version = rbac(kind).api_version();
            objects.push(self.object(&version, kind, self.namespace, &name, json!({"rules": rules})));
            objects.push(self.binding(&name, kind, &name));
        }
        objects
    }

    fn rule(&self, resource: &str) -> Value {
        let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
        json!({"apiGroups": [group], "resources": [plural], "verbs": self.verbs})
    }

    fn binding(&self, name: &str, role_kind: &str, role: &str) -> Value {
        let kind = if self.namespace.is_some() { "RoleBinding" } else { "ClusterRoleBinding" };
        let content = json!({
            "roleRef": {"apiGroup": GROUP, "kind": role_kind, "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": self.user, "namespace": NAMESPACE}],
        });
        self.object(&rbac(kind).api_version(), kind, self.namespace, name, content)
    }

    fn object(
        &self,
        version: &str,
        kind: &str,
        namespace: Option<&str>,
        name: &str,
        content: Value,
    ) -> Value {
        let labels = json!({"app.kubernetes.io/managed-by": super::MANAGER, USER_LABEL: self.user});
        let mut object =
            json!({"apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": labels}});
        if let Some(namespace) = namespace {
            object["metadata"]["namespace"] = namespace.into();
        }
        if let (Some(object), Value::Object(content)) = (object.as_object_mut(), content) {
            object.extend(content);
        }
        object
    }
}

/// The users among these objects, with what their bindings give them.
pub(super) fn summary(objects: &[Value]) -> Value {
    let user_of = |object: &Value| object["metadata"]["labels"][USER_LABEL].as_str().map(str::to_owned);
    let mut users: BTreeMap<String, (String, Vec<String>)> = BTreeMap::new();
    for account in objects.iter().filter(|object| object["kind"] == "ServiceAccount") {
        let since = account["metadata"]["creationTimestamp"].as_str().unwrap_or_default();
        users.insert(meta::name(account).to_owned(), (since.to_owned(), Vec::new()));
    }
    for binding in objects.iter().filter(|object| object.get("roleRef").is_some()) {
        let Some((_, access)) = user_of(binding).and_then(|user| users.get_mut(&user)) else { continue };
        let role = binding["roleRef"]["name"].as_str().unwrap_or_default();
        let role =
            if role.starts_with("transom:user:") { shown_rules(objects, role) } else { role.to_owned() };
        access.push(match meta::namespace(binding) {
            "" => format!("{role} everywhere"),
            namespace => format!("{role} in {namespace}"),
        });
    }
    let users = users.into_iter();
    users.map(|(name, (since, access))| json!({"name": name, "access": access, "since": since})).collect()
}

/// The resources of a role that `user add --resource` made.
fn shown_rules(objects: &[Value], name: &str) -> String {
    let role = objects.iter().find(|object| object.get("rules").is_some() && meta::name(object) == name);
    let rules = role.and_then(|role| role["rules"].as_array()).into_iter().flatten();
    let shown = rules.map(|rule| {
        let text = |key: &str| rule[key][0].as_str().unwrap_or_default().to_owned();
        let (plural, group) = (text("resources"), text("apiGroups"));
        if group.is_empty() { plural } else { format!("{plural}.{group}") }
    });
    shown.collect::<Vec<_>>().join("+")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(list: &[&str]) -> Vec<String> {
        list.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn a_user_in_a_namespace_gets_nothing_outside_of_it() {
        let (roles, resources, verbs) =
            (strings(&["edit"]), strings(&["databases.example.org"]), strings(&["get"]));
        let grants = Grants {
            user: "jane",
            namespace: Some("team-a"),
            roles: &roles,
            resources: &resources,
            verbs: &verbs,
        };
        let objects = grants.objects();
        let kinds: Vec<&str> = objects.iter().filter_map(|object| object["kind"].as_str()).collect();
        assert_eq!(kinds, ["Namespace", "ServiceAccount", "RoleBinding", "Role", "RoleBinding"]);
        for object in &objects[2..] {
            assert_eq!(meta::namespace(object), "team-a");
        }
        assert_eq!(
            objects[3]["rules"],
            json!([{"apiGroups": ["example.org"], "resources": ["databases"], "verbs": ["get"]}])
        );
        let users = summary(&objects);
        assert_eq!(users[0]["access"], json!(["edit in team-a", "databases.example.org in team-a"]));
    }

    #[test]
    fn names_that_no_account_can_have_are_refused() {
        for name in ["", "Jane", "system:masters", "../x", &"x".repeat(64)] {
            let grants = Grants { user: name, namespace: None, roles: &[], resources: &[], verbs: &[] };
            assert!(grants.check().is_err(), "{name}");
        }
    }
}

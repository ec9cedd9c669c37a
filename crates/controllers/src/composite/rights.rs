//! The rights that the control plane lacks, or the service account that it composes under. They are reviewed when a read or
//! a write was refused, and reported with the remedy.

use serde_json::{Value, json};
use std::fmt;
use transom_engine::{Cluster, Kind, Result};
use transom_object::GroupVersionKind;
use transom_xapi::AccountReference;
use transom_xapi::account::Rule;
use transom_xapi::constants::owner;

/// Who lacks rights.
#[derive(Debug, PartialEq, Eq)]
enum User {
    /// The control plane, by the name that the server knows it by.
    ControlPlane(String),
    /// A service account that it acts as.
    Account(AccountReference),
    /// The control plane, which may not act as this service account.
    Impersonator(AccountReference),
}

/// Missing rights on a kind.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Missing {
    user: User,
    verbs: Vec<&'static str>,
    plural: String,
    gvk: GroupVersionKind,
    namespace: String,
}

impl Missing {
    /// What would allow an account to do it.
    fn role(&self) -> String {
        let Self { verbs, plural, gvk, namespace, .. } = self;
        Rule { verbs, group: &gvk.group, resources: vec![plural.clone()], name: "" }.role(namespace)
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { user, verbs, plural, gvk, namespace } = self;
        match user {
            User::ControlPlane(user) => write!(f, "{user}")?,
            User::Account(account) => write!(f, "service account {account}")?,
            User::Impersonator(account) => {
                return write!(f, "{}", impersonation(account));
            }
        }
        let separator = if gvk.group.is_empty() { "/" } else { "." };
        let needed = verbs.join(", ");
        write!(f, " is not allowed to [{needed}] resource {plural}{separator}{}", gvk.api_version())?;
        if !namespace.is_empty() {
            write!(f, " in namespace {namespace}")?;
        }
        if let User::Account(account) = user {
            return write!(f, "; {}, bound to service account {account}, allows it", self.role());
        }
        let group = &gvk.group;
        write!(
            f,
            "; allow these verbs on {plural} in API group {group:?} by a ClusterRole with the label \
             rbac.crossplane.io/aggregate-to-crossplane: \"true\""
        )
    }
}

/// The control plane may not act as an account.
fn impersonation(account: &AccountReference) -> String {
    let resources = vec!["serviceaccounts".to_owned()];
    let rule = Rule { verbs: &["impersonate"], group: "", resources, name: &account.name };
    let role = rule.role(&account.namespace);
    format!(
        "the control plane may not act as service account {account}, which the definition names; {role}, bound to the service \
         account of the control plane, allows it"
    )
}

/// Which of the needed verbs on a kind the user of a cluster has no right to, if any: the account, or without one the
/// control plane.
pub(super) async fn missing_rights(
    cluster: &Cluster,
    account: Option<&AccountReference>,
    gvk: &GroupVersionKind,
    namespace: &str,
    needed: &[&'static str],
) -> Option<Missing> {
    let kind = cluster.kind(gvk).await.ok()?;
    let namespace = if kind.namespaced { namespace } else { "" };
    let missing = |user, verbs| {
        let (plural, namespace) = (kind.plural.clone(), namespace.to_owned());
        Missing { user, verbs, plural, gvk: gvk.clone(), namespace }
    };
    let verbs = match missing_verbs(cluster, &kind, namespace, needed).await {
        Ok(verbs) if verbs.is_empty() => return None,
        Ok(verbs) => verbs,
        // Every service account may ask about itself, so it is the impersonation that is forbidden.
        Err(e) if e.is_forbidden() => {
            return account.map(|account| missing(User::Impersonator(account.clone()), Vec::new()));
        }
        Err(_) => return None,
    };
    let user = match account {
        Some(account) => User::Account(account.clone()),
        None => User::ControlPlane(name(cluster).await),
    };
    Some(missing(user, verbs))
}

async fn missing_verbs(
    cluster: &Cluster,
    kind: &Kind,
    namespace: &str,
    needed: &[&'static str],
) -> Result<Vec<&'static str>> {
    let ask = async |verb: &str| -> Result<bool> {
        let question = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {
                "verb": verb, "group": kind.gvk.group, "version": kind.gvk.version, "resource": kind.plural,
                "namespace": namespace,
            }},
        });
        let answer = cluster.create(&question, owner::DEFAULT).await?;
        Ok(answer["status"]["allowed"] == true)
    };
    let mut verbs = Vec::new();
    if ask("*").await? {
        return Ok(verbs);
    }
    for verb in needed {
        if !ask(verb).await? {
            verbs.push(*verb);
        }
    }
    Ok(verbs)
}

/// The name of the user of a cluster.
async fn name(cluster: &Cluster) -> String {
    let who = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let who = cluster.create(&who, owner::DEFAULT).await.unwrap_or_default();
    let user = who.pointer("/status/userInfo/username").and_then(Value::as_str);
    user.unwrap_or("the control plane").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_rights_are_named_with_their_remedy() {
        let missing = |group: &str, namespace: &str| Missing {
            user: User::ControlPlane("system:serviceaccount:crossplane-system:crossplane".to_owned()),
            verbs: vec!["create", "patch"],
            plural: "things".to_owned(),
            gvk: GroupVersionKind::new(group, "v1", "Thing"),
            namespace: namespace.to_owned(),
        };
        assert_eq!(
            missing("example.org", "default").to_string(),
            "system:serviceaccount:crossplane-system:crossplane is not allowed to [create, patch] resource \
             things.example.org/v1 in namespace default; allow these verbs on things in API group \"example.org\" by a \
             ClusterRole with the label rbac.crossplane.io/aggregate-to-crossplane: \"true\""
        );
        assert!(missing("", "").to_string().contains("resource things/v1; allow"));
        let account = AccountReference { namespace: "shop".to_owned(), name: "composer".to_owned() };
        let denied = Missing { user: User::Account(account.clone()), ..missing("example.org", "default") };
        assert_eq!(
            denied.to_string(),
            "service account shop/composer is not allowed to [create, patch] resource things.example.org/v1 in namespace \
             default; A Role in namespace default with the rule {apiGroups: [\"example.org\"], resources: [things], verbs: \
             [create, patch]}, bound to service account shop/composer, allows it"
        );
        let denied = Missing { user: User::Impersonator(account), ..missing("", "") };
        assert!(
            denied.to_string().contains("the control plane may not act as service account shop/composer")
        );
    }
}

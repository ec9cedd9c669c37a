//! The rights that the control plane itself lacks. They are reviewed when a read or a write was refused, and reported
//! with the remedy.

use serde_json::{Value, json};
use std::fmt;
use transom_engine::{Cluster, Result};
use transom_object::GroupVersionKind;
use transom_xapi::constants::owner;

/// Missing rights on a kind.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Missing {
    user: String,
    verbs: Vec<&'static str>,
    plural: String,
    gvk: GroupVersionKind,
    namespace: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { user, verbs, plural, gvk, namespace } = self;
        let separator = if gvk.group.is_empty() { "/" } else { "." };
        let verbs = verbs.join(", ");
        write!(f, "{user} is not allowed to [{verbs}] resource {plural}{separator}{}", gvk.api_version())?;
        if !namespace.is_empty() {
            write!(f, " in namespace {namespace}")?;
        }
        let group = &gvk.group;
        write!(
            f,
            "; allow these verbs on {plural} in API group {group:?} by a ClusterRole with the label \
             rbac.crossplane.io/aggregate-to-crossplane: \"true\""
        )
    }
}

/// Which of the needed verbs on a kind the control plane has no right to, if any.
pub(super) async fn missing_rights(
    cluster: &Cluster,
    gvk: &GroupVersionKind,
    namespace: &str,
    needed: &[&'static str],
) -> Result<Option<Missing>> {
    let kind = cluster.kind(gvk).await?;
    let namespace = if kind.namespaced { namespace } else { "" };
    let ask = async |verb: &str| -> Result<bool> {
        let question = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {
                "verb": verb, "group": gvk.group, "version": gvk.version, "resource": kind.plural,
                "namespace": namespace,
            }},
        });
        let answer = cluster.create(&question, owner::DEFAULT).await?;
        Ok(answer["status"]["allowed"] == true)
    };
    if ask("*").await? {
        return Ok(None);
    }
    let mut verbs = Vec::new();
    for verb in needed {
        if !ask(verb).await? {
            verbs.push(*verb);
        }
    }
    if verbs.is_empty() {
        return Ok(None);
    }
    let who = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let who = cluster.create(&who, owner::DEFAULT).await.unwrap_or_default();
    let user = who.pointer("/status/userInfo/username").and_then(Value::as_str);
    let user = user.unwrap_or("the control plane").to_owned();
    let (plural, namespace) = (kind.plural.clone(), namespace.to_owned());
    Ok(Some(Missing { user, verbs, plural, gvk: gvk.clone(), namespace }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_rights_are_named_with_their_remedy() {
        let missing = |group: &str, namespace: &str| Missing {
            user: "system:serviceaccount:crossplane-system:crossplane".to_owned(),
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
    }
}

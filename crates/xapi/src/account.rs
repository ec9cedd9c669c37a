//! The service account that the composite resources of a definition are composed under: `serviceAccountRef`.
//!
//! Such a composite resource can be composed of what the account may write and no more. A user who names an account in a
//! definition lets the authors of Compositions use its rights, so the account must be one that the author may use.

use crate::definition::{Definition, Scope};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fmt;
use transom_object::names;

/// The verb on a service account that it takes to name it in a definition. Not `impersonate`: the controllers have that on
/// every account, and they write definitions for users who may not, as composed resources and from packages.
pub const VERB: &str = "use";

/// A service account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct AccountReference {
    /// Its namespace. Without one it is in the namespace of each composite resource.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl AccountReference {
    /// The user that the account is to an API server.
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }

    /// The question whether a user may name the account. The user is described as in a review of admission.
    pub fn access_review(&self, user: &Value) -> Value {
        let attributes = json!({
            "verb": VERB, "group": "", "version": "v1", "resource": "serviceaccounts", "namespace": self.namespace,
            "name": self.name,
        });
        let mut review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"resourceAttributes": attributes, "user": user["username"]},
        });
        for field in ["groups", "uid", "extra"] {
            if let Some(value) = user.get(field).filter(|value| !value.is_null()) {
                review["spec"][field] = value.clone();
            }
        }
        review
    }

    /// Why a definition cannot be written by someone who may not use the account, and what would allow it.
    pub fn not_allowed(&self, user: &Value) -> String {
        let user = user["username"].as_str().unwrap_or_default();
        let resources = vec!["serviceaccounts".to_owned()];
        let rule = Rule { verbs: &[VERB], group: "", resources, name: &self.name };
        let (place, role) = match self.namespace.as_str() {
            "" => (format!("{:?} in all namespaces", self.name), rule.role("")),
            namespace => (format!("\"{namespace}/{}\"", self.name), rule.role(namespace)),
        };
        format!(
            "spec.serviceAccountRef: user {user:?} may not use service account {place}: it takes the verb {VERB} on it. \
             {role}, bound to the user, allows it"
        )
    }

    /// Why no one can name the account, if it is, or is in one namespace, an account that the control plane itself has.
    pub fn own_problem(&self, own: &[Self]) -> Option<String> {
        let within = |own: &Self| self.namespace.is_empty() || self.namespace == own.namespace;
        let own = own.iter().find(|own| own.name == self.name && within(own))?;
        Some(format!(
            "spec.serviceAccountRef: service account \"{own}\" is the control plane itself: name another account, with the \
             rights that the composite resources need"
        ))
    }
}

impl fmt::Display for AccountReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A rule of a Role, as a remedy shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule<'a> {
    /// What it allows.
    pub verbs: &'a [&'a str],
    /// The API group.
    pub group: &'a str,
    /// The plural names.
    pub resources: Vec<String>,
    /// The only object that it is about; empty for all.
    pub name: &'a str,
}

impl Rule<'_> {
    /// A Role with this rule in a namespace, or a ClusterRole if that is empty.
    pub fn role(&self, namespace: &str) -> String {
        match namespace {
            "" => format!("A ClusterRole with the rule {self}"),
            namespace => format!("A Role in namespace {namespace} with the rule {self}"),
        }
    }
}

impl fmt::Display for Rule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verbs, group, resources, name } = self;
        write!(f, "{{apiGroups: [{group:?}], resources: [{}]", resources.join(", "))?;
        if !name.is_empty() {
            write!(f, ", resourceNames: [{name}]")?;
        }
        write!(f, ", verbs: [{}]}}", verbs.join(", "))
    }
}

impl Definition {
    /// The account that composite resources in a namespace are composed under, if the definition names one.
    pub fn account(&self, namespace: &str) -> Option<AccountReference> {
        let mut account = self.spec.service_account_ref.clone()?;
        if account.namespace.is_empty() {
            namespace.clone_into(&mut account.namespace);
        }
        Some(account)
    }

    /// What is wrong with the account of the definition.
    pub(crate) fn account_problem(&self) -> Option<String> {
        let AccountReference { namespace, name } = self.spec.service_account_ref.as_ref()?;
        if let Some(why) = names::is_dns1123_subdomain(name).first() {
            return Some(format!("spec.serviceAccountRef.name: {why}"));
        }
        if !namespace.is_empty() {
            let why = names::is_dns1123_label(namespace).into_iter().next()?;
            return Some(format!("spec.serviceAccountRef.namespace: {why}"));
        }
        (self.scope() != Scope::Namespaced).then(|| {
            "spec.serviceAccountRef.namespace: is required, because the composite resources have no namespace".to_owned()
        })
    }
}

/// The account that the author of a definition must have the right to use: one that the definition did not name before.
pub fn newly_named(definition: &Value, before: Option<&Value>) -> Option<AccountReference> {
    let account = |definition: &Value| {
        let account = definition.pointer("/spec/serviceAccountRef").filter(|account| !account.is_null())?;
        AccountReference::deserialize(account).ok()
    };
    let named = account(definition)?;
    (before.and_then(account).as_ref() != Some(&named)).then_some(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_without_a_namespace_is_in_that_of_each_composite_resource() {
        let d = |scope: &str, account: Value| {
            serde_json::from_value::<Definition>(
                json!({"spec": {"scope": scope, "serviceAccountRef": account}}),
            )
            .unwrap()
        };
        let user = |d: &Definition, namespace| d.account(namespace).map(|account| account.user());
        let named = d("Namespaced", json!({"name": "composer"}));
        assert_eq!(user(&named, "shop").as_deref(), Some("system:serviceaccount:shop:composer"));
        assert_eq!(named.account_problem(), None);
        let fixed = d("Namespaced", json!({"name": "composer", "namespace": "platform"}));
        assert_eq!(user(&fixed, "shop").as_deref(), Some("system:serviceaccount:platform:composer"));
        assert_eq!(user(&d("Namespaced", Value::Null), "shop"), None);
        for (scope, account, why) in [
            ("Cluster", json!({"name": "composer"}), "spec.serviceAccountRef.namespace: is required"),
            ("Namespaced", json!({"name": "a:b"}), "spec.serviceAccountRef.name: a lowercase"),
            (
                "Cluster",
                json!({"name": "a", "namespace": "B"}),
                "spec.serviceAccountRef.namespace: a lowercase",
            ),
        ] {
            let problem = d(scope, account).account_problem().unwrap();
            assert!(problem.starts_with(why), "{problem}");
        }
    }

    #[test]
    fn only_an_account_that_was_not_named_before_must_be_allowed() {
        let definition = |account: Value| json!({"spec": {"serviceAccountRef": account}});
        let (a, b) = (definition(json!({"name": "a"})), definition(json!({"name": "a", "namespace": "n"})));
        assert_eq!(newly_named(&definition(Value::Null), None), None);
        assert_eq!(newly_named(&a, Some(&a)), None);
        assert_eq!(newly_named(&a, None).unwrap().name, "a");
        assert_eq!(newly_named(&b, Some(&a)).unwrap().namespace, "n");
        assert_eq!(
            newly_named(&definition(Value::Null), Some(&a)),
            None,
            "giving one up needs no right to it"
        );
        let mut deleting = b.clone();
        deleting["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(
            newly_named(&deleting, Some(&a)).unwrap().namespace,
            "n",
            "its objects are still composed"
        );
        assert_eq!(newly_named(&deleting, Some(&b)), None);
    }

    #[test]
    fn no_one_names_an_account_of_the_control_plane() {
        let account = |namespace: &str, name: &str| AccountReference {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let own = [account("system", "crossplane"), account("system", "rbac-manager")];
        for named in [account("system", "rbac-manager"), account("", "crossplane")] {
            let why = named.own_problem(&own).unwrap();
            assert!(why.contains(&format!("\"system/{}\" is the control plane itself", named.name)), "{why}");
        }
        assert_eq!(account("shop", "crossplane").own_problem(&own), None);
        assert_eq!(account("system", "composer").own_problem(&own), None);
    }

    #[test]
    fn a_review_names_the_user_with_everything_that_is_known_of_it() {
        let account = AccountReference { namespace: "shop".to_owned(), name: "composer".to_owned() };
        let user = json!({"username": "jane", "groups": ["devs"], "extra": {"k": ["v"]}});
        let review = account.access_review(&user);
        let attributes = json!({
            "verb": "use", "group": "", "version": "v1", "resource": "serviceaccounts", "namespace": "shop", "name": "composer",
        });
        assert_eq!(
            review["spec"],
            json!({"user": "jane", "groups": ["devs"], "extra": {"k": ["v"]}, "resourceAttributes": attributes})
        );
        assert_eq!(
            account.not_allowed(&user),
            "spec.serviceAccountRef: user \"jane\" may not use service account \"shop/composer\": it takes the verb use on \
             it. A Role in namespace shop with the rule {apiGroups: [\"\"], resources: [serviceaccounts], \
             resourceNames: [composer], verbs: [use]}, bound to the user, allows it"
        );
        let everywhere = AccountReference { name: "composer".to_owned(), ..AccountReference::default() };
        let why = everywhere.not_allowed(&user);
        assert!(
            why.contains("\"composer\" in all namespaces") && why.contains("A ClusterRole with"),
            "{why}"
        );
    }
}

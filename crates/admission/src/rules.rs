//! Rules: operations, groups, versions, resources and scope.

use serde_json::Value;
use transom_object::json::strings;
use transom_object::wildcard::{self, is_or_all};

/// What a request does to what.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: &'a str,
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The API version.
    pub version: &'a str,
    /// The plural name.
    pub resource: &'a str,
    /// Empty for the object itself.
    pub subresource: &'a str,
    /// Empty for objects without a namespace.
    pub namespace: &'a str,
    /// The name of the object; empty while it is not known.
    pub name: &'a str,
}

impl Target<'_> {
    fn is_namespace(&self) -> bool {
        self.group.is_empty() && self.resource == "namespaces"
    }

    /// Whether the request changes the configuration of admission itself, which nothing may get in the way of.
    pub fn is_admission_configuration(&self) -> bool {
        let exempt = [
            "validatingwebhookconfigurations",
            "mutatingwebhookconfigurations",
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
        ];
        self.group == "admissionregistration.k8s.io" && exempt.contains(&self.resource)
    }
}

/// One rule of a webhook or a policy.
#[derive(Clone, Debug)]
pub struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<String>,
    /// Empty: all names.
    names: Vec<String>,
    scope: String,
}

impl Rule {
    /// Reads `RuleWithOperations` or `NamedRuleWithOperations`.
    pub fn parse(rule: &Value) -> Self {
        Self {
            operations: strings(&rule["operations"]),
            groups: strings(&rule["apiGroups"]),
            versions: strings(&rule["apiVersions"]),
            resources: strings(&rule["resources"]),
            names: strings(&rule["resourceNames"]),
            scope: rule["scope"].as_str().unwrap_or("*").to_owned(),
        }
    }

    /// The rules of a list.
    pub fn parse_all(rules: &Value) -> Vec<Self> {
        rules.as_array().into_iter().flatten().map(Self::parse).collect()
    }

    /// Whether the rule names the request.
    pub fn matches(&self, target: &Target<'_>) -> bool {
        wildcard::names(&self.operations, target.operation)
            && wildcard::names(&self.groups, target.group)
            && wildcard::names(&self.versions, target.version)
            && self.resources.iter().any(|resource| names_resource(resource, target))
            && (self.names.is_empty() || self.names.iter().any(|name| name == target.name))
            && self.covers_scope(target)
    }

    /// Whether the rule could name a request to the resource in another version.
    pub fn matches_but_version(&self, target: &Target<'_>, version: &str) -> bool {
        self.matches(&Target { version, ..*target })
    }

    fn covers_scope(&self, target: &Target<'_>) -> bool {
        // A namespace is an object without one.
        let namespaced = !target.namespace.is_empty() && !target.is_namespace();
        match self.scope.as_str() {
            "Namespaced" => namespaced,
            "Cluster" => !namespaced,
            _ => true,
        }
    }
}

fn names_resource(entry: &str, target: &Target<'_>) -> bool {
    let (resource, subresource) = entry.split_once('/').unwrap_or((entry, ""));
    is_or_all(resource, target.resource) && is_or_all(subresource, target.subresource)
}

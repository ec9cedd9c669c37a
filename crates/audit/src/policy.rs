//! Decides which requests are recorded, and how much of each: by the first rule that matches. Credentials are never recorded,
//! with any policy.

use crate::{Level, Stage};
use serde_json::Value;
use std::fmt;
use transom_object::json::strings;

/// What a rule looks at. Empty texts mean the same as in the attributes of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// The name of the user.
    pub user: &'a str,
    /// Its groups.
    pub groups: &'a [String],
    /// The verb, or the HTTP method in lower case for a path.
    pub verb: &'a str,
    /// The API group.
    pub group: &'a str,
    /// The plural name of the resource.
    pub resource: &'a str,
    /// The subresource.
    pub subresource: &'a str,
    /// The namespace.
    pub namespace: &'a str,
    /// The name of the object.
    pub name: &'a str,
    /// `Some` when the request is not for a resource.
    pub path: Option<&'a str>,
}

/// How a request is recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// How much of it.
    pub level: Level,
    /// The stages without an event.
    pub omit_stages: Vec<String>,
    /// Objects are recorded without `managedFields`.
    pub omit_managed_fields: bool,
}

impl Decision {
    /// Whether there is an event for a stage.
    pub fn records(&self, stage: Stage) -> bool {
        self.level > Level::None && !self.omit_stages.iter().any(|omitted| omitted == stage.as_str())
    }
}

/// What is wrong with a policy, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError {
    /// The path of the field.
    pub field: String,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.why)
    }
}

impl std::error::Error for PolicyError {}

/// A policy.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    rules: Vec<Rule>,
    omit_stages: Vec<String>,
    omit_managed_fields: bool,
}

#[derive(Clone, Debug)]
struct Rule {
    level: Level,
    users: Vec<String>,
    groups: Vec<String>,
    verbs: Vec<String>,
    namespaces: Vec<String>,
    resources: Vec<Resources>,
    paths: Vec<String>,
    omit_stages: Vec<String>,
    omit_managed_fields: Option<bool>,
}

#[derive(Clone, Debug)]
struct Resources {
    group: String,
    resources: Vec<String>,
    names: Vec<String>,
}

fn wrong(field: impl Into<String>, why: impl Into<String>) -> PolicyError {
    PolicyError { field: field.into(), why: why.into() }
}

const RULE_FIELDS: [&str; 9] = [
    "level",
    "users",
    "userGroups",
    "verbs",
    "namespaces",
    "resources",
    "nonResourceURLs",
    "omitStages",
    "omitManagedFields",
];

impl Policy {
    /// Reads the content of a policy file.
    pub fn parse(value: &Value) -> Result<Self, PolicyError> {
        if value["apiVersion"] != "audit.k8s.io/v1" || value["kind"] != "Policy" {
            return Err(wrong("apiVersion, kind", "must be audit.k8s.io/v1 and Policy"));
        }
        let rules = value["rules"].as_array().filter(|rules| !rules.is_empty());
        let rules = rules.ok_or_else(|| wrong("rules", "must be a list of at least one rule"))?;
        let rules = rules.iter().enumerate().map(|(i, rule)| read_rule(rule, &format!("rules[{i}]")));
        Ok(Self {
            rules: rules.collect::<Result<_, _>>()?,
            omit_stages: read_stages(&value["omitStages"], "omitStages")?,
            omit_managed_fields: value["omitManagedFields"] == true,
        })
    }

    /// How a request is recorded.
    pub fn decide(&self, request: &Request<'_>) -> Decision {
        let Some(rule) = self.rules.iter().find(|rule| rule.matches(request)) else {
            return Decision::default();
        };
        let omit_stages = self.omit_stages.iter().chain(&rule.omit_stages).cloned().collect();
        let omit_managed_fields = rule.omit_managed_fields.unwrap_or(self.omit_managed_fields);
        let level = if is_secret(request) { rule.level.min(Level::Metadata) } else { rule.level };
        Decision { level, omit_stages, omit_managed_fields }
    }
}

/// Whether the objects of a request are credentials.
fn is_secret(request: &Request<'_>) -> bool {
    match (request.group, request.resource) {
        ("", "secrets") | ("authentication.k8s.io", "tokenreviews") => true,
        ("", "serviceaccounts") => request.subresource == "token",
        _ => false,
    }
}

fn read_rule(rule: &Value, at: &str) -> Result<Rule, PolicyError> {
    let fields = rule.as_object().ok_or_else(|| wrong(at, "must be an object"))?;
    if let Some(unknown) = fields.keys().find(|key| !RULE_FIELDS.contains(&key.as_str())) {
        return Err(wrong(format!("{at}.{unknown}"), "is not a field of a rule"));
    }
    let level = rule["level"]
        .as_str()
        .and_then(Level::parse)
        .ok_or_else(|| wrong(format!("{at}.level"), "must be None, Metadata, Request or RequestResponse"))?;
    let read = Rule {
        level,
        users: strings(&rule["users"]),
        groups: strings(&rule["userGroups"]),
        verbs: strings(&rule["verbs"]),
        namespaces: strings(&rule["namespaces"]),
        resources: rule["resources"].as_array().into_iter().flatten().map(read_resources).collect(),
        paths: strings(&rule["nonResourceURLs"]),
        omit_stages: read_stages(&rule["omitStages"], &format!("{at}.omitStages"))?,
        omit_managed_fields: rule["omitManagedFields"].as_bool(),
    };
    let of_resources = !read.resources.is_empty() || !read.namespaces.is_empty();
    if of_resources && !read.paths.is_empty() {
        let why = "cannot be given together with resources or namespaces";
        return Err(wrong(format!("{at}.nonResourceURLs"), why));
    }
    Ok(read)
}

fn read_resources(value: &Value) -> Resources {
    Resources {
        group: value["group"].as_str().unwrap_or_default().to_owned(),
        resources: strings(&value["resources"]),
        names: strings(&value["resourceNames"]),
    }
}

fn read_stages(value: &Value, at: &str) -> Result<Vec<String>, PolicyError> {
    let stages = strings(value);
    let known = |stage: &String| stage == "Panic" || Stage::ALL.iter().any(|known| known.as_str() == stage);
    match stages.iter().find(|stage| !known(stage)) {
        Some(stage) => Err(wrong(at, format!("{stage:?} is not a stage"))),
        None => Ok(stages),
    }
}

fn has(list: &[String], item: &str) -> bool {
    list.iter().any(|each| each == item)
}

impl Rule {
    fn matches(&self, request: &Request<'_>) -> bool {
        let by_user = self.users.is_empty() || has(&self.users, request.user);
        let by_group = self.groups.is_empty() || request.groups.iter().any(|group| has(&self.groups, group));
        let by_verb = self.verbs.is_empty() || has(&self.verbs, request.verb);
        let of_resources = !self.namespaces.is_empty() || !self.resources.is_empty();
        let by_target = match request.path {
            Some(path) => !of_resources && (self.paths.is_empty() || self.has_path(path)),
            None => self.paths.is_empty() && (!of_resources || self.has_resource(request)),
        };
        by_user && by_group && by_verb && by_target
    }

    fn has_path(&self, path: &str) -> bool {
        self.paths.iter().any(|each| match each.strip_suffix('*') {
            Some(prefix) => path.starts_with(prefix),
            None => path == each,
        })
    }

    fn has_resource(&self, request: &Request<'_>) -> bool {
        if !self.namespaces.is_empty() && !has(&self.namespaces, request.namespace) {
            return false;
        }
        self.resources.is_empty() || self.resources.iter().any(|resources| resources.has(request))
    }
}

impl Resources {
    fn has(&self, request: &Request<'_>) -> bool {
        if self.group != request.group {
            return false;
        }
        let named = self.names.is_empty() || has(&self.names, request.name);
        self.resources.is_empty() || (named && self.resources.iter().any(|each| is_of(each, request)))
    }
}

fn is_of(each: &str, request: &Request<'_>) -> bool {
    match each.split_once('/') {
        None if each == "*" => true,
        None => request.subresource.is_empty() && each == request.resource,
        Some((resource, "*")) => resource == request.resource,
        Some(("*", subresource)) => !subresource.is_empty() && subresource == request.subresource,
        Some((resource, subresource)) => resource == request.resource && subresource == request.subresource,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn policy(rules: &Value) -> Policy {
        let policy = json!({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules, "omitStages": ["RequestReceived"]});
        Policy::parse(&policy).unwrap()
    }

    fn level(policy: &Policy, verb: &str, resource: &str) -> Level {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        policy
            .decide(&Request { verb, resource, subresource, namespace: "default", ..Request::default() })
            .level
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let policy = policy(&json!([
            {"level": "None", "verbs": ["watch"]},
            {"level": "Request", "resources": [{"group": "", "resources": ["pods/*", "maps"]}]},
            {"level": "Metadata", "namespaces": ["default"]},
        ]));
        assert_eq!(level(&policy, "watch", "maps"), Level::None);
        assert_eq!(level(&policy, "get", "maps"), Level::Request);
        assert_eq!(level(&policy, "get", "pods/log"), Level::Request);
        assert_eq!(level(&policy, "get", "maps/status"), Level::Metadata);
        let path = policy.decide(&Request { verb: "get", path: Some("/version"), ..Request::default() });
        assert_eq!(path.level, Level::None, "no rule");
        let decision = policy.decide(&Request { verb: "get", resource: "maps", ..Request::default() });
        assert!(!decision.records(Stage::RequestReceived) && decision.records(Stage::ResponseComplete));
    }

    #[test]
    fn credentials_are_never_recorded() {
        let policy = policy(&json!([{"level": "RequestResponse"}]));
        assert_eq!(level(&policy, "get", "maps"), Level::RequestResponse);
        assert_eq!(level(&policy, "get", "secrets"), Level::Metadata);
        assert_eq!(level(&policy, "create", "serviceaccounts/token"), Level::Metadata);
        let review = Request {
            verb: "create",
            group: "authentication.k8s.io",
            resource: "tokenreviews",
            ..Request::default()
        };
        assert_eq!(policy.decide(&review).level, Level::Metadata);
    }

    #[test]
    fn mistakes_name_their_field() {
        let parse = |rules: Value| {
            let policy = json!({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules});
            Policy::parse(&policy).unwrap_err().to_string()
        };
        assert_eq!(parse(json!([])), "rules: must be a list of at least one rule");
        assert_eq!(
            parse(json!([{"level": "All"}])),
            "rules[0].level: must be None, Metadata, Request or RequestResponse"
        );
        assert_eq!(parse(json!([{"level": "None", "user": []}])), "rules[0].user: is not a field of a rule");
        assert!(
            parse(json!([{"level": "None", "omitStages": ["Never"]}])).contains("\"Never\" is not a stage")
        );
        let both = json!([{"level": "None", "nonResourceURLs": ["/x"], "namespaces": ["a"]}]);
        assert!(parse(both).contains("cannot be given together"));
        assert!(Policy::parse(&json!({"kind": "Policy"})).is_err());
    }
}

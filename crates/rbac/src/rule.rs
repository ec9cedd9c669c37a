//! One rule of a role, and whether it allows a request, as Kubernetes evaluates it.

use serde_json::{Map, Value, json};
use transom_object::json::strings;
use transom_object::quote::quote;
use transom_object::wildcard::{self, ALL};

/// A rule as a Role or ClusterRole has it: each list is a set of alternatives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// The verbs; `*` is every verb.
    pub verbs: Vec<String>,
    /// The API groups; `*` is every group, an empty one the core group.
    pub api_groups: Vec<String>,
    /// `pods`, `pods/log`, `*/scale`, or `*` for everything.
    pub resources: Vec<String>,
    /// The names of the objects; none is every object.
    pub resource_names: Vec<String>,
    /// Paths that are not resources; one that ends with `*` stands for all that begin with it.
    pub non_resource_urls: Vec<String>,
}

/// The action that is asked about. Empty texts mean the same as in the attributes of a request: no subresource, all
/// namespaces, a collection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
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

fn has(list: &[String], item: &str) -> bool {
    list.iter().any(|each| each == item)
}

impl Rule {
    /// Reads one element of `rules`. Fields of another type count as empty.
    pub fn of(value: &Value) -> Self {
        Self {
            verbs: strings(&value["verbs"]),
            api_groups: strings(&value["apiGroups"]),
            resources: strings(&value["resources"]),
            resource_names: strings(&value["resourceNames"]),
            non_resource_urls: strings(&value["nonResourceURLs"]),
        }
    }

    /// The rules of a Role or ClusterRole.
    pub fn all_of(role: &Value) -> Vec<Self> {
        role["rules"].as_array().into_iter().flatten().map(Self::of).collect()
    }

    /// As an element of `rules`, without empty lists.
    pub fn to_value(&self) -> Value {
        let lists = [
            ("verbs", &self.verbs),
            ("apiGroups", &self.api_groups),
            ("resources", &self.resources),
            ("resourceNames", &self.resource_names),
            ("nonResourceURLs", &self.non_resource_urls),
        ];
        let given = lists.into_iter().filter(|(_, list)| !list.is_empty());
        Value::Object(given.map(|(key, list)| (key.to_owned(), json!(list))).collect::<Map<_, _>>())
    }

    /// Whether the rule alone allows the request.
    pub fn allows(&self, request: &Request<'_>) -> bool {
        match request.path {
            Some(path) => wildcard::names(&self.verbs, request.verb) && self.has_path(path),
            None => {
                wildcard::names(&self.verbs, request.verb)
                    && wildcard::names(&self.api_groups, request.group)
                    && self.has_resource(request.resource, request.subresource)
                    && (self.resource_names.is_empty() || has(&self.resource_names, request.name))
            }
        }
    }

    fn has_resource(&self, resource: &str, subresource: &str) -> bool {
        self.resources.iter().any(|each| {
            if each == ALL {
                return true;
            }
            if subresource.is_empty() {
                return each == resource;
            }
            let named = each.strip_suffix(subresource).and_then(|rest| rest.strip_suffix('/'));
            named.is_some_and(|rest| wildcard::is_or_all(rest, resource))
        })
    }

    fn has_path(&self, path: &str) -> bool {
        self.non_resource_urls.iter().any(|each| each == ALL || covers_path(each, path))
    }

    /// Whether this rule allows everything that `part` does, which has one verb, one group and resource or one path, and
    /// at most one name.
    pub(crate) fn covers(&self, part: &Part<'_>) -> bool {
        if !wildcard::names(&self.verbs, part.verb) {
            return false;
        }
        match part.target {
            Target::Path(path) => self.non_resource_urls.iter().any(|each| covers_path(each, path)),
            Target::Resource { group, resource, name } => {
                wildcard::names(&self.api_groups, group)
                    && self.covers_resource(resource)
                    && (self.resource_names.is_empty()
                        || name.is_some_and(|name| has(&self.resource_names, name)))
            }
        }
    }

    fn covers_resource(&self, resource: &str) -> bool {
        let of_any = |each: &str| {
            let sub = resource.split_once('/').map(|(_, sub)| sub);
            sub.is_some() && each.strip_prefix("*/") == sub
        };
        self.resources.iter().any(|each| wildcard::is_or_all(each, resource) || of_any(each))
    }

    /// Every combination of the alternatives, one by one.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let names: Vec<Option<&str>> = if self.resource_names.is_empty() {
            vec![None]
        } else {
            self.resource_names.iter().map(|name| Some(name.as_str())).collect()
        };
        let resources = self.api_groups.iter().flat_map(move |group| {
            let names = names.clone();
            self.resources.iter().flat_map(move |resource| {
                let names = names.clone();
                self.verbs.iter().flat_map(move |verb| {
                    names
                        .clone()
                        .into_iter()
                        .map(move |name| Part { verb, target: Target::Resource { group, resource, name } })
                })
            })
        });
        let paths = self.non_resource_urls.iter().flat_map(move |path| {
            self.verbs.iter().map(move |verb| Part { verb, target: Target::Path(path) })
        });
        resources.chain(paths)
    }

    /// How many [`Self::parts`] there are.
    pub(crate) fn count_parts(&self) -> usize {
        let product = |factors: &[usize]| factors.iter().fold(1_usize, |a, b| a.saturating_mul(*b));
        let names = self.resource_names.len().max(1);
        product(&[self.api_groups.len(), self.resources.len(), self.verbs.len(), names])
            .saturating_add(product(&[self.non_resource_urls.len(), self.verbs.len()]))
    }

    /// As messages about escalation show it.
    pub(crate) fn compact_text(&self) -> String {
        let shown = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let given = shown.into_iter().filter(|(_, list)| !list.is_empty());
        let fields: Vec<String> = given
            .map(|(name, list)| format!("{name}:{}", quoted_list(list.iter().map(String::as_str))))
            .collect();
        format!("{{{}}}", fields.join(", "))
    }
}

/// One combination of a rule's alternatives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a> {
    pub(crate) verb: &'a str,
    pub(crate) target: Target<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target<'a> {
    Resource { group: &'a str, resource: &'a str, name: Option<&'a str> },
    Path(&'a str),
}

fn covers_path(owner: &str, path: &str) -> bool {
    owner == path || (owner.ends_with(ALL) && path.starts_with(owner.trim_end_matches('*')))
}

/// A list of texts as Go's `%q` prints it.
pub(crate) fn quoted_list<'a>(items: impl Iterator<Item = &'a str>) -> String {
    format!("[{}]", items.map(quote).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(value: &Value) -> Rule {
        Rule::of(value)
    }

    fn request<'a>(
        verb: &'a str,
        group: &'a str,
        resource: &'a str,
        sub: &'a str,
        name: &'a str,
    ) -> Request<'a> {
        Request { verb, group, resource, subresource: sub, name, ..Request::default() }
    }

    #[test]
    fn resources_and_subresources() {
        for (resources, resource, sub, allowed) in [
            (json!(["pods"]), "pods", "", true),
            (json!(["pods"]), "pods", "log", false),
            (json!(["pods/log"]), "pods", "log", true),
            (json!(["pods/log"]), "pods", "", false),
            (json!(["pods/*"]), "pods", "log", false),
            (json!(["*/scale"]), "deployments", "scale", true),
            (json!(["*/scale"]), "deployments", "status", false),
            (json!(["*/scale"]), "deployments", "", false),
            (json!(["*/scale"]), "*/scale", "", true),
            (json!(["*"]), "pods", "exec", true),
            (json!(["*"]), "", "", true),
            (json!(["xpods/log"]), "pods", "log", false),
            (json!(["/scale"]), "", "scale", true),
            (json!([]), "pods", "", false),
        ] {
            let rule = rule(&json!({"verbs": ["get"], "apiGroups": [""], "resources": resources}));
            assert_eq!(
                rule.allows(&request("get", "", resource, sub, "")),
                allowed,
                "{rule:?} {resource}/{sub}"
            );
        }
    }

    #[test]
    fn names_restrict_and_collections_have_none() {
        let rule =
            rule(&json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["maps"], "resourceNames": ["a"]}));
        assert!(rule.allows(&request("get", "x", "maps", "", "a")));
        assert!(!rule.allows(&request("get", "x", "maps", "", "b")));
        assert!(!rule.allows(&request("create", "x", "maps", "", "")));
        assert!(!rule.allows(&request("list", "x", "maps", "", "")));
    }

    #[test]
    fn paths() {
        let rule = rule(&json!({"verbs": ["get"], "nonResourceURLs": ["/healthz", "/apis/*"]}));
        let asks = |verb, path| Request { verb, path: Some(path), ..Request::default() };
        assert!(rule.allows(&asks("get", "/healthz")));
        assert!(rule.allows(&asks("get", "/apis/apps")));
        assert!(!rule.allows(&asks("get", "/apis")));
        assert!(!rule.allows(&asks("post", "/healthz")));
        assert!(!rule.allows(&request("get", "", "healthz", "", "")), "a path is not a resource");
        let resources = Rule::of(&json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}));
        assert!(!resources.allows(&asks("get", "/metrics")), "a resource is not a path");
    }
}

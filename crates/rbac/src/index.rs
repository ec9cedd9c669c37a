//! Roles and bindings by subject.
//!
//! A decision looks up the user and each of its groups, first among the bindings of the cluster and then among those of the
//! namespace. What a subject may do in a scope is compiled when it is first asked for: rules by the resource that they name.
//! A change of a binding or a role discards only what was compiled from it.

use crate::rule::{Request, Rule};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, OnceLock};
use transom_object::quote::quote;

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub struct User<'a> {
    /// The name.
    pub name: &'a str,
    /// The groups.
    pub groups: &'a [String],
}

/// The outcome for one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether a rule allows it.
    pub allowed: bool,
    /// The binding that allows it, or which roles of the user's bindings are missing. May be empty.
    pub reason: String,
}

/// A Role or ClusterRole, as a binding names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleRef {
    /// `Role` or `ClusterRole`.
    pub kind: String,
    /// The API group as it was given.
    pub api_group: String,
    /// The name.
    pub name: String,
}

impl RoleRef {
    /// The `roleRef` of a binding.
    pub fn of(binding: &Value) -> Self {
        let text = |key: &str| binding["roleRef"][key].as_str().unwrap_or_default().to_owned();
        Self { kind: text("kind"), api_group: text("apiGroup"), name: text("name") }
    }

    /// The plural name of its kind; `None` for a kind that is not a role.
    pub fn resource(&self) -> Option<&'static str> {
        match self.kind.as_str() {
            "ClusterRole" => Some("clusterroles"),
            "Role" => Some("roles"),
            _ => None,
        }
    }

    /// Where the role is, for a binding in this namespace.
    fn key(&self, namespace: &str) -> Option<Key> {
        match self.kind.as_str() {
            "ClusterRole" => Some(Key::new("", &self.name)),
            // A ClusterRoleBinding cannot refer to one.
            "Role" if !namespace.is_empty() => Some(Key::new(namespace, &self.name)),
            _ => None,
        }
    }
}

/// A subject of a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// `User`, `Group` or `ServiceAccount`.
    pub kind: String,
    /// The name.
    pub name: String,
    /// Of a service account; empty for the namespace of the binding.
    pub namespace: String,
}

/// The name of a role or binding; the namespace is empty for those of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    namespace: Arc<str>,
    name: Arc<str>,
}

impl Key {
    fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

/// A user by name, which service accounts have as well, or a group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Holder {
    User(Arc<str>),
    Group(Arc<str>),
}

struct Binding {
    role: RoleRef,
    /// The first subject of each holder.
    holders: BTreeMap<Holder, Subject>,
}

/// All roles and bindings.
#[derive(Default)]
pub struct Index {
    roles: HashMap<Key, Arc<[Rule]>>,
    bindings: HashMap<Key, Binding>,
    /// The bindings that refer to a role, whether or not it exists.
    referring: HashMap<Key, BTreeSet<Key>>,
    users: HashMap<Arc<str>, Grants>,
    groups: HashMap<Arc<str>, Grants>,
}

/// What one user or group is bound to.
#[derive(Default)]
struct Grants {
    cluster: Scope,
    namespaces: HashMap<Arc<str>, Scope>,
}

/// The bindings of one holder in the cluster or in one namespace, by name.
#[derive(Default)]
struct Scope {
    bindings: BTreeSet<Arc<str>>,
    compiled: OnceLock<Compiled>,
}

/// The rules of a scope, by what they are about.
#[derive(Default)]
struct Compiled {
    /// Positions in `sources` and in its rules.
    by_resource: HashMap<Box<str>, Vec<(u32, u32)>>,
    paths: Vec<(u32, u32)>,
    sources: Vec<Source>,
    missing: Vec<String>,
}

struct Source {
    rules: Arc<[Rule]>,
    binding: Key,
}

impl Index {
    /// A Role (with a namespace) or ClusterRole is stored.
    pub fn put_role(&mut self, namespace: &str, name: &str, role: &Value) {
        let key = Key::new(namespace, name);
        self.roles.insert(key.clone(), Rule::all_of(role).into());
        self.forget_compiled(&key);
    }

    /// A Role or ClusterRole is gone.
    pub fn remove_role(&mut self, namespace: &str, name: &str) {
        let key = Key::new(namespace, name);
        self.roles.remove(&key);
        self.forget_compiled(&key);
    }

    /// A RoleBinding (with a namespace) or ClusterRoleBinding is stored.
    pub fn put_binding(&mut self, namespace: &str, name: &str, binding: &Value) {
        self.remove_binding(namespace, name);
        let key = Key::new(namespace, name);
        let role = RoleRef::of(binding);
        let mut holders = BTreeMap::new();
        for subject in binding["subjects"].as_array().into_iter().flatten() {
            let (holder, subject) = holder(subject, namespace);
            if let Some(holder) = holder {
                holders.entry(holder).or_insert(subject);
            }
        }
        for holder in holders.keys() {
            let scope = self.scope_mut(holder, &key.namespace);
            scope.bindings.insert(key.name.clone());
            scope.compiled = OnceLock::new();
        }
        if let Some(role) = role.key(namespace) {
            self.referring.entry(role).or_default().insert(key.clone());
        }
        self.bindings.insert(key, Binding { role, holders });
    }

    /// A RoleBinding or ClusterRoleBinding is gone.
    pub fn remove_binding(&mut self, namespace: &str, name: &str) {
        let key = Key::new(namespace, name);
        let Some(binding) = self.bindings.remove(&key) else { return };
        if let Some(role) = binding.role.key(namespace)
            && let Some(referring) = self.referring.get_mut(&role)
        {
            referring.remove(&key);
            if referring.is_empty() {
                self.referring.remove(&role);
            }
        }
        for holder in binding.holders.keys() {
            let scope = self.scope_mut(holder, &key.namespace);
            scope.bindings.remove(&key.name);
            scope.compiled = OnceLock::new();
            self.drop_if_empty(holder, &key.namespace);
        }
    }

    fn grants_mut(&mut self, holder: &Holder) -> &mut Grants {
        match holder {
            Holder::User(name) => self.users.entry(name.clone()).or_default(),
            Holder::Group(name) => self.groups.entry(name.clone()).or_default(),
        }
    }

    fn scope_mut(&mut self, holder: &Holder, namespace: &Arc<str>) -> &mut Scope {
        let grants = self.grants_mut(holder);
        if namespace.is_empty() {
            return &mut grants.cluster;
        }
        grants.namespaces.entry(namespace.clone()).or_default()
    }

    fn drop_if_empty(&mut self, holder: &Holder, namespace: &Arc<str>) {
        let grants = self.grants_mut(holder);
        if grants.namespaces.get(namespace).is_some_and(|scope| scope.bindings.is_empty()) {
            grants.namespaces.remove(namespace);
        }
        if grants.cluster.bindings.is_empty() && grants.namespaces.is_empty() {
            match holder {
                Holder::User(name) => self.users.remove(name),
                Holder::Group(name) => self.groups.remove(name),
            };
        }
    }

    /// Discards what was compiled from a role.
    fn forget_compiled(&mut self, role: &Key) {
        let referring: Vec<Key> = self.referring.get(role).into_iter().flatten().cloned().collect();
        for binding in referring {
            let holders: Vec<Holder> =
                self.bindings.get(&binding).into_iter().flat_map(|b| b.holders.keys().cloned()).collect();
            for holder in holders {
                self.scope_mut(&holder, &binding.namespace).compiled = OnceLock::new();
            }
        }
    }

    /// Whether any binding of the user allows the request.
    pub fn allows(&self, user: &User<'_>, request: &Request<'_>) -> bool {
        self.scopes(user, request.namespace).any(|(_, namespace, scope)| {
            scope.compiled.get_or_init(|| self.compile(namespace, scope)).allowing(request).is_some()
        })
    }

    /// The same with a reason, which takes longer.
    pub fn decide(&self, user: &User<'_>, request: &Request<'_>) -> Decision {
        let mut missing: Vec<&str> = Vec::new();
        for (held, namespace, scope) in self.scopes(user, request.namespace) {
            let compiled = scope.compiled.get_or_init(|| self.compile(namespace, scope));
            if let Some(source) = compiled.allowing(request) {
                return Decision { allowed: true, reason: self.reason(&source.binding, held) };
            }
            missing.extend(compiled.missing.iter().map(String::as_str));
        }
        missing.sort_unstable();
        missing.dedup();
        let reason = match missing.as_slice() {
            [] => String::new(),
            [one] => format!("RBAC: {one}"),
            several => format!("RBAC: [{}]", several.join(", ")),
        };
        Decision { allowed: false, reason }
    }

    /// Every rule that applies to the user in the namespace; in the cluster, with an empty one.
    pub fn rules_for(&self, user: &User<'_>, namespace: &str) -> Vec<&Rule> {
        let mut seen: BTreeSet<&Key> = BTreeSet::new();
        let mut rules = Vec::new();
        for (_, place, scope) in self.scopes(user, namespace) {
            let compiled = scope.compiled.get_or_init(|| self.compile(place, scope));
            for source in compiled.sources.iter().filter(|source| seen.insert(&source.binding)) {
                rules.extend(source.rules.iter());
            }
        }
        rules
    }

    /// The rules of the role that a binding in this namespace refers to; `None` when there is no such role.
    pub fn rules_of(&self, role: &RoleRef, namespace: &str) -> Option<&[Rule]> {
        self.roles.get(&role.key(namespace)?).map(AsRef::as_ref)
    }

    /// The scopes of the user and its groups, those of the cluster first.
    fn scopes<'s, 'u>(
        &'s self,
        user: &User<'u>,
        namespace: &'u str,
    ) -> impl Iterator<Item = (Held<'u>, &'u str, &'s Scope)> {
        let user = *user;
        let grants = move || {
            let of_groups = user.groups.iter().filter_map(|group| {
                self.groups.get(group.as_str()).map(|grants| (Held::Group(group), grants))
            });
            self.users
                .get(user.name)
                .map(|grants| (Held::User(user.name), grants))
                .into_iter()
                .chain(of_groups)
        };
        let cluster: Vec<_> = grants().map(|(held, grants)| (held, "", &grants.cluster)).collect();
        let local: Vec<_> = if namespace.is_empty() {
            Vec::new()
        } else {
            grants()
                .filter_map(|(held, grants)| Some((held, namespace, grants.namespaces.get(namespace)?)))
                .collect()
        };
        cluster.into_iter().chain(local)
    }

    fn compile(&self, namespace: &str, scope: &Scope) -> Compiled {
        let mut compiled = Compiled::default();
        let mut roles: BTreeSet<Key> = BTreeSet::new();
        for name in &scope.bindings {
            let key = Key { namespace: namespace.into(), name: name.clone() };
            let Some(binding) = self.bindings.get(&key) else { continue };
            let role = binding.role.key(namespace);
            let rules = role.as_ref().and_then(|role| self.roles.get(role));
            match (rules, role) {
                // Another binding to the same role adds nothing.
                (Some(_), Some(role)) if !roles.insert(role.clone()) => {}
                (Some(rules), _) => compiled.add(rules, key),
                (None, _) => compiled.missing.push(missing(&binding.role)),
            }
        }
        compiled
    }

    fn reason(&self, key: &Key, held: Held<'_>) -> String {
        let Some(binding) = self.bindings.get(key) else { return String::new() };
        let holder = match held {
            Held::User(name) => Holder::User(name.into()),
            Held::Group(name) => Holder::Group(name.into()),
        };
        let shown = match &*key.namespace {
            "" => format!("ClusterRoleBinding {}", quote(&key.name)),
            namespace => format!("RoleBinding {}", quote(&format!("{}/{namespace}", key.name))),
        };
        let RoleRef { kind, name, .. } = &binding.role;
        let subject = binding.holders.get(&holder).map(ToString::to_string).unwrap_or_default();
        format!("RBAC: allowed by {shown} of {kind} {} to {subject}", quote(name))
    }
}

/// How a scope was found.
#[derive(Clone, Copy)]
enum Held<'a> {
    User(&'a str),
    Group(&'a str),
}

impl Compiled {
    fn add(&mut self, rules: &Arc<[Rule]>, binding: Key) {
        let source = u32::try_from(self.sources.len()).unwrap_or(u32::MAX);
        for (position, rule) in (0_u32..).zip(rules.iter()) {
            for resource in &rule.resources {
                let listed = self.by_resource.entry(resource.as_str().into()).or_default();
                if listed.last() != Some(&(source, position)) {
                    listed.push((source, position));
                }
            }
            if !rule.non_resource_urls.is_empty() {
                self.paths.push((source, position));
            }
        }
        self.sources.push(Source { rules: rules.clone(), binding });
    }

    fn allowing(&self, request: &Request<'_>) -> Option<&Source> {
        if request.path.is_some() {
            return self.first(&self.paths, request);
        }
        let of =
            |resource: &str| self.by_resource.get(resource).and_then(|listed| self.first(listed, request));
        if request.subresource.is_empty() {
            return of(request.resource).or_else(|| of("*"));
        }
        let Request { resource, subresource, .. } = request;
        of(&format!("{resource}/{subresource}"))
            .or_else(|| of("*"))
            .or_else(|| of(&format!("*/{subresource}")))
    }

    fn first(&self, listed: &[(u32, u32)], request: &Request<'_>) -> Option<&Source> {
        let found = listed.iter().find(|(source, rule)| {
            let source = self.sources.get(*source as usize);
            source
                .and_then(|source| source.rules.get(*rule as usize))
                .is_some_and(|rule| rule.allows(request))
        });
        found.and_then(|(source, _)| self.sources.get(*source as usize))
    }
}

fn missing(role: &RoleRef) -> String {
    match role.kind.as_str() {
        "ClusterRole" => format!("clusterrole.{} {} not found", crate::GROUP, quote(&role.name)),
        "Role" => format!("role.{} {} not found", crate::GROUP, quote(&role.name)),
        kind => format!("unsupported role reference kind: {}", quote(kind)),
    }
}

fn holder(subject: &Value, binding_namespace: &str) -> (Option<Holder>, Subject) {
    let text = |key: &str| subject[key].as_str().unwrap_or_default().to_owned();
    let mut subject = Subject { kind: text("kind"), name: text("name"), namespace: text("namespace") };
    if subject.namespace.is_empty() {
        binding_namespace.clone_into(&mut subject.namespace);
    }
    let holder = match subject.kind.as_str() {
        "User" => Some(Holder::User(subject.name.as_str().into())),
        "Group" => Some(Holder::Group(subject.name.as_str().into())),
        "ServiceAccount" if !subject.namespace.is_empty() => {
            let user = format!("system:serviceaccount:{}:{}", subject.namespace, subject.name);
            Some(Holder::User(user.into()))
        }
        _ => None,
    };
    (holder, subject)
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, namespace } = self;
        if kind == "ServiceAccount" {
            return write!(f, "{kind} {}", quote(&format!("{name}/{namespace}")));
        }
        write!(f, "{kind} {}", quote(name))
    }
}

#[cfg(test)]
mod tests;

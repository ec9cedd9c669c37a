//! What is missing, or installed in a version that is not accepted.

use super::{InstalledPackage, Mode};
use crate::constraint::VersionConstraint;
use crate::digest::Digest;
use crate::lock::LockPackage;
use crate::lock::graph::{Graph, Mirrors, pulled_from};
use crate::names::friendly_id;
use crate::reference::Reference;
use std::collections::{BTreeMap, BTreeSet};

/// A source that must be installed or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The source, as the first parent wrote it.
    pub source: String,
    /// `apiVersion` and kind of the object that installs it, as the first parent that names them does.
    pub target: Option<(String, String)>,
    /// All that depend on it, in the order of the Lock.
    pub parents: Vec<Parent>,
    /// The object that installs it already.
    pub installed: Option<InstalledPackage>,
    /// The name of the object that installs it, if there is none yet.
    pub name: String,
}

/// A package that depends on another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    /// The name of its revision.
    pub name: String,
    /// Its source.
    pub source: String,
    /// What it accepts.
    pub constraint: String,
}

impl Need {
    /// Whether the choice depends on the tags of the repository. Digests need none.
    pub fn needs_tags(&self) -> bool {
        self.parents.iter().any(
            |parent| matches!(VersionConstraint::parse(&parent.constraint), Ok(c) if c.digest().is_none()),
        )
    }
}

/// The needs that can be met now, in the order of the Lock. Conflicting entries produce no needs and do not block others.
pub fn next_step(
    packages: &[LockPackage],
    installed: &[InstalledPackage],
    mode: Mode,
    mirrors: &Mirrors,
) -> Vec<Need> {
    let graph = Graph::new(packages, mirrors);
    let mut objects = Objects::of(installed, mirrors);
    let constraints = Constraints::of(&graph, mode);
    let wanted = wanted(&graph, &constraints, mode, mirrors);
    let needs = wanted.order.iter().filter_map(|place| {
        let group = wanted.groups.get(place)?;
        let object = objects.at(&group.source, place);
        if is_met(&graph, &constraints, group, object, mode) {
            return None;
        }
        Some(Need {
            source: group.source.clone(),
            target: group.target.clone(),
            parents: group.parents.clone(),
            installed: object.cloned(),
            name: objects.name(group),
        })
    });
    needs.collect()
}

/// The constraints of the Lock, each read once: many parents write the same text.
struct Constraints<'g>(BTreeMap<&'g str, Option<VersionConstraint>>);

impl<'g> Constraints<'g> {
    /// Those of all dependencies; in default mode no version is compared, and none is read.
    fn of(graph: &Graph<'g>, mode: Mode) -> Self {
        let mut read = BTreeMap::new();
        let dependencies = graph.packages().iter().flat_map(|package| &package.dependencies);
        for dependency in dependencies.filter(|_| mode != Mode::Default) {
            let text = dependency.constraints.as_str();
            read.entry(text).or_insert_with(|| VersionConstraint::parse(text).ok());
        }
        Self(read)
    }

    /// Whether a constraint can be read and accepts a version. `None` if it cannot be read.
    fn allow(&self, text: &str, version: &str) -> Option<bool> {
        self.0.get(text)?.as_ref().map(|constraint| constraint.allows(version))
    }
}

/// Without changes to installed packages, it is enough that there is one; it joins the Lock, or reports why it cannot.
fn is_met(
    graph: &Graph<'_>,
    constraints: &Constraints<'_>,
    group: &Group,
    object: Option<&InstalledPackage>,
    mode: Mode,
) -> bool {
    let entries = graph.matching(&group.source);
    if mode == Mode::Default {
        return object.is_some() || !entries.is_empty();
    }
    let accepted = |version: &str| {
        let texts: BTreeSet<&str> = group.parents.iter().map(|parent| parent.constraint.as_str()).collect();
        texts.iter().all(|text| constraints.allow(text, version) == Some(true))
    };
    match object {
        // The object may be newer than its entry in the Lock, and is what a choice would change.
        Some(object) => object.version().is_some_and(|version| accepted(&version)),
        // An entry without an object belongs to a kind of package that is not ours to change.
        None => !entries.is_empty(),
    }
}

/// All that is depended on, by the place that it is pulled from.
struct Wanted {
    groups: BTreeMap<String, Group>,
    /// The keys in the order of the Lock.
    order: Vec<String>,
}

struct Group {
    source: String,
    target: Option<(String, String)>,
    parents: Vec<Parent>,
}

fn wanted(graph: &Graph<'_>, constraints: &Constraints<'_>, mode: Mode, mirrors: &Mirrors) -> Wanted {
    let mut wanted = Wanted { groups: BTreeMap::new(), order: Vec::new() };
    let outdated = if mode == Mode::Default { Vec::new() } else { outdated(graph, constraints, mirrors) };
    for (i, package) in graph.packages().iter().enumerate() {
        if graph.is_blocked(i) || outdated.get(i) == Some(&true) {
            continue;
        }
        for dependency in &package.dependencies {
            let place = pulled_from(mirrors, &dependency.package);
            if !wanted.groups.contains_key(place) {
                wanted.order.push(place.to_owned());
            }
            let group = wanted.groups.entry(place.to_owned()).or_insert_with(|| Group {
                source: dependency.package.clone(),
                target: None,
                parents: Vec::new(),
            });
            if group.target.is_none() {
                let named = dependency.identity();
                group.target = named.map(|(api_version, kind)| (api_version.to_owned(), kind.to_owned()));
            }
            group.parents.push(Parent {
                name: package.name.clone(),
                source: package.source.clone(),
                constraint: dependency.constraints.clone(),
            });
        }
    }
    wanted
}

/// Which entries are dependencies that none of their parents accept: they will be changed, and what the old version
/// depends on must not stand in the way.
fn outdated(graph: &Graph<'_>, constraints: &Constraints<'_>, mirrors: &Mirrors) -> Vec<bool> {
    let mut texts: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for dependency in graph.packages().iter().flat_map(|package| &package.dependencies) {
        texts.entry(pulled_from(mirrors, &dependency.package)).or_default().insert(&dependency.constraints);
    }
    let is_outdated = |package: &LockPackage| {
        let asked = texts.get(pulled_from(mirrors, &package.source));
        asked.is_some_and(|asked| {
            !asked.iter().any(|text| constraints.allow(text, &package.version) == Some(true))
        })
    };
    graph.packages().iter().map(is_outdated).collect()
}

/// The package objects, by source and by the place that they are pulled from.
struct Objects<'i> {
    by_source: BTreeMap<String, &'i InstalledPackage>,
    by_place: BTreeMap<String, &'i InstalledPackage>,
    /// Names by `apiVersion` and kind, also of those that this step adds.
    names: BTreeMap<(String, String), BTreeSet<String>>,
}

impl<'i> Objects<'i> {
    fn of(installed: &'i [InstalledPackage], mirrors: &Mirrors) -> Self {
        let mut objects =
            Self { by_source: BTreeMap::new(), by_place: BTreeMap::new(), names: BTreeMap::new() };
        for object in installed {
            let kind = (object.api_version.clone(), object.kind.clone());
            objects.names.entry(kind).or_default().insert(object.name.clone());
            let Some(source) = object.source() else { continue };
            objects.by_place.entry(pulled_from(mirrors, &source).to_owned()).or_insert(object);
            objects.by_source.entry(source).or_insert(object);
        }
        objects
    }

    fn at(&self, source: &str, place: &str) -> Option<&'i InstalledPackage> {
        self.by_source.get(source).or_else(|| self.by_place.get(place)).copied()
    }

    /// The name that Crossplane gives to the package, unless another package has it: repositories of the same path are
    /// in several registries.
    fn name(&mut self, group: &Group) -> String {
        let Ok(source) = Reference::parse_source(&group.source) else { return String::new() };
        let names = self.names.entry(group.target.clone().unwrap_or_default()).or_default();
        let name = source.package_name();
        if names.insert(name.clone()) {
            return name;
        }
        friendly_id(&name, Digest::of(group.source.as_bytes()).hex())
    }
}

//! Which packages are created and changed: the packages that were asked for, and what the solver of the control plane
//! adds step by step until nothing is missing.

use super::world::World;
use crate::plane::is_builtin;
use crate::xpkg::origin::Opened;
use std::collections::BTreeMap;
use transom_console::Failure;
use transom_packages::constraint::{check_core, named_versions};
use transom_packages::lock::graph::{Graph, Mirrors};
use transom_packages::lock::resolve::resolve_revision;
use transom_packages::lock::{LockPackage, entry_for};
use transom_packages::names::revision_name;
use transom_packages::solver::{self, Action, InstalledPackage, Mode, Need};
use transom_packages::stream::Package;
use transom_packages::{Digest, PackageKind, Reference, image_config, stream};
use transom_xapi::ImageConfig;
use transom_xapi::constants::CROSSPLANE_VERSION;

/// The most steps of the solver.
const STEPS_MAX: usize = 1000;

/// A package that was read. A built-in function has neither digest nor content.
#[derive(Clone)]
pub(super) struct Read {
    pub(super) digest: Option<Digest>,
    pub(super) package: Option<Package>,
}

/// Reads packages, each once, from where ImageConfigs lead to.
pub(super) struct Reader<'a> {
    opened: &'a Opened,
    configs: &'a [ImageConfig],
    known: BTreeMap<String, Read>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(opened: &'a Opened, configs: &'a [ImageConfig]) -> Self {
        Self { opened, configs, known: BTreeMap::new() }
    }

    /// What a reference leads to, though no registry has it.
    pub(super) fn know(&mut self, reference: &Reference, read: Read) {
        self.known.insert(reference.to_string(), read);
    }

    fn place(&self, reference: &Reference) -> Result<Reference, Failure> {
        let plan = image_config::plan(self.configs, reference);
        Ok(plan.map_err(|e| Failure::new(e.to_string()))?.resolved)
    }

    pub(super) async fn read(&mut self, reference: &Reference) -> Result<Read, Failure> {
        let key = reference.to_string();
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let read = match is_builtin(reference) {
            true => Read { digest: None, package: None },
            false => self.fetch(&self.place(reference)?).await?,
        };
        self.known.insert(key, read.clone());
        Ok(read)
    }

    async fn fetch(&self, place: &Reference) -> Result<Read, Failure> {
        let failed = |e| self.opened.explain(&e);
        let with = self.opened.credentials(place).await?;
        let digest = self.opened.registry().resolve(place, &with).await.map_err(failed)?;
        let fetched = self.opened.registry().fetch(&place.at(digest.clone()), &with).await.map_err(failed)?;
        let package = stream::parse(&fetched.content).map_err(|e| Failure::new(format!("{place}: {e}")))?;
        Ok(Read { digest: Some(digest), package: Some(package) })
    }

    async fn tags(&self, source: &str) -> Result<Vec<String>, Failure> {
        let source = Reference::parse_source(source).map_err(|e| Failure::new(e.to_string()))?;
        // Prefixes of ImageConfigs may end in the colon before a tag.
        let place = self.place(&Reference { tag: Some("latest".to_owned()), ..source })?;
        let with = self.opened.credentials(&place).await?;
        self.opened.registry().tags(&place, &with).await.map_err(|e| self.opened.explain(&e))
    }
}

/// A package that is created, changed, or was asked for and stays as it is.
pub(super) struct Change {
    pub(super) kind: PackageKind,
    pub(super) name: String,
    pub(super) package: String,
    /// What it is now.
    pub(super) before: Option<String>,
    pub(super) read: Read,
    /// The packages that depend on it, with their constraints; empty for what was asked for.
    pub(super) required_by: Vec<(String, String)>,
}

/// The control plane as it would be.
pub(super) struct Projection {
    mode: Mode,
    mirrors: Mirrors,
    configs: Vec<ImageConfig>,
    installed: Vec<InstalledPackage>,
    lock: Vec<LockPackage>,
    pub(super) changes: Vec<Change>,
    problems: Vec<String>,
}

impl Projection {
    pub(super) fn new(world: &World, mode: Mode) -> Self {
        let mut lock = world.lock.clone();
        // A package that has not joined the Lock, or never does, satisfies dependencies all the same.
        for one in &world.installed {
            let Ok(image) = Reference::parse(&one.package) else { continue };
            if !lock.iter().any(|entry| entry.source == image.source()) {
                lock.push(LockPackage {
                    name: one.name.clone(),
                    api_version: Some(one.api_version.clone()),
                    kind: Some(one.kind.clone()),
                    source: image.source(),
                    version: image.identifier().to_owned(),
                    ..LockPackage::default()
                });
            }
        }
        Self {
            mode,
            mirrors: Mirrors::new(),
            configs: world.image_configs.clone(),
            installed: world.installed.clone(),
            lock,
            changes: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Adds a package that was asked for, in place of another version of it.
    pub(super) fn install(&mut self, reference: &Reference, read: Read) {
        let kind = read.package.as_ref().map_or(PackageKind::Function, |package| package.kind);
        let source = reference.source();
        let same = self.installed.iter().find(|one| {
            one.kind == kind.kind() && Reference::parse(&one.package).is_ok_and(|r| r.source() == source)
        });
        let name = same.map_or_else(|| reference.package_name(), |one| one.name.clone());
        self.put(kind, name, reference, read, Vec::new());
    }

    fn put(
        &mut self,
        kind: PackageKind,
        name: String,
        reference: &Reference,
        read: Read,
        required_by: Vec<(String, String)>,
    ) {
        let package = reference.to_string();
        let is_same = |one: &&mut InstalledPackage| one.kind == kind.kind() && one.name == name;
        let before = match self.installed.iter_mut().find(is_same) {
            Some(one) => {
                one.resolved = None;
                Some(std::mem::replace(&mut one.package, package.clone()))
            }
            None => {
                self.installed.push(InstalledPackage {
                    api_version: kind.api_version().to_owned(),
                    kind: kind.kind().to_owned(),
                    name: name.clone(),
                    package: package.clone(),
                    resolved: None,
                });
                None
            }
        };
        let old = before.as_deref().and_then(|old| Reference::parse(old).ok()).map(|old| old.source());
        let source = reference.source();
        self.lock.retain(|entry| entry.source != source && Some(&entry.source) != old.as_ref());
        self.lock.push(entry(kind, &name, reference, &read));
        let meta = read.package.as_ref().map(|package| &package.meta);
        if let Err(e) = check_core(meta.and_then(|meta| meta.crossplane.as_deref()), CROSSPLANE_VERSION) {
            self.problems.push(format!("{package}: {e}"));
        }
        // A package that is changed twice is one change.
        let first = self.changes.iter().position(|change| change.kind == kind && change.name == name);
        let before = match first.map(|at| self.changes.remove(at)) {
            Some(earlier) => earlier.before,
            None => before,
        };
        self.changes.push(Change { kind, name, package, before, read, required_by });
    }

    /// Takes the steps of the solver until there are none.
    pub(super) async fn resolve(&mut self, reader: &mut Reader<'_>) -> Result<(), Failure> {
        let mut failed: Vec<String> = Vec::new();
        for _ in 0..STEPS_MAX {
            self.mirrors = image_config::mirrors(&self.configs, sources(&self.lock));
            let needs = solver::next_step(&self.lock, &self.installed, self.mode, &self.mirrors);
            let needs: Vec<Need> = needs.into_iter().filter(|need| !failed.contains(&need.source)).collect();
            if needs.is_empty() {
                return Ok(());
            }
            for need in needs {
                if !self.meet(&need, reader).await? {
                    failed.push(need.source.clone());
                }
            }
        }
        Err(Failure::new(format!("dependencies are not resolved after {STEPS_MAX} steps")))
    }

    /// Meets a need; says whether that changed anything.
    async fn meet(&mut self, need: &Need, reader: &mut Reader<'_>) -> Result<bool, Failure> {
        let builtin = Reference::parse_source(&need.source).is_ok_and(|source| is_builtin(&source));
        let tags = match (builtin, need.needs_tags()) {
            (_, false) => Vec::new(),
            (true, _) => need.parents.iter().flat_map(|parent| named_versions(&parent.constraint)).collect(),
            (false, true) => match reader.tags(&need.source).await {
                Ok(tags) => tags,
                Err(failure) => {
                    let text = failure.to_string();
                    let problem = text.strip_prefix("error: ").unwrap_or(&text);
                    self.problems.push(format!("{problem}{}", parents(need)));
                    return Ok(false);
                }
            },
        };
        let choice = match solver::choose(need, &tags, self.mode) {
            Ok(choice) => choice,
            Err(e) => {
                self.problems.push(e.to_string());
                return Ok(false);
            }
        };
        for parent in &choice.unsatisfied {
            let constraint = parent.constraint.trim();
            self.problems.push(format!(
                "{}: no version satisfies {constraint}, which {} requires",
                need.source, parent.name
            ));
        }
        let (kind, name, package) = match choice.action {
            Action::Keep => return Ok(false),
            Action::Create { api_version, kind, name, package }
            | Action::Update { api_version, kind, name, package } => {
                (PackageKind::of_package(&api_version, &kind), name, package)
            }
        };
        let reference = Reference::parse(&package).map_err(|e| Failure::new(e.to_string()))?;
        let read = reader.read(&reference).await?;
        let found = read.package.as_ref().map_or(PackageKind::Function, |package| package.kind);
        if kind != Some(found) {
            self.problems.push(format!("{package} is a {}{}", found.kind(), parents(need)));
        }
        let by = need.parents.iter().map(|parent| (parent.name.clone(), parent.constraint.trim().to_owned()));
        self.put(found, name, &reference, read, by.collect());
        Ok(true)
    }

    /// What keeps the plan from being carried out.
    pub(super) fn conflicts(&self) -> Vec<String> {
        let graph = Graph::new(&self.lock, &self.mirrors);
        let unresolved = self.lock.iter().filter_map(|entry| {
            let problem = resolve_revision(&graph, &entry.name)?.problem?;
            Some(format!("{} {}: {problem}", entry.source, entry.version))
        });
        self.problems.iter().cloned().chain(unresolved).collect()
    }
}

fn parents(need: &Need) -> String {
    let parent = |parent: &solver::Parent| format!("{} requires {}", parent.name, parent.constraint.trim());
    let all: Vec<String> = need.parents.iter().map(parent).collect();
    format!(" [{}]", all.join(", "))
}

fn entry(kind: PackageKind, name: &str, reference: &Reference, read: &Read) -> LockPackage {
    match (&read.digest, &read.package) {
        (Some(digest), Some(package)) => {
            entry_for(&revision_name(name, digest), kind, reference, &package.meta)
        }
        _ => LockPackage {
            name: name.to_owned(),
            api_version: Some(kind.api_version().to_owned()),
            kind: Some(kind.kind().to_owned()),
            source: reference.source(),
            version: reference.identifier().to_owned(),
            ..LockPackage::default()
        },
    }
}

fn sources(lock: &[LockPackage]) -> impl Iterator<Item = &str> {
    lock.iter().flat_map(|entry| {
        let dependencies = entry.dependencies.iter().map(|dependency| dependency.package.as_str());
        std::iter::once(entry.source.as_str()).chain(dependencies)
    })
}

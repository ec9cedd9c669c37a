//! The Lock: what packages depend on and is not installed gets installed.

use super::dependencies::sources;
use super::{Shared, set_status};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use transom_engine::{Error, ErrorContext, Key, Next, Reconciler, Result, RunLog};
use transom_object::{GroupVersion, GroupVersionKind};
use transom_packages::PackageKind;
use transom_packages::lock::LockPackage;
use transom_packages::lock::graph::Graph;
use transom_packages::lock::resolve::{Problem, resolve_revision};
use transom_packages::solver::{self, Action, InstalledPackage, Mode, Need};
use transom_runner::Source;
use transom_xapi::composition::NameReference;
use transom_xapi::constants::{finalizer, owner};
use transom_xapi::{Condition, Function, Lock, Package, PackageRevision, conditions, metadata};

pub(super) struct Locks {
    pub(super) shared: Arc<Shared>,
    pub(super) name: String,
}

/// What a run found wrong.
#[derive(Default)]
struct Problems {
    /// A sentence for each.
    words: Vec<String>,
    /// Whether another attempt may help.
    retry: bool,
}

impl Reconciler for Locks {
    async fn reconcile(&self, key: &Key, log: &RunLog) -> Result<Next> {
        let Some((object, lock)) = self.shared.read_lock(log).await? else { return Ok(Next::Gone) };
        if lock.packages.is_empty() {
            return self.empty(log).await;
        }
        let problems = self.solve(log, &lock).await;
        let mut object = object;
        let before = object.get("status").cloned().unwrap_or_default();
        let condition = match problems.words.as_slice() {
            [] => Condition::resolution_succeeded(),
            words => Condition::resolution_failed(&words.join("; ")),
        };
        conditions::mark_observed(&mut object, [condition], self.shared.plane.clock.now());
        let written = self.shared.plane.write_status(log, &mut object, &before).await;
        written.context("cannot update status")?;
        if problems.retry {
            tracing::warn!(controller = self.name, %key, problems = problems.words.join("; "), "cannot resolve dependencies");
            return Ok(Next::Failed);
        }
        Ok(Next::Wait)
    }
}

impl Locks {
    /// A Lock without packages may be deleted, and says nothing.
    async fn empty(&self, log: &RunLog) -> Result<Next> {
        let plane = &self.shared.plane;
        let _held = self.shared.lock.lock().await;
        // Read again: a revision may have joined.
        let Some((mut object, lock)) = self.shared.read_lock(log).await? else { return Ok(Next::Gone) };
        if !lock.packages.is_empty() {
            return Ok(Next::Again);
        }
        if !lock.status.conditions.is_empty() {
            set_status(&mut object, "conditions", Value::Null);
            plane.update_status(log, &mut object).await.context("cannot update status")?;
        }
        if metadata::remove_finalizer(&mut object, finalizer::LOCK) {
            plane.update(log, &mut object).await.context("cannot remove lock finalizer")?;
        }
        Ok(Next::Wait)
    }

    fn mode(&self) -> Mode {
        let options = &self.shared.plane.options;
        match (options.dependency_upgrades, options.dependency_downgrades) {
            (_, true) => Mode::Downgrade,
            (true, false) => Mode::Upgrade,
            (false, false) => Mode::Default,
        }
    }

    /// Meets every need that can be met. One that cannot does not keep the others waiting.
    async fn solve(&self, log: &RunLog, lock: &Lock) -> Problems {
        let packages = &lock.packages;
        let mirrors = self.shared.mirrors(sources(packages));
        let mut problems = blocked(packages, &Graph::new(packages, &mirrors), self.mode());
        let installed = match self.installed(log).await {
            Ok(installed) => installed,
            Err(error) => {
                problems.words.push(error.chain().to_string());
                problems.retry = true;
                return problems;
            }
        };
        for need in solver::next_step(packages, &installed, self.mode(), &mirrors) {
            if let Err(error) = self.meet(log, lock, &need, &mut problems).await {
                problems.retry |= !error.is_verdict();
                problems.words.push(error.chain().to_string());
            }
        }
        problems
    }

    /// The package objects that exist.
    async fn installed(&self, log: &RunLog) -> Result<Vec<InstalledPackage>> {
        let mut all = Vec::new();
        for of in PackageKind::ALL {
            let listed = self.shared.plane.cluster.list(&of.gvk(), "", &BTreeMap::new()).await;
            for object in listed.context("cannot get dependency package")? {
                log.read(&object);
                let Ok(package) = Package::deserialize(&object) else { continue };
                all.push(InstalledPackage {
                    api_version: of.api_version().to_owned(),
                    kind: of.kind().to_owned(),
                    name: package.metadata.name,
                    package: package.spec.package,
                    resolved: Some(package.status.resolved_package).filter(|resolved| !resolved.is_empty()),
                });
            }
        }
        Ok(all)
    }

    async fn meet(&self, log: &RunLog, lock: &Lock, need: &Need, problems: &mut Problems) -> Result<()> {
        if let Some(action) = self.builtin(need) {
            return self.take(log, action, &[]).await;
        }
        let secrets = self.parents_secrets(lock, need).await?;
        let tags = if need.needs_tags() {
            let tags = self.shared.tags(log, &need.source, &secrets).await;
            tags.context(format!(
                "cannot fetch dependency package tags of {}{}",
                need.source,
                wanted_by(need)
            ))?
        } else {
            Vec::new()
        };
        let choice = solver::choose(need, &tags, self.mode()).map_err(Error::unfit)?;
        if !choice.unsatisfied.is_empty() {
            let parents: Vec<String> = choice
                .unsatisfied
                .iter()
                .map(|parent| format!("{} requires {}", parent.name, parent.constraint.trim()))
                .collect();
            problems.words.push(format!(
                "dependency ({}) has no version that satisfies [{}]",
                need.source,
                parents.join(", ")
            ));
        }
        self.take(log, choice.action, &secrets).await
    }

    /// What meets a need for a function that is built in: no registry has to be asked which versions there are. The version
    /// is one that a parent names.
    fn builtin(&self, need: &Need) -> Option<Action> {
        let is_function = need.target.as_ref().is_some_and(|(_, kind)| kind == PackageKind::Function.kind());
        let mut function = Function::default();
        function.spec.package = format!("{}:latest", need.source);
        let is_builtin = matches!(self.shared.functions.source(&function), Source::Builtin(_));
        if !is_function || !is_builtin || !need.needs_tags() {
            return None;
        }
        let named: Vec<String> =
            need.parents.iter().flat_map(|parent| versions_in(&parent.constraint)).collect();
        let choice = solver::choose(need, &named, self.mode()).ok()?;
        choice.unsatisfied.is_empty().then_some(choice.action)
    }

    /// The pull secrets of the packages that depend on a package: they are its, too.
    async fn parents_secrets(&self, lock: &Lock, need: &Need) -> Result<Vec<NameReference>> {
        let mut all: Vec<NameReference> = Vec::new();
        for parent in &need.parents {
            let entry = lock.packages.iter().find(|package| package.name == parent.name);
            let identity = entry.and_then(LockPackage::identity);
            let Some(of) =
                identity.and_then(|(api_version, kind)| PackageKind::of_package(api_version, kind))
            else {
                continue;
            };
            let read = self.shared.plane.cluster.get(&of.revision_gvk(), "", &parent.name).await;
            let read = read.context("cannot get package revision")?;
            let revision = read.and_then(|object| PackageRevision::deserialize(&object).ok());
            for secret in
                revision.into_iter().flat_map(|revision| revision.spec.installation.package_pull_secrets)
            {
                if !all.contains(&secret) {
                    all.push(secret);
                }
            }
        }
        Ok(all)
    }

    async fn take(&self, log: &RunLog, action: Action, secrets: &[NameReference]) -> Result<()> {
        let cluster = &self.shared.plane.cluster;
        match action {
            Action::Keep => Ok(()),
            Action::Create { api_version, kind, name, package } => {
                let mut spec = json!({"package": package});
                if !secrets.is_empty() {
                    spec["packagePullSecrets"] = json!(secrets);
                }
                let object = json!({
                    "apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec,
                });
                match cluster.create(&object, owner::DEFAULT).await {
                    Ok(created) => log.wrote(&created),
                    Err(error) if error.is_already_exists() => {}
                    Err(error) => {
                        return Err(error).context(format!("cannot create dependency package {name:?}"));
                    }
                }
                Ok(())
            }
            Action::Update { api_version, kind, name, package } => {
                let gvk = gvk(&api_version, &kind)?;
                let words = || format!("cannot update dependency package {name:?}");
                let read = self.shared.plane.read(log, &gvk, "", &name).await.context(words())?;
                let Some(mut object) = read else { return Ok(()) };
                object["spec"]["package"] = package.into();
                self.shared.plane.update(log, &mut object).await.context(words())
            }
        }
    }
}

fn gvk(api_version: &str, kind: &str) -> Result<GroupVersionKind> {
    let version = GroupVersion::parse(api_version);
    let version = version.ok_or_else(|| Error::unfit(format!("{api_version:?} is not an apiVersion")))?;
    Ok(version.with_kind(kind))
}

/// The complete versions that a constraint names, as tags.
fn versions_in(constraint: &str) -> impl Iterator<Item = String> {
    let words = constraint.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+')));
    let versions = words.map(|word| word.trim_start_matches('v')).filter(|word| word.split('.').count() >= 3);
    versions.map(|version| format!("v{version}"))
}

fn wanted_by(need: &Need) -> String {
    let parents: Vec<String> = need
        .parents
        .iter()
        .map(|parent| format!("{} requires {}", parent.name, parent.constraint.trim()))
        .collect();
    format!(" [{}]", parents.join(", "))
}

/// What stands in the way of entries of the Lock: packages that are there twice, cycles, and, where installed packages are
/// not changed, versions that are not accepted.
fn blocked(packages: &[LockPackage], graph: &Graph<'_>, mode: Mode) -> Problems {
    let mut problems = Problems::default();
    for package in packages {
        let found = resolve_revision(graph, &package.name).and_then(|resolution| resolution.problem);
        let words = match found {
            Some(problem @ (Problem::Duplicate { .. } | Problem::Cycle { .. })) => problem.to_string(),
            Some(problem @ Problem::Incompatible { .. }) if mode == Mode::Default => {
                format!("{}: {problem}", package.name)
            }
            _ => continue,
        };
        problems.words.push(words);
    }
    problems
}

//! The Lock: what packages depend on and is not installed gets installed.

use super::dependencies::sources;
use super::source::Run;
use super::tags::{TagLookups, Tags};
use super::{Shared, bounded, set_status};
use futures_util::stream::{self, StreamExt};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use transom_engine::{Error, ErrorContext, Following, Key, Next, Reconciler, Result, RunLog};
use transom_object::{GroupVersion, GroupVersionKind};
use transom_packages::PackageKind;
use transom_packages::constraint::named_versions;
use transom_packages::lock::LockPackage;
use transom_packages::lock::graph::Graph;
use transom_packages::lock::resolve::{Problem, resolve_revision};
use transom_packages::solver::{self, Action, InstalledPackage, Mode, Need, Parent};
use transom_runner::Source;
use transom_xapi::composition::NameReference;
use transom_xapi::constants::{finalizer, owner};
use transom_xapi::package::{DEFAULT_RUNTIME_CONFIG, RuntimeConfigReference};
use transom_xapi::{Condition, Function, Lock, Package, PackageRevision, conditions, metadata};

pub(super) struct Locks {
    pub(super) shared: Arc<Shared>,
    pub(super) name: String,
    /// What registries take long for.
    pub(super) lookups: TagLookups,
    /// The Secrets that registries are asked with.
    pub(super) secrets: Arc<Following>,
}

/// How many needs are met at a time.
const NEEDS_AT_A_TIME: usize = 100;

/// What a package that is installed for others gets from them, beside its version.
#[derive(Default)]
struct Inherited {
    /// The pull secrets of all.
    secrets: Vec<NameReference>,
    /// How it runs: as the first of them that says so.
    runtime_config: Option<RuntimeConfigReference>,
}

/// What a run found wrong.
#[derive(Default)]
struct Problems {
    /// A sentence for each.
    words: Vec<String>,
    /// Whether another attempt may help.
    retry: bool,
    /// When a registry is asked again that failed.
    retry_after: Option<Duration>,
}

/// What of a need cannot be met.
#[derive(Default)]
struct Unmet {
    /// What is wrong.
    words: Option<String>,
    /// When the registry is asked again, if that is what is wrong.
    retry_after: Option<Duration>,
}

impl Reconciler for Locks {
    async fn reconcile(&self, key: &Key, log: &RunLog) -> Result<Next> {
        let run = Run::begin(log, key, &self.secrets);
        let Some((object, lock)) = self.shared.read_lock(log).await? else { return Ok(Next::Gone) };
        if lock.packages.is_empty() {
            return self.empty(log).await;
        }
        let problems = self.solve(run, &lock).await;
        let mut object = object;
        let before = object.get("status").cloned().unwrap_or_default();
        let condition = match problems.words.as_slice() {
            [] => Condition::resolution_succeeded(),
            words => Condition::resolution_failed(&bounded(words.join("; "))),
        };
        conditions::mark_observed(&mut object, [condition], self.shared.plane.clock.now());
        let written = self.shared.plane.write_status(log, &mut object, &before).await;
        written.context("cannot update status")?;
        if problems.retry || problems.retry_after.is_some() {
            let words = bounded(problems.words.join("; "));
            tracing::warn!(controller = self.name, %key, problems = words, "cannot resolve dependencies");
        }
        Ok(match problems.retry_after {
            _ if problems.retry => Next::Failed,
            Some(after) => Next::After(after),
            None => Next::Wait,
        })
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
    async fn solve(&self, run: Run<'_>, lock: &Lock) -> Problems {
        let packages = &lock.packages;
        let mirrors = self.shared.mirrors(sources(packages));
        let mut problems = blocked(packages, &Graph::new(packages, &mirrors), self.mode());
        let installed = match self.installed(run.log).await {
            Ok(installed) => installed,
            Err(error) => {
                problems.words.push(error.chain().to_string());
                problems.retry = true;
                return problems;
            }
        };
        let needs = solver::next_step(packages, &installed, self.mode(), &mirrors);
        self.lookups.retain(&needs.iter().map(|need| need.source.as_str()).collect());
        // Concurrently: a registry that does not respond does not delay other dependencies.
        let mut meeting = Vec::new();
        for (i, need) in needs.iter().enumerate() {
            meeting.push(async move { (i, self.meet(run, lock, need).await) });
        }
        let mut met: Vec<_> = stream::iter(meeting).buffer_unordered(NEEDS_AT_A_TIME).collect().await;
        met.sort_by_key(|(i, _)| *i);
        for (_, outcome) in met {
            match outcome {
                Ok(unmet) => {
                    problems.words.extend(unmet.words);
                    let after = problems.retry_after.into_iter().chain(unmet.retry_after).min();
                    problems.retry_after = after;
                }
                Err(error) => {
                    problems.retry |= !error.is_permanent();
                    problems.words.push(error.chain().to_string());
                }
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

    /// Meets a need as far as possible. Returns what of it cannot be met.
    async fn meet(&self, run: Run<'_>, lock: &Lock, need: &Need) -> Result<Unmet> {
        if let Some(action) = self.builtin(need) {
            return self.take(run.log, action, &Inherited::default()).await.map(|()| Unmet::default());
        }
        let inherited = self.inherited(lock, need).await?;
        let tags = if need.needs_tags() {
            match self.tags(run, need, &inherited).await? {
                Tags::Listed(tags) => tags,
                Tags::Waiting => {
                    let words = format!("waiting for the tags of {}{}", need.source, wanted_by(need));
                    return Ok(Unmet { words: Some(words), retry_after: None });
                }
                Tags::Failed(words, after) => {
                    return Ok(Unmet { words: Some(words), retry_after: Some(after) });
                }
            }
        } else {
            Vec::new()
        };
        let choice = solver::choose(need, &tags, self.mode()).map_err(Error::permanent)?;
        self.take(run.log, choice.action, &inherited).await?;
        if choice.unsatisfied.is_empty() {
            return Ok(Unmet::default());
        }
        let (source, parents) = (&need.source, listed(&choice.unsatisfied));
        let words = format!("dependency ({source}) has no version that satisfies [{parents}]");
        Ok(Unmet { words: Some(words), retry_after: None })
    }

    async fn tags(&self, run: Run<'_>, need: &Need, inherited: &Inherited) -> Result<Tags> {
        let attempted =
            || format!("cannot fetch dependency package tags of {}{}", need.source, wanted_by(need));
        let request = self.shared.tags(run, &need.source, &inherited.secrets).await;
        let (words, request) = request.context(attempted())?;
        Ok(match self.lookups.tags(&need.source, words, request).await {
            Tags::Failed(words, after) => Tags::Failed(format!("{}: {words}", attempted()), after),
            tags => tags,
        })
    }

    /// What meets a need for a function or provider that is built in: no registry has to be asked which versions there are. The version
    /// is one that a parent names.
    fn builtin(&self, need: &Need) -> Option<Action> {
        let is_function = need.target.as_ref().is_some_and(|(_, kind)| kind == PackageKind::Function.kind());
        let mut function = Function::default();
        function.spec.package = format!("{}:latest", need.source);
        let is_builtin = matches!(self.shared.functions.source(&function), Source::Builtin(_));
        let is_provider = need.target.as_ref().is_some_and(|(_, kind)| kind == PackageKind::Provider.kind());
        let comes_along =
            || self.shared.builtin_provider(&function.metadata, &function.spec.package).is_some();
        let is_known = (is_function && is_builtin) || (is_provider && comes_along());
        if !is_known || !need.needs_tags() {
            return None;
        }
        let named: Vec<String> =
            need.parents.iter().flat_map(|parent| named_versions(&parent.constraint)).collect();
        let choice = solver::choose(need, &named, self.mode()).ok()?;
        choice.unsatisfied.is_empty().then_some(choice.action)
    }

    /// What a package gets from those that depend on it.
    async fn inherited(&self, lock: &Lock, need: &Need) -> Result<Inherited> {
        let mut all = Inherited::default();
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
            let Some(revision) = read.and_then(|object| PackageRevision::deserialize(&object).ok()) else {
                continue;
            };
            let installation = revision.spec.installation;
            for secret in installation.package_pull_secrets {
                if !all.secrets.contains(&secret) {
                    all.secrets.push(secret);
                }
            }
            let config = installation.runtime_config_ref;
            all.runtime_config = all.runtime_config.or(config.filter(|c| c.name != DEFAULT_RUNTIME_CONFIG));
        }
        Ok(all)
    }

    async fn take(&self, log: &RunLog, action: Action, inherited: &Inherited) -> Result<()> {
        let cluster = &self.shared.plane.cluster;
        match action {
            Action::Keep => Ok(()),
            Action::Create { api_version, kind, name, package } => {
                let mut spec = json!({"package": package});
                if !inherited.secrets.is_empty() {
                    spec["packagePullSecrets"] = json!(inherited.secrets);
                }
                let of = PackageKind::of_package(&api_version, &kind);
                if let Some(config) = &inherited.runtime_config
                    && of.is_some_and(PackageKind::has_runtime)
                {
                    spec["runtimeConfigRef"] = json!(config);
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
    let version = version.ok_or_else(|| Error::permanent(format!("{api_version:?} is not an apiVersion")))?;
    Ok(version.with_kind(kind))
}

fn wanted_by(need: &Need) -> String {
    format!(" [{}]", listed(&need.parents))
}

fn listed(parents: &[Parent]) -> String {
    let required = parents.iter().map(|p| format!("{} requires {}", p.name, p.constraint.trim()));
    required.collect::<Vec<_>>().join(", ")
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

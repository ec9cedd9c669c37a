//! Finds what references and selectors lead to, and waits for what does not exist yet: a watch wakes the managed resource.

use crate::references::{EMPTY, Found, MANAGER, NO_MATCH, Named, Reference, Request, Selector, intent};
use crate::targets::{Targets, Waiting};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use transom_engine::{
    Dependency, Engine, Error, ErrorContext, Following, Key, Mirror, Queue, Result, RunLog, existing,
};
use transom_object::{GroupVersionKind, meta};

/// How long a watch may take until it has reported what this process wrote.
const WATCH_LAG_TIMEOUT: Duration = Duration::from_secs(5);

/// What references are resolved with.
pub(crate) struct Resolver<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) targets: &'a Targets,
    pub(crate) following: &'a Following,
    pub(crate) queue: &'a Arc<Queue>,
    /// The managed resource: its controller, and its key.
    pub(crate) waiting: Waiting,
    pub(crate) log: &'a RunLog,
}

/// The outcome of resolving the references of a managed resource.
#[derive(Default)]
pub(crate) struct Outcome {
    /// The fields of `spec.forProvider` that change.
    changes: Map<String, Value>,
    /// What was chosen among several.
    pub(crate) choices: Vec<String>,
    /// What it waits for: the watches of that are in place.
    pub(crate) waits: Option<Error>,
}

impl Outcome {
    /// Writes what was resolved. Returns the object as it is stored, unless nothing changed.
    pub(crate) async fn write(
        &self,
        engine: &Engine,
        object: &Value,
        references: &[Reference],
    ) -> Result<Option<Value>> {
        if self.changes.is_empty() {
            return Ok(None);
        }
        let intent = intent(object, references, &self.changes);
        let written = engine.cluster.apply(&intent, MANAGER).await;
        written.map(Some).context("cannot patch the managed resource via server-side apply")
    }
}

impl Resolver<'_> {
    /// Resolves all references of a managed resource.
    pub(crate) async fn resolve(&self, object: &Value, references: &[Reference]) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        let key = &self.waiting.1;
        self.targets.forget(&self.waiting);
        let mut followed = BTreeSet::new();
        for reference in references {
            let found = match reference.request(object) {
                Request::Nothing => continue,
                Request::Named { all, again } => {
                    self.follow_named(&all, again, reference, &mut followed).await
                }
                Request::Selected { selector, again } => {
                    let selected = self.selected(&selector, reference).await;
                    if again || !matches!(&selected, Ok(found) if !found.is_empty()) {
                        followed.extend(selection(&selector, reference));
                    }
                    outcome.choices.extend(selected.as_ref().ok().and_then(|found| choice(reference, found)));
                    selected
                }
            };
            match found.context(format!("spec.forProvider.{}", reference.field)) {
                Ok(found) if found.is_empty() => {}
                Ok(found) => outcome.changes.extend(reference.resolved(object, &found)),
                Err(e) if e.refusal().is_some() && !e.is_not_found() => return Err(e),
                Err(e) => {
                    outcome.waits.get_or_insert(e);
                }
            }
        }
        self.following.replace(key, &followed);
        Ok(outcome)
    }

    /// What is referred to by name. What is missing is followed from before it is read, and so is what is read each time.
    async fn follow_named(
        &self,
        all: &[Named],
        again: bool,
        reference: &Reference,
        followed: &mut BTreeSet<Dependency>,
    ) -> Result<Vec<Found>> {
        let dependency = |named: &Named| Dependency::Named {
            gvk: reference.to.clone(),
            namespace: named.namespace.clone(),
            name: named.name.clone(),
        };
        let dependencies: Vec<Dependency> = all.iter().map(dependency).collect();
        dependencies.iter().for_each(|dependency| self.following.add(&self.waiting.1, dependency.clone()));
        let found = self.named(all, reference).await;
        if again || found.is_err() {
            followed.extend(dependencies);
        }
        found
    }

    async fn named(&self, all: &[Named], reference: &Reference) -> Result<Vec<Found>> {
        let mut found = Vec::new();
        for named in all {
            let read = self.engine.read(self.log, &reference.to, &named.namespace, &named.name).await;
            match existing(read).context("cannot get referenced resource")? {
                None if named.optional => {}
                None => {
                    let place = if named.namespace.is_empty() {
                        String::new()
                    } else {
                        format!(" in namespace {:?}", named.namespace)
                    };
                    let words = format!("{} {:?} not found{place}", reference.to.kind, named.name);
                    return Err(Error::domain(words)).context("cannot get referenced resource");
                }
                Some(object) => {
                    let target = Found::of(&object);
                    match target.value.is_empty() {
                        true if named.optional => {}
                        true => {
                            return Err(Error::domain(format!(
                                "{EMPTY}: {} {:?}",
                                reference.to.kind, named.name
                            )));
                        }
                        false => found.push(target),
                    }
                }
            }
        }
        Ok(found)
    }

    /// The objects that match, in the order of their names. Each is read from the server: a watch only says which.
    async fn selected(&self, selector: &Selector, reference: &Reference) -> Result<Vec<Found>> {
        let nothing = || match selector.optional {
            true => Ok(Vec::new()),
            false => {
                let words = format!("{NO_MATCH}: {} with {}", reference.to.kind, selector.describe());
                Err(Error::domain(words))
            }
        };
        let gvk = &reference.to;
        let keys: Vec<Key> = if selector.same_controller {
            let Some(controller) = &selector.controller else { return nothing() };
            let (mirror, index) = self.targets.kind(&self.engine.watches, gvk);
            self.targets.wait(&index, controller, &self.waiting, self.queue);
            self.reached(&mirror, gvk).await?;
            index.controlled_by(controller, &selector.namespace)
        } else {
            let dependency = selection(selector, reference);
            dependency.into_iter().for_each(|dependency| self.following.add(&self.waiting.1, dependency));
            let Some(mirror) = self.following.mirror(gvk) else { return nothing() };
            self.reached(&mirror, gvk).await?;
            let selected = mirror.select(Some(&selector.namespace), &selector.labels);
            self.log.listed(gvk, selected.version);
            selected.keys
        };
        let mut found = Vec::new();
        let mut without_value = false;
        for key in keys {
            let read = self.engine.read(self.log, &reference.to, &key.namespace, &key.name).await;
            let Some(object) = read.context("cannot list resources that match selector")? else { continue };
            let labels = meta::labels(&object);
            if !selector.labels.iter().all(|(key, value)| labels.get(key) == Some(value)) {
                continue;
            }
            let target = Found::of(&object);
            without_value |= target.value.is_empty();
            found.push(target);
            // One value is enough for a field with one, and it is that of the first.
            if !reference.many && found.len() > 1 {
                break;
            }
        }
        if without_value && !selector.optional {
            return Err(Error::domain(format!(
                "{EMPTY}: {} with {}",
                reference.to.kind,
                selector.describe()
            )));
        }
        found.retain(|target| !target.value.is_empty());
        if found.is_empty() { nothing() } else { Ok(found) }
    }

    /// Waits until the watch has reported what this process wrote.
    async fn reached(&self, mirror: &Mirror, gvk: &GroupVersionKind) -> Result<()> {
        let written = self.engine.cluster.newest_written(gvk);
        if !mirror.reaches(written, WATCH_LAG_TIMEOUT).await {
            mirror.ready().await.context("cannot list resources that match selector")?;
        }
        Ok(())
    }
}

/// What is said of the first of several that match.
fn choice(reference: &Reference, found: &[Found]) -> Option<String> {
    let first = found.first().filter(|_| found.len() > 1 && !reference.many)?;
    let (selector, kind) = (&reference.selector, &reference.to.kind);
    Some(format!(
        "spec.forProvider.{selector} matches several objects of kind {kind}: {:?} was selected, the first by name",
        first.name
    ))
}

/// What a selector without a controller depends on.
fn selection(selector: &Selector, reference: &Reference) -> Option<Dependency> {
    (!selector.same_controller).then(|| Dependency::Selected {
        gvk: reference.to.clone(),
        namespace: Some(selector.namespace.clone()),
        labels: selector.labels.clone(),
    })
}

//! What was written while planes ran and died, from the history in the data directory of a plane that is dead.
//!
//! Copies are opened, each once: a child that another run starts in the same moment inherits the lock until it executes its
//! program, and neither the next plane nor the next check may find it.

use crate::run::copy;
use crate::scenario::Step;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use transom_store::{Event, Options, Store};

const DEFINITIONS: [&str; 2] = [
    "compositeresourcedefinitions.apiextensions.crossplane.io",
    "customresourcedefinitions.apiextensions.k8s.io",
];
const COMPOSITIONS: &str = "compositions.apiextensions.crossplane.io";

fn copied(data: &Path) -> TempDir {
    let to = TempDir::new().expect("a temporary directory");
    copy(&data.join("store"), to.path());
    to
}

/// The newest revision of a store that is intact.
pub(crate) fn newest_revision(data: &Path) -> u64 {
    let copied = copied(data);
    let report = transom_store::verify(copied.path()).expect("a store");
    assert!(report.opens && report.damage.is_empty(), "{report:?}");
    report.revision
}

/// The changes after a revision.
pub(crate) async fn changes_since(data: &Path, revision: u64) -> Vec<Arc<Event>> {
    let copied = copied(data);
    let store = Store::open(copied.path(), Options::default()).expect("a store that opens");
    let mut watch = store.watch_all(revision).expect("history of minutes");
    let changes = std::iter::from_fn(|| watch.try_next()).collect();
    store.shutdown().await;
    changes
}

pub(crate) fn describe(change: &Event) -> String {
    let verb = match (&change.old, &change.new) {
        (None, _) => "create",
        (_, None) => "remove",
        (_, Some(new)) if new.header.deleting => "delete",
        _ => "update",
    };
    format!("{}: {verb} {} {}", change.revision, change.key.resource, change.key.object.name)
}

/// What a change does that must not happen in a step: no definition and no Composition of a package is ever deleted or
/// without an owner, or has two controllers, unless the step removes it.
pub(crate) fn wrong_in(step: &Step, change: &Event) -> Option<String> {
    let removable = step.removes?;
    let (resource, name) = (&*change.key.resource, &*change.key.object.name);
    let of_package =
        DEFINITIONS.contains(&resource) && name.ends_with(".example.org") || resource == COMPOSITIONS;
    if !of_package || removable.contains(&name) {
        return None;
    }
    let controllers = |owners: &[transom_object::OwnerReference]| {
        owners.iter().filter(|owner| owner.controller == Some(true)).count()
    };
    let problem = match &change.new {
        None => "it is removed",
        Some(new) if new.header.deleting => "it is deleted",
        Some(new) if new.header.owners.is_empty() => "it has no owner",
        Some(new) if controllers(&new.header.owners) > 1 => "it has two controllers",
        Some(_) => return None,
    };
    Some(format!("{}: {problem}", describe(change)))
}

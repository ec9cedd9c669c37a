//! Which objects the packages create, change, take over and release. The server checks each of them by a dry run.

use super::diff::changed_fields;
use super::resolve::Change;
use super::world::World;
use serde_json::Value;
use transom_console::Failure;
use transom_console::control_plane::{explain, within};
use transom_engine::{Cluster, existing};
use transom_object::meta;
use transom_packages::establish::{self, Owner, Owners};
use transom_packages::names::revision_name;
use transom_packages::stream::Package;
use transom_xapi::constants::owner;

/// The uid of what does not exist yet.
const NO_UID: &str = "00000000-0000-0000-0000-000000000000";

/// What happens to an object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Create,
    Change,
    /// Only its owners change.
    TakeOver,
    /// It is no longer part of the package: it stays, and nothing controls it.
    Release,
}

impl Fate {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Change => "change",
            Self::TakeOver => "take over",
            Self::Release => "release",
        }
    }
}

/// An object, and what happens to it.
pub(super) struct PlannedObject {
    pub(super) fate: Fate,
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
    /// The package object, such as `configuration/platform`.
    pub(super) of: String,
    /// The fields that change.
    pub(super) fields: Vec<String>,
}

/// The objects of all packages, and why some of them cannot be written.
#[derive(Default)]
pub(super) struct Objects {
    pub(super) planned: Vec<PlannedObject>,
    pub(super) conflicts: Vec<String>,
}

pub(super) async fn plan(world: &World, changes: &[Change]) -> Result<Objects, Failure> {
    let mut objects = Objects::default();
    for change in changes {
        let Some(package) = &change.read.package else { continue };
        let of = format!("{}/{}", change.kind.kind().to_lowercase(), change.name);
        let wanted = establish::objects(package);
        let owners = owners(world, change, package);
        for object in &wanted {
            let planned = match &world.cluster {
                None => Ok(Some((Fate::Create, Vec::new()))),
                Some(cluster) => check(cluster, object, &owners).await?,
            };
            match planned {
                Ok(None) => {}
                Ok(Some((fate, fields))) => {
                    objects.planned.push(PlannedObject::new(fate, object, &of, fields));
                }
                Err(problem) => {
                    let (kind, name) = (meta::kind(object), meta::name(object));
                    objects.conflicts.push(format!("{of}: {kind} {name}: {problem}"));
                }
            }
        }
        objects.planned.extend(released(world, change, &wanted, &of));
    }
    Ok(objects)
}

impl PlannedObject {
    fn new(fate: Fate, object: &Value, of: &str, fields: Vec<String>) -> Self {
        Self {
            fate,
            api_version: meta::api_version(object).to_owned(),
            kind: meta::kind(object).to_owned(),
            name: meta::name(object).to_owned(),
            of: of.to_owned(),
            fields,
        }
    }
}

/// The owners that the objects of a package would have.
fn owners(world: &World, change: &Change, package: &Package) -> Owners {
    let uid = |object: Option<&Value>| object.map_or(NO_UID, meta::uid).to_owned();
    let name = match &change.read.digest {
        Some(digest) => revision_name(&change.name, digest),
        None => change.name.clone(),
    };
    let revision = world.revisions(package.kind, &change.name).find(|revision| meta::name(revision) == name);
    let siblings = world.revisions(package.kind, &change.name).map(|sibling| meta::uid(sibling).to_owned());
    Owners {
        siblings: siblings.collect(),
        revision: Owner {
            api_version: change.kind.api_version().to_owned(),
            kind: change.kind.revision_kind().to_owned(),
            uid: uid(revision),
            name,
        },
        package: Owner {
            api_version: change.kind.api_version().to_owned(),
            kind: change.kind.kind().to_owned(),
            name: change.name.clone(),
            uid: uid(world.object(change.kind, &change.name)),
        },
    }
}

/// What happens to an object and the fields that change, if anything does; or why it cannot be written.
type Checked = Result<Option<(Fate, Vec<String>)>, String>;

/// Decides about one object as the control plane does, and has it check the write.
async fn check(cluster: &Cluster, object: &Value, owners: &Owners) -> Result<Checked, Failure> {
    let subject = format!("{} {}", meta::kind(object), meta::name(object));
    let Some(gvk) = meta::gvk(object) else { return Ok(Err("it has no apiVersion and kind".to_owned())) };
    let read = within(&subject, cluster.get(&gvk, "", meta::name(object))).await?;
    let current = match existing(read) {
        Ok(current) => current,
        Err(e) => return refused(&subject, &e),
    };
    let Some(current) = current else {
        let created = establish::created(object, owners);
        return match within(&subject, cluster.try_create(&created, owner::DEFAULT)).await? {
            Ok(_) => Ok(Ok(Some((Fate::Create, Vec::new())))),
            Err(e) => refused(&subject, &e),
        };
    };
    let updated = match establish::updated(&current, object, owners) {
        Ok(None) => return Ok(Ok(None)),
        Ok(Some(updated)) => updated,
        Err(e) => return Ok(Err(e.to_string())),
    };
    match within(&subject, cluster.try_update(&updated, owner::DEFAULT)).await? {
        Ok(stored) => {
            let fields = changed_fields(&current, &stored);
            let fate = if fields.is_empty() { Fate::TakeOver } else { Fate::Change };
            Ok(Ok(Some((fate, fields))))
        }
        Err(e) => refused(&subject, &e),
    }
}

/// What the server refuses is a finding; a server that cannot be asked is a failure.
fn refused(subject: &str, error: &transom_engine::Error) -> Result<Checked, Failure> {
    match error.refusal().is_some() || error.is_unknown_kind() {
        true => Ok(Err(error.chain().to_string())),
        false => Err(explain(subject, error)),
    }
}

/// What the package controls now and does not contain any longer.
fn released(world: &World, change: &Change, wanted: &[Value], of: &str) -> Vec<PlannedObject> {
    let is_active = |revision: &&Value| revision.pointer("/spec/desiredState") == Some(&"Active".into());
    let active = world.revisions(change.kind, &change.name).filter(is_active);
    let references = active.flat_map(|revision| {
        let list = revision.pointer("/status/objectRefs").and_then(Value::as_array);
        list.into_iter().flatten()
    });
    let text = |reference: &Value, field: &str| reference[field].as_str().unwrap_or_default().to_owned();
    let gone = references.filter(|reference| {
        !wanted
            .iter()
            .any(|object| meta::kind(object) == reference["kind"] && meta::name(object) == reference["name"])
    });
    let released = |reference: &Value| PlannedObject {
        fate: Fate::Release,
        api_version: text(reference, "apiVersion"),
        kind: text(reference, "kind"),
        name: text(reference, "name"),
        of: of.to_owned(),
        fields: Vec::new(),
    };
    gone.map(released).collect()
}

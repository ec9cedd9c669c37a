//! The kinds that the given definitions define, and what is known of them when other objects are translated.

use super::Kind;
use super::block::{Block, shape};
use super::notes::{Notes, Problem};
use super::part::Part;
use serde_json::Value;
use transom_object::meta;

/// What a kind of composite resource is in the design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Application,
    Infrastructure,
}

/// A kind that a definition defines.
#[derive(Clone, Debug)]
pub(super) struct Defined {
    pub(super) role: Role,
    /// The name of the definition.
    pub(super) name: String,
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) is_published: bool,
    /// The connection details that each Composition gives exactly once.
    pub(super) details: Vec<String>,
}

/// The kind of the requirements of a kind of infrastructure.
pub(super) fn requirement(kind: &str) -> String {
    format!("{kind}Requirement")
}

/// What an object is an instance of.
#[derive(Debug)]
pub(super) struct Instance<'a> {
    pub(super) block: Block,
    /// The kind, if its definition is given.
    pub(super) defined: Option<&'a Defined>,
}

/// The definitions that are given.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    defined: Vec<Defined>,
    /// Kinds of the CustomResourceDefinitions that are given, and whether they are namespaced.
    pub(super) crds: Vec<(String, String, bool)>,
}

impl Catalogue {
    /// Reads definitions, CustomResourceDefinitions, and then what publishes the former.
    pub(super) fn of(objects: &[Value], notes: &mut Notes) -> Self {
        let mut catalogue = Self::default();
        for (input, object) in objects.iter().enumerate() {
            notes.begin(input, object);
            if let Some(Kind::Definition(role)) = Kind::of(object) {
                catalogue.define(&Part::whole(object), role, notes);
            } else {
                catalogue.crds.extend(super::scope::of_crd(object));
            }
        }
        for (input, object) in objects.iter().enumerate() {
            if Kind::of(object) == Some(Kind::Publication) {
                notes.begin(input, object);
                catalogue.publish(&Part::whole(object), notes);
            }
        }
        catalogue
    }

    /// Reads what others need to know of a definition. What is missing is a mistake that `definition::translate` finds.
    fn define(&mut self, definition: &Part<'_>, role: Role, notes: &mut Notes) {
        let text = |pointer| definition.value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (group, kind) = (text("/spec/crdSpecTemplate/group"), text("/spec/crdSpecTemplate/names/kind"));
        let version = super::definition::version_name(definition.value).unwrap_or_default();
        let details = definition.value.pointer("/spec/connectionDetails").and_then(Value::as_array);
        let details = details.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        let defined = Defined {
            role,
            name: meta::name(definition.value).to_owned(),
            api_version: format!("{group}/{version}"),
            kind: kind.to_owned(),
            is_published: false,
            details: details.collect(),
        };
        let is_same = |other: &Defined| {
            other.name == defined.name
                || (other.kind == defined.kind && other.api_version.starts_with(&format!("{group}/")))
        };
        if !defined.name.is_empty() && self.defined.iter().any(is_same) {
            let what = format!("{kind} of {group}");
            notes.wrong(&definition.field.down(&["metadata", "name"]), Problem::DefinedTwice(what));
        }
        self.defined.push(defined);
    }

    fn publish(&mut self, publication: &Part<'_>, notes: &mut Notes) {
        publication.only(&["apiVersion", "kind", "metadata", "spec", "status"], notes);
        let Some(spec) = publication.required("spec", notes) else { return };
        const REFERENCE: &str = "infrastructureDefinitionReference";
        spec.only(&[REFERENCE], notes);
        let Some(reference) = spec.required(REFERENCE, notes) else { return };
        reference.only(&["name"], notes);
        let Some(name) = reference.required_text("name", notes) else { return };
        let place = reference.field.child("name");
        if meta::name(publication.value) != name {
            let own = publication.field.down(&["metadata", "name"]);
            return notes.wrong(&own, Problem::PublicationName(name.to_owned()));
        }
        match self.defined.iter_mut().find(|defined| defined.name == name) {
            None => notes.wrong(&place, Problem::NotDefined(name.to_owned())),
            Some(Defined { role: Role::Application, .. }) => {
                notes.wrong(&place, Problem::NotInfrastructure(name.to_owned()));
            }
            Some(defined) if defined.is_published => {
                notes.wrong(&place, Problem::PublishedTwice(name.to_owned()));
            }
            Some(defined) => defined.is_published = true,
        }
    }

    /// The definition with a name.
    pub(super) fn named(&self, name: &str) -> Option<&Defined> {
        self.defined.iter().find(|defined| defined.name == name)
    }

    /// The definition of a kind of composite resource.
    pub(super) fn composite(&self, api_version: &str, kind: &str) -> Option<&Defined> {
        self.defined.iter().find(|defined| defined.api_version == api_version && defined.kind == kind)
    }

    /// The definition of the kind that a kind of requirement requires.
    pub(super) fn required_by(&self, api_version: &str, kind: &str) -> Option<&Defined> {
        let is_required = |defined: &&Defined| {
            defined.role == Role::Infrastructure
                && defined.api_version == api_version
                && requirement(&defined.kind) == kind
        };
        self.defined.iter().find(is_required)
    }

    /// What the object is an instance of. Without the definition of its kind, the shape of the object says so.
    pub(super) fn instance_of(&self, object: &Value) -> Option<Instance<'_>> {
        let (api_version, kind) = (meta::api_version(object), meta::kind(object));
        if let Some(found) = self.kind(api_version, kind) {
            return Some(found);
        }
        let block = shape(object)?;
        // A kind of this name and version that one definition defines in another group: the object can be meant for no other.
        let version = |api_version: &str| api_version.rsplit('/').next().unwrap_or_default().to_owned();
        let same = |defined: &&Defined| version(&defined.api_version) == version(api_version);
        let near = self.defined.iter().filter(same);
        let mut near = near.filter_map(|defined| self.kind(&defined.api_version, kind));
        match (near.next(), near.next()) {
            (Some(found), None) => Some(found),
            _ => Some(Instance { block, defined: None }),
        }
    }

    fn kind(&self, api_version: &str, kind: &str) -> Option<Instance<'_>> {
        if let Some(defined) = self.composite(api_version, kind) {
            let block = match defined.role {
                Role::Application => Block::Application,
                Role::Infrastructure => Block::Infrastructure,
            };
            return Some(Instance { block, defined: Some(defined) });
        }
        let defined = self.required_by(api_version, kind)?;
        Some(Instance { block: Block::Requirement, defined: Some(defined) })
    }
}

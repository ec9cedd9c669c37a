//! `Composition` with `from` and `to`, as a Composition with resource templates.

use super::block::field_path;
use super::catalogue::{Catalogue, Defined, Role};
use super::field::Field;
use super::notes::{Difference, Notes, Problem};
use super::part::Part;
use super::{instance, metadata, scope};
use crate::composition::MODE_RESOURCES;
use crate::constants::kind;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use transom_object::meta;

/// Today's Composition.
pub(super) fn translate(composition: &Part<'_>, catalogue: &Catalogue, notes: &mut Notes) -> Option<Value> {
    composition.only(&["apiVersion", "kind", "metadata", "spec", "status"], notes);
    if meta::name(composition.value).is_empty() {
        notes.wrong(&composition.field.down(&["metadata", "name"]), Problem::Required);
    }
    let spec = composition.required("spec", notes)?;
    spec.only(&["from", "to"], notes);
    let from = spec.required("from", notes).and_then(|from| from_kind(&from, notes));
    let to = spec.required("to", notes)?;
    let (api_version, kind_of_from) = from?;
    let defined = catalogue.composite(api_version, kind_of_from);
    if defined.is_none() {
        let field = spec.field.child("from");
        notes.remark(&field, Difference::Unchecked(format!("{kind_of_from} of {api_version}")));
    }
    let entries = to.items(notes);
    if entries.is_empty() {
        notes.wrong(&to.field, Problem::Required);
    }
    let mut templates = Templates { catalogue, defined, names: BTreeMap::new(), details: BTreeSet::new() };
    let resources: Vec<Value> =
        entries.iter().filter_map(|entry| templates.translate(entry, notes)).collect();
    templates.check_details(&to.field, notes);
    let mut today = json!({
        "compositeTypeRef": {"apiVersion": api_version, "kind": kind_of_from},
        "mode": MODE_RESOURCES,
        "resources": resources,
    });
    if resources.iter().any(|template| template.get("connectionDetails").is_some()) {
        today["writeConnectionSecretsToNamespace"] = SECRETS_OF_REQUIRED.into();
    }
    let metadata = metadata(composition.value);
    Some(json!({
        "apiVersion": kind::APIEXTENSIONS_V1, "kind": kind::COMPOSITION, "metadata": metadata, "spec": today,
    }))
}

/// Where infrastructure that is created for a requirement, and does not say where, publishes what the requirement copies: the
/// namespace in all examples of the design.
const SECRETS_OF_REQUIRED: &str = "crossplane-system";

fn from_kind<'a>(from: &Part<'a>, notes: &mut Notes) -> Option<(&'a str, &'a str)> {
    from.only(&["apiVersion", "kind"], notes);
    let api_version = from.required_text("apiVersion", notes);
    api_version.zip(from.required_text("kind", notes))
}

/// The templates of one Composition.
struct Templates<'a> {
    catalogue: &'a Catalogue,
    /// The kind that is composed, if its definition is given.
    defined: Option<&'a Defined>,
    /// How many templates have a name, before a number makes it unique.
    names: BTreeMap<String, usize>,
    /// The connection details that were given so far.
    details: BTreeSet<String>,
}

impl Templates<'_> {
    fn translate(&mut self, entry: &Part<'_>, notes: &mut Notes) -> Option<Value> {
        entry.only(&["base", "patches", "connectionDetails"], notes);
        let base = entry.required("base", notes)?;
        let api_version = base.required_text("apiVersion", notes);
        let (api_version, kind) = api_version.zip(base.required_text("kind", notes))?;
        self.check_scope(&base, api_version, kind, notes);
        let mut template = Map::new();
        template.insert("name".to_owned(), self.name(kind).into());
        template.insert("base".to_owned(), self.base(&base, notes)?);
        if let Some(patches) = entry.get("patches") {
            let patches = patches.items(notes).iter().map(|patch| translate_patch(patch, notes)).collect();
            template.insert("patches".to_owned(), patches);
        }
        template.extend(self.details(entry, notes).map(|details| ("connectionDetails".to_owned(), details)));
        let readiness = scope::readiness(api_version, kind);
        template.extend(readiness.map(|check| ("readinessChecks".to_owned(), json!([check]))));
        Some(template.into())
    }

    /// Templates have no name in the design. One by the kind of what is composed does not depend on their order, unless several have
    /// the same kind.
    fn name(&mut self, kind: &str) -> String {
        let name = kind.to_lowercase();
        let count = self.names.entry(name.clone()).or_default();
        *count += 1;
        if *count == 1 { name } else { format!("{name}-{count}") }
    }

    fn base(&self, base: &Part<'_>, notes: &mut Notes) -> Option<Value> {
        let mut translated = match self.catalogue.instance_of(base.value) {
            Some(found) => instance::translate(base, &found, notes)?,
            None => base.value.clone(),
        };
        if translated.get("metadata").is_some_and(transom_object::json::is_empty) {
            translated.as_object_mut()?.remove("metadata");
        }
        selectors(&mut translated, &base.field, notes);
        let namespace = base.field.down(&["metadata", "namespace"]);
        if self.role() == Some(Role::Application) && !meta::namespace(&translated).is_empty() {
            meta::set_namespace(&mut translated, "");
            notes.remark(&namespace, Difference::NamespaceOfBase);
        }
        Some(translated)
    }

    fn role(&self) -> Option<Role> {
        self.defined.map(|defined| defined.role)
    }

    /// Applications compose namespaced resources, infrastructure cluster-scoped ones.
    fn check_scope(&self, base: &Part<'_>, api_version: &str, kind: &str, notes: &mut Notes) {
        let given = (!meta::namespace(base.value).is_empty()).then_some(true);
        let known = scope::is_namespaced(api_version, kind, self.catalogue);
        let what = format!("{kind} of {api_version}");
        let field = base.field.child("kind");
        match (self.role(), known) {
            (Some(Role::Application), Some(false)) => {
                let published =
                    self.catalogue.composite(api_version, kind).filter(|defined| defined.is_published);
                let requirement = published.map(|defined| super::catalogue::requirement(&defined.kind));
                notes.wrong(&field, Problem::ClusterScoped { what, requirement });
            }
            (Some(Role::Infrastructure), known) if known.or(given) == Some(true) => {
                notes.wrong(&field, Problem::Namespaced(what));
            }
            _ => {}
        }
    }

    /// The connection details of a template, if they have an effect.
    fn details(&mut self, entry: &Part<'_>, notes: &mut Notes) -> Option<Value> {
        let part = entry.get("connectionDetails")?;
        let mut details = Vec::new();
        for detail in part.items(notes) {
            detail.only(&["name", "fromConnectionSecretKey"], notes);
            let Some(key) = detail.required_text("fromConnectionSecretKey", notes) else { continue };
            let named = detail.get("name");
            let name = named.as_ref().map_or(Some(key), |name| name.text(notes)).unwrap_or(key);
            if !self.details.insert(name.to_owned()) {
                let field =
                    named.map_or_else(|| detail.field.child("fromConnectionSecretKey"), |name| name.field);
                notes.wrong(&field, Problem::DetailTwice(name.to_owned()));
            }
            details.push(json!({"name": name, "fromConnectionSecretKey": key}));
        }
        if details.is_empty() {
            return None;
        }
        match self.defined {
            Some(Defined { role: Role::Application, .. }) => {
                notes.remark(&part.field, Difference::DetailsOfApplication);
                None
            }
            Some(defined) if defined.details.is_empty() => {
                notes.remark(&part.field, Difference::DetailsNotDeclared(defined.name.clone()));
                None
            }
            _ => Some(details.into()),
        }
    }

    /// Each detail of the definition is given.
    fn check_details(&self, to: &Field, notes: &mut Notes) {
        let Some(defined) = self.defined.filter(|defined| defined.role == Role::Infrastructure) else {
            return;
        };
        for detail in defined.details.iter().filter(|detail| !self.details.contains(*detail)) {
            let (detail, definition) = (detail.clone(), defined.name.clone());
            notes.wrong(to, Problem::DetailMissing { detail, definition });
        }
    }
}

/// A patch, with today's paths of the fields of the control plane.
fn translate_patch(patch: &Part<'_>, notes: &mut Notes) -> Value {
    let mut translated = patch.value.clone();
    for name in ["fromFieldPath", "toFieldPath"] {
        let Some(part) = patch.get(name) else { continue };
        let today = part.value.as_str().and_then(|path| field_path(path, &part.field, notes));
        if let Some(today) = today {
            translated[name] = today.into();
        }
    }
    translated
}

/// Writes `matchControllerRef` for `matchComposite` in all selectors of references.
fn selectors(value: &mut Value, field: &Field, notes: &mut Notes) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let field = field.child(name);
                if name.ends_with("Selector") {
                    selector(value, &field, notes);
                }
                selectors(value, &field, notes);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                selectors(item, &field.item(index), notes);
            }
        }
        _ => {}
    }
}

fn selector(selector: &mut Value, field: &Field, notes: &mut Notes) {
    const THEN: &str = "matchComposite";
    const TODAY: &str = "matchControllerRef";
    let Some(fields) = selector.as_object_mut() else { return };
    let Some(given) = fields.remove(THEN) else { return };
    if fields.get(TODAY).is_some_and(|today| *today != given) {
        return notes.wrong(&field.child(THEN), Problem::Contradiction);
    }
    fields.insert(TODAY.to_owned(), given);
}

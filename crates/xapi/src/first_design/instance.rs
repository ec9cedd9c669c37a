//! Applications and infrastructure, as composite resources, and requirements, as claims.

use super::block::Block;
use super::catalogue::{Instance, requirement};
use super::metadata;
use super::notes::{Difference, Notes, Problem};
use super::part::Part;
use serde_json::{Map, Value, json};
use transom_object::meta;

/// Today's composite resource or claim. The object may be the base of a template, which has not all of its fields.
pub(super) fn translate(object: &Part<'_>, found: &Instance<'_>, notes: &mut Notes) -> Option<Value> {
    let kind = meta::kind(object.value);
    let mut translated = json!({"apiVersion": api_version(object, found, notes), "kind": kind, "metadata": metadata(object.value)});
    if found.block == Block::Requirement
        && let Some(defined) = found.defined.filter(|defined| !defined.is_published)
    {
        notes.remark(&object.field.child("kind"), Difference::NotPublished(defined.kind.clone()));
    }
    let Some(spec) = object.get("spec") else { return Some(translated) };
    let mut fields = spec.object(notes)?.clone();
    let block = spec.get(found.block.name());
    fields.remove(found.block.name());
    if let Some(block) = block {
        let own = fields_of(&block, found.block, object, notes);
        match found.block {
            Block::Application if own.is_empty() => {}
            Block::Application => drop(fields.insert("crossplane".to_owned(), own.into())),
            Block::Infrastructure | Block::Requirement => fields.extend(own),
        }
    }
    translated["spec"] = fields.into();
    Some(translated)
}

fn api_version<'a>(object: &Part<'a>, found: &Instance<'a>, notes: &mut Notes) -> &'a str {
    let given = meta::api_version(object.value);
    let Some(wanted) =
        found.defined.map(|defined| defined.api_version.as_str()).filter(|wanted| *wanted != given)
    else {
        return given;
    };
    notes.remark(&object.field.child("apiVersion"), Difference::Group(wanted.to_owned()));
    wanted
}

/// What a block says, in today's fields.
fn fields_of(part: &Part<'_>, block: Block, object: &Part<'_>, notes: &mut Notes) -> Map<String, Value> {
    part.only(block.fields(), notes);
    let mut today = Map::new();
    if let Some(selector) = part.get("compositionSelector") {
        selector.only(&["matchLabels"], notes);
        selector.required("matchLabels", notes);
        part.copy("compositionSelector", &mut today);
    }
    if let Some(reference) = part.get("compositionRef").and_then(|list| only_one(list, notes)) {
        reference.only(&["name"], notes);
        let name = reference.required_text("name", notes);
        today.insert("compositionRef".to_owned(), json!({"name": name}));
    }
    if let Some(references) = part.get("composedRefs") {
        notes.remark(&references.field, Difference::WrittenByController);
    }
    today.extend(bound_resource(part, object, notes));
    today.extend(requirement_of(part, notes));
    // In the base of a template, a patch may give what is missing.
    let is_whole = object.field.pointer().is_empty();
    today.extend(secret(part, block, is_whole, notes));
    reclaim_policy(part, notes);
    today
}

/// The only item of a list, or what is written without one.
fn only_one<'a>(part: Part<'a>, notes: &mut Notes) -> Option<Part<'a>> {
    if !part.value.is_array() {
        return Some(part);
    }
    let mut items = part.items(notes);
    if items.len() > 1 {
        notes.wrong(&part.field, Problem::Several(items.len()));
    }
    items.pop()
}

/// The infrastructure that a requirement is bound to.
fn bound_resource(block: &Part<'_>, object: &Part<'_>, notes: &mut Notes) -> Option<(String, Value)> {
    let reference = only_one(block.get("resourceRef")?, notes)?;
    let fields = ["apiVersion", "kind", "name"];
    reference.only(&fields, notes);
    let [_, kind, _] = fields.map(|field| reference.required_text(field, notes));
    let own = meta::kind(object.value);
    if kind.is_some_and(|kind| requirement(kind) != own) {
        let wanted = own.strip_suffix("Requirement").unwrap_or(own).to_owned();
        notes.wrong(&reference.field.child("kind"), Problem::BoundKind { wanted });
    }
    Some(("resourceRef".to_owned(), reference.value.clone()))
}

/// The requirement that infrastructure is bound to.
fn requirement_of(block: &Part<'_>, notes: &mut Notes) -> Option<(String, Value)> {
    let reference = block.get("requirementRef")?;
    let fields = ["apiVersion", "kind", "namespace", "name"];
    reference.only(&fields, notes);
    for field in fields {
        reference.required_text(field, notes);
    }
    Some(("claimRef".to_owned(), reference.value.clone()))
}

fn secret(block: &Part<'_>, of: Block, is_whole: bool, notes: &mut Notes) -> Option<(String, Value)> {
    const FIELD: &str = "writeConnectionSecretToRef";
    let reference = block.get(FIELD)?;
    reference.only(&["name", "namespace"], notes);
    let required: &[&str] = if of == Block::Requirement { &["name"] } else { &["name", "namespace"] };
    for field in required.iter().filter(|_| is_whole) {
        reference.required_text(field, notes);
    }
    let mut today = Map::new();
    reference.copy("name", &mut today);
    match (of, reference.get("namespace")) {
        (Block::Requirement, Some(namespace)) => {
            notes.remark(&namespace.field, Difference::NamespaceOfSecret);
        }
        (_, Some(namespace)) => drop(today.insert("namespace".to_owned(), namespace.value.clone())),
        (_, None) => {}
    }
    Some((FIELD.to_owned(), today.into()))
}

fn reclaim_policy(block: &Part<'_>, notes: &mut Notes) {
    let Some(policy) = block.get("reclaimPolicy") else { return };
    match policy.value.as_str() {
        Some("Delete") => {}
        Some("Retain") => notes.remark(&policy.field, Difference::Retain),
        _ => notes.wrong(&policy.field, Problem::ReclaimPolicy),
    }
}

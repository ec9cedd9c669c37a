//! Defaults must be what they would be after a round through the server: valid, pruned, with good metadata.

use super::compile;
use crate::model::{Additional, Schema};
use crate::normalize::{self, META_FIELDS, MalformedFields};
use crate::rules::{Limits, Rules};
use crate::validate;
use serde_json::{Map, Value, json};
use transom_object::field::{self, Path};

/// Violations by the defaults of a schema, which must be structural.
pub(super) fn check(doc: &Value, path: &Path, pruned: bool) -> Vec<field::Error> {
    let Ok(mut schema) = compile::schema(doc, compile::Defaults::Written) else { return Vec::new() };
    schema.embedded = true;
    let mut judge = Judge { pruned, budget: Some(transom_cel::PER_OBJECT_LIMIT), errors: Vec::new() };
    judge.node(&schema, &NearestResource { resource: &schema, steps: Vec::new(), inside_meta: false }, path);
    judge.errors
}

/// Whether no default of a schema has fields that it does not specify.
pub(super) fn are_pruned(doc: &Value) -> bool {
    let written = compile::schema(doc, compile::Defaults::Written);
    let pruned = compile::schema(doc, compile::Defaults::Pruned);
    match (written, pruned) {
        (Ok(written), Ok(pruned)) => same_defaults(&written, &pruned),
        _ => true,
    }
}

fn same_defaults(a: &Schema, b: &Schema) -> bool {
    let values = match (&a.additional, &b.additional) {
        (Additional::Schema(a), Additional::Schema(b)) => same_defaults(a, b),
        _ => true,
    };
    let items = match (&a.items, &b.items) {
        (Some(a), Some(b)) => same_defaults(a, b),
        _ => true,
    };
    let properties = || a.properties.values().zip(b.properties.values()).all(|(a, b)| same_defaults(a, b));
    a.default == b.default && values && items && properties()
}

/// The nearest resource around a node, and the way from it to the node.
struct NearestResource<'s> {
    resource: &'s Schema,
    steps: Vec<Step<'s>>,
    inside_meta: bool,
}

#[derive(Clone, Copy)]
enum Step<'s> {
    Property(&'s str),
    Item,
}

impl<'s> NearestResource<'s> {
    fn then(&self, step: Step<'s>, inside_meta: bool) -> NearestResource<'s> {
        let steps = self.steps.iter().copied().chain([step]).collect();
        NearestResource { resource: self.resource, steps, inside_meta }
    }

    /// A resource that has nothing but the value at the node's place.
    fn holding(&self, value: &Value) -> Value {
        let mut object = self.steps.iter().rev().fold(value.clone(), |value, step| match step {
            Step::Property(name) => Value::Object(Map::from_iter([((*name).to_owned(), value)])),
            Step::Item => json!([value]),
        });
        if let Value::Object(fields) = &mut object {
            fields.entry("kind").or_insert_with(|| "Validation".into());
            fields.entry("apiVersion").or_insert_with(|| "validation/v1".into());
        }
        object
    }
}

struct Judge {
    /// Whether defaults must already be pruned.
    pruned: bool,
    /// What evaluating rules on defaults may still cost; `None` when it ran out, which ends it all.
    budget: Option<u64>,
    errors: Vec<field::Error>,
}

impl Judge {
    fn node(&mut self, schema: &Schema, around: &NearestResource<'_>, path: &Path) {
        if self.budget.is_none() {
            return;
        }
        let own = NearestResource { resource: schema, steps: Vec::new(), inside_meta: false };
        let around = if schema.embedded { &own } else { around };
        if let Some(default) = &schema.default {
            self.default_value(default, schema, around, &path.child("default"));
        }
        if let Some(items) = &schema.items {
            self.node(items, &around.then(Step::Item, around.inside_meta), &path.child("items"));
        }
        for (name, property) in &schema.properties {
            let inside_meta = around.inside_meta || (schema.embedded && META_FIELDS.contains(&name.as_str()));
            let around = around.then(Step::Property(name), inside_meta);
            self.node(property, &around, &path.child("properties").key(name));
        }
    }

    fn default_value(&mut self, default: &Value, schema: &Schema, around: &NearestResource<'_>, path: &Path) {
        if around.inside_meta {
            let mut object = around.holding(default);
            let problem =
                match normalize::coerce_metadata(&mut object, around.resource, true, MalformedFields::Refuse)
                {
                    Err(e) => Some(e.to_string()),
                    Ok(_) => Some(validate::embedded(&object, around.resource, true, &Path::root()))
                        .filter(|found| !found.is_empty())
                        .map(|found| field::aggregate(&found)),
                };
            match problem {
                Some(problem) => {
                    let detail = format!("must result in valid metadata: {problem}");
                    self.errors.push(field::Error::invalid(path, default.clone(), detail));
                }
                None => self.value(default, schema, false, path),
            }
            return;
        }
        let mut pruned = default.clone();
        normalize::prune(&mut pruned, schema, schema.embedded);
        if self.pruned && &pruned != default {
            self.errors.push(field::Error::invalid(path, default.clone(), "must not have unknown fields"));
        }
        let mut coerced = default.clone();
        match normalize::coerce_metadata(&mut coerced, schema, schema.embedded, MalformedFields::Refuse) {
            Err(mut e) => {
                e.field = path.child(&e.field).to_string();
                self.errors.push(e);
            }
            Ok(_) => {
                let meta = validate::embedded(&coerced, schema, schema.embedded, path);
                if meta.is_empty() {
                    self.value(&coerced, schema, schema.embedded, path);
                }
                self.errors.extend(meta);
            }
        }
    }

    /// A default as a value of its schema, whose rules hold when it is introduced and when it stays.
    fn value(&mut self, default: &Value, schema: &Schema, resource: bool, path: &Path) {
        let found = validate::validate(default, None, schema, path);
        if !found.is_empty() {
            self.errors.extend(found);
            return;
        }
        let rules = Rules::build(schema, resource);
        let Some(per_object) = self.budget.filter(|_| !rules.is_empty()) else { return };
        for old in [Some(default), None] {
            let limits = Limits { per_object, ratchet: false, ..Limits::default() };
            let report = rules.report(default, old, path, limits);
            // Both start from the same budget, and the dearer one counts.
            self.budget = self.budget.min(report.budget);
            let failed = !report.errors.is_empty();
            self.errors.extend(report.errors);
            if failed {
                return;
            }
        }
    }
}

//! The rules in a schema: they compile, they refer to the old object only where there is one to be found, and
//! they are cheap enough.

use super::schema::Unchanged;
use super::spec::given;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use transom_cel::{Env, Program, Type};
use transom_object::field::{Error, Path};
use transom_schema::Schema;
use transom_schema::rules::{RuleError, Rules, declare};
use transom_schema::structural::{self, shown};

/// The estimated cost of one expression.
const MAX_EXPRESSION_COST: u64 = 10_000_000;
/// Of all expressions of a schema together.
const MAX_SCHEMA_COST: u64 = 100_000_000;
/// The most expensive rules that are named when the whole is too expensive.
const MAX_NAMED_RULES: usize = 4;

const RULES: &str = "x-kubernetes-validations";
const MESSAGE: &str = "messageExpression";

/// `misused` are errors about keywords: rules at or above such a keyword are not checked, because their types may be
/// wrong.
pub(super) fn check(
    document: &Value,
    schema: &Schema,
    misused: &[Error],
    unchanged: Unchanged,
    path: &Path,
) -> Vec<Error> {
    if !structural::uses(document, &[RULES]) {
        return Vec::new();
    }
    let rules = Rules::build(schema, true);
    let errors = rules.errors().into_iter().map(|e| (e.path.clone(), e)).collect();
    let costs = rules.estimates().into_iter().map(|c| (c.path, c.total)).collect();
    let mut walk = Walk { errors, costs, misused, unchanged, total: Total::default(), found: Vec::new() };
    walk.node(document, &NodePath { path: path.clone(), below: Path::root(), uncorrelatable: None });
    let Walk { mut found, total, .. } = walk;
    if total.cost > MAX_SCHEMA_COST {
        let detail =
            "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        found.extend(total.most_expensive.iter().map(|(path, _)| Error::forbidden(path, detail)));
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        found.push(Error::forbidden(path, too_expensive(what, total.cost, MAX_SCHEMA_COST)));
    }
    found
}

/// Where a node of the schema is.
struct NodePath {
    path: Path,
    /// The same from the root of the schema.
    below: Path,
    /// The highest node around whose parts cannot be matched between two revisions of an object.
    uncorrelatable: Option<Path>,
}

impl NodePath {
    fn child(&self, step: impl Fn(&Path) -> Path, correlatable: bool) -> Self {
        let uncorrelatable = match &self.uncorrelatable {
            None if !correlatable => Some(self.path.clone()),
            known => known.clone(),
        };
        Self { path: step(&self.path), below: step(&self.below), uncorrelatable }
    }
}

struct Walk<'a> {
    errors: BTreeMap<String, RuleError>,
    costs: BTreeMap<String, u64>,
    misused: &'a [Error],
    unchanged: Unchanged,
    total: Total,
    found: Vec<Error>,
}

impl Walk<'_> {
    fn node(&mut self, node: &Value, at: &NodePath) {
        if let Some(values) = given(node, "additionalProperties").filter(|v| v.is_object()) {
            self.node(values, &at.child(|p| p.child("additionalProperties"), true));
        }
        let known = node["x-kubernetes-map-type"].as_str().is_none_or(|t| matches!(t, "granular" | "atomic"));
        for (name, property) in node["properties"].as_object().into_iter().flatten() {
            self.node(property, &at.child(|p| p.child("properties").key(name), known));
        }
        if let Some(items) = given(node, "items").filter(|v| v.is_object()) {
            let keyed = node["x-kubernetes-list-type"] == "map";
            self.node(items, &at.child(|p| p.child("items"), keyed));
        }
        let here = at.path.as_str();
        let within =
            |e: &Error| e.field.strip_prefix(here).is_some_and(|r| r.is_empty() || r.starts_with(['.', '[']));
        if self.misused.iter().any(within) {
            return;
        }
        let rules = node[RULES].as_array().map_or(&[][..], Vec::as_slice);
        if rules.is_empty() {
            return;
        }
        let resource = at.below.is_root() || node["x-kubernetes-embedded-resource"] == true;
        self.cover(node, resource, at);
        for (i, rule) in rules.iter().enumerate() {
            let rule_at = at.child(|p| p.child(RULES).index(i), true);
            if let Some(cost) = message_cost(node, rule, resource) {
                self.costs.insert(rule_at.below.child(MESSAGE).as_str().to_owned(), cost);
            }
            self.rule(rule, &rule_at);
        }
    }

    /// Checks the rules of a node whose type is not part of the type of its parent.
    fn cover(&mut self, node: &Value, resource: bool, at: &NodePath) {
        let first = at.below.child(RULES).index(0).child("rule");
        if self.errors.contains_key(first.as_str()) || self.costs.contains_key(first.as_str()) {
            return;
        }
        let Ok(schema) = structural::parse(node) else { return };
        let rules = Rules::build(&schema, resource);
        let own = |path: &str| path.starts_with(RULES).then(|| at.below.child(path).as_str().to_owned());
        self.errors.extend(rules.errors().into_iter().filter_map(|e| Some((own(&e.path)?, e))));
        self.costs.extend(rules.estimates().into_iter().filter_map(|c| Some((own(&c.path)?, c.total))));
    }

    fn rule(&mut self, rule: &Value, at: &NodePath) {
        let compiles = self.expression(rule, "rule", "estimated rule cost", at);
        self.expression(rule, MESSAGE, "estimated messageExpression cost", at);
        let text = rule["rule"].as_str().unwrap_or_default();
        if compiles && mentions_old_self(text) {
            if let Some(around) = &at.uncorrelatable {
                let detail = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {}",
                    around.as_str()
                );
                self.found.push(Error::invalid(&at.path.child("rule"), text, detail));
            }
        } else if let Some(optional) = given(rule, "optionalOldSelf") {
            let detail = "may not be set if oldSelf is not used in rule";
            self.found.push(Error::invalid(&at.path.child("optionalOldSelf"), optional.clone(), detail));
        }
    }

    /// Returns whether the expression in `field` compiles.
    fn expression(&mut self, rule: &Value, field: &str, what: &str, at: &NodePath) -> bool {
        let (at, below) = (at.path.child(field), at.below.child(field));
        if let Some(cost) = self.costs.get(below.as_str()).copied() {
            if cost > MAX_EXPRESSION_COST && self.unchanged == Unchanged(false) {
                self.found.push(Error::forbidden(&at, too_expensive(what, cost, MAX_EXPRESSION_COST)));
            }
            self.total.observe(&at, cost);
        }
        let Some(error) = self.errors.get(below.as_str()) else { return true };
        self.found.push(shown::invalid(&at, &shown::rule(rule), &error.error.to_string()));
        false
    }
}

/// Whether a rule that compiles refers to the old object.
fn mentions_old_self(rule: &str) -> bool {
    let env = Env::new().with("self", Type::Dyn).with("oldSelf", Type::Dyn);
    Program::compile(rule, &env)
        .map_or_else(|_| rule.contains("oldSelf"), |program| program.mentions("oldSelf"))
}

/// What computing a message can cost.
fn message_cost(node: &Value, rule: &Value, resource: bool) -> Option<u64> {
    let expression = rule[MESSAGE].as_str().filter(|e| !e.trim().is_empty())?;
    let mut seen = node.clone();
    if resource {
        let names = json!({"name": {"type": "string", "maxLength": 253}, "generateName": {"type": "string", "maxLength": 252}});
        seen["properties"]["metadata"] = json!({"type": "object", "properties": names});
        for field in ["kind", "apiVersion"] {
            seen["properties"][field] = json!({"type": "string"});
        }
    }
    let schema = structural::parse(&seen).ok()?;
    let env = Env::new().with_decl("self", &declare(&schema, "selfType")?);
    let env = match rule["optionalOldSelf"] == true {
        true => env.with("oldSelf", Type::Dyn),
        false => env.with_decl("oldSelf", &declare(&schema, "oldSelfType")?),
    };
    Some(Program::compile(expression, &env).ok()?.estimated_cost().max)
}

/// What all rules of a schema cost together.
#[derive(Default)]
pub(super) struct Total {
    pub(super) cost: u64,
    /// Rules that take a noticeable part, the most expensive first.
    pub(super) most_expensive: Vec<(Path, u64)>,
}

impl Total {
    pub(super) fn observe(&mut self, path: &Path, cost: u64) {
        self.cost = self.cost.saturating_add(cost);
        if cost < MAX_SCHEMA_COST / 100 {
            return;
        }
        self.most_expensive.push((path.clone(), cost));
        self.most_expensive.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
        self.most_expensive.truncate(MAX_NAMED_RULES);
    }
}

fn too_expensive(what: &str, cost: u64, limit: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a factor for people to read")]
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        // One decimal would print a factor of one.
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

//! Why a value is refused: the violations in upstream's order and words.
//!
//! Upstream collects, for every schema node, the errors and a count of the checks made; where no branch of an
//! `anyOf` or `oneOf` holds, the errors of the branch with the highest count are reported. The counts kept here
//! follow that bookkeeping exactly, or another branch would be blamed.

use super::accept::{enum_accepts, first_repeated, has_type, null_is_typed, type_matches};
use super::correlate::Correlated;
use super::numbers::{Num, numeric_format};
use crate::model::{Additional, Checks, Schema, Type};
use crate::trail::Trail;
use serde_json::{Map, Number, Value};
use std::sync::Arc;
use transom_go::regexp::{self, Limits};
use transom_object::field::{self, Kind, Path};
use transom_object::json;

pub(super) fn explain(
    value: &Value,
    old: Option<Correlated<'_>>,
    schema: &Schema,
    path: &Path,
) -> Vec<field::Error> {
    let outcome = Walk { value, schema, trail: &Trail::Root, old }.judge();
    outcome.failures.into_iter().map(|failure| failure.at(path)).collect()
}

/// What was found at and below one node.
#[derive(Default)]
struct Outcome {
    failures: Vec<Failure>,
    checks: u32,
}

/// One violation. Upstream drops a violation whose message it already has, so the message is kept even where
/// the error does not show it.
struct Failure {
    kind: Kind,
    /// Path of the field relative to the value judged; `None` for violations that only the message locates.
    field: Option<String>,
    value: Value,
    message: String,
    detail: Detail,
}

/// The text of the error after the value.
enum Detail {
    Message,
    Nothing,
    Supported(Vec<String>),
    AtMost(i64),
}

impl Outcome {
    fn fail(&mut self, failure: Failure) {
        if !self.failures.iter().any(|f| f.message == failure.message) {
            self.failures.push(failure);
        }
    }

    fn merge(&mut self, other: Outcome) {
        self.checks += other.checks;
        other.failures.into_iter().for_each(|failure| self.fail(failure));
    }
}

impl Failure {
    fn invalid(trail: &Trail<'_>, value: impl Into<Value>, message: String) -> Self {
        let field = Some(trail.to_string());
        Self { kind: Kind::Invalid, field, value: value.into(), message, detail: Detail::Message }
    }

    fn wrong_type(trail: &Trail<'_>, wanted: &str, found: &str) -> Self {
        let message = format!("{trail} in body must be of type {wanted}: {found:?}");
        Self { kind: Kind::TypeInvalid, ..Self::invalid(trail, found, message) }
    }

    /// A violation of the logic around schemas: reported at the root of the value.
    fn logic(trail: &Trail<'_>, complaint: &str) -> Self {
        let message = format!("{:?} {complaint}", trail.to_string());
        Self { kind: Kind::Invalid, field: None, value: "".into(), message, detail: Detail::Message }
    }

    fn at(self, base: &Path) -> field::Error {
        let path = match self.field.as_deref().map(|f| f.strip_prefix('.').unwrap_or(f)) {
            None | Some("") => base.clone(),
            Some(relative) => base.child(relative),
        };
        match self.detail {
            Detail::Message => field::Error::new(self.kind, &path, self.value, self.message),
            Detail::Nothing => field::Error::new(self.kind, &path, self.value, ""),
            Detail::Supported(values) => {
                let values: Vec<&str> = values.iter().map(String::as_str).collect();
                field::Error::not_supported(&path, self.value, &values)
            }
            Detail::AtMost(max) if self.kind == Kind::TooLong => field::Error::too_long(&path, max),
            Detail::AtMost(max) => field::Error::too_many(&path, self.value.as_i64().unwrap_or(-1), max),
        }
    }
}

/// A value and the schema it is held against.
struct Walk<'a> {
    value: &'a Value,
    schema: &'a Schema,
    trail: &'a Trail<'a>,
    /// The old value, as long as it correlates. Branches of logic are judged without it.
    old: Option<Correlated<'a>>,
}

impl Walk<'_> {
    fn judge(&self) -> Outcome {
        let mut outcome = Outcome::default();
        if self.value.is_null() {
            self.null(&mut outcome);
        } else {
            self.present(&mut outcome);
        }
        if !outcome.failures.is_empty() && self.old.is_some_and(|old| old.unchanged()) {
            outcome.failures.clear();
        }
        outcome
    }

    fn null(&self, outcome: &mut Outcome) {
        if null_is_typed(self.schema) {
            outcome.checks += 1;
        } else {
            outcome.fail(Failure::wrong_type(self.trail, type_names(self.schema), "null"));
        }
        self.enumeration(outcome);
    }

    /// The checks in upstream's order. Each that applies counts once, whatever it finds.
    fn present(&self, outcome: &mut Outcome) {
        let (checks, trail) = (&self.schema.checks, self.trail);
        if self.schema.ty != Type::Any || self.schema.int_or_string || checks.format.is_some() {
            self.type_of(outcome);
            outcome.checks += 1;
        }
        self.logic(outcome);
        outcome.checks += 1;
        match self.value {
            Value::String(text) => {
                string(text, checks, trail, outcome);
                outcome.checks += 1;
                if let (Some(format), Some(name)) = (checks.format, &self.schema.format) {
                    if !format.accepts(text) {
                        outcome.fail(Failure::wrong_type(trail, name, text));
                    }
                    outcome.checks += 1;
                }
            }
            Value::Number(number) => {
                self.number(number, outcome);
                outcome.checks += 2;
            }
            Value::Array(items) => {
                self.array(items, outcome);
                outcome.checks += 2;
            }
            _ => {}
        }
        self.enumeration(outcome);
        outcome.checks += 1;
        if let Value::Object(fields) = self.value {
            self.object(fields, outcome);
            outcome.checks += 1;
        }
        outcome.checks += 1;
    }

    fn type_of(&self, outcome: &mut Outcome) {
        if has_type(self.value, self.schema) {
            outcome.checks += 1;
            return;
        }
        let (name, machine) = type_and_format(self.value);
        let textual = self.value.is_string() || self.value.is_array();
        let checked = self.schema.checks.format.is_some() || numeric_format(self.schema).is_some();
        let failure = match &self.schema.format {
            Some(format) if checked && !textual && !type_matches(self.value, self.schema) => {
                Failure::wrong_type(self.trail, format, machine)
            }
            _ => Failure::wrong_type(self.trail, type_names(self.schema), name),
        };
        outcome.fail(failure);
    }

    fn logic(&self, outcome: &mut Outcome) {
        let (checks, trail) = (&self.schema.checks, self.trail);
        if !checks.any_of.is_empty() {
            let (valid, best) = self.branches(&checks.any_of, true);
            if valid == 0 {
                outcome.fail(Failure::logic(trail, "must validate at least one schema (anyOf)"));
            }
            outcome.merge(best);
        }
        if !checks.one_of.is_empty() {
            let (valid, best) = self.branches(&checks.one_of, false);
            match valid {
                1 => outcome.merge(best),
                0 => {
                    let complaint = "must validate one and only one schema (oneOf). Found none valid";
                    outcome.fail(Failure::logic(trail, complaint));
                    outcome.merge(best);
                }
                n => {
                    let complaint = format!(
                        "must validate one and only one schema (oneOf). Found {n} valid alternatives"
                    );
                    outcome.fail(Failure::logic(trail, &complaint));
                }
            }
        }
        if !checks.all_of.is_empty() {
            let mut valid = 0;
            for branch in &checks.all_of {
                let result = self.branch(branch);
                valid += usize::from(result.failures.is_empty());
                outcome.merge(result);
            }
            if valid != checks.all_of.len() {
                let none = if valid == 0 { ". None validated" } else { "" };
                outcome.fail(Failure::logic(trail, &format!("must validate all the schemas (allOf){none}")));
            }
        }
        if let Some(not) = &checks.not
            && self.branch(not).failures.is_empty()
        {
            outcome.fail(Failure::logic(trail, "must not validate the schema (not)"));
        }
        outcome.checks += 1;
    }

    fn branch(&self, schema: &Schema) -> Outcome {
        Walk { value: self.value, schema, trail: self.trail, old: None }.judge()
    }

    /// How many branches hold, and the outcome to report: that of the first that holds, or else of the failing
    /// one with the most checks.
    fn branches(&self, branches: &[Arc<Schema>], stop_at_first: bool) -> (usize, Outcome) {
        let (mut valid, mut best) = (0, None::<Outcome>);
        for branch in branches {
            let result = self.branch(branch);
            if result.failures.is_empty() {
                valid += 1;
                if valid == 1 {
                    best = Some(result);
                }
                if stop_at_first {
                    break;
                }
            } else if valid == 0 && best.as_ref().is_none_or(|b| result.checks > b.checks) {
                best = Some(result);
            }
        }
        (valid, best.unwrap_or_default())
    }

    fn number(&self, number: &Number, outcome: &mut Outcome) {
        let (checks, trail) = (&self.schema.checks, self.trail);
        let num = Num::of(number);
        let fail = |message| Failure::invalid(trail, number.clone(), message);
        self.in_format("Checked", num, outcome);
        if let Some(factor) = checks.multiple_of {
            let bound = num.print_bound(factor);
            match num.is_multiple_of(factor) {
                Some(true) => {}
                Some(false) => outcome.fail(fail(format!("{trail} in body should be a multiple of {bound}"))),
                None => {
                    let message = format!("factor MultipleOf declared for {trail} must be positive: {bound}");
                    outcome.fail(Failure { value: bound_value(num, factor), ..fail(message) });
                }
            }
        }
        if let Some(min) = checks.minimum {
            self.in_format("Minimum boundary", Num::Float(min), outcome);
            let num = num.against(min, self.schema);
            if !num.above_or_at(min, checks.exclusive_minimum) {
                let or_equal = if checks.exclusive_minimum { "" } else { " or equal to" };
                let bound = num.print_bound(min);
                let message = format!("{trail} in body should be greater than{or_equal} {bound}");
                outcome.fail(Failure { value: num.to_json(), ..fail(message) });
            }
        }
        if let Some(max) = checks.maximum {
            self.in_format("Maximum boundary", Num::Float(max), outcome);
            let num = num.against(max, self.schema);
            if !num.below_or_at(max, checks.exclusive_maximum) {
                let or_equal = if checks.exclusive_maximum { "" } else { " or equal to" };
                let bound = num.print_bound(max);
                let message = format!("{trail} in body should be less than{or_equal} {bound}");
                outcome.fail(Failure { value: num.to_json(), ..fail(message) });
            }
        }
    }

    /// A number with a format must fit it, and so must its bounds: one that does not makes every value invalid.
    fn in_format(&self, what: &str, num: Num, outcome: &mut Outcome) {
        let Some(format) = numeric_format(self.schema).filter(|_| !num.fits(self.schema)) else { return };
        let (ty, trail) = (self.schema.ty.name(), self.trail);
        let message = format!("{what} value must be of type {ty} with format {format} in {trail}");
        outcome.fail(Failure { field: None, ..Failure::invalid(trail, "", message) });
    }

    fn array(&self, items: &[Value], outcome: &mut Outcome) {
        let (checks, trail, len) = (&self.schema.checks, self.trail, items.len() as i64);
        if let Some(schema) = &self.schema.items {
            let old = self.old.and_then(|old| old.items());
            for (i, value) in items.iter().enumerate() {
                let old = old.as_ref().and_then(|old| old.get(i));
                outcome.merge(Walk { value, schema, trail: &trail.index(i), old }.judge());
            }
        }
        if let Some(min) = checks.min_items
            && len < min
        {
            let message = format!("{trail} in body should have at least {min} items");
            outcome.fail(Failure::invalid(trail, len, message));
        }
        if let Some(max) = checks.max_items
            && len > max
        {
            let message = format!("{trail} in body should have at most {max} items");
            let failure = Failure::invalid(trail, len, message);
            outcome.fail(Failure { kind: Kind::TooMany, detail: Detail::AtMost(max), ..failure });
        }
        if checks.unique_items && first_repeated(items).is_some() {
            let message = format!("{trail} in body shouldn't contain duplicates");
            outcome.fail(Failure::invalid(trail, "", message));
        }
    }

    fn object(&self, fields: &Map<String, Value>, outcome: &mut Outcome) {
        let (checks, trail, len) = (&self.schema.checks, self.trail, fields.len() as i64);
        if let Some(min) = checks.min_properties
            && len < min
        {
            let message = format!("{trail} in body should have at least {min} properties");
            outcome.fail(Failure::invalid(trail, len, message));
        }
        if let Some(max) = checks.max_properties
            && len > max
        {
            let message = format!("{trail} in body should have at most {max} properties");
            let failure = Failure::invalid(trail, len, message);
            outcome.fail(Failure { kind: Kind::TooMany, detail: Detail::AtMost(max), ..failure });
        }
        let unspecified = fields.iter().filter(|(name, _)| !self.schema.properties.contains_key(*name));
        match &self.schema.additional {
            Additional::Bool(false) => {
                for (name, _) in unspecified {
                    let message = format!("{trail}.{name} in body is a forbidden property");
                    outcome.fail(Failure::invalid(trail, name.as_str(), message));
                }
            }
            Additional::Schema(schema) => {
                for (name, value) in unspecified {
                    outcome.merge(self.field(name, value, schema, &trail.entry(name)));
                }
            }
            Additional::Bool(true) | Additional::Absent => {}
        }
        for (name, schema) in &self.schema.properties {
            if let Some(value) = fields.get(name) {
                outcome.merge(self.field(name, value, schema, &trail.property(name)));
            }
        }
        for name in checks.required.iter().filter(|name| !fields.contains_key(*name)) {
            let field = trail.entry(name);
            let failure = Failure::invalid(&field, Value::Null, format!("{field} in body is required"));
            outcome.fail(Failure { kind: Kind::Required, detail: Detail::Nothing, ..failure });
        }
    }

    fn field(&self, name: &str, value: &Value, schema: &Schema, trail: &Trail<'_>) -> Outcome {
        // Old and new are converted to one version before they get here, so an unchanged `apiVersion` proves nothing.
        let hidden = self.trail.is_root() && matches!(name, "apiVersion" | "kind");
        let old = self.old.filter(|_| !hidden).and_then(|old| old.key(name));
        Walk { value, schema, trail, old }.judge()
    }

    fn enumeration(&self, outcome: &mut Outcome) {
        let (checks, trail) = (&self.schema.checks, self.trail);
        if enum_accepts(self.value, checks) {
            return;
        }
        let values: Vec<String> = checks.enumeration.iter().flatten().map(enum_text).collect();
        let message = format!("{trail} in body should be one of {values:?}");
        let failure = Failure::invalid(trail, self.value.clone(), message);
        outcome.fail(Failure { kind: Kind::NotSupported, detail: Detail::Supported(values), ..failure });
    }
}

/// A string fails at most one of these.
fn string(text: &str, checks: &Checks, trail: &Trail<'_>, outcome: &mut Outcome) {
    let length = text.chars().count() as i64;
    if let Some(max) = checks.max_length
        && length > max
    {
        let message = format!("{trail} in body should be at most {max} chars long");
        let failure = Failure::invalid(trail, Value::Null, message);
        outcome.fail(Failure { kind: Kind::TooLong, detail: Detail::AtMost(max), ..failure });
        return;
    }
    if let Some(min) = checks.min_length
        && length < min
    {
        let message = format!("{trail} in body should be at least {min} chars long");
        outcome.fail(Failure::invalid(trail, text, message));
        return;
    }
    if let Some(pattern) = &checks.pattern {
        let source = &pattern.source;
        let message = match &pattern.compiled {
            Some(re) if re.is_match(text) => return,
            Some(_) => format!("{trail} in body should match '{source}'"),
            None => {
                let problem = regexp::compile(source, Limits::default())
                    .err()
                    .map(|e| e.to_string())
                    .unwrap_or_default();
                format!("{trail} in body should match '{source}, but pattern is invalid: {problem}'")
            }
        };
        outcome.fail(Failure::invalid(trail, text, message));
    }
}

fn type_names(schema: &Schema) -> &'static str {
    if schema.int_or_string { "integer,string" } else { schema.ty.name() }
}

/// The JSON type of a value, and the format of its machine representation.
fn type_and_format(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
        Value::Number(n) => match Num::of(n) {
            Num::Int(_) => ("integer", "int64"),
            Num::Float(_) => ("number", "float64"),
        },
    }
}

fn bound_value(num: Num, bound: f64) -> Value {
    match num {
        Num::Int(_) => (bound as i64).into(),
        Num::Float(_) => bound.into(),
    }
}

fn enum_text(value: &Value) -> String {
    match value {
        Value::String(s) => s.clone(),
        other => String::from_utf8_lossy(&json::encode(other)).into_owned(),
    }
}

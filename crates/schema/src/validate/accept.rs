//! Whether a value is valid, without allocating: enough for nearly every value, because most are valid.

use super::formats::Format;
use super::numbers::{self, Num};
use crate::model::{Additional, Checks, Schema, Type};
use serde_json::{Map, Number, Value};

/// Whether a value satisfies its schema.
pub(super) fn accepts(value: &Value, schema: &Schema) -> bool {
    if value.is_null() {
        return null_is_typed(schema) && enum_accepts(value, &schema.checks);
    }
    has_type(value, schema)
        && logic_accepts(value, &schema.checks)
        && match value {
            Value::String(s) => string_accepts(s, &schema.checks),
            Value::Number(n) => Num::of(n).fits(schema) && number_accepts(n, schema),
            Value::Array(items) => array_accepts(items, schema),
            Value::Object(fields) => object_accepts(fields, schema),
            Value::Null | Value::Bool(_) => true,
        }
        && enum_accepts(value, &schema.checks)
}

/// Whether `null` passes as far as the type goes.
pub(super) fn null_is_typed(schema: &Schema) -> bool {
    schema.nullable || (schema.ty == Type::Any && !schema.int_or_string)
}

/// Whether a value other than `null` is of the schema's type.
///
/// A checked format changes the question, as upstream: unless numbers are wanted, strings and arrays are then
/// left to the format.
pub(super) fn has_type(value: &Value, schema: &Schema) -> bool {
    let numeric = schema.int_or_string || matches!(schema.ty, Type::Integer | Type::Number);
    match (schema.ty, schema.checks.format) {
        (Type::Any, None) if !schema.int_or_string => true,
        (_, Some(_)) if !numeric && (value.is_string() || value.is_array()) => true,
        _ => type_matches(value, schema),
    }
}

pub(super) fn type_matches(value: &Value, schema: &Schema) -> bool {
    let ty = schema.ty;
    match value {
        Value::String(_) => ty == Type::String || schema.int_or_string,
        Value::Bool(_) => ty == Type::Boolean && !schema.int_or_string,
        Value::Array(_) => ty == Type::Array && !schema.int_or_string,
        Value::Object(_) => ty == Type::Object && !schema.int_or_string,
        Value::Number(n) => match Num::of(n) {
            Num::Int(_) => schema.int_or_string || matches!(ty, Type::Integer | Type::Number),
            Num::Float(f) => {
                let integer = schema.int_or_string || ty == Type::Integer;
                (ty == Type::Number && !schema.int_or_string) || (integer && numbers::is_integral(f))
            }
        },
        Value::Null => false,
    }
}

fn logic_accepts(value: &Value, checks: &Checks) -> bool {
    let holds = |branch: &&std::sync::Arc<Schema>| accepts(value, branch);
    (checks.any_of.is_empty() || checks.any_of.iter().any(|b| holds(&b)))
        && (checks.one_of.is_empty() || checks.one_of.iter().filter(holds).take(2).count() == 1)
        && checks.all_of.iter().all(|b| holds(&b))
        && checks.not.as_ref().is_none_or(|b| !holds(&b))
}

fn string_accepts(text: &str, checks: &Checks) -> bool {
    length_accepts(text, checks)
        && checks.pattern.as_ref().is_none_or(|p| p.compiled.as_ref().is_some_and(|re| re.is_match(text)))
        && checks.format.is_none_or(|format: Format| format.accepts(text))
}

fn length_accepts(text: &str, checks: &Checks) -> bool {
    let count = |limit: i64| limit.cmp(&i64::try_from(text.chars().count()).unwrap_or(i64::MAX));
    checks.max_length.is_none_or(|max| count(max).is_ge())
        && checks.min_length.is_none_or(|min| count(min).is_le())
}

fn number_accepts(number: &Number, schema: &Schema) -> bool {
    let (number, checks) = (Num::of(number), &schema.checks);
    let fits = |bound| Num::Float(bound).fits(schema);
    checks.maximum.is_none_or(|max| fits(max) && number.below_or_at(max, checks.exclusive_maximum))
        && checks.minimum.is_none_or(|min| fits(min) && number.above_or_at(min, checks.exclusive_minimum))
        && checks.multiple_of.is_none_or(|factor| number.is_multiple_of(factor).unwrap_or(false))
}

fn array_accepts(items: &[Value], schema: &Schema) -> bool {
    let (checks, len) = (&schema.checks, items.len() as i64);
    checks.max_items.is_none_or(|max| len <= max)
        && checks.min_items.is_none_or(|min| len >= min)
        && schema.items.as_ref().is_none_or(|schema| items.iter().all(|item| accepts(item, schema)))
        && (!checks.unique_items || first_repeated(items).is_none())
}

/// The index of the first item that equals an earlier one.
pub(super) fn first_repeated(items: &[Value]) -> Option<usize> {
    (1..items.len()).find(|i| items[..*i].contains(&items[*i]))
}

fn object_accepts(fields: &Map<String, Value>, schema: &Schema) -> bool {
    let (checks, len) = (&schema.checks, fields.len() as i64);
    checks.max_properties.is_none_or(|max| len <= max)
        && checks.min_properties.is_none_or(|min| len >= min)
        && checks.required.iter().all(|name| fields.contains_key(name))
        && fields.iter().all(|(name, value)| match (schema.properties.get(name), &schema.additional) {
            (Some(property), _) => accepts(value, property),
            (None, Additional::Schema(values)) => accepts(value, values),
            (None, Additional::Bool(allowed)) => *allowed,
            (None, Additional::Absent) => true,
        })
}

pub(super) fn enum_accepts(value: &Value, checks: &Checks) -> bool {
    checks.enumeration.as_ref().is_none_or(|allowed| allowed.iter().any(|a| numbers::enum_admits(a, value)))
}

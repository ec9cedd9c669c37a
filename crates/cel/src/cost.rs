//! What an evaluation costs, in the units of Kubernetes: roughly one per name, selection and call, and for
//! operations on strings and lists in proportion to their size.

use super::library::Work;
use super::opaque::Opaque;
use super::program::Dialect;
use super::value::{EvalError, Map, Value};

/// The most one evaluation may cost.
pub const PER_CALL_LIMIT: u64 = 1_000_000;
/// The most all rules of an object may cost together.
pub const PER_OBJECT_LIMIT: u64 = 10_000_000;
/// Asking what a user may do: an expression can do it twice.
pub(crate) const ACCESS_CHECK_COST: u64 = 350_000;
/// Creating a list.
pub(crate) const LIST_COST: u64 = 10;
/// Creating a structure.
const STRUCT_COST: u64 = 40;
/// Creating a map.
pub(crate) const MAP_COST: u64 = 30;

/// Adds up an evaluation's cost and stops it at the limit.
#[derive(Debug)]
pub(crate) struct Meter {
    pub cost: u64,
    limit: u64,
    pub dialect: Dialect,
    pub work: Work,
}

impl Meter {
    pub(crate) fn new(limit: u64, dialect: Dialect) -> Self {
        Self { cost: 0, limit, dialect, work: Work::default() }
    }

    pub(crate) fn charge(&mut self, cost: u64) -> Result<(), EvalError> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit { Err(EvalError::CostExceeded) } else { Ok(()) }
    }
}

/// `size × factor`, rounded up. In floating point as upstream computes it, whose rounding shows in costs.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "casts saturate, and both operands are positive"
)]
pub(crate) fn scaled(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

/// A tenth per unit of size: what reading a string once costs.
pub(crate) fn traversal(size: u64) -> u64 {
    scaled(size, 0.1)
}

/// What a selector of this length costs: reading it, and a list with as many requirements as it can have.
pub(crate) fn selector(size: u64) -> u64 {
    let requirements = scaled(size, 0.5).saturating_mul(LIST_COST + STRUCT_COST);
    LIST_COST.saturating_add(traversal(size)).saturating_add(requirements)
}

/// What matching costs: the text times a quarter of the pattern.
fn matching(text: u64, pattern: u64) -> u64 {
    traversal(text.saturating_add(1)).saturating_mul(scaled(pattern, 0.25))
}

/// The cost of one call. `overload` is empty when types left open which one is meant.
pub(crate) fn call(function: &str, overload: &str, args: &[Value<'_>], result: Option<&Value<'_>>) -> u64 {
    let size = |i: usize| args.get(i).map_or(1, Value::size);
    let result_size = || result.map_or(1, Value::size);
    if let Some(cost) = extension(overload, args, result) {
        return cost;
    }
    match function {
        "check" => ACCESS_CHECK_COST,
        "fieldSelector" | "labelSelector" => selector(size(1)),
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" | "includes" => {
            args.first().map_or(0, tree)
        }
        "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "cidr" | "isIP" | "isCIDR"
        | "quantity" | "isQuantity" | "semver" | "isSemver" => traversal(size(0)),
        "replace" | "split" | "ip.isCanonical" => scaled(size(0), 0.2),
        "join" => scaled(result_size(), 0.2),
        "find" | "findAll" => matching(size(0), size(1)),
        "ip" if overload == "cidr_ip" => 1,
        "ip" => traversal(size(0)),
        "containsIP" => {
            let parse = if overload == "cidr_contains_ip_string" { traversal(size(1)) } else { 0 };
            traversal(2 * size(0)) + parse
        }
        "containsCIDR" => {
            let parse = if overload == "cidr_contains_cidr_string" { traversal(size(1)) } else { 0 };
            traversal(2 * size(0)) + traversal(size(0)) + 1 + parse
        }
        "validate" => match args.first() {
            Some(Value::Opaque(o)) => match &**o {
                Opaque::Format(format) => matching(size(1), format.regex_size),
                _ => 1,
            },
            _ => 1,
        },
        "_==_" if matches!(args.first(), Some(Value::Opaque(_))) => 1,
        _ => standard(overload, &size),
    }
}

/// Functions of the language itself, by overload.
fn standard(overload: &str, size: &dyn Fn(usize) -> u64) -> u64 {
    match overload {
        "starts_with_string" | "ends_with_string" | "string_to_bytes" | "bytes_to_string"
        | "strings_quote" | "string_format" => traversal(size(0)),
        "in_list" => size(1),
        "equals" | "not_equals" => traversal(size(0).min(size(1))),
        "add_string" | "add_bytes" => traversal(size(0).saturating_add(size(1))),
        "matches" | "matches_string" => matching(size(0), size(1)),
        "contains_string" => traversal(size(0)).saturating_mul(traversal(size(1))),
        _ if is_text_order(overload) => traversal(size(0).min(size(1))),
        _ => 1,
    }
}

fn is_text_order(overload: &str) -> bool {
    let order = ["less_equals_", "less_", "greater_equals_", "greater_"];
    order.iter().filter_map(|p| overload.strip_prefix(p)).any(|ty| matches!(ty, "string" | "bytes"))
}

/// Functions of the sets and lists extensions, which bring costs of their own.
fn extension(overload: &str, args: &[Value<'_>], result: Option<&Value<'_>>) -> Option<u64> {
    let size = |i: usize| args.get(i).map_or(1, Value::size);
    let allocating = |n: u64| n.saturating_add(1 + LIST_COST);
    Some(match overload {
        "list_sets_contains_list" | "list_sets_intersects_list" => {
            size(0).saturating_mul(size(1)).saturating_add(1)
        }
        "list_sets_equivalent_list" => size(0).saturating_mul(size(1)).saturating_mul(2).saturating_add(1),
        "list_slice" | "lists_range" | "list_reverse" => allocating(result.map_or(1, Value::size)),
        "list_flatten" => allocating(size(0)),
        "list_flatten_int" => {
            let depth = match args.get(1) {
                Some(Value::Int(n)) => u64::try_from(*n).unwrap_or(1),
                _ => 1,
            };
            allocating(size(0).saturating_mul(depth))
        }
        "list_distinct" => allocating(self_compare(args.first())),
        _ if overload.ends_with("_sortByAssociatedKeys") => allocating(self_compare(args.get(1))),
        _ if overload.starts_with("list_") && overload.ends_with("_sort") => {
            allocating(self_compare(args.first()))
        }
        _ => return None,
    })
}

/// Comparing every element to every other, strings a little dearer.
fn self_compare(list: Option<&Value<'_>>) -> u64 {
    let Some(Value::List(list)) = list else { return 0 };
    let n = u64::try_from(list.len()).unwrap_or(u64::MAX);
    let squared = n.saturating_mul(n);
    let text = matches!(list.get(0), Some(Ok(Value::String(_) | Value::Bytes(_))));
    if text { squared.saturating_mul(21) / 10 } else { squared.saturating_mul(2) }
}

/// Walking a whole value.
fn tree(v: &Value<'_>) -> u64 {
    let bytes = |n: usize| u64::try_from(n).unwrap_or(u64::MAX) / 10;
    match v {
        Value::String(s) => bytes(s.len()),
        Value::Bytes(b) => bytes(b.len()),
        Value::List(list) => list.iter().map(|item| item.as_ref().map_or(1, tree)).sum(),
        Value::Map(map) => map.keys().iter().map(|key| tree(key) + entry(map, key)).sum(),
        _ => 1,
    }
}

fn entry(map: &Map<'_>, key: &Value<'_>) -> u64 {
    map.find(key).ok().flatten().map_or(1, |v| tree(&v))
}

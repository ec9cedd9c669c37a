//! Equality and order of values. Sets and keyed lists are equal in any order of their elements.

use super::library::Work;
use super::opaque;
use super::value::{EvalError, Identity, List, Map, Value};
use serde_json::Value as Json;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

/// `a == b`. Values of different types are unequal; those of the libraries' types only compare to their own.
pub(crate) fn equal(a: &Value<'_>, b: &Value<'_>, work: &mut Work) -> Result<bool, EvalError> {
    work.spend(1)?;
    Ok(match (a, b) {
        (Value::Null, b) => matches!(b, Value::Null),
        (_, Value::Null) => false,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::String(a), Value::String(b)) => {
            work.spend(a.len().min(b.len()) / 64)?;
            **a == **b
        }
        (Value::Bytes(a), Value::Bytes(b)) => a == b,
        (Value::Timestamp(a), Value::Timestamp(b)) => a == b,
        (Value::Duration(a), Value::Duration(b)) => a == b,
        (Value::Type(a), Value::Type(b)) => a == b,
        (Value::Optional(a), Value::Optional(b)) => match (a, b) {
            (Some(a), Some(b)) => equal(a, b, work)?,
            (a, b) => a.is_none() && b.is_none(),
        },
        (Value::Opaque(a), Value::Opaque(b)) => opaque::equal(a, b).ok_or_else(EvalError::overload)?,
        (Value::Opaque(_), _) => return Err(EvalError::overload()),
        (Value::List(a), Value::List(b)) => lists_equal(a, b, work)?,
        (Value::Map(a), Value::Map(b)) => maps_equal(a, b, work)?,
        (Value::Preserved(a), Value::Preserved(b)) => documents_equal(a, b),
        (Value::Preserved(a), b) => documents_equal(a, &b.to_json()?),
        (a, Value::Preserved(b)) => documents_equal(&a.to_json()?, b),
        (a, b) => numeric_order(a, b) == Some(Ordering::Equal),
    })
}

/// JSON equality where numbers compare by value.
fn documents_equal(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => a.as_f64() == b.as_f64(),
        (Json::Array(a), Json::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| documents_equal(a, b))
        }
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(k, v)| b.get(k).is_some_and(|w| documents_equal(v, w)))
        }
        (a, b) => a == b,
    }
}

fn lists_equal(a: &List<'_>, b: &List<'_>, work: &mut Work) -> Result<bool, EvalError> {
    if a.len() != b.len() {
        return Ok(false);
    }
    match a.identity {
        Identity::Position => {
            for (x, y) in a.iter().zip(b.iter()) {
                if !equal(&x?, &y?, work)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        Identity::Value => {
            let left = a.iter().map(|v| set_identity(&v?)).collect::<Result<HashSet<_>, EvalError>>()?;
            let right = b.iter().map(|v| set_identity(&v?)).collect::<Result<HashSet<_>, EvalError>>()?;
            work.spend(a.len() + b.len())?;
            Ok(left == right)
        }
        Identity::Keys(keys) => {
            let mut left = HashMap::with_capacity(a.len());
            for item in a.iter() {
                let item = item?;
                left.insert(key_identity(&item, keys)?, item);
            }
            let mut seen = HashSet::with_capacity(b.len());
            for other in b.iter() {
                let other = other?;
                let key = key_identity(&other, keys)?;
                let Some(item) = left.get(&key) else { return Ok(false) };
                if !equal(item, &other, work)? {
                    return Ok(false);
                }
                seen.insert(key);
            }
            Ok(seen.len() == left.len())
        }
    }
}

fn maps_equal<'a>(a: &Map<'a>, b: &Map<'_>, work: &mut Work) -> Result<bool, EvalError> {
    if a.len() != b.len() {
        return Ok(false);
    }
    if let (Map::Json(a), Map::Json(b)) = (a, b) {
        // Members that rules cannot see still make two objects differ.
        for (key, value) in a.map.iter().filter(|(k, _)| a.schema_of(k).is_none()) {
            if b.map.get(key).is_some_and(|other| !documents_equal(value, other)) {
                return Ok(false);
            }
        }
    }
    for key in a.keys() {
        let (left, right) = (a.find(&key)?, b.find(&key)?);
        match (left, right) {
            (Some(x), Some(y)) if equal(&x, &y, work)? => {}
            (None, None) => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// What makes an element of a set the same as another.
pub(crate) fn set_identity(v: &Value<'_>) -> Result<String, EvalError> {
    match v {
        Value::List(_) | Value::Map(_) => {
            Err(EvalError::failed("listSet operations are only supported on lists of scalar values"))
        }
        Value::Int(n) => Ok(format!("int {n}")),
        Value::Uint(n) => Ok(format!("uint {n}")),
        other => Ok(format!("{} {}", other.type_name(), other.to_json()?)),
    }
}

/// What makes an element of a keyed list the same as another.
pub(crate) fn key_identity(v: &Value<'_>, keys: &[String]) -> Result<String, EvalError> {
    let mut out = String::new();
    for key in keys {
        let part = match v {
            Value::Map(Map::Json(object)) => object.map.get(key).map_or(Json::Null, Json::clone),
            Value::Map(map) => match map.find_name(key)? {
                Some(value) => value.to_json()?,
                None => Json::Null,
            },
            _ => {
                return Err(EvalError::failed(
                    "unexpected data format for element of array with x-kubernetes-list-type=map",
                ));
            }
        };
        out.push_str(&part.to_string());
        out.push('\u{0}');
    }
    Ok(out)
}

/// `+` on lists: sets and keyed lists merge, others concatenate.
pub(crate) fn concat<'a>(a: &List<'a>, b: &List<'a>, work: &mut Work) -> Result<List<'a>, EvalError> {
    work.spend(a.len() + b.len())?;
    let mut items = a.to_vec()?;
    match a.identity {
        Identity::Position => items.extend(b.to_vec()?),
        Identity::Value => {
            let mut seen = items.iter().map(set_identity).collect::<Result<HashSet<_>, _>>()?;
            for item in b.iter() {
                let item = item?;
                if seen.insert(set_identity(&item)?) {
                    items.push(item);
                }
            }
        }
        Identity::Keys(keys) => {
            let mut places = HashMap::new();
            for (i, item) in items.iter().enumerate() {
                places.insert(key_identity(item, keys)?, i);
            }
            for item in b.iter() {
                let item = item?;
                match places.get(&key_identity(&item, keys)?).and_then(|i| items.get_mut(*i)) {
                    Some(place) => *place = item,
                    None => items.push(item),
                }
            }
        }
    }
    let identity = a.identity;
    Ok(List { identity, ..items.into() })
}

/// Whether a list has an element equal to `v`. An element that cannot be compared is an error only if none is.
pub(crate) fn contains(list: &List<'_>, v: &Value<'_>, work: &mut Work) -> Result<bool, EvalError> {
    let mut failure = None;
    for item in list.iter() {
        match item.and_then(|item| equal(&item, v, work)) {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(EvalError::CostExceeded) => return Err(EvalError::CostExceeded),
            Err(e) => failure = failure.or(Some(e)),
        }
    }
    failure.map_or(Ok(false), Err)
}

/// The order of two numbers of any types.
#[expect(clippy::cast_precision_loss, reason = "doubles compare approximately beyond 2^53, as upstream's do")]
fn numeric_order(a: &Value<'_>, b: &Value<'_>) -> Option<Ordering> {
    let integer = |v: &Value<'_>| match v {
        Value::Int(n) => Some(i128::from(*n)),
        Value::Uint(n) => Some(i128::from(*n)),
        _ => None,
    };
    match (a, b) {
        (Value::Double(x), Value::Double(y)) => x.partial_cmp(y),
        (Value::Double(x), b) => x.partial_cmp(&(integer(b)? as f64)),
        (a, Value::Double(y)) => (integer(a)? as f64).partial_cmp(y),
        (a, b) => Some(integer(a)?.cmp(&integer(b)?)),
    }
}

/// The order of two values; `None` for a comparison with NaN, an error for values without order.
pub(crate) fn order(a: &Value<'_>, b: &Value<'_>) -> Result<Option<Ordering>, EvalError> {
    Ok(match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (Value::String(a), Value::String(b)) => Some((**a).cmp(&**b)),
        (Value::Bytes(a), Value::Bytes(b)) => Some(a.cmp(b)),
        (Value::Timestamp(a), Value::Timestamp(b)) => Some(a.cmp(b)),
        (Value::Duration(a), Value::Duration(b)) => Some(a.cmp(b)),
        (
            Value::Int(_) | Value::Uint(_) | Value::Double(_),
            Value::Int(_) | Value::Uint(_) | Value::Double(_),
        ) => numeric_order(a, b),
        _ => return Err(EvalError::overload()),
    })
}

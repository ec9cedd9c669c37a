//! Lists and sets: `sum`, `sort`, `flatten`, `sets.contains` and so on; and insertion into maps.

use super::{Args, Out, Table, Work, int};
use crate::compare;
use crate::library::operators;
use crate::value::{EvalError, Key, List, Map, Value};
use std::cmp::Ordering;
use std::sync::Arc;

fn list<'x, 'a>(v: &'x Value<'a>) -> Result<&'x List<'a>, EvalError> {
    match v {
        Value::List(list) => Ok(list),
        _ => Err(EvalError::overload()),
    }
}

fn is_sorted<'a>(args: Args<'_, 'a>) -> Out<'a> {
    let items = list(args.get(0)?)?.to_vec()?;
    for pair in items.windows(2) {
        if let [a, b] = pair
            && compare::order(a, b)? == Some(Ordering::Greater)
        {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn sum<'a>(work: &mut Work, args: Args<'_, 'a>, zero: Value<'a>) -> Out<'a> {
    let mut total = zero;
    for item in list(args.get(0)?)?.iter() {
        total = operators::add(work, Args(&[total, item?]))?;
    }
    Ok(total)
}

fn extreme<'a>(args: Args<'_, 'a>, name: &str, better: Ordering) -> Out<'a> {
    let mut best: Option<Value<'a>> = None;
    for item in list(args.get(0)?)?.iter() {
        let item = item?;
        let replace = match &best {
            Some(b) => compare::order(&item, b)? == Some(better),
            None => true,
        };
        if replace {
            best = Some(item);
        }
    }
    best.ok_or_else(|| EvalError::failed(format!("{name} called on empty list")))
}

fn index_of<'a>(work: &mut Work, args: Args<'_, 'a>, last: bool) -> Out<'a> {
    let list = list(args.get(0)?)?;
    let mut found = -1;
    for (i, item) in list.iter().enumerate() {
        if compare::equal(&item?, args.get(1)?, work).unwrap_or(false) {
            found = i64::try_from(i).unwrap_or(i64::MAX);
            if !last {
                break;
            }
        }
    }
    Ok(Value::Int(found))
}

fn includes<'a>(work: &mut Work, args: Args<'_, 'a>) -> Out<'a> {
    let (target, v) = (args.get(0)?, args.get(1)?);
    let found = match target {
        Value::List(list) => compare::contains(list, v, work),
        other => compare::equal(other, v, work),
    };
    match found {
        Err(EvalError::CostExceeded) => Err(EvalError::CostExceeded),
        found => Ok(Value::Bool(found.unwrap_or(false))),
    }
}

fn slice<'a>(args: Args<'_, 'a>) -> Out<'a> {
    let list = list(args.get(0)?)?;
    let (start, end) = (int(args.get(1)?)?, int(args.get(2)?)?);
    let fail = |why: &str| Err(EvalError::failed(format!("cannot slice({start}, {end}), {why}")));
    let (Ok(from), Ok(to)) = (usize::try_from(start), usize::try_from(end)) else {
        return fail("negative indexes not supported");
    };
    if from > to {
        return fail("start index must be less than or equal to end index");
    }
    if list.len() < to {
        return fail(&format!("list is length {}", list.len()));
    }
    Ok(Value::list((from..to).filter_map(|i| list.get(i)).collect::<Result<_, _>>()?))
}

fn flatten<'a>(
    work: &mut Work,
    list: &List<'a>,
    depth: i64,
    out: &mut Vec<Value<'a>>,
) -> Result<(), EvalError> {
    if depth < 0 {
        return Err(EvalError::failed("level must be non-negative"));
    }
    work.spend(list.len() + 1)?;
    for item in list.iter() {
        match item? {
            Value::List(inner) if depth > 0 => flatten(work, &inner, depth - 1, out)?,
            other => out.push(other),
        }
    }
    Ok(())
}

fn flattened<'a>(work: &mut Work, args: Args<'_, 'a>) -> Out<'a> {
    let depth = match args.get(1) {
        Ok(n) => int(n)?,
        Err(_) => 1,
    };
    let mut out = Vec::new();
    flatten(work, list(args.get(0)?)?, depth, &mut out)?;
    Ok(Value::list(out))
}

fn sort<'a>(items: &Value<'a>, keys: &Value<'a>) -> Out<'a> {
    let (items, keys) = (list(items)?.to_vec()?, list(keys)?.to_vec()?);
    if items.len() != keys.len() {
        return Err(EvalError::failed(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} \
             elements respectively",
            items.len(),
            keys.len()
        )));
    }
    if let Some(first) = keys.first() {
        compare::order(first, first).map_err(|_| EvalError::failed("list elements must be comparable"))?;
        if keys.iter().any(|k| k.type_name() != first.type_name()) {
            return Err(EvalError::failed("list elements must have the same type"));
        }
    }
    let mut pairs: Vec<(Value<'a>, Value<'a>)> = keys.into_iter().zip(items).collect();
    pairs.sort_by(|(a, _), (b, _)| compare::order(a, b).ok().flatten().unwrap_or(Ordering::Equal));
    Ok(Value::list(pairs.into_iter().map(|(_, item)| item).collect()))
}

fn distinct<'a>(work: &mut Work, args: Args<'_, 'a>) -> Out<'a> {
    let mut unique: Vec<Value<'a>> = Vec::new();
    for item in list(args.get(0)?)?.iter() {
        let item = item?;
        let mut seen = false;
        for other in &unique {
            if compare::equal(&item, other, work)? {
                seen = true;
                break;
            }
        }
        if !seen {
            unique.push(item);
        }
    }
    Ok(Value::list(unique))
}

/// The most elements that `lists.range` makes.
const MAX_RANGE_ITEMS: i64 = 1_000_000;

fn range<'a>(n: i64) -> Out<'a> {
    if n < 0 {
        return Err(EvalError::failed(format!("lists.range: size must be non-negative, got {n}")));
    }
    if n > MAX_RANGE_ITEMS {
        return Err(EvalError::failed(format!(
            "lists.range: size {n} exceeds maximum allowed ({MAX_RANGE_ITEMS})"
        )));
    }
    Ok(Value::list((0..n).map(Value::Int).collect()))
}

fn contains_all(work: &mut Work, a: &Value<'_>, b: &Value<'_>) -> Result<bool, EvalError> {
    let a = list(a)?;
    for item in list(b)?.iter() {
        if !compare::contains(a, &item?, work)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn intersects(work: &mut Work, a: &Value<'_>, b: &Value<'_>) -> Result<bool, EvalError> {
    let b = list(b)?;
    for item in list(a)?.iter() {
        if compare::contains(b, &item?, work)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// `cel.@mapInsert`, by which `transformMap` builds its result.
fn insert<'a>(work: &mut Work, args: Args<'_, 'a>) -> Out<'a> {
    let Value::Map(Map::Owned(map)) = args.get(0)? else { return Err(EvalError::overload()) };
    work.spend(map.len() + 1)?;
    let mut map = (**map).clone();
    insert_into(&mut map, &args.0[1..])?;
    Ok(Value::Map(Map::Owned(Arc::new(map))))
}

/// Inserts a key and a value, or all entries of a map; no key may repeat.
pub(crate) fn insert_into<'a>(
    map: &mut std::collections::BTreeMap<Key, Value<'a>>,
    args: &[Value<'a>],
) -> Result<(), EvalError> {
    let mut put = |key: &Value<'a>, value: Value<'a>| {
        let entry = Key::from_value(key).ok_or_else(EvalError::overload)?;
        if map.insert(entry, value).is_some() {
            let shown = super::convert::to_text(key)?;
            return Err(EvalError::failed(format!("insert failed: key {shown} already exists")));
        }
        Ok(())
    };
    match args {
        [key, value] => put(key, value.clone()),
        [Value::Map(other)] => {
            for key in other.keys() {
                let value = other.find(&key)?.unwrap_or(Value::Null);
                put(&key, value)?;
            }
            Ok(())
        }
        _ => Err(EvalError::overload()),
    }
}

const COMPARABLE: [(&str, &str); 8] = [
    ("int", "int"),
    ("uint", "uint"),
    ("double", "double"),
    ("bool", "bool"),
    ("duration", "duration"),
    ("timestamp", "timestamp"),
    ("string", "string"),
    ("bytes", "bytes"),
];

pub(super) fn declare(t: &mut Table) {
    for (name, ty) in COMPARABLE {
        let of = format!("list({ty})");
        t.member("isSorted", &format!("list_{name}_is_sorted_bool"), &of, "bool", |_, a| is_sorted(a));
        t.member("max", &format!("list_{name}_max_{name}"), &of, ty, |_, a| {
            extreme(a, "max", Ordering::Greater)
        });
        t.member("min", &format!("list_{name}_min_{name}"), &of, ty, |_, a| {
            extreme(a, "min", Ordering::Less)
        });
        t.member("sort", &format!("list_{name}_sort"), &of, &of, |_, a| sort(a.get(0)?, a.get(0)?));
        t.member(
            "@sortByAssociatedKeys",
            &format!("list_{name}_sortByAssociatedKeys"),
            &format!("list(T), {of}"),
            "list(T)",
            |_, a| sort(a.get(0)?, a.get(1)?),
        );
    }
    t.member("sum", "list_int_sum_int", "list(int)", "int", |w, a| sum(w, a, Value::Int(0)));
    t.member("sum", "list_uint_sum_uint", "list(uint)", "uint", |w, a| sum(w, a, Value::Uint(0)));
    t.member("sum", "list_double_sum_double", "list(double)", "double", |w, a| sum(w, a, Value::Double(0.0)));
    t.member("sum", "list_duration_sum_duration", "list(duration)", "duration", |w, a| {
        sum(w, a, Value::Duration(0))
    });
    t.member("indexOf", "list_a_index_of_int", "list(A), A", "int", |w, a| index_of(w, a, false));
    t.member("lastIndexOf", "list_a_last_index_of_int", "list(A), A", "int", |w, a| index_of(w, a, true));
    t.member("includes", "list_includes_dyn_dyn", "dyn, dyn", "bool", includes);
    t.member("slice", "list_slice", "list(T), int, int", "list(T)", |_, a| slice(a));
    t.member("flatten", "list_flatten", "list(list(T))", "list(T)", flattened);
    t.member("flatten", "list_flatten_int", "list(dyn), int", "list(dyn)", flattened);
    t.global("lists.range", "lists_range", "int", "list(int)", |_, a| range(int(a.get(0)?)?));
    t.member("reverse", "list_reverse", "list(T)", "list(T)", |_, a| {
        let mut items = list(a.get(0)?)?.to_vec()?;
        items.reverse();
        Ok(Value::list(items))
    });
    t.member("distinct", "list_distinct", "list(T)", "list(T)", distinct);
    let two = "list(T), list(T)";
    t.global("sets.contains", "list_sets_contains_list", two, "bool", |w, a| {
        contains_all(w, a.get(0)?, a.get(1)?).map(Value::Bool)
    });
    t.global("sets.equivalent", "list_sets_equivalent_list", two, "bool", |w, a| {
        let (x, y) = (a.get(0)?, a.get(1)?);
        Ok(Value::Bool(contains_all(w, x, y)? && contains_all(w, y, x)?))
    });
    t.global("sets.intersects", "list_sets_intersects_list", two, "bool", |w, a| {
        intersects(w, a.get(0)?, a.get(1)?).map(Value::Bool)
    });
    t.global("cel.@mapInsert", "@mapInsert_map_key_value", "map(K, V), K, V", "map(K, V)", insert);
    t.global("cel.@mapInsert", "@mapInsert_map_map", "map(K, V), map(K, V)", "map(K, V)", insert);
}

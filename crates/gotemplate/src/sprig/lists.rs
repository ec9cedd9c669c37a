//! Lists. All but `sortAlpha` leave their argument alone.

use super::args::{self, int};
use super::convert::to_int64;
use super::defaults::empty;
use super::reflect::deep_equal;
use crate::functions::{CallError, Env, Native, Type, fixed, variadic};
use crate::value::{List, ListType, Value};

const ANY: &[Type] = &[Type::Any];
const ANY2: &[Type] = &[Type::Any, Type::Any];

/// A function and its `must` form: Go's plain form panics, which a template sees as the same error.
macro_rules! both {
    ($plain:literal, $must:literal, $make:ident, $params:expr, $run:expr) => {
        [$make($plain, $params, $run), $make($must, $params, $run)]
    };
}

const fn join<const N: usize>(parts: [[Native; 2]; N]) -> [[Native; 2]; N] {
    parts
}

const PAIRS: [[Native; 2]; 13] = join([
    both!("append", "mustAppend", fixed, ANY2, push),
    both!("push", "mustPush", fixed, ANY2, push),
    both!("prepend", "mustPrepend", fixed, ANY2, prepend),
    both!("first", "mustFirst", fixed, ANY, |_, args| {
        Ok(args::list(&args[0], "Cannot find first on type")?.get(0).unwrap_or(Value::Nil))
    }),
    both!("rest", "mustRest", fixed, ANY, |env, args| {
        part(env, args::list(&args[0], "Cannot find rest on type")?, |items| {
            items.split_first().map(|split| split.1)
        })
    }),
    both!("last", "mustLast", fixed, ANY, |_, args| {
        let list = args::list(&args[0], "Cannot find last on type")?;
        Ok(list.items().last().cloned().unwrap_or(Value::Nil))
    }),
    both!("initial", "mustInitial", fixed, ANY, |env, args| {
        part(env, args::list(&args[0], "Cannot find initial on type")?, |items| {
            items.split_last().map(|split| split.1)
        })
    }),
    both!("reverse", "mustReverse", fixed, ANY, |env, args| {
        let list = args::list(&args[0], "Cannot find reverse on type")?;
        env.list(list.items().iter().rev().cloned().collect())
    }),
    both!("uniq", "mustUniq", fixed, ANY, uniq),
    both!("without", "mustWithout", variadic, ANY2, without),
    both!("has", "mustHas", fixed, ANY2, has),
    both!("slice", "mustSlice", variadic, ANY2, slice),
    both!("chunk", "mustChunk", fixed, &[Type::Int, Type::Any], chunk),
]);

const SINGLES: [Native; 9] = [
    variadic("list", ANY, |env, args| env.list(args.to_vec())),
    variadic("tuple", ANY, |env, args| env.list(args.to_vec())),
    variadic("concat", ANY, concat),
    fixed("compact", ANY, compact),
    fixed("mustCompact", ANY, compact),
    fixed("until", &[Type::Int], |env, args| {
        let count = int(args, 0)?;
        until_step(env, 0, count, if count < 0 { -1 } else { 1 }).map(ints)
    }),
    fixed("untilStep", &[Type::Int, Type::Int, Type::Int], |env, args| {
        until_step(env, int(args, 0)?, int(args, 1)?, int(args, 2)?).map(ints)
    }),
    variadic("seq", &[Type::Int], seq),
    variadic("randomChoice", &[Type::Str], |env, args| {
        let choice = env.random_below(args.len() as u64)?;
        Ok(args[usize::try_from(choice).unwrap_or(0)].clone())
    }),
];

pub(super) const FUNCTIONS: &[Native] = SINGLES.as_slice();
pub(super) const PAIRED: &[Native] = PAIRS.as_flattened();

fn ints(numbers: Vec<i64>) -> Value {
    Value::List(List::new(ListType::Int, numbers.into_iter().map(Value::int).collect()))
}

fn push(env: &mut Env<'_>, args: &[Value]) -> Result<Value, CallError> {
    let mut items = args::list(&args[0], "Cannot push on type")?.to_vec();
    items.push(args[1].clone());
    env.list(items)
}

fn prepend(env: &mut Env<'_>, args: &[Value]) -> Result<Value, CallError> {
    let mut items = args::list(&args[0], "Cannot prepend on type")?.to_vec();
    items.insert(0, args[1].clone());
    env.list(items)
}

/// All but one end of a list; nil for an empty one.
fn part(env: &mut Env<'_>, list: &List, take: fn(&[Value]) -> Option<&[Value]>) -> Result<Value, CallError> {
    let items = list.items();
    match take(&items) {
        Some(kept) => env.list(kept.to_vec()),
        None => Ok(Value::List(List::nil(ListType::Any))),
    }
}

fn compact(env: &mut Env<'_>, args: &[Value]) -> Result<Value, CallError> {
    let list = args::list(&args[0], "Cannot compact on type")?;
    env.list(list.items().iter().filter(|item| !empty(item)).cloned().collect())
}

fn uniq(env: &mut Env<'_>, args: &[Value]) -> Result<Value, CallError> {
    let list = args::list(&args[0], "Cannot find uniq on type")?;
    let mut kept: Vec<Value> = Vec::new();
    for item in list.items().iter() {
        env.spend(1 + kept.len() / 8)?;
        if !kept.iter().any(|other| deep_equal(item, other)) {
            kept.push(item.clone());
        }
    }
    env.list(kept)
}

fn without(env: &mut Env<'_>, args: &[Value]) -> Result<Value, CallError> {
    let list = args::list(&args[0], "Cannot find without on type")?;
    env.spend(list.len().saturating_mul(args.len()) / 8)?;
    let omitted = |item: &Value| args[1..].iter().any(|other| deep_equal(item, other));
    env.list(list.items().iter().filter(|item| !omitted(item)).cloned().collect())
}

fn has(_: &mut Env<'_>, args: &[Value]) -> Result<Value, CallError> {
    if args[1].is_nil() {
        return Ok(Value::Bool(false));
    }
    let list = args::list(&args[1], "Cannot find has on type")?;
    Ok(Value::Bool(list.items().iter().any(|item| deep_equal(&args[0], item))))
}

fn slice(env: &mut Env<'_>, args: &[Value]) -> Result<Value, CallError> {
    let list = args::list(&args[0], "list should be type of slice or array but")?;
    let length = list.len();
    if length == 0 {
        return Ok(Value::Nil);
    }
    let bound = |index: usize, default: usize| match args.get(index) {
        Some(value) => {
            usize::try_from(to_int64(value)).map_err(|_| "reflect.Value.Slice: slice index out of bounds")
        }
        None => Ok(default),
    };
    let (start, end) = (bound(1, 0)?, bound(2, length)?);
    let items = list.items();
    let kept = items.get(start..end).ok_or("reflect.Value.Slice: slice index out of bounds")?;
    env.allocate_elements(kept.len())?;
    Ok(Value::List(List::new(list.ty(), kept.to_vec())))
}

fn chunk(env: &mut Env<'_>, args: &[Value]) -> Result<Value, CallError> {
    let list = args::list(&args[1], "Cannot chunk type")?;
    let size = int(args, 0)?;
    let Some(size) = usize::try_from(size).ok().filter(|size| *size > 0) else {
        return odd_chunks(list, size as f64);
    };
    env.allocate_elements(list.len() * 2)?;
    let chunks = list.items().chunks(size).map(|chunk| Value::list(chunk.to_vec())).collect();
    Ok(Value::List(List::new(ListType::Lists, chunks)))
}

/// Sizes below one: Go's arithmetic makes no chunk, one of a single element, or an impossible one.
fn odd_chunks(list: &List, size: f64) -> Result<Value, CallError> {
    let length = list.len() as f64;
    let count = ((length - 1.0) / size).floor() + 1.0;
    let chunks = if count == 0.0 {
        Vec::new()
    } else if count == 1.0 && length % size == 1.0 {
        vec![Value::list(list.to_vec())]
    } else {
        return Err("runtime error: makeslice: len out of range".into());
    };
    Ok(Value::List(List::new(ListType::Lists, chunks)))
}

fn concat(env: &mut Env<'_>, args: &[Value]) -> Result<Value, CallError> {
    let mut all = Vec::new();
    for arg in args {
        match arg {
            Value::List(list) => {
                env.allocate_elements(list.len())?;
                all.extend(list.to_vec());
            }
            Value::Nil | Value::Missing => {
                return Err("runtime error: invalid memory address or nil pointer dereference".into());
            }
            other => return Err(format!("Cannot concat type {} as list", other.kind().name()).into()),
        }
    }
    if all.is_empty() {
        return Ok(Value::List(List::nil(ListType::Any)));
    }
    Ok(Value::list(all))
}

fn until_step(env: &mut Env<'_>, start: i64, stop: i64, step: i64) -> Result<Vec<i64>, CallError> {
    let span = i128::from(stop) - i128::from(start);
    if span == 0 || step == 0 || (span < 0) != (step < 0) {
        return Ok(Vec::new());
    }
    let count = (span.abs() + i128::from(step).abs() - 1) / i128::from(step).abs();
    env.allocate_elements(usize::try_from(count).unwrap_or(usize::MAX))?;
    let numbers = (0..count).map(|index| i128::from(start) + index * i128::from(step));
    Ok(numbers.filter_map(|number| i64::try_from(number).ok()).collect())
}

fn seq(env: &mut Env<'_>, args: &[Value]) -> Result<Value, CallError> {
    let numbers = match args.len() {
        1 => {
            let end = int(args, 0)?;
            let step = if end < 1 { -1 } else { 1 };
            until_step(env, 1, end.saturating_add(step), step)?
        }
        2 => {
            let (start, end) = (int(args, 0)?, int(args, 1)?);
            let step = if end < start { -1 } else { 1 };
            until_step(env, start, end.saturating_add(step), step)?
        }
        3 => {
            let (start, step, end) = (int(args, 0)?, int(args, 1)?, int(args, 2)?);
            if end < start && step > 0 {
                return Ok(Value::str(""));
            }
            until_step(env, start, end.saturating_add(if end < start { -1 } else { 1 }), step)?
        }
        _ => Vec::new(),
    };
    let shown: Vec<String> = numbers.iter().map(i64::to_string).collect();
    env.string(shown.join(" "))
}

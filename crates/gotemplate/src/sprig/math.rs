//! Integer arithmetic on values that convert to `int64`, float arithmetic through decimals.

use super::args::int;
use super::convert::{to_float64, to_int64};
use super::decimal::{self, Decimal};
use crate::functions::{CallError, Env, Native, Type, fixed, variadic};
use crate::value::Value;

const ANY: &[Type] = &[Type::Any];
const ANY2: &[Type] = &[Type::Any, Type::Any];

pub(super) const FUNCTIONS: &[Native] = &[
    fixed("add1", ANY, |_, args| Ok(Value::int64(to_int64(&args[0]).wrapping_add(1)))),
    variadic("add", ANY, |_, args| {
        Ok(Value::int64(args.iter().fold(0, |sum, arg| sum.wrapping_add(to_int64(arg)))))
    }),
    fixed("sub", ANY2, |_, args| Ok(Value::int64(to_int64(&args[0]).wrapping_sub(to_int64(&args[1]))))),
    fixed("div", ANY2, |_, args| {
        let divisor = nonzero(to_int64(&args[1]))?;
        Ok(Value::int64(to_int64(&args[0]).wrapping_div(divisor)))
    }),
    fixed("mod", ANY2, |_, args| {
        let divisor = nonzero(to_int64(&args[1]))?;
        Ok(Value::int64(to_int64(&args[0]).wrapping_rem(divisor)))
    }),
    variadic("mul", ANY2, |_, args| {
        Ok(Value::int64(args.iter().fold(1, |product: i64, arg| product.wrapping_mul(to_int64(arg)))))
    }),
    fixed("randInt", &[Type::Int, Type::Int], |env, args| {
        let (low, high) = (int(args, 0)?, int(args, 1)?);
        let span = u64::try_from(high.wrapping_sub(low)).map_err(|_| "invalid argument to Intn")?;
        let drawn = env.random_below(span)?;
        Ok(Value::int(low.wrapping_add(i64::try_from(drawn).unwrap_or(0))))
    }),
    fixed("add1f", ANY, |env, args| fold(env, to_float64(&args[0]), &[Value::int(1)], Decimal::plus)),
    variadic("addf", ANY, |env, args| fold(env, 0.0, args, Decimal::plus)),
    variadic("subf", ANY2, |env, args| fold(env, to_float64(&args[0]), &args[1..], Decimal::minus)),
    variadic("divf", ANY2, |env, args| fold(env, to_float64(&args[0]), &args[1..], Decimal::divided_by)),
    variadic("mulf", ANY2, |env, args| fold(env, to_float64(&args[0]), &args[1..], Decimal::times)),
    variadic("max", ANY2, |_, args| Ok(largest(args))),
    variadic("biggest", ANY2, |_, args| Ok(largest(args))),
    variadic("min", ANY2, |_, args| Ok(Value::int64(args.iter().map(to_int64).min().unwrap_or(0)))),
    variadic("maxf", ANY2, |_, args| Ok(extreme(args, |a, b| a > b))),
    variadic("minf", ANY2, |_, args| Ok(extreme(args, |a, b| a < b))),
    fixed("ceil", ANY, |_, args| Ok(Value::Float(to_float64(&args[0]).ceil()))),
    fixed("floor", ANY, |_, args| Ok(Value::Float(to_float64(&args[0]).floor()))),
    variadic("round", &[Type::Any, Type::Int, Type::Float], round),
];

fn nonzero(divisor: i64) -> Result<i64, CallError> {
    if divisor == 0 { Err("runtime error: integer divide by zero".into()) } else { Ok(divisor) }
}

fn largest(args: &[Value]) -> Value {
    Value::int64(args.iter().map(to_int64).max().unwrap_or(0))
}

fn extreme(args: &[Value], wins: fn(f64, f64) -> bool) -> Value {
    let mut numbers = args.iter().map(to_float64);
    let mut best = numbers.next().unwrap_or(0.0);
    for number in numbers {
        if number.is_nan() || best.is_nan() {
            best = f64::NAN;
        } else if wins(number, best)
            || number == 0.0 && best == 0.0 && wins(1f64.copysign(number), 1f64.copysign(best))
        {
            best = number;
        }
    }
    Value::Float(best)
}

type Operation = fn(&Decimal, &Decimal) -> Result<Decimal, String>;

fn fold(env: &mut Env<'_>, first: f64, rest: &[Value], operation: Operation) -> Result<Value, CallError> {
    let mut result = decimal::from_float(first)?;
    for arg in rest {
        // Decimals are exact, so they grow with every product.
        env.spend(1 + result.size())?;
        result = operation(&result, &decimal::from_float(to_float64(arg))?)?;
    }
    Ok(Value::Float(result.to_float()))
}

fn round(_: &mut Env<'_>, args: &[Value]) -> Result<Value, CallError> {
    let threshold = match args.get(2) {
        Some(Value::Float(threshold)) => *threshold,
        _ => 0.5,
    };
    let places = int(args, 1)?;
    let scale = 10f64.powi(i32::try_from(places).unwrap_or(if places < 0 { i32::MIN } else { i32::MAX }));
    let digit = scale * to_float64(&args[0]);
    // The sign of the fraction is the number's, so negative numbers always round down.
    let rounded = if digit.fract() >= threshold { digit.ceil() } else { digit.floor() };
    Ok(Value::Float(rounded / scale))
}

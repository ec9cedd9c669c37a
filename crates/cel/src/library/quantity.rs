//! `quantity`: exact decimal amounts such as `1.5Gi` and `250m`.

use super::{Args, Out, Table, string};
use crate::opaque::Opaque;
use crate::value::{EvalError, Value};
use std::cmp::Ordering;
use transom_object::quantity::{Format, Quantity};

fn quantity_of(v: &Value<'_>) -> Result<Quantity, EvalError> {
    match v {
        Value::Opaque(o) => match &**o {
            Opaque::Quantity(q) => Ok(q.clone()),
            _ => Err(EvalError::overload()),
        },
        Value::Int(n) => Ok(Quantity::new(*n, Format::DecimalExponent)),
        _ => Err(EvalError::overload()),
    }
}

fn pair(args: Args<'_, '_>) -> Result<(Quantity, Quantity), EvalError> {
    Ok((quantity_of(args.get(0)?)?, quantity_of(args.get(1)?)?))
}

fn compare<'a>(args: Args<'_, 'a>) -> Result<Ordering, EvalError> {
    pair(args).map(|(a, b)| a.cmp(&b))
}

fn combine<'a>(args: Args<'_, 'a>, f: fn(&Quantity, &Quantity) -> Option<Quantity>) -> Out<'a> {
    let (a, b) = pair(args)?;
    let result = f(&a, &b).ok_or_else(|| EvalError::failed("quantity overflow"))?;
    Ok(Value::opaque(Opaque::Quantity(result)))
}

pub(super) fn declare(t: &mut Table) {
    const Q: &str = "kubernetes.Quantity";
    let two = format!("{Q}, {Q}");
    t.global("quantity", "string_to_quantity", "string", Q, |_, a| {
        let q = Quantity::parse(string(a.get(0)?)?).map_err(|e| EvalError::failed(e.to_string()))?;
        Ok(Value::opaque(Opaque::Quantity(q)))
    });
    t.global("isQuantity", "is_quantity_string", "string", "bool", |_, a| {
        Ok(Value::Bool(Quantity::parse(string(a.get(0)?)?).is_ok()))
    });
    t.global("sign", "quantity_sign", Q, "int", |_, a| {
        Ok(Value::Int(i64::from(quantity_of(a.get(0)?)?.sign())))
    });
    t.member("isGreaterThan", "quantity_is_greater_than", &two, "bool", |_, a| {
        Ok(Value::Bool(compare(a)?.is_gt()))
    });
    t.member("isLessThan", "quantity_is_less_than", &two, "bool", |_, a| {
        Ok(Value::Bool(compare(a)?.is_lt()))
    });
    t.member("compareTo", "quantity_compare_to", &two, "int", |_, a| Ok(Value::Int(compare(a)? as i64)));
    t.member("asApproximateFloat", "quantity_get_float", Q, "double", |_, a| {
        Ok(Value::Double(quantity_of(a.get(0)?)?.as_f64()))
    });
    t.member("asInteger", "quantity_get_int", Q, "int", |_, a| match quantity_of(a.get(0)?)?.as_i64() {
        Some(n) => Ok(Value::Int(n)),
        None => Err(EvalError::failed("cannot convert value to integer")),
    });
    t.member("isInteger", "quantity_is_integer", Q, "bool", |_, a| {
        Ok(Value::Bool(quantity_of(a.get(0)?)?.as_i64().is_some()))
    });
    for (suffix, other) in [("", Q), ("_int", "int")] {
        let args = format!("{Q}, {other}");
        t.member("add", &format!("quantity_add{suffix}"), &args, Q, |_, a| combine(a, Quantity::checked_add));
        t.member("sub", &format!("quantity_sub{suffix}"), &args, Q, |_, a| combine(a, Quantity::checked_sub));
    }
}

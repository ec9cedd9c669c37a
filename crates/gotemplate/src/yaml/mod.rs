//! The template functions `toYaml` and `fromYaml`: they write and read YAML byte for byte as gopkg.in/yaml.v3 does, in the order
//! of its keys. What they build counts against the limits of the template.
//!
//! The rules for plain scalars are those of `transom_go::yaml`.

mod emit;
mod read;
mod sort;
mod style;

use crate::functions::{CallError, Env, Native, Type, fixed};
use crate::value::Value;

pub(crate) const FUNCTIONS: &[Native] = &[
    fixed("toYaml", &[Type::Any], |env, args| {
        let text = emit::emit(env, &args[0])?;
        Ok(Value::str(text))
    }),
    fixed("fromYaml", &[Type::Str], from_yaml),
];

fn from_yaml(env: &mut Env<'_>, args: &[Value]) -> Result<Value, CallError> {
    match &args[0] {
        Value::Str(text) => read::read(env, &text.lossy()),
        _ => Ok(Value::Nil),
    }
}

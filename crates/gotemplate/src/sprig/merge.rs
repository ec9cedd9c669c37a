//! mergo's deep merge, as sprig calls it: into the first map, keeping or overwriting what is there.

use crate::functions::{CallError, Env};
use crate::value::{MAX_DEPTH, Map, Value};

pub(super) fn merge(
    env: &mut Env<'_>,
    dst: &Map,
    src: &Map,
    overwrite: bool,
    depth: usize,
) -> Result<(), CallError> {
    if depth > MAX_DEPTH {
        return Err(transom_go::fmt::FmtError::TooDeep.to_string().into());
    }
    if dst.same(src) {
        return Ok(());
    }
    env.allocate_map(src.len())?;
    for (key, value) in src.to_vec() {
        env.spend(1)?;
        let existing = dst.get(&key);
        if value.is_nil() {
            // An explicit null only overwrites; it never fills a gap.
            if overwrite {
                dst.insert(key, value);
            }
            continue;
        }
        match (&existing, &value) {
            (Some(Value::Map(inner)), Value::Map(source)) => {
                if !inner.ty().holds_any() && inner.ty() != source.ty() {
                    return Err("reflect.Value.SetMapIndex: value of the wrong type".into());
                }
                merge(env, inner, source, overwrite, depth + 1)?;
                if !inner.is_empty() {
                    continue;
                }
            }
            (Some(_), Value::List(_)) if !empty(existing.as_ref()) => {
                if overwrite {
                    env.note_mutation(dst, &value);
                    dst.insert(key, value);
                }
                continue;
            }
            _ => {}
        }
        if overwrite || empty(existing.as_ref()) {
            env.note_mutation(dst, &value);
            dst.insert(key, value);
        }
    }
    Ok(())
}

/// mergo's notion: zero values and nil, and collections without elements.
fn empty(value: Option<&Value>) -> bool {
    value.is_none_or(|value| !value.truth())
}

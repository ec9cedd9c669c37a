//! Whether an object already has everything in a configuration.

use super::item;
use crate::own::element::equal;
use crate::own::types::{Atom, List, Type};
use serde_json::Value;
use std::collections::BTreeSet;

/// Whether merging `config` over `live` is certain to give `live` again. It costs no copy of either, and may
/// say no where a merge would change nothing, as with items of one identity.
pub fn absorbs(ty: Type<'_>, live: &Value, config: &Value) -> bool {
    if ty.hidden() {
        return true;
    }
    let (Some(of_live), Some(of_config)) = (ty.atom(Some(live)), ty.atom(Some(config))) else { return false };
    match (of_live, of_config, live, config) {
        (Atom::List(list), Atom::List(_), Value::Array(live), Value::Array(config)) if !list.atomic => {
            !config.is_empty() && absorbs_items(&list, live, config)
        }
        (Atom::Map(map), Atom::Map(_), Value::Object(live), Value::Object(config)) if !map.atomic => {
            let absorbed = |(key, value): (&String, &Value)| match (map.value(key), live.get(key)) {
                (Some(ty), Some(of_live)) => absorbs(ty, of_live, value),
                (ty, _) => ty.is_some_and(Type::hidden),
            };
            config.is_empty() == live.is_empty() && config.iter().all(absorbed)
        }
        (of_live, of_config, _, _) => of_live.same_kind(&of_config) && equal(live, config),
    }
}

/// The items of the configuration must be found in the order they are in.
fn absorbs_items(list: &List<'_>, live: &[Value], config: &[Value]) -> bool {
    let mut seen = BTreeSet::new();
    let mut wanted = config.iter().map(|child| (item::identify(list, child), child)).peekable();
    for child in live {
        let Ok(element) = item::identify(list, child) else { return false };
        if let Some((_, value)) = wanted.next_if(|(want, _)| want.as_ref() == Ok(&element))
            && !absorbs(list.element, child, value)
        {
            return false;
        }
        if !seen.insert(element) {
            return false;
        }
    }
    wanted.next().is_none()
}

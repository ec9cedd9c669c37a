//! The identity of items in associative lists.

use crate::own::element::Element;
use crate::own::types::List;
use crate::own::wording;
use serde_json::Value;

/// The element that identifies an item of an associative list.
pub(super) fn identify(list: &List<'_>, item: &Value) -> Result<Element, String> {
    if list.atomic {
        return Err("invalid indexing of non-associative list".to_owned());
    }
    if !list.keys.is_empty() {
        return identify_by_keys(list, item);
    }
    match item {
        Value::Object(_) => Err("associative list without keys has an element that's a map type".to_owned()),
        Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
        Value::Null => Err("associative list without keys has an element that's an explicit null".to_owned()),
        scalar => Ok(Element::value(scalar.clone())),
    }
}

/// Absent key fields take their default; without one they are left out, which is an identity of its own.
fn identify_by_keys(list: &List<'_>, item: &Value) -> Result<Element, String> {
    let map = match item {
        Value::Object(map) => map,
        Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    let mut fields = Vec::with_capacity(list.keys.len());
    for key in list.keys {
        let value = match map.get(key) {
            Some(value) => Some(value),
            None => match list.element.map() {
                Some(element) => element.default(key),
                None => {
                    return Err(format!(
                        "couldn't find default value for {key}: associative list may not have non-map types"
                    ));
                }
            },
        };
        fields.extend(value.map(|v| (key.as_str().into(), v.clone())));
    }
    if fields.is_empty() {
        let keys: Vec<_> = list.keys.iter().map(|k| wording::quote(k)).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] \
             (and doesn't have default values for any key fields)",
            keys.join(" ")
        ));
    }
    Ok(Element::key(fields))
}

//! RFC 6902, with the liberties of the library behind the real API server: negative indices count from the
//! end, `replace` of a missing field adds it, and a field missing in `copy` is null.

use super::PatchError;
use serde_json::{Map, Value};
use transom_object::json::{self, MAX_DEPTH};

/// Patches with more operations are refused.
pub const MAX_OPERATIONS: usize = 10_000;
/// What all `copy` operations of a patch may add, in bytes of JSON.
pub const MAX_COPIED_BYTES: usize = 3 << 20;

/// Applies the operations in order; the first that fails fails the patch.
pub fn json_patch(document: &Value, patch: &Value) -> Result<Value, PatchError> {
    let Value::Array(operations) = patch else {
        return Err(malformed("a JSON patch is an array of operations"));
    };
    if operations.len() > MAX_OPERATIONS {
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            operations.len()
        )));
    }
    let mut document = document.clone();
    let mut growth = Growth { copied: 0, depth: json::depth(&document) };
    for operation in operations {
        let Value::Object(operation) = operation else {
            return Err(malformed("an operation of a JSON patch is an object"));
        };
        apply(&mut document, &Operation { fields: operation }, &mut growth)?;
    }
    Ok(document)
}

/// What a patch has made of the document so far. A body has neither the size nor the depth that a few
/// operations on one another's results can reach.
struct Growth {
    copied: usize,
    /// No less than the depth of the document.
    depth: usize,
}

impl Growth {
    /// A value of some depth is about to be put at `path`.
    fn place(&mut self, path: &str, depth: usize) -> Result<(), PatchError> {
        self.depth = self.depth.max(tokens(path) + depth);
        if self.depth <= MAX_DEPTH {
            return Ok(());
        }
        Err(PatchError::TooLarge(format!("the patched object would nest deeper than {MAX_DEPTH} levels")))
    }

    fn copy(&mut self, value: &Value) -> Result<(), PatchError> {
        self.copied += json::encode(value).len();
        if self.copied <= MAX_COPIED_BYTES {
            return Ok(());
        }
        Err(PatchError::Inapplicable(format!(
            "Unable to complete the copy, the accumulated size increase of copy is {}, exceeding the limit \
             {MAX_COPIED_BYTES}",
            self.copied
        )))
    }
}

fn tokens(pointer: &str) -> usize {
    pointer.bytes().filter(|b| *b == b'/').count()
}

fn apply(document: &mut Value, operation: &Operation<'_>, growth: &mut Growth) -> Result<(), PatchError> {
    let kind = operation.text("op").unwrap_or("unknown");
    match kind {
        "add" => {
            let path = operation.path("add")?;
            let (place, key) = destination(document, path).ok_or_else(|| missing(kind, "path", path))?;
            let value = operation.value();
            growth.place(path, json::depth(&value))?;
            place.add(&key, value).map_err(|reason| fails(kind, path, &reason))
        }
        "remove" => {
            let path = operation.path("remove")?;
            let (mut place, key) = destination(document, path).ok_or_else(|| missing(kind, "path", path))?;
            place.remove(&key).map(drop).map_err(|reason| fails(kind, path, &reason))
        }
        "replace" => {
            growth.place(operation.path("replace")?, operation.fields.get("value").map_or(0, json::depth))?;
            replace(document, operation)
        }
        "move" => {
            let from = operation.from("move")?;
            let (mut place, key) =
                destination(document, from).ok_or_else(|| missing(kind, "from path", from))?;
            let value = place.remove(&key).map_err(|reason| fails(kind, &key, &reason))?;
            let path = operation.path("move")?;
            let (place, key) =
                destination(document, path).ok_or_else(|| missing(kind, "destination path", path))?;
            // An estimate from above: measuring what is moved would make ten thousand moves slow.
            growth.place(path, growth.depth.saturating_sub(tokens(from)))?;
            place.add(&key, value).map_err(|reason| fails(kind, path, &reason))
        }
        "copy" => {
            let from = operation.from("copy")?;
            let (place, key) = destination(document, from).ok_or_else(|| missing(kind, "from path", from))?;
            let value =
                place.get(&key).map_err(|reason| fails(kind, from, &reason))?.cloned().unwrap_or_default();
            growth.copy(&value)?;
            let path = operation.path("copy")?;
            let (place, key) =
                destination(document, path).ok_or_else(|| missing(kind, "destination path", path))?;
            growth.place(path, json::depth(&value))?;
            place.add(&key, value).map_err(|reason| fails(kind, path, &reason))
        }
        "test" => test(document, operation),
        _ => Err(PatchError::Inapplicable(format!("Unexpected kind: {kind}"))),
    }
}

fn replace(document: &mut Value, operation: &Operation<'_>) -> Result<(), PatchError> {
    let path = operation.path("replace")?;
    if path.is_empty() {
        let value = operation.value();
        if !value.is_object() && !value.is_array() {
            return Err(PatchError::Inapplicable(
                "replace operation value must be object or array".to_owned(),
            ));
        }
        *document = value;
        return Ok(());
    }
    let (place, key) = destination(document, path).ok_or_else(|| missing("replace", "path", path))?;
    if place.get(&key).is_err() {
        return Err(missing("replace", "key", path));
    }
    match place {
        Container::Object(map) => {
            map.insert(key, operation.value());
        }
        Container::Array(items) => {
            let index = position(&key, items.len()).map_err(|reason| fails("replace", path, &reason))?;
            items[index] = operation.value();
        }
    }
    Ok(())
}

fn test(document: &mut Value, operation: &Operation<'_>) -> Result<(), PatchError> {
    let path = operation.path("test")?;
    let expected = operation.value();
    let equal = if path.is_empty() {
        *document == expected
    } else {
        let (place, key) = destination(document, path).ok_or_else(|| {
            PatchError::Inapplicable(format!(
                "test operation does not apply: is missing path: {path}: missing value"
            ))
        })?;
        place.get(&key).map_err(|reason| fails("test", path, &reason))?.unwrap_or(&Value::Null) == &expected
    };
    if equal {
        Ok(())
    } else {
        Err(PatchError::Inapplicable(format!("testing value {path} failed: test failed")))
    }
}

struct Operation<'p> {
    fields: &'p Map<String, Value>,
}

impl<'p> Operation<'p> {
    fn text(&self, field: &str) -> Option<&'p str> {
        self.fields.get(field)?.as_str()
    }

    fn path(&self, kind: &str) -> Result<&'p str, PatchError> {
        self.text("path").ok_or_else(|| {
            PatchError::Inapplicable(format!("{kind} operation failed to decode path: missing value"))
        })
    }

    fn from(&self, kind: &str) -> Result<&'p str, PatchError> {
        self.text("from").ok_or_else(|| {
            PatchError::Inapplicable(format!(
                "{kind} operation failed to decode from: operation, missing from field: missing value"
            ))
        })
    }

    fn value(&self) -> Value {
        self.fields.get("value").cloned().unwrap_or_default()
    }
}

/// The container that a pointer's last token selects from.
enum Container<'d> {
    Object(&'d mut Map<String, Value>),
    Array(&'d mut Vec<Value>),
}

/// Walks to the container of what a pointer names. `None` if a part of the way is missing.
fn destination<'d>(document: &'d mut Value, pointer: &str) -> Option<(Container<'d>, String)> {
    let mut tokens: Vec<String> =
        pointer.split('/').skip(1).map(|token| token.replace("~1", "/").replace("~0", "~")).collect();
    let key = tokens.pop()?;
    let mut here = document;
    for token in tokens {
        here = match here {
            Value::Object(map) => map.get_mut(&token)?,
            Value::Array(items) => {
                let index = position(&token, items.len()).ok()?;
                items.get_mut(index)?
            }
            _ => return None,
        };
    }
    match here {
        Value::Object(map) => Some((Container::Object(map), key)),
        Value::Array(items) => Some((Container::Array(items), key)),
        _ => None,
    }
}

impl Container<'_> {
    /// A missing element is an error, a missing field is not.
    fn get(&self, key: &str) -> Result<Option<&Value>, String> {
        match self {
            Self::Object(map) => Ok(map.get(key)),
            Self::Array(items) => Ok(items.get(position(key, items.len())?)),
        }
    }

    fn add(self, key: &str, value: Value) -> Result<(), String> {
        match self {
            Self::Object(map) => {
                map.insert(key.to_owned(), value);
            }
            Self::Array(items) if key == "-" => items.push(value),
            Self::Array(items) => {
                let index = position(key, items.len() + 1)?;
                items.insert(index, value);
            }
        }
        Ok(())
    }

    fn remove(&mut self, key: &str) -> Result<Value, String> {
        match self {
            Self::Object(map) => map
                .remove(key)
                .ok_or_else(|| format!("Unable to remove nonexistent key: {key}: missing value")),
            Self::Array(items) => {
                let index = position(key, items.len())?;
                Ok(items.remove(index))
            }
        }
    }
}

/// An index below `limit`; a negative one counts back from it.
fn position(key: &str, limit: usize) -> Result<usize, String> {
    let index: i64 = key.parse().map_err(|_| format!("value was not a proper array index: '{key}'"))?;
    let invalid = || format!("Unable to access invalid index: {index}: invalid index referenced");
    let distance = usize::try_from(index.unsigned_abs()).map_err(|_| invalid())?;
    let position = if index < 0 { limit.checked_sub(distance) } else { Some(distance) };
    position.filter(|&p| p < limit).ok_or_else(invalid)
}

fn malformed(message: &str) -> PatchError {
    PatchError::Malformed(message.to_owned())
}

fn missing(kind: &str, what: &str, path: &str) -> PatchError {
    let shown = if matches!(kind, "add" | "remove") { format!("\"{path}\"") } else { path.to_owned() };
    PatchError::Inapplicable(format!(
        "{kind} operation does not apply: doc is missing {what}: {shown}: missing value"
    ))
}

fn fails(kind: &str, path: &str, reason: &str) -> PatchError {
    // Upstream's words, slips included: `replace` calls itself `remove`.
    let message = match kind {
        "copy" => format!("error in copy for from: '{path}': {reason}"),
        "replace" => format!("error in remove for path: '{path}': {reason}"),
        _ => format!("error in {kind} for path: '{path}': {reason}"),
    };
    PatchError::Inapplicable(message)
}

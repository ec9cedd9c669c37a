//! Where parameters come from when the input names a field: the composite resource; for prefixes also the
//! desired state and the context of earlier steps.

use serde_json::Value;
use transom_function::{Resource, RunFunctionRequest, RunFunctionResponse};
use transom_object::fieldpath;

use super::input::integers;

/// The objects that fields are read from.
pub(super) struct Sources<'a> {
    composite: &'a Resource,
    response: &'a RunFunctionResponse,
}

impl<'a> Sources<'a> {
    /// The observed state is still the request's; the rest has moved to the response.
    pub(super) fn new(request: &'a RunFunctionRequest, response: &'a RunFunctionResponse) -> Self {
        Self { composite: request.observed_composite(), response }
    }

    /// The kind of the composite resource, which messages name.
    pub(super) fn kind(&self) -> &'a str {
        self.composite.get_str("kind").unwrap_or_default()
    }

    pub(super) fn value(&self, path: &str) -> Result<&'a Value, String> {
        self.composite.get(path).map_err(|error| error.to_string())
    }

    pub(super) fn text(&self, path: &str) -> Result<&'a str, String> {
        self.composite.get_str(path).map_err(|error| error.to_string())
    }

    pub(super) fn integer(&self, path: &str) -> Result<i64, String> {
        fieldpath::get_integer(self.composite.object(), path).map_err(|error| error.to_string())
    }

    pub(super) fn integers(&self, path: &str) -> Result<Vec<i64>, String> {
        integers(self.value(path)?)
    }

    /// The number of texts in the list at a path.
    pub(super) fn count(&self, path: &str) -> Result<usize, String> {
        match self.value(path)? {
            Value::Null => Ok(0),
            Value::Array(items) if items.iter().all(|item| item.is_string() || item.is_null()) => {
                Ok(items.len())
            }
            _ => Err("cannot unmarshal value from JSON: not a list of strings".to_owned()),
        }
    }

    /// The prefix at a field, which may begin with `desired.composite.resource.`, `desired.resources.<name>.resource.`
    /// or `context.`.
    pub(super) fn prefix(&self, field: &str) -> Result<String, String> {
        if let Some(rest) = field.strip_prefix("context.") {
            return self.in_context(rest);
        }
        if field.starts_with("desired.composite.") {
            let nothing = Resource::default();
            let desired = self.response.desired.as_ref().and_then(|desired| desired.composite.as_ref());
            let desired = desired.unwrap_or(&nothing);
            let path = field.replacen("desired.composite.resource.", "", 1);
            return prefix_in(desired, &path, field);
        }
        if let Some(rest) = field.strip_prefix("desired.resources.") {
            return self.in_composed(rest, field);
        }
        if field.starts_with("desired.") {
            return Ok(String::new());
        }
        prefix_in(self.composite, field, field)
    }

    fn in_composed(&self, rest: &str, field: &str) -> Result<String, String> {
        let name = first_key(rest);
        let desired = self.response.desired.as_ref().and_then(|desired| desired.resources.get(&name));
        let Some(desired) = desired else {
            return Err(format!("No composed resource with name {name} found for field {field}"));
        };
        let path = field.replacen(&format!("desired.resources.{name}.resource."), "", 1);
        let prefix = desired.get_str(&path).map(str::to_owned);
        prefix.map_err(|error| {
            format!("cannot get prefix for resource with name {name} from field {field}: {error}")
        })
    }

    fn in_context(&self, path: &str) -> Result<String, String> {
        let context = self.response.context.as_ref().ok_or("No context available")?;
        let found = segments(path).try_fold(context.as_value(), |here, segment| match here {
            Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
            here => here.get(segment),
        });
        match found {
            // A value that is not a string has none.
            Some(value) => Ok(value.as_str().unwrap_or_default().to_owned()),
            None => {
                Err(format!("Failed to extract value for {path} from json context {}", context.as_value()))
            }
        }
    }
}

fn prefix_in(resource: &Resource, path: &str, field: &str) -> Result<String, String> {
    let kind = resource.get_str("kind").unwrap_or_default();
    let prefix = resource.get_str(path).map(str::to_owned);
    prefix.map_err(|error| format!("cannot get prefix from field {field} for {kind}: {error}"))
}

/// The first of keys between periods; single quotes keep periods together.
fn first_key(keys: &str) -> String {
    let mut quoted = false;
    let end = keys.find(|c| {
        quoted ^= c == '\'';
        c == '.' && !quoted
    });
    keys[..end.unwrap_or(keys.len())].replace('\'', "")
}

/// The segments of a path between periods; a backslash takes the special meaning of what follows it away.
fn segments(path: &str) -> impl Iterator<Item = String> {
    let mut rest = Some(path.chars());
    std::iter::from_fn(move || {
        let mut segment = String::new();
        let chars = rest.as_mut()?;
        loop {
            match chars.next() {
                Some('\\') => segment.extend(chars.next()),
                Some('.') => return Some(segment),
                Some(other) => segment.push(other),
                None => {
                    rest = None;
                    return Some(segment);
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split() {
        let split = |path| segments(path).collect::<Vec<_>>();
        assert_eq!(
            split(r"apiextensions\.crossplane\.io/environment.net.0"),
            ["apiextensions.crossplane.io/environment", "net", "0"]
        );
        assert_eq!(split(""), [""]);
        assert_eq!(split(r"a\"), ["a"]);
        assert_eq!(first_key("vpc.resource.spec"), "vpc");
        assert_eq!(first_key("'a.b'.resource"), "a.b");
        assert_eq!(first_key(""), "");
    }
}

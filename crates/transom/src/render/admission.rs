//! What an API server would object to in an object before it stores it: fields that its kind does not have, and what its
//! schema and rules refuse, in the same words.

use serde_json::Value;
use std::collections::BTreeSet;
use transom_object::field::{self, Kind, Path};
use transom_object::suggest;
use transom_schema::normalize::{self, MalformedFields};
use transom_schema::rules::Rules;
use transom_schema::{Schema, structural, validate};

use super::manifests::Manifest;
use transom_console::Failure;

/// One version of a kind.
pub(crate) struct Admission {
    schema: Schema,
    rules: Rules,
}

/// One thing that an API server would object to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Objection {
    /// Where, as a JSON pointer.
    pub(crate) pointer: String,
    pub(crate) what: String,
    pub(crate) remedy: Option<String>,
    /// Whether it is a field that the kind does not have. It would be removed, or refused by clients that ask for that.
    pub(crate) is_unknown_field: bool,
}

impl Objection {
    pub(crate) fn at(self, manifest: &Manifest) -> Failure {
        let failure = manifest.wrong(&self.pointer, self.what);
        self.remedy.into_iter().fold(failure, Failure::remedy)
    }
}

impl Admission {
    /// One version of the kind that a CustomResourceDefinition defines; `None` if it has no such version.
    pub(crate) fn of(crd: &Value, version: &str) -> Option<Result<Self, String>> {
        let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
        let served = versions.into_iter().flatten().find(|served| served["name"] == version)?;
        let schema = served.pointer("/schema/openAPIV3Schema").unwrap_or(&Value::Null);
        let parsed = structural::parse(schema).map_err(|errors| field::aggregate(&errors));
        Some(parsed.map(|schema| Self { rules: Rules::build(&schema, true), schema }))
    }

    pub(crate) fn default(&self, object: &mut Value) {
        normalize::default(object, &self.schema);
    }

    /// Everything that is wrong with an object.
    pub(crate) fn objections(&self, object: &Value) -> Vec<Objection> {
        let mut admitted = object.clone();
        let (unknown, mut errors) = self.normalize(&mut admitted);
        let root = Path::root();
        errors.extend(validate::validate(&admitted, None, &self.schema, &root));
        errors.extend(validate::embedded(&admitted, &self.schema, false, &root));
        errors.extend(validate::list_types(&admitted, None, &self.schema, &root));
        if !validate::blocks_rules(&errors) {
            errors.extend(self.rules.validate(&admitted, None, &root));
        }
        let mut seen = BTreeSet::new();
        let unknown = unknown.iter().map(|field| self.unknown(object, field));
        let refused = errors.iter().map(|error| self.refused(object, error));
        unknown.chain(refused).filter(|objection| seen.insert(objection.what.clone())).collect()
    }

    /// Makes of an object what an API server would validate; returns the fields that it does not know.
    fn normalize(&self, object: &mut Value) -> (Vec<String>, Vec<field::Error>) {
        let mut errors = Vec::new();
        let coerced = normalize::coerce_metadata(object, &self.schema, true, MalformedFields::Refuse);
        let mut unknown = coerced.unwrap_or_else(|error| {
            errors.push(error);
            Vec::new()
        });
        unknown.extend(normalize::prune(object, &self.schema, true));
        normalize::drop_nulls(object, &self.schema);
        normalize::default(object, &self.schema);
        (unknown, errors)
    }

    fn unknown(&self, object: &Value, path: &str) -> Objection {
        let pointer = pointer(object, path);
        let (around, name) = pointer.rsplit_once('/').unwrap_or_default();
        let name = unescaped(name);
        let known: Vec<&str> = match self.schema_at(around) {
            Some(schema) if around.is_empty() => {
                ["apiVersion", "kind", "metadata"].into_iter().chain(names(schema)).collect()
            }
            schema => schema.into_iter().flat_map(names).collect(),
        };
        let listed = || (!known.is_empty()).then(|| format!("the fields here are {}", known.join(", ")));
        let remedy = suggest::did_you_mean(&name, known.iter().copied()).or_else(listed);
        Objection { what: format!("unknown field {name:?}"), remedy, pointer, is_unknown_field: true }
    }

    fn refused(&self, object: &Value, error: &field::Error) -> Objection {
        let pointer = pointer(object, &error.field);
        let values = self.schema_at(&pointer).and_then(|schema| schema.checks.enumeration.as_ref());
        let known = values.into_iter().flatten().filter_map(Value::as_str);
        let found = error.value.as_str().filter(|_| error.kind == Kind::NotSupported);
        let remedy = found.and_then(|found| suggest::did_you_mean(found, known));
        let what = if error.field == "<nil>" { error.body() } else { error.to_string() };
        Objection { what, remedy, pointer, is_unknown_field: false }
    }

    /// The part of the schema that a place is described by.
    fn schema_at(&self, pointer: &str) -> Option<&Schema> {
        pointer.split('/').skip(1).map(unescaped).try_fold(&self.schema, |schema, token| {
            let of_items = schema.items.as_deref().filter(|_| token.parse::<usize>().is_ok());
            of_items.or_else(|| schema.property(&token).map(|property| &**property))
        })
    }
}

fn names(schema: &Schema) -> impl Iterator<Item = &str> {
    schema.properties.keys().map(String::as_str)
}

fn unescaped(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

/// The JSON pointer of a path such as `spec.pipeline[0].step`. Names may have dots in them: the longest that an object
/// has is taken.
fn pointer(object: &Value, path: &str) -> String {
    let (mut pointer, mut rest, mut here) = (String::new(), path, Some(object));
    if rest == "<nil>" {
        return pointer;
    }
    while !rest.is_empty() {
        let token;
        if let Some((key, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            (token, rest) = (key, after);
        } else {
            rest = rest.strip_prefix('.').unwrap_or(rest);
            let ends = |name: &String| {
                rest.strip_prefix(name.as_str())
                    .is_some_and(|after| after.is_empty() || after.starts_with(['.', '[']))
            };
            let names = here.and_then(Value::as_object).into_iter().flat_map(|fields| fields.keys());
            let known = names.filter(|name| ends(name)).map(String::len).max();
            let end = known.or_else(|| rest.find(['.', '[']).filter(|end| *end > 0)).unwrap_or(rest.len());
            (token, rest) = rest.split_at(end);
        }
        here = here.and_then(|value| match value {
            Value::Array(items) => token.parse::<usize>().ok().and_then(|index| items.get(index)),
            value => value.get(token),
        });
        pointer.push('/');
        pointer.push_str(&token.replace('~', "~0").replace('/', "~1"));
    }
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_become_pointers() {
        let object = json!({"spec": {"a.b": {"c": 1}, "list": [{"x/y": 1}]}});
        for (path, expected) in [
            ("spec.a.b.c", "/spec/a.b/c"),
            ("spec.list[0].x/y", "/spec/list/0/x~1y"),
            ("spec.list[0][x/y]", "/spec/list/0/x~1y"),
            ("spec.missing[1].name", "/spec/missing/1/name"),
            ("<nil>", ""),
            ("", ""),
            (".spec", "/spec"),
            ("spec[", "/spec/["),
        ] {
            assert_eq!(pointer(&object, path), expected, "{path}");
        }
    }

    fn admission() -> Admission {
        let schema = json!({
            "type": "object",
            "properties": {"spec": {
                "type": "object",
                "x-kubernetes-validations": [{"rule": "self.min <= self.max", "message": "min must not exceed max"}],
                "properties": {
                    "min": {"type": "integer", "default": 1},
                    "max": {"type": "integer", "default": 3},
                    "size": {"type": "string", "enum": ["small", "large"]},
                },
            }},
        });
        let crd = json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}});
        assert!(Admission::of(&crd, "v2").is_none());
        Admission::of(&crd, "v1").unwrap().unwrap()
    }

    fn objections(spec: &Value) -> Vec<(String, String, String)> {
        let object = json!({"apiVersion": "e/v1", "kind": "E", "metadata": {"name": "e"}, "spec": spec});
        let objections = admission().objections(&object).into_iter();
        objections.map(|o| (o.pointer, o.what, o.remedy.unwrap_or_default())).collect()
    }

    #[test]
    fn objections_are_an_api_servers() {
        let only = |pointer: &str, what: &str, remedy: &str| {
            vec![(pointer.to_owned(), what.to_owned(), remedy.to_owned())]
        };
        assert_eq!(objections(&json!({"size": "small"})), []);
        assert_eq!(
            objections(&json!({"siez": "small"})),
            only("/spec/siez", "unknown field \"siez\"", "did you mean \"size\"?")
        );
        assert_eq!(
            objections(&json!({"colour": "red"})),
            only("/spec/colour", "unknown field \"colour\"", "the fields here are max, min, size")
        );
        assert_eq!(
            objections(&json!({"size": "smal"})),
            only(
                "/spec/size",
                "spec.size: Unsupported value: \"smal\": supported values: \"small\", \"large\"",
                "did you mean \"small\"?"
            )
        );
        assert_eq!(
            objections(&json!({"min": "two"})),
            only(
                "/spec/min",
                "spec.min: Invalid value: \"string\": spec.min in body must be of type integer: \"string\"",
                ""
            )
        );
        let rule = objections(&json!({"min": 4}));
        assert_eq!((rule.len(), rule[0].0.as_str()), (1, "/spec"));
        assert!(rule[0].1.ends_with(": min must not exceed max"), "{rule:?}");
    }

    #[test]
    fn defaults_are_filled_in() {
        let mut object = json!({"spec": {}});
        admission().default(&mut object);
        assert_eq!(object["spec"]["max"], 3);
    }
}

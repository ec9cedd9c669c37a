//! The fields that manifests may have, to find the misspelt ones before they are silently ignored.

use super::manifests::Manifest;
use crate::failure::Failure;
use serde_json::Value;
use transom_object::spelling::nearest;

/// What a value looks like.
enum Shape {
    Anything,
    Text,
    Fields(&'static [(&'static str, &'static Shape)]),
    List(&'static Shape),
}

use Shape::{Anything, Fields, List, Text};

const TYPE: Shape = Fields(&[("apiVersion", &Text), ("kind", &Text)]);
const NAME: Shape = Fields(&[("name", &Text)]);
const OBJECT: Shape = Fields(&[("name", &Text), ("namespace", &Text)]);

const STEP: Shape = Fields(&[
    ("step", &Text),
    ("functionRef", &NAME),
    ("input", &Anything),
    ("credentials", &List(&Fields(&[("name", &Text), ("source", &Text), ("secretRef", &OBJECT)]))),
    (
        "requirements",
        &Fields(&[
            (
                "requiredResources",
                &List(&Fields(&[
                    ("requirementName", &Text),
                    ("apiVersion", &Text),
                    ("kind", &Text),
                    ("namespace", &Text),
                    ("name", &Text),
                    ("matchLabels", &Anything),
                ])),
            ),
            (
                "requiredSchemas",
                &List(&Fields(&[("requirementName", &Text), ("apiVersion", &Text), ("kind", &Text)])),
            ),
        ]),
    ),
    ("functionRevisionRef", &NAME),
    ("functionRevisionSelector", &Fields(&[("matchLabels", &Anything)])),
    ("inputRef", &Fields(&[("apiVersion", &Text), ("kind", &Text), ("name", &Text), ("namespace", &Text)])),
    ("allowedExtraResources", &List(&Anything)),
    ("maxIterations", &Anything),
]);

const COMPOSITION: Shape = Fields(&[
    ("apiVersion", &Text),
    ("kind", &Text),
    ("metadata", &Anything),
    ("status", &Anything),
    (
        "spec",
        &Fields(&[
            ("compositeTypeRef", &TYPE),
            ("mode", &Text),
            ("pipeline", &List(&STEP)),
            ("resources", &List(&Anything)),
            ("patchSets", &List(&Anything)),
            ("environment", &Anything),
            ("writeConnectionSecretsToNamespace", &Text),
            ("publishConnectionDetailsWithStoreConfigRef", &Anything),
        ]),
    ),
]);

/// Finds a field of a Composition that does not exist, or has the wrong type.
pub(crate) fn check_composition(manifest: &Manifest) -> Result<(), Failure> {
    check(manifest, &manifest.object, &COMPOSITION, "")
}

fn check(manifest: &Manifest, value: &Value, shape: &Shape, pointer: &str) -> Result<(), Failure> {
    let wrong = |expected: &str| {
        let field = pointer.rsplit('/').next().unwrap_or_default();
        Err(manifest.wrong(pointer, format!("{} is {}, not {expected}", name(field), kind(value))))
    };
    match (shape, value) {
        (Anything, _) | (_, Value::Null) | (Text, Value::String(_)) => Ok(()),
        (Fields(known), Value::Object(fields)) => {
            for (name, value) in fields {
                let inner = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
                match known.iter().find(|(field, _)| field == name) {
                    Some((_, shape)) => check(manifest, value, shape, &inner)?,
                    None => return Err(unknown(manifest, &inner, name, known)),
                }
            }
            Ok(())
        }
        (List(shape), Value::Array(items)) => {
            let mut items = items.iter().enumerate();
            items.try_for_each(|(i, item)| check(manifest, item, shape, &format!("{pointer}/{i}")))
        }
        (Fields(_), _) => wrong("an object"),
        (List(_), _) => wrong("a list"),
        (Text, _) => wrong("a text"),
    }
}

/// An item of a list has no name, but a number.
fn name(field: &str) -> String {
    match field.parse::<usize>() {
        Ok(index) => format!("item {index}"),
        Err(_) => format!("{field:?}"),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn unknown(
    manifest: &Manifest,
    pointer: &str,
    name: &str,
    known: &[(&'static str, &'static Shape)],
) -> Failure {
    let failure = manifest.wrong(pointer, format!("unknown field {name:?}"));
    match nearest(name, known.iter().map(|(field, _)| *field)) {
        Some(field) => failure.remedy(format!("did you mean {field}?")),
        None => {
            let fields: Vec<&str> = known.iter().map(|(field, _)| *field).collect();
            failure.remedy(format!("known here: {}", fields.join(", ")))
        }
    }
}

//! The response to a ConversionReview.

use super::checks::{converter, crds};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transom_conversion::Converter;
use transom_object::error_chain::chain;
use transom_object::meta;
use transom_xapi::definition::Definition;

/// Why objects are not converted.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("there is no CompositeResourceDefinition that has rules for this kind")]
    NoRules,
    #[error("the rules of CompositeResourceDefinition {0:?} cannot be used: {1}")]
    Rules(String, String),
    #[error("cannot convert {kind} {name:?}")]
    Object { kind: String, name: String, source: Box<transom_conversion::ConversionError> },
}

/// The converters of a definition by kind, for one generation of it.
struct Compiled {
    uid: String,
    generation: i64,
    converters: Result<HashMap<String, Converter>, String>,
}

/// Converts objects by the rules of definitions. Compiled rules are kept for the next review.
#[derive(Default)]
pub struct Conversions(Mutex<HashMap<String, Arc<Compiled>>>);

impl Conversions {
    /// Responds to a ConversionReview about objects of a definition, which is given as it is stored.
    pub fn answer(&self, review: &Value, definition: Option<&Value>) -> Value {
        let request = &review["request"];
        let response = match self.convert(request, definition) {
            Ok(objects) => json!({"result": {"status": "Success"}, "convertedObjects": objects}),
            Err(error) => return Self::failure(review, &chain(&error)),
        };
        answer(review, response)
    }

    /// The response if nothing can be converted.
    pub fn failure(review: &Value, why: &str) -> Value {
        let result = json!({"status": "Failure", "message": why});
        answer(review, json!({"result": result, "convertedObjects": []}))
    }

    fn convert(&self, request: &Value, definition: Option<&Value>) -> Result<Vec<Value>, Failed> {
        let definition = definition.ok_or(Failed::NoRules)?;
        let compiled = self.compiled(definition);
        let converters = compiled.converters.as_ref();
        let converters =
            converters.map_err(|why| Failed::Rules(meta::name(definition).to_owned(), why.clone()))?;
        let desired = request["desiredAPIVersion"].as_str().unwrap_or_default();
        let version = desired.rsplit('/').next().unwrap_or(desired);
        let objects = request["objects"].as_array().into_iter().flatten();
        objects
            .map(|object| {
                let (kind, name) = (meta::kind(object), meta::name(object));
                let converter = converters.get(kind).ok_or(Failed::NoRules)?;
                converter.convert(object, version).map_err(|source| Failed::Object {
                    kind: kind.to_owned(),
                    name: name.to_owned(),
                    source: Box::new(source),
                })
            })
            .collect()
    }

    fn compiled(&self, definition: &Value) -> Arc<Compiled> {
        let (name, uid, generation) =
            (meta::name(definition), meta::uid(definition), meta::generation(definition));
        if let Some(compiled) = self.known().get(name).filter(|c| c.uid == uid && c.generation == generation)
        {
            return compiled.clone();
        }
        // Not under the lock: reviews of other definitions go on meanwhile.
        let converters = compile(definition);
        let compiled = Arc::new(Compiled { uid: uid.to_owned(), generation, converters });
        self.known().insert(name.to_owned(), compiled.clone());
        compiled
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Arc<Compiled>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn answer(review: &Value, mut response: Value) -> Value {
    response["uid"] = review["request"]["uid"].clone();
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response})
}

fn compile(xrd: &Value) -> Result<HashMap<String, Converter>, String> {
    let definition = Definition::deserialize(xrd).map_err(|error| error.to_string())?;
    let rules = definition.conversion_rules().ok_or("its conversion has no rules")?;
    let crds = crds(&definition).map_err(|error| chain(&error))?;
    crds.into_iter()
        .map(|(kind, crd)| Ok((kind, converter(rules, &crd).map_err(|errors| errors.join("; "))?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(generation: i64, to: &str) -> Value {
        let schema = |fields: Value| json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}});
        let number = json!({"type": "integer"});
        json!({
            "metadata": {"name": "things.example.org", "uid": "u", "generation": generation},
            "spec": {
                "group": "example.org", "names": {"kind": "Thing", "plural": "things"},
                "claimNames": {"kind": "Claim", "plural": "claims"},
                "versions": [
                    {"name": "v1alpha1", "served": true, "schema": schema(json!({"size": number}))},
                    {"name": "v1", "served": true, "referenceable": true, "schema": schema(json!({"a": number, "b": number}))},
                ],
                "conversion": {"strategy": "Declarative", "rules": [
                    {"from": "v1alpha1", "to": "v1", "moves": [{"from": "spec.size", "to": to}]},
                ]},
            },
        })
    }

    fn review(kind: &str) -> Value {
        let object = json!({"apiVersion": "example.org/v1alpha1", "kind": kind, "metadata": {"name": "x"}, "spec": {"size": 3}});
        json!({"request": {"uid": "r", "desiredAPIVersion": "example.org/v1", "objects": [object]}})
    }

    #[test]
    fn both_kinds_are_converted_by_the_rules_of_the_generation() {
        let conversions = Conversions::default();
        for (generation, to, field) in [(1, "spec.a", "a"), (1, "spec.b", "a"), (2, "spec.b", "b")] {
            for kind in ["Thing", "Claim"] {
                let answer = conversions.answer(&review(kind), Some(&definition(generation, to)));
                assert_eq!(answer["response"]["uid"], "r");
                let converted = &answer["response"]["convertedObjects"][0];
                assert_eq!(converted["spec"], json!({field: 3}), "{answer}");
                assert_eq!(converted["apiVersion"], "example.org/v1");
            }
        }
    }

    #[test]
    fn failures_name_the_cause() {
        let conversions = Conversions::default();
        let message = |review: &Value, definition: Option<&Value>| {
            let answer = conversions.answer(review, definition);
            assert_eq!(answer["response"]["result"]["status"], "Failure");
            answer["response"]["result"]["message"].as_str().unwrap().to_owned()
        };
        assert!(message(&review("Thing"), None).contains("there is no CompositeResourceDefinition"));
        assert!(message(&review("Other"), Some(&definition(3, "spec.a"))).contains("for this kind"));
        let wrong = message(&review("Thing"), Some(&definition(4, "spec.nope")));
        assert!(wrong.contains("version v1 has no field spec.nope"), "{wrong}");
        let mut unknown = review("Thing");
        unknown["request"]["desiredAPIVersion"] = "example.org/v7".into();
        let why = message(&unknown, Some(&definition(5, "spec.a")));
        assert!(
            why.contains("cannot convert Thing \"x\": there are no rules for the version of \"v7\""),
            "{why}"
        );
    }
}

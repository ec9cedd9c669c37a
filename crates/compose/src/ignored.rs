//! What functions want of the composite resource itself and do not get: of a desired composite resource only the status
//! is applied, and composite resources that are not legacy ones publish no connection details.
//!
//! Many functions return the composite resource as they were given it, so only what differs is reported.

use crate::condition::{Event, EventType, Target};
use crate::decision::Application;
use crate::inputs::Inputs;
use crate::json_equality::same;
use crate::report::first_few;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use transom_function::{Resource, State};
use transom_object::meta;
use transom_xapi::composite::Layout;
use transom_xapi::constants::event;

/// Which step first wanted each field that is ignored.
#[derive(Clone, Debug, Default)]
pub(crate) struct Authors(BTreeMap<String, String>);

impl Authors {
    /// Notes what a step added.
    pub(crate) fn note(&mut self, step: &str, desired: Option<&State>, inputs: &Inputs<'_>) {
        let Some(composite) = desired.and_then(|state| state.composite.as_ref()) else { return };
        for field in fields(composite, inputs).into_iter().chain(details(composite, inputs)) {
            self.0.entry(field).or_insert_with(|| step.to_owned());
        }
    }

    /// A warning for each step about what it wants in the end and does not get.
    pub(crate) fn remarks(
        &self,
        composite: &Resource,
        apply: &[Arc<Application>],
        inputs: &Inputs<'_>,
    ) -> Vec<Event> {
        let mut remarks = self.by_step(fields(composite, inputs), |fields| {
            format!("has no effect: {fields}; a function can set only the status of the composite resource")
        });
        if !are_in_a_secret(composite, apply) {
            remarks.extend(self.by_step(details(composite, inputs), |keys| {
                format!(
                    "has no effect: {keys}; composite resources of this scope publish no connection details: compose a \
                     Secret instead"
                )
            }));
        }
        remarks
    }

    fn by_step(&self, fields: Vec<String>, words: impl Fn(String) -> String) -> Vec<Event> {
        let mut steps: BTreeMap<Option<&String>, Vec<String>> = BTreeMap::new();
        for field in fields {
            steps.entry(self.0.get(&field)).or_default().push(field);
        }
        let remark = |(step, fields): (Option<&String>, Vec<String>)| Event {
            r#type: EventType::Warning,
            reason: event::composite::IGNORED.to_owned(),
            message: words(first_few(&fields)),
            step: step.cloned(),
            target: Target::Composite,
        };
        steps.into_iter().map(remark).collect()
    }
}

/// The fields outside the status that differ from the composite resource that functions were given.
fn fields(composite: &Resource, inputs: &Inputs<'_>) -> Vec<String> {
    let observed = inputs.visible_xr.unwrap_or(inputs.xr);
    let mut found = Vec::new();
    for part in ["metadata", "spec"] {
        if let Some(wanted) = composite.object().get(part) {
            differing(part, wanted, observed.get(part).unwrap_or(&Value::Null), &mut found);
        }
    }
    found
}

fn differing(path: &str, wanted: &Value, observed: &Value, found: &mut Vec<String>) {
    let nothing = Map::new();
    match (wanted, observed) {
        // Null counts as absent.
        (Value::Null, _) => {}
        (Value::Object(wanted), Value::Object(_) | Value::Null) => {
            let observed = observed.as_object().unwrap_or(&nothing);
            for (key, wanted) in wanted {
                let inner =
                    if key.contains('.') { format!("{path}[{key}]") } else { format!("{path}.{key}") };
                differing(&inner, wanted, observed.get(key).unwrap_or(&Value::Null), found);
            }
        }
        _ if same(wanted, observed) => {}
        _ => found.push(path.to_owned()),
    }
}

/// The keys of connection details that are not published.
fn details(composite: &Resource, inputs: &Inputs<'_>) -> Vec<String> {
    let keys = composite.connection_details.keys().filter(|_| inputs.layout == Layout::Modern);
    keys.map(|key| format!("connectionDetails.{key}")).collect()
}

/// Whether a composed Secret has all the details: function-patch-and-transform composes one and sets them, too.
fn are_in_a_secret(composite: &Resource, apply: &[Arc<Application>]) -> bool {
    let is_secret = |object: &Value| meta::kind(object) == "Secret" && meta::api_version(object) == "v1";
    let has = |object: &Value, key: &str| {
        ["data", "stringData"]
            .into_iter()
            .any(|field| object.get(field).is_some_and(|d| d.get(key).is_some()))
    };
    let mut secrets = apply.iter().map(|application| &application.object).filter(|object| is_secret(object));
    secrets.any(|secret| composite.connection_details.keys().all(|key| has(secret, key)))
}

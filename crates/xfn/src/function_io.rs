//! `FunctionIO`: observed and desired state, as Crossplane's alpha functions read and write it.

use crate::derived;
use crate::document::{Wanted, composite, list, results, wanted_status};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use transom_function::{Ready, Resource, RunFunctionRequest, Severity, State, Struct};

pub(crate) const KIND: &str = "FunctionIO";
const API_VERSION: &str = "apiextensions.crossplane.io/v1alpha1";

/// The document of a request.
pub(crate) fn document(request: &RunFunctionRequest) -> Value {
    let mut document = json!({"apiVersion": API_VERSION, "kind": KIND});
    if let Some(config) = &request.input {
        document["config"] = config.as_value().clone();
    }
    let empty = State::default();
    let observed = request.observed.as_ref().unwrap_or(&empty);
    let desired = request.desired.as_ref().unwrap_or(&empty);
    let of_composite = |state: &State, object: Value| {
        let details = state.composite.as_ref().map(|found| details(&found.connection_details));
        with_details(json!({"resource": object}), details.unwrap_or_default())
    };
    let as_observed = observed.composite.as_ref().map(|found| found.object().clone()).unwrap_or_default();
    document["observed"] = json!({
        "composite": of_composite(observed, as_observed),
        "resources": observed.resources.iter().map(|(name, resource)| {
            let entry = json!({"name": name, "resource": resource.object()});
            with_details(entry, details(&resource.connection_details))
        }).collect::<Vec<_>>(),
    });
    document["desired"] = json!({
        "composite": of_composite(desired, composite(request)),
        "resources": desired.resources.iter().map(entry).collect::<Vec<_>>(),
    });
    document
}

/// A desired resource. That an earlier step found it ready is a check that always passes.
fn entry((name, resource): (&String, &Resource)) -> Value {
    let mut entry = json!({"name": name, "resource": resource.object()});
    if resource.ready() == Ready::True {
        entry["readinessChecks"] = json!([{"type": "None"}]);
    }
    entry
}

fn details(details: &BTreeMap<String, Vec<u8>>) -> Vec<Value> {
    let detail =
        |(name, value): (&String, &Vec<u8>)| json!({"name": name, "value": String::from_utf8_lossy(value)});
    details.iter().map(detail).collect()
}

fn with_details(mut entry: Value, details: Vec<Value>) -> Value {
    if !details.is_empty() {
        entry["connectionDetails"] = details.into();
    }
    entry
}

/// What a document wants.
pub(crate) fn wanted(request: &RunFunctionRequest, fields: &Map<String, Value>) -> Result<Wanted, String> {
    let missing = "it has no field desired; write desired: {} if no resource is desired";
    let desired = fields.get("desired").and_then(Value::as_object).ok_or(missing)?;
    let before = request.desired.clone().unwrap_or_default();
    let mut composite = composite_wanted(desired, before.composite.clone().unwrap_or_default())?;
    let mut resources = BTreeMap::new();
    for (index, entry) in list(desired, "resources").map_err(|e| format!("desired.{e}"))?.iter().enumerate() {
        let at = |problem: String| format!("desired.resources[{index}]{problem}");
        let (name, resource, derived) =
            resource_wanted(request, &before, entry).map_err(|problem| at(format!(": {problem}")))?;
        composite.connection_details.extend(derived);
        if resources.insert(name.clone(), resource).is_some() {
            return Err(at(format!(".name: {name:?} is the name of another resource")));
        }
    }
    let severity = |text: &str| match text {
        "Fatal" => Some(Severity::Fatal),
        "Warning" => Some(Severity::Warning),
        "Normal" => Some(Severity::Normal),
        _ => None,
    };
    let results = results(fields, severity)?;
    Ok(Wanted { desired: State { composite: Some(composite), resources }, results })
}

fn composite_wanted(desired: &Map<String, Value>, before: Resource) -> Result<Resource, String> {
    let Some(composite) = desired.get("composite").filter(|composite| !composite.is_null()) else {
        return Ok(before);
    };
    let mut wanted = before;
    if let Some(object) = composite.get("resource").filter(|object| !object.is_null()) {
        let status = Struct::try_from(wanted_status(object));
        wanted.resource = Some(status.map_err(|e| format!("desired.composite.resource: {e}"))?);
    }
    let empty = Map::new();
    let fields = composite.as_object().unwrap_or(&empty);
    let details = list(fields, "connectionDetails").map_err(|e| format!("desired.composite.{e}"))?;
    wanted.connection_details = BTreeMap::new();
    for detail in details {
        let text = |field: &str| detail.get(field).and_then(Value::as_str).unwrap_or_default();
        wanted.connection_details.insert(text("name").to_owned(), text("value").as_bytes().to_vec());
    }
    Ok(wanted)
}

type Derived = BTreeMap<String, Vec<u8>>;

/// A desired resource by its name, and the connection details that are derived from it as it is observed.
fn resource_wanted(
    request: &RunFunctionRequest,
    before: &State,
    entry: &Value,
) -> Result<(String, Resource, Derived), String> {
    let name = entry.get("name").and_then(Value::as_str).unwrap_or_default();
    if name.is_empty() {
        return Err("it has no name".to_owned());
    }
    let object = entry.get("resource").cloned().unwrap_or_default();
    let mut resource = Resource::new(object).map_err(|e| format!("resource: {e}"))?;
    let empty = Map::new();
    let fields = entry.as_object().unwrap_or(&empty);
    let checks = list(fields, "readinessChecks")?;
    let observed = request.observed.as_ref().and_then(|state| state.resources.get(name));
    let known = before.resources.get(name);
    let as_sent = known.map(|known| self::entry((&name.to_owned(), known)));
    let is_unchanged =
        as_sent.is_some_and(|sent| sent.get("readinessChecks") == entry.get("readinessChecks"));
    let ready = match known.map(Resource::ready) {
        // What an earlier step found stays as it is, unless this one says how readiness is checked.
        Some(ready) if is_unchanged && ready != Ready::Unspecified => ready,
        _ => {
            let is_ready =
                observed.map_or(Ok(false), |observed| derived::is_ready(observed.object(), checks));
            if is_ready? { Ready::True } else { Ready::False }
        }
    };
    resource.set_ready(ready);
    let details = list(fields, "connectionDetails")?;
    Ok((name.to_owned(), resource, derived::connection_details(observed, details)?))
}

#[cfg(test)]
#[path = "function_io_tests.rs"]
mod tests;

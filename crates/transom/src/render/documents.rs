//! What is printed: the composite resource, what it composes, and on demand the results of functions and the context.

use super::options::{Format, Render};
use serde_json::{Map, Value, json};
use transom_compose::Event;
use transom_compose::offline::Reconciled;
use transom_function::Struct;
use transom_object::yaml;

/// Real times would differ from run to run.
pub(crate) const TIME: &str = "2024-01-01T00:00:00Z";

const API_VERSION: &str = "render.crossplane.io/v1beta1";

/// The documents for one composite resource, in order.
pub(crate) fn documents(options: &Render, input: &Value, reconciled: Reconciled) -> Vec<Value> {
    let mut xr = reconciled.xr;
    if options.include_full_xr {
        let mut full = input.clone();
        merge(&mut full, xr);
        xr = full;
    }
    let mut documents = vec![xr];
    documents.extend(reconciled.decision.apply.iter().map(|application| application.object.clone()));
    documents.iter_mut().for_each(freeze_times);
    if options.include_function_results {
        documents.extend(reconciled.events.iter().map(result));
    }
    if options.include_context {
        documents.push(context(reconciled.decision.context));
    }
    documents
}

/// Puts a value over another, field by field.
fn merge(under: &mut Value, over: Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (key, value) in over {
                merge(under.entry(key).or_insert(Value::Null), value);
            }
        }
        (under, over) => *under = over,
    }
}

/// Makes every condition have changed at the same time.
pub(crate) fn freeze_times(object: &mut Value) {
    let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
        condition.insert("lastTransitionTime".to_owned(), TIME.into());
    }
}

fn result(event: &Event) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": "Result",
        "severity": event.r#type.as_str(), "reason": event.reason, "message": event.text(),
    })
}

pub(crate) fn classic_result(event: &Event) -> Value {
    let severity = match event.r#type {
        transom_compose::EventType::Normal => "SEVERITY_NORMAL",
        transom_compose::EventType::Warning => "SEVERITY_WARNING",
    };
    json!({
        "apiVersion": API_VERSION, "kind": "Result",
        "step": event.step, "severity": severity, "message": event.message,
    })
}

pub(crate) fn context(context: Option<Struct>) -> Value {
    let fields: Map<String, Value> = context.map(Map::from).unwrap_or_default();
    json!({"apiVersion": API_VERSION, "kind": "Context", "fields": fields})
}

/// Documents as text.
pub(crate) fn print(documents: &[Value], format: Format) -> String {
    let mut text = String::new();
    for document in documents {
        match format {
            Format::Yaml => {
                text.push_str("---\n");
                text.push_str(&yaml::write(document));
            }
            Format::Json => {
                text.push_str(&serde_json::to_string_pretty(document).unwrap_or_default());
                text.push('\n');
            }
        }
    }
    text
}

//! A response in its JSON form without what may differ: the tag, and what follows the first colon of a result's message.
//! The tails are errors of Go's libraries, some of which are worded at random.

use serde_json::{Value, json};

/// A response without what may differ.
pub(crate) fn normalized(response: &Value) -> Value {
    let mut response = numbers(response);
    if let Some(meta) = response.get_mut("meta").and_then(Value::as_object_mut) {
        meta.remove("tag");
    }
    // What failed is a condition to some.
    for list in ["results", "conditions"] {
        cut_messages(response.get_mut(list), list == "results");
    }
    response
}

fn cut_messages(list: Option<&mut Value>, all: bool) {
    for result in list.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(message) = result.get("message").and_then(Value::as_str)
            && let Some((head, _)) =
                message.split_once(": ").filter(|(head, _)| all || head.starts_with("cannot "))
        {
            result["message"] = format!("{head}: …").into();
        }
    }
}

/// The wire has one kind of number.
fn numbers(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.iter().map(numbers).collect(),
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), numbers(value))).collect(),
        other => other.clone(),
    }
}

//! One set of events, two APIs: `v1` stores them, `events.k8s.io/v1` shows them under other names.

use serde_json::Value;

/// (in `v1`, in `events.k8s.io/v1`)
const NAMES: [(&str, &str); 7] = [
    ("message", "note"),
    ("involvedObject", "regarding"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

pub(super) fn from_core(event: &mut Value) {
    event["apiVersion"] = "events.k8s.io/v1".into();
    for (core, new) in NAMES {
        rename(event, core, new);
    }
}

pub(super) fn to_core(event: &mut Value) {
    event["apiVersion"] = "v1".into();
    for (core, new) in NAMES {
        rename(event, new, core);
    }
}

fn rename(event: &mut Value, from: &str, to: &str) {
    if let Some(map) = event.as_object_mut()
        && let Some(value) = map.remove(from)
    {
        map.insert(to.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn there_and_back() {
        let core = json!({"apiVersion": "v1", "kind": "Event", "message": "m", "involvedObject": {"name": "x"}, "count": 2, "reason": "R"});
        let mut event = core.clone();
        from_core(&mut event);
        assert_eq!(
            (&event["note"], &event["regarding"]["name"], &event["deprecatedCount"]),
            (&json!("m"), &json!("x"), &json!(2))
        );
        to_core(&mut event);
        assert_eq!(event, core);
    }
}

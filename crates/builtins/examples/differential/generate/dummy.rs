//! Questions for `function-dummy`: responses that it is to give, whole and in part.

use super::Dice;
use super::world;
use serde_json::{Value, json};

fn resources(dice: &mut Dice) -> Value {
    let mut resources = json!({});
    for name in ["a", "b", "c"] {
        if dice.percent(60) {
            resources[name] = json!({"resource": world::some_fields(dice), "ready": dice.one(&["READY_TRUE", "READY_FALSE", "READY_UNSPECIFIED"])});
        }
    }
    resources
}

fn response(dice: &mut Dice) -> Value {
    let mut response = json!({});
    if dice.percent(60) {
        response["desired"] = json!({"resources": resources(dice), "composite": {"resource": world::some_fields(dice), "connectionDetails": {"k": "dg==", "l": ""}}});
    }
    if dice.percent(40) {
        response["meta"] =
            dice.one(&[json!({"ttl": "90s"}), json!({"ttl": "0.5s"}), json!({"ttl": "0s"}), json!({})]);
    }
    if dice.percent(50) {
        response["context"] = json!({"env": world::some_fields(dice), "n": 1, "list": [1, null]});
    }
    if dice.percent(40) {
        response["results"] = json!([{"severity": dice.pick(&["SEVERITY_NORMAL", "SEVERITY_WARNING", "SEVERITY_FATAL"]), "message": "m", "reason": "", "target": "TARGET_COMPOSITE_AND_CLAIM"}]);
    }
    if dice.percent(30) {
        response["conditions"] =
            json!([{"type": "T", "status": "STATUS_CONDITION_TRUE", "reason": "R", "message": ""}]);
    }
    // Rarely: the original was built with a protocol in which this field had another number.
    if dice.percent(3) {
        response["requirements"] = json!({"resources": {"y": {"api_version": "v1", "kind": "Pod", "matchLabels": {"labels": {"a": "b"}}, "namespace": "ns"}}});
    }
    response
}

pub(super) fn question(dice: &mut Dice) -> Value {
    json!({
        "observed": {"composite": {"resource": world::composite(dice)}},
        "desired": {"resources": resources(dice), "composite": {"resource": {"status": {"a": 1}}, "ready": "READY_TRUE", "connectionDetails": {"k": "eA=="}}},
        "context": {"env": {"a": {"b": 1}}, "kept": true},
        "input": {"apiVersion": "dummy.fn.crossplane.io/v1beta1", "kind": "Response", "response": response(dice)},
    })
}

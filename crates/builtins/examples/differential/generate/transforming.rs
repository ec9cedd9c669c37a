//! Questions for `function-status-transformer`: hooks that match conditions of resources and set others.

use super::Dice;
use super::world::{composed, composite};
use serde_json::{Map, Value, json};

const NAMES: [&str; 4] = ["cloudsql", "network", "bucket-1", "bucket-2"];

pub(super) fn question(dice: &mut Dice) -> Value {
    let mut observed = Map::new();
    for name in NAMES {
        if dice.percent(70) {
            let mut object = composed(dice, "Thing", name);
            if dice.percent(60) {
                let status = dice.pick(&["True", "False"]);
                let message = dice.pick(&[
                    "failed: quota exceeded for eu",
                    "cannot create: Error 403: denied",
                    "ok",
                    "",
                ]);
                object["status"]["conditions"] = json!([
                    {"type": "Synced", "status": status, "reason": "ReconcileError", "message": message, "lastTransitionTime": "2024-01-01T00:00:00Z"},
                    {"type": "Ready", "status": dice.pick(&["True", "False"]), "reason": "Available", "lastTransitionTime": "2024-01-01T00:00:00Z"},
                ]);
            }
            observed.insert(name.to_owned(), json!({"resource": object}));
        }
    }
    let hooks: Value = (0..1 + dice.below(3)).map(|_| hook(dice)).collect();
    let mut question = json!({
        "observed": {"composite": {"resource": composite(dice)}, "resources": observed},
        "desired": {"resources": {"a": {"resource": {"kind": "A"}}}},
        "input": {"statusConditionHooks": hooks},
    });
    if dice.percent(25) {
        let extra = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm", "namespace": "ns"}, "status": {"conditions": [
            {"type": "Synced", "status": "True", "reason": "Fine", "lastTransitionTime": "2024-01-01T00:00:00Z"}]}});
        question["context"] = json!({"apiextensions.crossplane.io/extra-resources": {"extra": [extra]}});
    }
    question
}

fn hook(dice: &mut Dice) -> Value {
    let mut hook = json!({});
    if dice.percent(97) {
        hook["matchers"] = (0..1 + dice.below(2)).map(|_| matcher(dice)).collect();
    }
    if dice.percent(85) {
        hook["setConditions"] = (0..1 + dice.below(2)).map(|_| set_condition(dice)).collect();
    }
    if dice.percent(50) {
        let mut event = json!({"event": {"message": message(dice)}});
        if dice.percent(50) {
            event["target"] = json!(dice.pick(&["Composite", "CompositeAndClaim"]));
        }
        if dice.percent(50) {
            event["event"]["type"] = json!(dice.pick(&["Normal", "Warning"]));
        }
        if dice.percent(50) {
            event["event"]["reason"] = json!("Because");
        }
        hook["createEvents"] = json!([event]);
    }
    hook
}

fn matcher(dice: &mut Dice) -> Value {
    let names = ["cloudsql", "bucket-\\d+", ".*", "net", "absent", "bucket-1", "^b", "("];
    let pattern = if dice.percent(97) { dice.pick(&names[..7]) } else { names[7] };
    let mut matcher = json!({"resources": [{"name": pattern}], "conditions": (0..1 + dice.below(2)).map(|_| condition(dice)).collect::<Value>()});
    if dice.percent(60) {
        matcher["type"] = json!(dice.pick(&[
            "AnyResourceMatchesAnyCondition",
            "AnyResourceMatchesAllConditions",
            "AllResourcesMatchAnyCondition",
            "AllResourcesMatchAllConditions",
        ]));
    }
    if dice.percent(10) {
        matcher["includeCompositeAsResource"] = json!(true);
    }
    matcher
}

fn condition(dice: &mut Dice) -> Value {
    let mut condition = json!({"type": dice.pick(&["Synced", "Ready", "Absent"])});
    if dice.percent(60) {
        condition["status"] = json!(dice.pick(&["True", "False", "Unknown"]));
    }
    if dice.percent(25) {
        condition["reason"] = json!(dice.pick(&["ReconcileError", "Available", "Because"]));
    }
    if dice.percent(40) {
        condition["message"] = json!(dice.pick(&[
            "failed: (?P<Error>.+)",
            "Error (?P<Code>\\d+): (?P<Text>.*)",
            ".*",
            "quota",
            "^$"
        ]));
    }
    condition
}

fn message(dice: &mut Dice) -> String {
    dice.pick(&[
        "plain",
        "it failed: {{ .Error }}",
        "{{ .Code }}/{{ .Text }}",
        "{{ .Missing }}",
        "{{ if .Error }}yes{{ end }}",
        "",
    ])
    .to_owned()
}

fn set_condition(dice: &mut Dice) -> Value {
    let mut condition = json!({"type": dice.pick(&["CustomReady", "DatabaseReady"]), "status": dice.pick(&["True", "False"]), "reason": "Matched"});
    if dice.percent(70) {
        condition["message"] = json!(message(dice));
    }
    let mut set = json!({"condition": condition});
    if dice.percent(30) {
        set["force"] = json!(dice.percent(50));
    }
    if dice.percent(40) {
        set["target"] = json!(dice.pick(&["Composite", "CompositeAndClaim"]));
    }
    set
}

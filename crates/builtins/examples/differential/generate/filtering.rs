//! Questions for `function-sequencer` and `function-cel-filter`: regular expressions over the names of resources, and
//! expressions over everything.

use super::Dice;
use super::world::{composite, some_fields};
use serde_json::{Map, Value, json};

const NAMES: [&str; 7] = ["first", "second", "third", "second-a", "second-b", "object-1", "object-2"];

/// Desired and observed resources by name.
fn resources(dice: &mut Dice) -> (Value, Value) {
    let (mut observed, mut desired) = (Map::new(), Map::new());
    for name in NAMES {
        let kind = dice.pick(&["Bucket", "Database"]);
        let mut object = json!({"apiVersion": "aws.example.org/v1", "kind": kind, "metadata": {"name": format!("xr-{name}")}, "spec": {"n": 1}});
        if dice.percent(40) {
            object["metadata"]["namespace"] = json!("ns");
        }
        if dice.percent(70) {
            let mut resource = json!({"resource": object});
            if dice.percent(75) {
                resource["ready"] =
                    json!(dice.pick(&["READY_TRUE", "READY_TRUE", "READY_FALSE", "READY_UNSPECIFIED"]));
            }
            desired.insert(name.to_owned(), resource);
        }
        if dice.percent(45) {
            object["status"] = some_fields(dice);
            observed.insert(name.to_owned(), json!({"resource": object}));
        }
    }
    (observed.into(), desired.into())
}

fn question(dice: &mut Dice, input: &Value) -> Value {
    let (observed, desired) = resources(dice);
    let mut question = json!({
        "observed": {"composite": {"resource": composite(dice)}, "resources": observed},
        "desired": {"resources": desired}, "input": input,
    });
    // The sequencer crashes when it resets the readiness of a composite resource that is not desired yet.
    if dice.percent(99) {
        question["desired"]["composite"] = json!({"resource": {"status": some_fields(dice)}});
        if dice.percent(30) {
            question["desired"]["composite"]["ready"] = json!("READY_TRUE");
        }
    }
    if dice.percent(40) {
        question["context"] = json!({"stage": "prod", "nested": {"n": 3}});
    }
    question
}

fn name(dice: &mut Dice) -> String {
    const PATTERNS: [&str; 12] = [
        "second-.*",
        "^second",
        "object-[0-9]+",
        "third$",
        "first|second",
        "^first|third$",
        ".*",
        "sec",
        "(a|b)",
        "second-[ab]",
        "object-\\d",
        "fir.t",
    ];
    if dice.percent(60) { dice.pick(&NAMES).to_owned() } else { dice.pick(&PATTERNS).to_owned() }
}

pub(super) fn sequencer(dice: &mut Dice) -> Value {
    let mut rules = Vec::new();
    for _ in 0..1 + dice.below(3) {
        let mut rule =
            json!({"sequence": (0..1 + dice.below(4)).map(|_| json!(name(dice))).collect::<Value>()});
        if dice.percent(20) {
            rule["condition"] = json!(expression(dice));
        }
        if dice.percent(6) {
            rule["deleteOnly"] = json!(true);
        }
        rules.push(rule);
    }
    let mut input = json!({"rules": rules});
    for (field, chance) in
        [("enableDeletionSequencing", 8), ("replayDeletion", 20), ("resetCompositeReadiness", 30)]
    {
        if dice.percent(chance) {
            input[field] = json!(dice.percent(70));
        }
    }
    if dice.percent(25) {
        input["usageVersion"] = json!(dice.pick(&["v1", "v2", "v2", "v3"]));
    }
    if dice.percent(15) {
        input["cacheTTL"] = json!(dice.pick(&["5m", "10s", "later"]));
    }
    question(dice, &input)
}

pub(super) fn cel_filter(dice: &mut Dice) -> Value {
    let filters: Value =
        (0..1 + dice.below(3)).map(|_| json!({"name": name(dice), "expression": expression(dice)})).collect();
    question(dice, &json!({"filters": filters}))
}

fn expression(dice: &mut Dice) -> String {
    const EXPRESSIONS: [&str; 30] = [
        "true",
        "false",
        "observed.composite.resource.spec.size == 5.0",
        "observed.composite.resource.spec.region == 'us-east-1'",
        "has(observed.composite.resource.spec.flag) && observed.composite.resource.spec.flag == true",
        "observed.composite.resource.spec.flag",
        "'first' in observed.resources",
        "'third' in desired.resources && desired.resources['third'].ready == 1",
        "context.stage == 'prod'",
        "has(context.stage)",
        "size(observed.resources) > 2",
        "observed.composite.resource.spec.tags.exists(t, t == 'a')",
        "observed.composite.resource.spec.size > 3",
        "observed.composite.resource.metadata.name.startsWith('de')",
        "observed.resources['first'].resource.kind == 'Bucket'",
        "desired.composite.resource.status.size == 5",
        "'stage' in context",
        "observed.composite.resource.spec.name.matches('^demo-[0-9]+')",
        "observed.composite.resource.spec.ratio * 2.0 == 3.0",
        "1 + 1",
        "nonsense(",
        "observed.unheard == 1",
        "'a' + 'b' == 'ab'",
        "observed.composite.resource.spec.labels['tier'] == 'front'",
        "observed.composite.resource.spec.items.all(i, has(i.name))",
        "!has(observed.composite.resource.spec.missing)",
        "observed.composite.resource.spec.region in ['us-east-1', 'eu-west-1']",
        "size(desired.resources) >= 1 ? true : false",
        "desired.resources.exists(n, n.startsWith('second'))",
        "observed.composite.connection_details.size() == 0",
    ];
    // The simple ones more often, so that most questions get an answer.
    if dice.percent(45) {
        dice.pick(&EXPRESSIONS[..10]).to_owned()
    } else {
        dice.pick(&EXPRESSIONS).to_owned()
    }
}

//! Questions for `function-environment-configs` and `function-extra-resources`: references and selectors, before and
//! after what they require has been found.

use super::Dice;
use super::world::{composite, path, some_fields};
use serde_json::{Value, json};

pub(super) fn environment_configs(dice: &mut Dice) -> Value {
    let count = dice.below(4);
    let mut spec = json!({});
    if count > 0 || dice.percent(50) {
        spec["environmentConfigs"] = (0..count).map(|_| environment_config(dice)).collect();
    }
    if dice.percent(40) {
        spec["defaultData"] = some_fields(dice);
    }
    if dice.percent(30) {
        spec["policy"] = json!({"resolution": dice.pick(&["Optional", "Required"])});
    }
    let found = |dice: &mut Dice, i: usize| {
        let data = if dice.percent(90) { json!({"data": some_fields(dice)}) } else { json!({}) };
        let mut config = json!({"apiVersion": "apiextensions.crossplane.io/v1beta1", "kind": "EnvironmentConfig", "metadata": {"name": format!("c{i}")}});
        if let (Some(config), Value::Object(data)) = (config.as_object_mut(), data) {
            config.extend(data);
        }
        config
    };
    let keys = (0..count).map(|i| format!("environment-config-{i}")).collect::<Vec<_>>();
    let mut question =
        json!({"observed": {"composite": {"resource": composite(dice)}}, "input": {"spec": spec}});
    answer(dice, &mut question, &keys, found);
    if dice.percent(50) {
        question["context"] =
            json!({"apiextensions.crossplane.io/environment": some_fields(dice), "other": 1});
    }
    question
}

fn environment_config(dice: &mut Dice) -> Value {
    let mut source = json!({});
    if dice.percent(50) {
        source["ref"] = json!({"name": dice.pick(&["c0", "c1"])});
        if dice.percent(50) {
            source["type"] = json!("Reference");
        }
    } else {
        source["type"] = json!("Selector");
        let mut selector = selector(dice);
        if dice.percent(70) {
            selector["mode"] = json!(dice.pick(&["Multiple", "Multiple", "Single"]));
        }
        source["selector"] = selector;
    }
    if dice.percent(25) {
        // Not where other data goes: the original merges the places of configs in no particular order.
        source["toFieldPath"] = json!(dice.pick(&["placed.a", "elsewhere", "places[1]", "x..y"]));
    }
    source
}

fn selector(dice: &mut Dice) -> Value {
    let mut selector = json!({"matchLabels": (0..1 + dice.below(2)).map(|_| label(dice)).collect::<Value>()});
    for (field, chance) in [("minMatch", 30), ("maxMatch", 30)] {
        if dice.percent(chance) {
            selector[field] = json!(dice.below(4));
        }
    }
    if dice.percent(35) {
        let (below, (path, _)) = (dice.pick(&["data", "data", "metadata", "spec"]), path(dice));
        selector["sortByFieldPath"] =
            json!(dice.one(&["metadata.name".to_owned(), format!("{below}.{path}")]));
    }
    selector
}

fn label(dice: &mut Dice) -> Value {
    let mut label = json!({"key": dice.pick(&["stage", "region", "a/b"])});
    if dice.percent(40) {
        label["type"] = json!("Value");
        label["value"] = json!(dice.pick(&["prod", "eu", ""]));
    } else {
        if dice.percent(50) {
            label["type"] = json!("FromCompositeFieldPath");
        }
        label["valueFromFieldPath"] = json!(format!(
            "spec.{}",
            dice.pick(&["region", "name", "labels.tier", "missing", "size", "long", "url"])
        ));
        if dice.percent(40) {
            label["fromFieldPathPolicy"] = json!(dice.pick(&["Optional", "Required"]));
        }
    }
    label
}

/// What the control plane found, once it has looked.
fn answer(
    dice: &mut Dice,
    question: &mut Value,
    keys: &[String],
    mut found: impl FnMut(&mut Dice, usize) -> Value,
) {
    if dice.percent(12) {
        return;
    }
    let mut required = json!({});
    for key in keys {
        if dice.percent(6) {
            continue;
        }
        // One more often than none or several: that is what references and single selectors want.
        let count = if dice.percent(65) { 1 } else { dice.below(4) };
        let items: Vec<Value> = (0..count).map(|i| json!({"resource": found(dice, 3 - i)})).collect();
        required[key] = if items.is_empty() { json!({}) } else { json!({"items": items}) };
    }
    question[if dice.percent(95) { "requiredResources" } else { "extraResources" }] = required;
}

pub(super) fn extra_resources(dice: &mut Dice) -> Value {
    let count = dice.below(4);
    let names: Vec<String> = (0..count).map(|i| format!("into{i}")).collect();
    let sources: Vec<Value> = names.iter().map(|into| extra_resource(dice, into)).collect();
    let mut spec = json!({"extraResources": sources});
    if dice.percent(30) {
        spec["policy"] = json!({"resolution": dice.pick(&["Optional", "Required"])});
    }
    let found = |dice: &mut Dice, i: usize| {
        json!({"apiVersion": "example.org/v1", "kind": "Extra", "metadata": {"name": format!("e{i}"), "namespace": "ns"},
            "data": some_fields(dice), "spec": {"n": i}})
    };
    let mut question =
        json!({"observed": {"composite": {"resource": composite(dice)}}, "input": {"spec": spec}});
    answer(dice, &mut question, &names, found);
    if dice.percent(40) {
        question["context"] = json!({"apiextensions.crossplane.io/extra-resources": {"old": []}, "other": 1});
    }
    question
}

fn extra_resource(dice: &mut Dice, into: &str) -> Value {
    let mut source = json!({"into": into, "kind": "Extra", "apiVersion": "example.org/v1"});
    if dice.percent(30) {
        source["namespace"] = json!("ns");
    }
    if dice.percent(50) {
        source["ref"] = json!({"name": "e1"});
        if dice.percent(50) {
            source["type"] = json!("Reference");
        }
    } else {
        source["type"] = json!("Selector");
        source["selector"] = selector(dice);
    }
    source
}

//! Questions for `function-tag-manager`: tags added, kept and removed on kinds that have tags and kinds that do not.

use super::Dice;
use super::world::{composite, some_fields};
use serde_json::{Map, Value, json};

const KINDS: [(&str, &str); 8] = [
    ("s3.aws.upbound.io/v1beta1", "Bucket"),
    ("ec2.aws.upbound.io/v1beta1", "VPC"),
    ("ec2.aws.m.upbound.io/v1beta1", "Subnet"),
    ("azure.upbound.io/v1beta1", "ResourceGroup"),
    ("network.azure.m.upbound.io/v1beta1", "VirtualNetwork"),
    ("iam.aws.upbound.io/v1beta1", "RolePolicyAttachment"),
    ("example.org/v1", "Thing"),
    ("v1", "ConfigMap"),
];

pub(super) fn question(dice: &mut Dice) -> Value {
    let (mut observed, mut desired) = (Map::new(), Map::new());
    for i in 0..1 + dice.below(5) {
        let (api_version, kind) = dice.one(&KINDS);
        let mut object =
            json!({"apiVersion": api_version, "kind": kind, "metadata": {}, "spec": {"forProvider": {}}});
        if dice.percent(50) {
            object["spec"]["forProvider"]["tags"] = tags(dice);
        }
        if dice.percent(15) {
            let place = dice.pick(&["labels", "annotations"]);
            let said = dice.one(&[json!("true"), json!("True"), json!("false"), json!("")]);
            object["metadata"][place] = json!({"tag-manager.fn.crossplane.io/ignore-resource": said});
        }
        if dice.percent(60) {
            let mut existing = object.clone();
            existing["spec"]["forProvider"]["tags"] = tags(dice);
            if dice.percent(60) {
                existing["status"] = json!({"atProvider": {"tags": tags(dice), "tagsAll": tags(dice)}});
            }
            observed.insert(format!("r{i}"), json!({"resource": existing}));
        }
        desired.insert(
            format!("r{i}"),
            json!({"resource": object, "ready": dice.pick(&["READY_TRUE", "READY_UNSPECIFIED"])}),
        );
    }
    let mut xr = composite(dice);
    xr["spec"]["tags"] = tags(dice);
    xr["spec"]["keys"] = json!(["owner", "cost"]);
    let mut question = json!({
        "observed": {"composite": {"resource": xr}, "resources": observed}, "desired": {"resources": desired}, "input": input(dice),
    });
    if dice.percent(60) {
        let mut environment = some_fields(dice);
        environment["tags"] = tags(dice);
        environment["keys"] = json!(["team"]);
        question["context"] = json!({"apiextensions.crossplane.io/environment": environment});
    }
    question
}

fn tags(dice: &mut Dice) -> Value {
    let mut tags = Map::new();
    for (key, value) in
        [("owner", "ada"), ("cost", "42"), ("team", "infra"), ("env", "prod"), ("external", "yes")]
    {
        if dice.percent(45) {
            tags.insert(key.to_owned(), json!(if dice.percent(80) { value } else { "other" }));
        }
    }
    if dice.percent(3) {
        tags.insert("odd".to_owned(), super::hostile::odd(dice));
    }
    tags.into()
}

fn input(dice: &mut Dice) -> Value {
    let mut input = json!({"apiVersion": "tag-manager.fn.crossplane.io/v1beta1", "kind": "ManagedTags"});
    for (list, chance) in [("addTags", 75), ("ignoreTags", 45), ("removeTags", 40)] {
        if dice.percent(chance) {
            input[list] = (0..1 + dice.below(2)).map(|_| entry(dice, list)).collect();
        }
    }
    input
}

fn entry(dice: &mut Dice, list: &str) -> Value {
    let mut entry = json!({});
    let (field, path) = if list == "addTags" { ("tags", "tags") } else { ("keys", "keys") };
    match dice.below(4) {
        0 => {
            let path = if dice.percent(85) { format!("spec.{path}") } else { "spec.missing".to_owned() };
            entry = json!({"type": "FromCompositeFieldPath", "fromFieldPath": path});
        }
        1 => {
            let path = if dice.percent(85) { path } else { "missing" };
            entry = json!({"type": "FromEnvironmentFieldPath", "fromFieldPath": path});
        }
        _ => {
            if dice.percent(60) {
                entry["type"] = json!("FromValue");
            }
            entry[field] = if list == "addTags" {
                json!({"owner": "grace", "added": "yes"})
            } else {
                dice.one(&[json!(["owner"]), json!(["external", "env"]), json!(["absent"]), json!([])])
            };
        }
    }
    if list != "removeTags" && dice.percent(50) {
        entry["policy"] = json!(dice.pick(&["Replace", "Retain"]));
    }
    entry
}

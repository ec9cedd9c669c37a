//! Questions for `function-cidr`: each of its calculations, with what it needs and now and then with what it does not.
//!
//! The original dies of what cannot be calculated, so that few prefixes are too narrow for what is asked of them.

use super::Dice;
use serde_json::{Value, json};

/// A prefix that has room for some bits, as a rule.
fn prefix(dice: &mut Dice) -> String {
    const ADDRESSES: [&str; 9] = [
        "10.0.0.0",
        "192.168.5.77",
        "172.16.0.0",
        "0.0.0.0",
        "255.255.255.0",
        "2001:db8::1",
        "::",
        "fd00:1:2::",
        "2001:DB8:0:0::ffff:1",
    ];
    const WRONG: [&str; 6] = ["300.0.0.1/8", "010.0.0.0/8", "10.0.0.0/33", "::1/129", "10.0.0.0", "x"];
    if dice.percent(2) {
        return dice.pick(&WRONG).to_owned();
    }
    let address = dice.pick(&ADDRESSES);
    let most = if address.contains(':') { 128 } else { 32 };
    let room = if dice.percent(1) { 0 } else { 14 };
    format!("{address}/{}", dice.below(most - room + 1))
}

/// As many bits as the subnets are longer by.
fn bits(dice: &mut Dice) -> Vec<usize> {
    (0..1 + dice.below(4))
        .map(|_| if dice.percent(98) { 3 + dice.below(6) } else { 1 + dice.below(34) })
        .collect()
}

pub(super) fn question(dice: &mut Dice) -> Value {
    let bits_of_all = bits(dice);
    let spec = json!({
        "prefix": prefix(dice), "bits": bits_of_all, "zones": ["a", "b", "c"], "text": "x", "func": "cidrsubnets",
        "prefixes": [{"prefix": prefix(dice), "newBits": bits(dice)}, {"prefix": prefix(dice), "newBits": [4, 5], "offset": dice.below(3)}],
    });
    json!({
        "observed": {"composite": {"resource": {"apiVersion": "example.org/v1", "kind": "XR", "spec": spec}}},
        "desired": {
            "composite": {"resource": {"status": {"net": "10.9.0.0/16"}}, "ready": "READY_TRUE", "connectionDetails": {"k": "dg=="}},
            "resources": {"vpc": {"resource": {"spec": {"cidr": prefix(dice)}}}},
        },
        "context": {"env": {"net": prefix(dice), "number": 1}, "a.b": {"nets": [prefix(dice)]}},
        "input": input(dice),
    })
}

fn input(dice: &mut Dice) -> Value {
    let mut input = json!({"apiVersion": "cidr.fn.crossplane.io/v1beta1", "kind": "Parameters"});
    let function = dice.pick(&[
        "cidrhost",
        "cidrnetmask",
        "cidrsubnet",
        "cidrsubnets",
        "cidrsubnetloop",
        "multiprefixloop",
    ]);
    match dice.below(30) {
        0 => input["cidrFuncField"] = dice.pick(&["spec.func", "spec.none", "spec.text"]).into(),
        1 => input["cidrFunc"] = dice.pick(&["other", ""]).into(),
        _ => input["cidrFunc"] = function.into(),
    }
    if function == "multiprefixloop" {
        prefixes(dice, &mut input);
    } else {
        one_prefix(dice, &mut input);
    }
    let wants = |dice: &mut Dice, functions: &[&str]| {
        let chance = if functions.contains(&function) { 97 } else { 2 };
        dice.percent(chance)
    };
    if wants(dice, &["cidrhost"]) {
        input["hostNum"] = dice.one(&[json!(1), json!(5), json!(200), json!(255), json!(0), json!(-1)]);
    }
    if wants(dice, &["cidrsubnet", "cidrsubnetloop"]) {
        input["newBits"] = json!([4 + dice.below(8)]);
    }
    if wants(dice, &["cidrsubnets"]) {
        if dice.percent(70) {
            input["newBits"] = json!(bits(dice));
        } else {
            input["newBitsField"] =
                dice.pick(&["spec.bits", "spec.bits", "spec.bits", "spec.text", "spec.none"]).into();
        }
    }
    if wants(dice, &["cidrsubnet"]) {
        input["netNum"] = dice.below(16).into();
    }
    if wants(dice, &["cidrsubnetloop"]) {
        loop_over(dice, &mut input);
    }
    if dice.percent(30) {
        let fields = [
            "status.net",
            "status.nets",
            "status.list[0]",
            "spec.deep.er",
            "status[a.b]",
            "kind.x",
            "status..x",
        ];
        input["outputField"] = dice.pick(&fields).into();
    }
    input
}

fn one_prefix(dice: &mut Dice, input: &mut Value) {
    const FIELDS: [&str; 9] = [
        "spec.prefix",
        "desired.composite.resource.status.net",
        "desired.resources.vpc.resource.spec.cidr",
        "context.env.net",
        r"context.a\.b.nets.0",
        "spec.none",
        "desired.resources.none.resource.x",
        "desired.other",
        "context.env.number",
    ];
    let (literal, field) = match dice.below(50) {
        0 => (true, true),
        1 => (false, false),
        2..30 => (true, false),
        _ => (false, true),
    };
    if literal {
        input["prefix"] = prefix(dice).into();
    }
    if field {
        let among = if dice.percent(95) { 5 } else { FIELDS.len() };
        input["prefixField"] = dice.pick(&FIELDS[..among]).into();
    }
}

fn prefixes(dice: &mut Dice, input: &mut Value) {
    if dice.percent(45) {
        let field = if dice.percent(95) { "spec.prefixes" } else { dice.pick(&["spec.text", "spec.none"]) };
        input["multiPrefixField"] = field.into();
    } else {
        let one =
            |dice: &mut Dice| json!({"prefix": prefix(dice), "newBits": bits(dice), "offset": dice.below(3)});
        input["multiPrefix"] = (0..1 + dice.below(3)).map(|_| one(dice)).collect();
    }
}

fn loop_over(dice: &mut Dice, input: &mut Value) {
    match dice.below(20) {
        0..8 => input["netNumCount"] = dice.below(6).into(),
        8..12 => input["netNumItems"] = json!(["x", "y"]),
        12..19 => input["netNumItemsField"] = "spec.zones".into(),
        _ => input["netNumItemsField"] = "spec.none".into(),
    }
    if dice.percent(30) {
        input["offset"] = dice.below(4).into();
    }
}

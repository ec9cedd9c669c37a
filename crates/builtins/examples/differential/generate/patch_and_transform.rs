//! Questions for `function-patch-and-transform`: every type of patch, policy, transform, readiness check and connection
//! detail, over objects in which some sources are missing or of another type.

use super::Dice;
use super::world::{Kind, composed, composite, details, path, some_fields};
use serde_json::{Value, json};

const NAMES: [&str; 4] = ["bucket", "database", "network", "extra"];

pub(super) fn question(dice: &mut Dice) -> Value {
    let count = 1 + dice.below(3);
    let mut resources = serde_json::Map::new();
    for (i, name) in NAMES.iter().enumerate().take(count + 1) {
        if dice.percent(50) {
            let mut resource = json!({"resource": composed(dice, "Thing", &format!("{name}-{i}"))});
            if dice.percent(60) {
                resource["connectionDetails"] = details(dice);
            }
            resources.insert((*name).to_owned(), resource);
        }
    }
    let mut question = json!({
        "observed": {"composite": {"resource": composite(dice)}, "resources": resources},
        "input": input(dice, count),
    });
    if dice.percent(70) {
        question["desired"] = desired(dice);
    }
    if dice.percent(60) {
        question["context"] = context(dice);
    }
    question
}

/// What earlier steps want.
fn desired(dice: &mut Dice) -> Value {
    let mut desired = json!({});
    if dice.percent(70) {
        desired["composite"] = json!({"resource": {"status": some_fields(dice)}});
        if dice.percent(40) {
            desired["composite"]["connectionDetails"] = details(dice);
        }
        if dice.percent(30) {
            desired["composite"]["ready"] = json!(dice.pick(&["READY_TRUE", "READY_FALSE"]));
        }
    }
    for name in NAMES {
        if dice.percent(35) {
            let mut resource = json!({"resource": composed(dice, "Earlier", name)});
            if dice.percent(40) {
                resource["ready"] = json!(dice.pick(&["READY_TRUE", "READY_FALSE", "READY_UNSPECIFIED"]));
            }
            if dice.percent(20) {
                resource["connectionDetails"] = details(dice);
            }
            desired["resources"][name] = resource;
        }
    }
    desired
}

fn context(dice: &mut Dice) -> Value {
    let mut environment = some_fields(dice);
    if dice.percent(50) {
        environment["apiVersion"] = json!("internal.crossplane.io/v1alpha1");
        environment["kind"] = json!("Environment");
    } else if dice.percent(10) {
        environment["apiVersion"] = json!(dice.pick(&["a/b/c", "", "v1"]));
    }
    let mut context = json!({"example.org/other": {"kept": [1, "x"]}});
    if dice.percent(85) {
        context["apiextensions.crossplane.io/environment"] = environment;
    }
    context
}

fn input(dice: &mut Dice, count: usize) -> Value {
    let mut input = json!({"apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources"});
    if dice.percent(40) {
        let sets =
            (0..2).map(|i| json!({"name": format!("set-{i}"), "patches": patches(dice, PatchOwner::Set)}));
        input["patchSets"] = sets.collect();
    }
    let sets = input["patchSets"].is_array();
    let templates: Vec<Value> = (0..count).map(|i| template(dice, NAMES[i], sets)).collect();
    input["resources"] = templates.into();
    if dice.percent(35) {
        input["environment"] = json!({"patches": patches(dice, PatchOwner::Environment)});
    }
    if dice.percent(20) {
        let mut to = json!({});
        if dice.percent(60) {
            to["name"] = json!("creds");
        }
        if dice.percent(40) {
            to["namespace"] = json!("vault");
        }
        if dice.percent(50) {
            to["patches"] = patches(dice, PatchOwner::Secret);
        }
        input["writeConnectionSecretToRef"] = to;
    }
    input
}

fn template(dice: &mut Dice, name: &str, sets: bool) -> Value {
    let mut template = json!({"name": name});
    if dice.percent(97) {
        template["base"] = base(dice);
    }
    if dice.percent(90) {
        let mut all = patches(dice, PatchOwner::Resource);
        if sets
            && dice.percent(50)
            && let Some(all) = all.as_array_mut()
        {
            let at = dice.below(all.len() + 1);
            let set = dice.pick(&["set-0", "set-0", "set-1"]);
            all.insert(at, json!({"type": "PatchSet", "patchSetName": set}));
        }
        template["patches"] = all;
    }
    if dice.percent(40) {
        template["connectionDetails"] = (0..1 + dice.below(4)).map(|_| connection_detail(dice)).collect();
    }
    if dice.percent(55) {
        template["readinessChecks"] = (0..1 + dice.below(3)).map(|_| readiness_check(dice)).collect();
    }
    template
}

fn base(dice: &mut Dice) -> Value {
    let mut base = json!({
        "apiVersion": "aws.example.org/v1beta1", "kind": "Thing",
        "metadata": {"labels": {"tier": "back"}},
        "spec": {
            "forProvider": {"region": "eu", "size": 1, "tags": ["a", "z"], "numbers": [1, 9], "nothing": null, "empty": "", "zero": 0,
                "nested": {"a": {"b": {"c": "base", "keep": true}}}, "items": [{"name": "x"}, {"name": "w", "size": 2}], "labels": {"tier": "back"}},
            "list": [null, {"x": 1}], "matrix": [[1, 2], [3, 4]],
        },
    });
    match dice.below(200) {
        0 => base = json!({"apiVersion": "v1"}),
        1 => base = json!({"kind": "Bare"}),
        2 => base["metadata"] = json!(null),
        3 => base["metadata"] = json!({"name": "fixed", "namespace": "fixed-ns"}),
        4 => base["spec"] = json!(null),
        5 => base["apiVersion"] = json!("a/b/c"),
        _ => {}
    }
    base
}

#[derive(Clone, Copy, PartialEq)]
enum PatchOwner {
    Resource,
    Set,
    Environment,
    Secret,
}

fn patches(dice: &mut Dice, place: PatchOwner) -> Value {
    let most = if place == PatchOwner::Resource { 5 } else { 3 };
    (0..1 + dice.below(most)).map(|_| patch(dice, place)).collect()
}

fn patch(dice: &mut Dice, place: PatchOwner) -> Value {
    let everywhere = [
        "FromCompositeFieldPath",
        "FromCompositeFieldPath",
        "FromCompositeFieldPath",
        "ToCompositeFieldPath",
        "ToCompositeFieldPath",
        "CombineFromComposite",
        "CombineToComposite",
        "FromEnvironmentFieldPath",
        "ToEnvironmentFieldPath",
        "CombineFromEnvironment",
        "CombineToEnvironment",
        "",
    ];
    let environment = [
        "FromCompositeFieldPath",
        "ToCompositeFieldPath",
        "CombineFromComposite",
        "CombineToComposite",
        "FromEnvironmentFieldPath",
        "ToEnvironmentFieldPath",
    ];
    let kind = match place {
        PatchOwner::Resource | PatchOwner::Set => dice.pick(&everywhere),
        PatchOwner::Environment => dice.pick(&environment),
        PatchOwner::Secret => {
            dice.pick(&["FromCompositeFieldPath", "FromCompositeFieldPath", "CombineFromComposite", ""])
        }
    };
    let kind =
        if dice.percent(1) { dice.pick(&["Unheard", "PatchSet", "CombineFromEnvironment"]) } else { kind };
    let mut patch = json!({});
    if !kind.is_empty() {
        patch["type"] = json!(kind);
    }
    let found = if kind.starts_with("Combine") {
        let variables: Vec<Value> =
            (0..1 + dice.below(3)).map(|_| json!({"fromFieldPath": source(dice, kind).0})).collect();
        patch["combine"] =
            json!({"strategy": "string", "string": {"fmt": combination(dice)}, "variables": variables});
        patch["toFieldPath"] = json!(target(dice, kind, place));
        Kind::Text
    } else {
        let (path, found) = source(dice, kind);
        patch["fromFieldPath"] = json!(path);
        if dice.percent(85) {
            patch["toFieldPath"] = json!(target(dice, kind, place));
        }
        found
    };
    if dice.percent(45) {
        patch["transforms"] = transforms(dice, found);
    }
    if dice.percent(40) {
        patch["policy"] = policy(dice);
    }
    patch
}

fn policy(dice: &mut Dice) -> Value {
    let mut policy = json!({});
    if dice.percent(30) {
        policy["fromFieldPath"] = json!(dice.pick(&["Required", "Required", "Optional"]));
    }
    if dice.percent(60) {
        policy["toFieldPath"] = json!(dice.pick(&[
            "Replace",
            "MergeObjects",
            "MergeObjectsAppendArrays",
            "ForceMergeObjects",
            "ForceMergeObjectsAppendArrays",
            "MergeObject",
            "AppendArray",
        ]));
    }
    if dice.below(300) == 0 {
        policy["toFieldPath"] = json!("Sometimes");
    }
    policy
}

fn source(dice: &mut Dice, kind: &str) -> (String, Kind) {
    const MALFORMED: [&str; 9] = [".a", "a..b", "a[", "a]", "spec.", "[0]", "spec.size.", "spec[*]", ""];
    const OTHER: [&str; 5] = [
        "metadata.name",
        "metadata.namespace",
        "metadata.annotations[example.org/note]",
        "kind",
        "metadata.uid",
    ];
    let (field, found) = path(dice);
    if dice.below(300) == 0 {
        return (dice.pick(&MALFORMED).to_owned(), Kind::Anything);
    }
    if kind.contains("Environment") && kind.contains("From") {
        return (field, found);
    }
    if dice.percent(12) {
        return (dice.pick(&OTHER).to_owned(), Kind::Text);
    }
    let below = match kind {
        "ToCompositeFieldPath" | "CombineToComposite" | "ToEnvironmentFieldPath" | "CombineToEnvironment" => {
            dice.pick(&["status.atProvider", "spec.forProvider"])
        }
        _ => dice.pick(&["spec", "spec", "spec", "status"]),
    };
    (format!("{below}.{field}"), found)
}

fn target(dice: &mut Dice, kind: &str, place: PatchOwner) -> String {
    const SPECIAL: [&str; 12] = [
        "metadata.labels[example.org/x]",
        "metadata.annotations.note",
        "spec.list[0].made",
        "spec.list[3]",
        "spec.matrix[*][0]",
        "spec.forProvider.items[*].name",
        "spec.forProvider.labels[*]",
        "spec.forProvider.tags[*]",
        "metadata.name",
        "metadata.namespace",
        "spec.made[2].list[1].x",
        "spec.matrix[1][5]",
    ];
    const WRONG: [&str; 15] = [
        "spec.forProvider.items[*].size",
        "spec.forProvider.items[*].absent",
        "spec.forProvider.nothing[*]",
        "spec.list[1025]",
        "spec.forProvider.nothing.x",
        "spec.forProvider.size.x",
        "spec.forProvider.missing[*].x",
        "spec.list.*",
        "",
        "kind",
        "apiVersion",
        "spec..x",
        "metadata",
        "a[b",
        "spec.forProvider.region[*]",
    ];
    if place == PatchOwner::Secret {
        return dice.pick(&["name", "namespace", "name", "namespace", "other", "name.x"]).to_owned();
    }
    if dice.below(150) == 0 {
        return dice.pick(&WRONG).to_owned();
    }
    // Written to by name, or by a path that goes through what is there.
    let field = if dice.percent(60) {
        path(dice).0
    } else {
        dice.pick(&["made", "made.deeper", "made2[1]", "tags", "labels", "nested"]).to_owned()
    };
    if kind.contains("ToComposite") {
        return format!("status.{field}");
    }
    if kind.contains("ToEnvironment") {
        return field;
    }
    if dice.percent(20) { dice.pick(&SPECIAL).to_owned() } else { format!("spec.forProvider.{field}") }
}

pub(super) fn format(dice: &mut Dice) -> String {
    let whole = [
        "%s",
        "%s",
        "%s",
        "prefix-%s",
        "%s-suffix",
        "%v",
        "%d",
        "%q",
        "%x",
        "%X",
        "%t",
        "%f",
        "%.2f",
        "%8.3f|",
        "%e",
        "%g",
        "%G",
        "%+v",
        "%#v",
        "%T",
        "%c",
        "%U",
        "%o",
        "%b",
        "%05d",
        "%-8s|",
        "%8s|",
        "%.3s",
        "%+d",
        "% d",
        "%x|%X",
        "%[1]s/%[1]v",
        "%[2]s",
        "%%",
        "100%",
        "plain",
        "%!",
        "%z",
        "%s%s",
        "%*d",
        "%-05d",
        "%+q",
        "%#q",
        "%#x",
        "% x",
        "%6.2f%%",
        "%v and %v",
        "%[1]",
        "%[x]s",
        "%.*f",
        "%O",
        "%#o",
        "%w",
        "%08.3f",
        "%+.1e",
        "%s\n",
        "é%sé",
        "%[3]*.[2]*[1]f",
        "%.0f",
        "%010s",
        "%#U",
        "%x %t",
        "%5t|",
        "%5q",
        "%v%",
    ];
    if dice.percent(85) {
        return dice.pick(&whole).to_owned();
    }
    let mut format = String::from("%");
    for _ in 0..dice.below(3) {
        format.push_str(dice.pick(&["+", "-", "#", " ", "0", "[1]"]));
    }
    for _ in 0..dice.below(3) {
        format.push_str(dice.pick(&["5", ".2", "12", ".", "*"]));
    }
    format.push_str(dice.pick(&["s", "v", "d", "q", "x", "f", "g", "e", "t", "T", "c", "U", "b", "o", "X"]));
    format
}

fn combination(dice: &mut Dice) -> String {
    let separator = dice.pick(&["-", "/", "", " "]);
    let verbs: Vec<String> = (0..1 + dice.below(3))
        .map(|_| if dice.percent(70) { "%s".to_owned() } else { format(dice) })
        .collect();
    verbs.join(separator)
}

/// Transforms that suit what comes in, most of the time.
fn transforms(dice: &mut Dice, mut found: Kind) -> Value {
    let mut all = Vec::new();
    for _ in 0..1 + dice.below(3) {
        let suits = if dice.percent(2) { Kind::Anything } else { found };
        let (transform, next) = match suits {
            Kind::Text => text_transform(dice),
            Kind::Number if dice.percent(50) => (math(dice), Kind::Number),
            Kind::Number | Kind::Truth if dice.percent(60) => {
                let (to, next) = dice.one(&[
                    ("string", Kind::Text),
                    ("int64", Kind::Number),
                    ("bool", Kind::Truth),
                    ("float64", Kind::Number),
                    ("int", Kind::Number),
                ]);
                (json!({"type": "convert", "convert": {"toType": to}}), next)
            }
            Kind::List if dice.percent(50) => {
                let separator = dice.pick(&[",", ", ", "", "-", "é", "||"]);
                (
                    json!({"type": "string", "string": {"type": "Join", "join": {"separator": separator}}}),
                    Kind::Text,
                )
            }
            Kind::Anything if dice.percent(8) => anything(dice),
            _ => (json!({"type": "string", "string": of_anything(dice)}), Kind::Text),
        };
        all.push(transform);
        found = next;
    }
    all.into()
}

fn text_transform(dice: &mut Dice) -> (Value, Kind) {
    match dice.below(10) {
        0 => {
            let mut matching = matching(dice);
            if dice.percent(90)
                && let Some(matching) = matching.as_object_mut()
                && matching.get("fallbackTo") == Some(&json!("Input"))
            {
                matching.remove("fallbackValue");
            }
            (json!({"type": "match", "match": matching}), Kind::Anything)
        }
        1 => {
            // Something to map to for whatever comes, in most cases.
            let known = json!({"type": "match", "match": {"patterns": [{"type": "regexp", "regexp": ".*", "result": dice.pick(&["a", "us-east-1", "x"])}]}});
            if dice.percent(85) { (known, Kind::Text) } else { (map(), Kind::Anything) }
        }
        2..=7 => (json!({"type": "string", "string": of_anything(dice)}), Kind::Text),
        8 => (json!({"type": "convert", "convert": {"toType": "string"}}), Kind::Text),
        _ if dice.percent(15) => anything(dice),
        _ if dice.percent(30) => (json!({"type": "string", "string": of_text(dice)}), Kind::Text),
        _ => (json!({"type": "string", "string": of_anything(dice)}), Kind::Text),
    }
}

fn math(dice: &mut Dice) -> Value {
    let kind = dice.pick(&["Multiply", "ClampMin", "ClampMax"]);
    let number = dice.one(&[2, 3, 0, -1, 1000, 1_000_000_007, i64::from(i32::MAX)]);
    let field = match kind {
        "Multiply" => "multiply",
        "ClampMin" => "clampMin",
        _ => "clampMax",
    };
    json!({"type": "math", "math": {"type": kind, field: number}})
}

fn map() -> Value {
    let pairs = json!({
        "us-east-1": "US", "eu-west-1": {"k": [1, 2.5]}, "a": 1, "true": false, "text": null, "5": "five", "hello": ["x"],
        "demo-42-prod": "prod", "x": 12345678, "": "empty", "42": true,
    });
    json!({"type": "map", "map": pairs})
}

/// A transform that suits by luck only.
fn anything(dice: &mut Dice) -> (Value, Kind) {
    match dice.below(5) {
        0 => (math(dice), Kind::Number),
        1 => (map(), Kind::Anything),
        2 => (json!({"type": "match", "match": matching(dice)}), Kind::Anything),
        3 => (json!({"type": "string", "string": of_text(dice)}), Kind::Text),
        _ => {
            let to = dice.pick(&["string", "int64", "int", "bool", "float64", "object", "array"]);
            let mut convert = json!({"toType": to});
            if matches!(to, "object" | "array") && dice.percent(90) {
                convert["format"] = json!("json");
            } else if dice.percent(35) {
                convert["format"] = json!(dice.pick(&["none", "quantity", "json", "quantity"]));
            }
            (json!({"type": "convert", "convert": convert}), Kind::Anything)
        }
    }
}

fn matching(dice: &mut Dice) -> Value {
    let results = [json!("matched"), json!(12), json!({"a": 1.5}), json!(null), json!([1, "x"]), json!(true)];
    let mut patterns = Vec::new();
    for _ in 0..1 + dice.below(3) {
        let mut pattern = if dice.percent(50) {
            json!({"type": "literal", "literal": dice.pick(&["us-east-1", "a", "text", "", "hello"])})
        } else {
            json!({"type": "regexp", "regexp": regexp(dice)})
        };
        if dice.percent(90) {
            pattern["result"] = dice.one(&results);
        }
        if dice.percent(3)
            && let Some(pattern) = pattern.as_object_mut()
        {
            pattern.remove("type");
        }
        patterns.push(pattern);
    }
    let mut matching = json!({"patterns": patterns});
    if dice.percent(40) {
        matching["fallbackTo"] = json!(dice.pick(&["Input", "Input", "Value", "Else"]));
    }
    if dice.percent(30) {
        matching["fallbackValue"] = dice.one(&results);
    }
    matching
}

fn regexp(dice: &mut Dice) -> String {
    dice.pick(&[
        "^us-.*",
        "[0-9]+",
        "(\\d+)-(\\w+)",
        "^$",
        "a|b",
        "(?i)DEMO",
        "^(?P<first>[a-z]+)-(.*)$",
        "\\bdemo\\b",
        ".",
        "(x)?(e+)",
        "[[:alpha:]]+",
        "\\pL+",
        "^.{5,}$",
        "a{2,3}",
        "\\Qa.b\\E",
        "(?s).*",
        "[^a-z]",
        "\\.",
        "ß|İ",
        "(a)(b)?",
        "{",
        "a{,3}",
        "(?:us|eu)-([a-z]+)-(\\d)",
        "[a-z",
    ])
    .to_owned()
}

/// String transforms that take anything.
fn of_anything(dice: &mut Dice) -> Value {
    match dice.below(7) {
        0..=2 => json!({"type": "Format", "fmt": format(dice)}),
        3 | 4 => {
            let kinds =
                ["ToUpper", "ToLower", "ToJson", "ToBase64", "ToSha1", "ToSha256", "ToSha512", "ToAdler32"];
            json!({"type": "Convert", "convert": dice.pick(&kinds)})
        }
        5 => {
            let trim = dice.pick(&["https://", "us-", "-1", "prod", "a", "", "5"]);
            json!({"type": dice.pick(&["TrimPrefix", "TrimSuffix"]), "trim": trim})
        }
        _ => {
            let (search, replace) =
                (dice.pick(&["-", "a", "us", " ", "1", "é"]), dice.pick(&["_", "", "aa", "$1", "é"]));
            json!({"type": "Replace", "replace": {"search": search, "replace": replace}})
        }
    }
}

/// String transforms that take only some texts.
fn of_text(dice: &mut Dice) -> Value {
    match dice.below(4) {
        0 => json!({"type": "Convert", "convert": "FromBase64"}),
        1 if dice.percent(10) => json!({"type": dice.pick(&["Convert", "Reverse"]), "convert": "ToUnheard"}),
        _ => {
            let mut cut = json!({"match": regexp(dice)});
            if dice.percent(60) {
                cut["group"] = json!(dice.below(4));
            }
            json!({"type": "Regexp", "regexp": cut})
        }
    }
}

fn connection_detail(dice: &mut Dice) -> Value {
    let name = dice.pick(&["username", "password", "host", "port", "all"]);
    match dice.below(3) {
        0 => {
            let key = dice.pick(&["username", "password", "port", "raw", "absent"]);
            json!({"name": name, "type": "FromConnectionSecretKey", "fromConnectionSecretKey": key})
        }
        1 => {
            let path = format!("{}.{}", dice.pick(&["status.atProvider", "spec.forProvider"]), path(dice).0);
            json!({"name": name, "type": "FromFieldPath", "fromFieldPath": path})
        }
        _ => json!({"name": name, "type": "FromValue", "value": dice.pick(&["fixed", "", "ü"])}),
    }
}

fn readiness_check(dice: &mut Dice) -> Value {
    let field = format!("{}.{}", dice.pick(&["status.atProvider", "spec.forProvider"]), path(dice).0);
    match dice.below(8) {
        0 => json!({"type": "None"}),
        1 => json!({"type": "NonEmpty", "fieldPath": field}),
        2 => {
            json!({"type": "MatchString", "fieldPath": dice.one(&[field, "status.phase".to_owned()]), "matchString": dice.pick(&["Bound", "us-east-1", ""])})
        }
        3 => {
            json!({"type": "MatchInteger", "fieldPath": dice.one(&[field, "status.replicas".to_owned()]), "matchInteger": dice.one(&[3, 5, 0])})
        }
        4 => json!({"type": "MatchTrue", "fieldPath": dice.one(&[field, "status.ok".to_owned()])}),
        5 => {
            json!({"type": "MatchFalse", "fieldPath": dice.one(&[field, "spec.forProvider.off".to_owned()])})
        }
        _ => {
            let condition = json!({"type": dice.pick(&["Ready", "Synced", "Absent"]), "status": dice.pick(&["True", "False", "Unknown"])});
            json!({"type": "MatchCondition", "matchCondition": condition})
        }
    }
}

//! Questions for function-go-templating: templates grown from a grammar over what people write, mutations of their text,
//! and mutations of real templates where recorded calls and published Compositions are at hand. What the original can do
//! only in versions newer than the one we compare with is left out.

use super::Dice;
use super::mutate::mutated;
use super::template::{RESOURCES, template};
use super::{corpus, world};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::LazyLock;

/// Calls whose templates people wrote: recorded ones, and those of published Compositions. Without them, our own.
static REAL: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let recorded = root.join("../shared/conformance/functions/recorded/function-go-templating");
    let mut files: Vec<_> =
        recorded.read_dir().into_iter().flatten().flatten().map(|file| file.path()).collect();
    files.sort();
    let tables =
        files.iter().filter_map(|file| serde_json::from_slice::<Value>(&std::fs::read(file).ok()?).ok());
    let cases = tables.flat_map(|table| table["cases"].as_array().cloned().unwrap_or_default());
    let requests = cases.map(|case| case["request"].clone()).chain(corpus::REQUESTS.iter().cloned());
    let inline =
        |request: &Value| request["input"]["inline"]["template"].as_str().is_some_and(is_reproducible);
    requests.chain(own(&root.join("fuzz/corpus/templates"))).filter(inline).collect()
});

/// Whether a template says the same in every call, and in every version of the original.
fn is_reproducible(template: &str) -> bool {
    ![
        "now ",
        "(now",
        "rand",
        "uuidv4",
        "genCA",
        "genPrivate",
        "genS",
        "bcrypt",
        "htpasswd",
        "getComposedConn",
    ]
    .iter()
    .any(|word| template.contains(word))
}

/// The templates the project has to be mutated, over a small composite resource.
fn own(folder: &Path) -> impl Iterator<Item = Value> {
    let mut files: Vec<_> =
        folder.read_dir().into_iter().flatten().flatten().map(|file| file.path()).collect();
    files.sort();
    let texts = files.into_iter().filter_map(|file| std::fs::read_to_string(file).ok());
    texts.map(|template| {
        let xr = json!({"apiVersion": "example.org/v1", "kind": "XR", "metadata": {"name": "cool"}, "spec": {"size": 3}});
        json!({
            "observed": {"composite": {"resource": xr}},
            "input": {"source": "Inline", "inline": {"template": template}},
        })
    })
}

pub(super) fn question(dice: &mut Dice) -> Value {
    if dice.percent(30) {
        return real(dice);
    }
    let mut request = json!({
        "observed": {"composite": {"resource": world::composite(dice)}},
        "desired": {},
        "input": input(dice),
    });
    for name in RESOURCES.iter().take(4) {
        if dice.percent(60) {
            let mut observed = json!({ "resource": world::composed(dice, "DB", name) });
            if dice.percent(40) {
                observed["connectionDetails"] = world::details(dice);
            }
            request["observed"]["resources"][*name] = observed;
        }
    }
    desired(dice, &mut request);
    around(dice, &mut request);
    countable(&mut request);
    request
}

/// Makes large integers negative, which print alike: over others the original would range for days.
fn countable(value: &mut Value) {
    match value {
        Value::Number(number) if number.as_i64().is_some_and(|integer| integer > 1000) => {
            *value = json!(-number.as_i64().unwrap_or_default());
        }
        Value::Array(items) => items.iter_mut().for_each(countable),
        Value::Object(fields) => fields.values_mut().for_each(countable),
        _ => {}
    }
}

/// What earlier steps want.
fn desired(dice: &mut Dice, request: &mut Value) {
    if dice.percent(30) {
        request["desired"]["composite"] = json!({"resource": {"status": world::some_fields(dice)}});
        if dice.percent(30) {
            request["desired"]["composite"]["ready"] = json!("READY_TRUE");
            request["desired"]["composite"]["connectionDetails"] = world::details(dice);
        }
        if dice.percent(5) {
            request["desired"]["composite"]["resource"]["status"] = super::hostile::odd(dice);
        }
    }
    if dice.percent(30) {
        request["desired"]["resources"]["db"] = json!({
            "resource": world::composed(dice, "DB", "db"),
            "ready": dice.pick(&["READY_TRUE", "READY_FALSE", "READY_UNSPECIFIED"]),
        });
    }
}

/// Context, required resources and credentials.
fn around(dice: &mut Dice, request: &mut Value) {
    if dice.percent(40) {
        request["context"]["apiextensions.crossplane.io/environment"] = world::some_fields(dice);
        request["context"]["other"] = json!({"deep": {"x": 1}});
    }
    if dice.percent(10) {
        request["context"] = json!({});
    }
    for field in ["requiredResources", "extraResources"] {
        if dice.percent(25) {
            let items: Vec<Value> =
                (0..dice.below(3)).map(|_| json!({"resource": world::composed(dice, "Node", "n")})).collect();
            request[field]["nodes"] = json!({ "items": items });
            request[field]["none"] = json!({});
        }
    }
    if dice.percent(15) {
        request["context"]["apiextensions.crossplane.io/extra-resources"] =
            json!({"nodes": {"items": [{"resource": {"kind": "Old"}}]}, "old": 1});
    }
    if dice.percent(20) {
        request["credentials"]["aws"] =
            json!({"credentialData": {"data": {"key": "c2VjcmV0", "raw": "/wA="}}});
    }
}

fn input(dice: &mut Dice) -> Value {
    let written = template(dice);
    let written = if dice.percent(12) { mutated(dice, &written) } else { written };
    let mut input = match dice.below(10) {
        0 => {
            let more = template(dice);
            json!({"source": "Inline", "inline": {"templates": [written, more]}})
        }
        1 if dice.percent(30) => json!({"source": "Environment", "environment": {"key": "name"}}),
        _ => json!({"source": "Inline", "inline": {"template": written}}),
    };
    if dice.percent(15) {
        input["options"] = json!([dice.pick(&[
            "missingkey=error",
            "missingkey=zero",
            "missingkey=default",
            "missingkey=invalid",
            "missingkey=error",
            "odd"
        ])]);
    }
    if dice.percent(5) {
        let (left, right) = (dice.pick(&["[[", "<%", "{", "((("]), dice.pick(&["]]", "%>", "}}}", ")))"]));
        other_delimiters(&mut input["inline"], left, right);
        input["delims"] = json!({"left": left, "right": right});
    }
    input
}

/// Writes templates with other delimiters.
fn other_delimiters(templates: &mut Value, left: &str, right: &str) {
    match templates {
        Value::String(text) => *text = text.replace("{{", left).replace("}}", right),
        Value::Array(items) => items.iter_mut().for_each(|item| other_delimiters(item, left, right)),
        Value::Object(fields) => fields.values_mut().for_each(|field| other_delimiters(field, left, right)),
        _ => {}
    }
}

/// A real call with its template changed, or its data.
fn real(dice: &mut Dice) -> Value {
    let mut request = REAL[dice.below(REAL.len())].clone();
    if dice.percent(60) {
        let text = request["input"]["inline"]["template"].as_str().unwrap_or_default().to_owned();
        request["input"]["inline"]["template"] = mutated(dice, &text).into();
    }
    if dice.percent(60) {
        for _ in 0..=dice.below(3) {
            super::hostile::damage(dice, &mut request["observed"]["composite"]["resource"]["spec"]);
        }
    }
    countable(&mut request["observed"]);
    request
}

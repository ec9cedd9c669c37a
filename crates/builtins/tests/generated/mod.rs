//! What holds for every question that can be generated, sensible or hostile: the function answers, and answers the
//! same when it is asked again, to the byte.

#[path = "../../examples/differential/answers.rs"]
mod answers;
#[path = "../../examples/differential/dice.rs"]
mod dice;
#[path = "../../examples/differential/generate/mod.rs"]
mod generate;
mod held;

use crate::conformance::normal;
use generate::Questions;
use proptest::prelude::*;
use prost::Message;
use serde_json::{Value, json};
use transom_builtins::{find, names};
use transom_function::{RunFunctionRequest, RunFunctionResponse, answer};

fn ask(function: &str, request: &RunFunctionRequest) -> RunFunctionResponse {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let response = runtime.block_on(answer(&*find(function).unwrap(), request.clone()));
    response.unwrap_or_else(|e| panic!("{function} failed: {e}\n{}", serde_json::to_string(request).unwrap()))
}

#[test]
fn every_question_has_one_answer() {
    for function in names() {
        let generated = Questions::generated(function, 20_240, 300);
        for questions in generated.into_iter().chain(Questions::published(function)) {
            for index in 0..questions.count {
                let request = questions.get(index);
                let (once, again) = (ask(function, &request), ask(function, &request));
                assert_eq!(once.encode_to_vec(), again.encode_to_vec(), "{function} {index}");
            }
        }
    }
}

/// JSON with the names and words that mean something to patches, anywhere.
fn patch_like() -> impl Strategy<Value = Value> {
    let words = [
        "spec.a",
        "a[0]",
        "a[*].b",
        "..",
        "FromCompositeFieldPath",
        "CombineToComposite",
        "PatchSet",
        "string",
        "Format",
        "Join",
        "math",
        "Multiply",
        "map",
        "match",
        "convert",
        "int64",
        "quantity",
        "json",
        "%s%d",
        "Required",
        "MergeObjects",
        "AppendArray",
        "MatchCondition",
    ];
    let fields = [
        "type",
        "fromFieldPath",
        "toFieldPath",
        "combine",
        "variables",
        "strategy",
        "string",
        "fmt",
        "transforms",
        "math",
        "multiply",
        "map",
        "match",
        "patterns",
        "convert",
        "toType",
        "format",
        "policy",
        "patchSetName",
        "regexp",
        "group",
        "join",
        "separator",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|f| json!(f)),
        proptest::sample::select(words.to_vec()).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((proptest::sample::select(fields.to_vec()), inner), 0..6).prop_map(
                |entries| entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            ),
        ]
    })
}

fn with_patches(patches: &Value) -> RunFunctionRequest {
    let xr = json!({"apiVersion": "v1", "kind": "X", "spec": {"a": [1, {"b": "x"}], "s": "text", "n": 1.5}});
    let base = json!({"apiVersion": "v1", "kind": "Thing", "spec": {"a": [{"b": 1}]}});
    let input = json!({"resources": [{"name": "r", "base": base, "patches": patches}]});
    serde_json::from_value(json!({"observed": {"composite": {"resource": xr}}, "input": input})).unwrap()
}

proptest! {
    #[test]
    fn no_patch_panics(patches in patch_like()) {
        ask("function-patch-and-transform", &with_patches(&patches));
    }

    #[test]
    fn no_format_panics(format in "(%[-+# 0]{0,3}[0-9*]{0,4}(\\.[0-9*]{0,3})?(\\[[0-9]{1,2}\\])?\\PC|\\PC){0,6}") {
        for path in ["spec.s", "spec.n", "spec.a", "spec", "spec.a[0]"] {
            let transform = json!({"type": "string", "string": {"type": "Format", "fmt": format}});
            ask("function-patch-and-transform", &with_patches(&json!([{"fromFieldPath": path, "transforms": [transform]}])));
        }
    }
}

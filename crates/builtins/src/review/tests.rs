//! What a review reports of inputs that are wrong.

use super::*;
use crate::{Builtins, Settings, find, names, review_input, review_templates};
use serde_json::json;
use transom_function::testing::{RequestBuilder, run};

const PATCH_AND_TRANSFORM: &str = "function-patch-and-transform";

fn resource(patch: &Value) -> Value {
    json!({"resources": [{"name": "a", "base": {"apiVersion": "v1", "kind": "ConfigMap"}, "patches": [patch]}]})
}

/// A patch with one transform.
fn transform(transform: &Value) -> Value {
    resource(&json!({"fromFieldPath": "spec.a", "transforms": [transform]}))
}

fn input(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap()
}

fn mistake_texts(review: &Review) -> Vec<String> {
    review.mistakes.iter().map(ToString::to_string).collect()
}

async fn message(name: &str, find: fn(&str) -> Option<Arc<dyn Function>>, input: &Value) -> Option<String> {
    let request = RequestBuilder::new(json!({"apiVersion": "e/v1", "kind": "X", "metadata": {"name": "x"}}));
    let response = run(&find(name).unwrap(), request.input(input.clone()).build(), &[]).await;
    response.results.first().map(|result| result.message.clone())
}

#[test]
fn mistakes_are_named_with_what_was_meant() {
    let cases = [
        (
            resource(&json!({"fromFieldPath": "spec.a", "toFieldPth": "spec.b"})),
            "resources[0].patches[0].toFieldPth: unknown field \"toFieldPth\"; did you mean \"toFieldPath\"?",
        ),
        (
            transform(&json!({"type": "strng"})),
            "resources[0].patches[0].transforms[0].type: unsupported value \"strng\"; \
             did you mean \"string\"? supported are map, match, math, string, convert",
        ),
        (
            transform(&json!({"type": "string", "string": {"type": "Formt", "fmt": "%s"}})),
            "resources[0].patches[0].transforms[0].string.type: unsupported value \"Formt\"; did you mean \"Format\"? \
             supported are Format, Convert, TrimPrefix, TrimSuffix, Regexp, Join, Replace",
        ),
        (
            transform(&json!({"type": "math", "math": {"type": "Multiply", "multiply": "2"}})),
            "resources[0].patches[0].transforms[0].math.multiply: \"multiply\" is a string, but must be an integer",
        ),
        (
            resource(&json!({"fromFieldPath": "a", "policy": {"fromFieldPath": "Requred"}})),
            "resources[0].patches[0].policy.fromFieldPath: unsupported value \"Requred\"; did you mean \"Required\"? \
             supported are Optional, Required",
        ),
        (
            resource(&json!({"toFieldPath": "spec.b"})),
            "resources[0].patches[0].fromFieldPath: required field \"fromFieldPath\" is missing; \
             fromFieldPath must be set for patch type FromCompositeFieldPath",
        ),
        (
            json!({"resources": [{"base": {"apiVersion": "v1", "kind": "A"}}]}),
            "resources[0].name: required field \"name\" is missing",
        ),
        (
            json!({"patchSets": [{"name": "a"}, {"name": "s", "patches": [{"type": "PatchSet"}]}], "resources": []}),
            "patchSets[1].patches[0].type: a patch of type \"PatchSet\" cannot be used here; \
             only the patches of resources can name a patch set",
        ),
        (
            json!({"things": []}),
            "things: unknown field \"things\"; the fields here are patchSets, environment, resources, \
             writeConnectionSecretToRef",
        ),
    ];
    for (value, expected) in cases {
        let review = review_input(PATCH_AND_TRANSFORM, input(&value));
        assert_eq!(mistake_texts(&review), [expected], "{value}");
        assert!(review.refused, "{value}");
    }
}

fn explaining(name: &str) -> Option<Arc<dyn Function>> {
    Builtins::new(&Settings { explain_refusals: true, ..Settings::default() }).find(name)
}

fn explaining_without_ttl(name: &str) -> Option<Arc<dyn Function>> {
    let settings = Settings { explain_refusals: true, without_default_ttl: true, ..Settings::default() };
    Builtins::new(&settings).find(name)
}

/// A review says of everything that an input is refused if and only if the function refuses it.
#[tokio::test]
async fn a_review_refuses_what_the_function_refuses() {
    let combine = json!({"type": "CombineFromComposite", "toFieldPath": "a", "transforms": [{"type": "strng"}],
        "combine": {"strategy": "string", "string": {"fmt": "%s"}, "variables": [{"fromFieldPath": "spec.none"}]}});
    for (name, value, refused) in [
        (PATCH_AND_TRANSFORM, resource(&json!({"fromFieldPath": "spec.a"})), false),
        // The original looks at the transforms of a combination only when it runs.
        (PATCH_AND_TRANSFORM, resource(&combine), false),
        (PATCH_AND_TRANSFORM, json!({}), true),
        (PATCH_AND_TRANSFORM, json!({"resources": [{"name": "a"}], "metadata": {"nam": "x"}}), true),
        ("function-go-templating", json!({"source": "Inlin"}), true),
        ("function-go-templating", json!({"source": "Inline", "inline": {"template": ""}, "ttl": 1}), true),
        ("function-cidr", json!({"cidrFunc": "cidrsubnest", "prefix": "10.0.0.0/8"}), true),
        (
            "function-environment-configs",
            json!({"spec": {"environmentConfigs": [{"type": "Selectr"}]}}),
            false,
        ),
        ("function-extra-resources", json!({"spec": {"policy": {"resolution": "Optonal"}}}), false),
        ("function-sequencer", json!({"rules": [{"sequnce": ["a"]}]}), true),
        ("function-auto-ready", json!({"ttl": "1m"}), false),
    ] {
        let review = review_input(name, input(&value));
        let genuine = message(name, find, &value).await;
        let explained = message(name, explaining, &value).await;
        assert_eq!(review.refused, refused, "{name} {value}: {genuine:?}");
        if refused {
            let genuine = genuine.unwrap();
            assert!(genuine.contains("nput"), "{genuine}");
            assert_ne!(explained.as_deref(), Some(&*genuine));
            assert_eq!(explained, review.refusal(), "{name} {value}");
            assert_eq!(message(name, explaining_without_ttl, &value).await, explained);
        } else {
            assert_eq!(explained, genuine, "{name} {value}");
        }
    }
}

#[test]
fn what_a_function_ignores_is_a_mistake_too() {
    let value = json!({"apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resource", "resources": [{"name": "a"}]});
    let review = review_input(PATCH_AND_TRANSFORM, input(&value));
    assert!(!review.refused && review.refusal().is_none());
    assert_eq!(
        mistake_texts(&review),
        [
            "kind: the function expects an input of kind \"Resources\", not \"Resource\"; the function ignores this"
        ]
    );
    let value =
        json!({"spec": {"environmentConfigs": [{"type": "Selectr", "selector": {"mode": "Singel"}}]}});
    let review = review_input("function-environment-configs", input(&value));
    assert_eq!(review.mistakes.len(), 2, "{review:?}");
    assert!(review_input("function-kcl", input(&value)).mistakes.is_empty());
}

/// Conditions are read by people: of many mistakes some are named.
#[test]
fn a_refusal_names_a_few_mistakes() {
    let patches: Vec<Value> = (0..7).map(|i| json!({"fromFieldPath": "a", format!("x{i}"): 1})).collect();
    let value = json!({"resources": [{"name": "a", "patches": patches}]});
    let refusal = review_input(PATCH_AND_TRANSFORM, input(&value)).refusal().unwrap();
    assert!(refusal.starts_with("invalid input: [resources[0].patches[0].x0: unknown field"), "{refusal}");
    assert!(refusal.ends_with("and 2 more]"), "{refusal}");
    let value = transform(&json!({"type": "é".repeat(100_000)}));
    let refusal = review_input(PATCH_AND_TRANSFORM, input(&value)).refusal().unwrap();
    assert!(refusal.len() < 500 && refusal.contains("éé…"), "{refusal}");
}

#[tokio::test]
async fn templates_are_reviewed_in_the_same_words() {
    let good = json!({"resources": [{"base": {"apiVersion": "v1", "kind": "A"}}]});
    assert!(review_templates(input(&good)).mistakes.is_empty());
    let bad = resource(
        &json!({"fromFieldPath": "a", "toFieldPth": "b", "policy": {"mergeOptions": {"appendSlice": true}}}),
    );
    let review = review_templates(input(&bad));
    let expected =
        "resources[0].patches[0].toFieldPth: unknown field \"toFieldPth\"; did you mean \"toFieldPath\"?";
    assert_eq!(mistake_texts(&review), [expected]);
    let request = RequestBuilder::new(json!({"kind": "X"})).input(bad.clone()).build();
    let response = run(&crate::templates(), request, &[]).await;
    assert_eq!(response.results[0].message, format!("invalid input: {expected}"));
}

#[tokio::test]
async fn a_condition_that_refuses_an_input_is_reworded() {
    let value = json!({"statusConditionHooks": [{"matcher": []}]});
    let request = || RequestBuilder::new(json!({"kind": "X"})).input(value.clone()).build();
    let name = "function-status-transformer";
    let genuine = run(&find(name).unwrap(), request(), &[]).await;
    let explained = run(&explaining(name).unwrap(), request(), &[]).await;
    let message = |response: &RunFunctionResponse| response.conditions[0].message.clone().unwrap();
    assert!(message(&genuine).contains("unknown object member name"), "{genuine:?}");
    assert!(message(&explained).contains("did you mean \"matchers\"?"), "{explained:?}");
}

#[test]
fn fields_are_written_as_paths() {
    let mistake = |pointer: &str| Mistake { pointer: pointer.to_owned(), what: String::new(), remedy: None };
    assert_eq!(mistake("/a/0/b").field(), "a[0].b");
    assert_eq!(mistake("/map/x~1y.z").field(), "map[x/y.z]");
    assert_eq!(mistake("").field(), "");
}

/// The documents that functions' own examples are of have the type that a review expects.
#[test]
fn documented_inputs_have_no_mistakes() {
    for name in names() {
        let page = name.strip_prefix("function-").unwrap();
        let path = format!("{}/../../docs/functions/{page}.md", env!("CARGO_MANIFEST_DIR"));
        let page = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        let step = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let step = transom_object::yaml::read(step).unwrap();
        let review = review_input(name, input(&step[0]["input"]));
        assert!(review.mistakes.is_empty() && !review.refused, "{name}: {review:?}");
    }
}

//! Which conditions and events the observed ones become.

use super::*;
use serde_json::{Value as Json, json};
use transom_function::testing::{RequestBuilder, run};

fn object(conditions: &Json) -> Json {
    json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "x", "namespace": "ns"},
        "status": {"conditions": conditions}})
}

async fn transform_with(hooks: Json) -> RunFunctionResponse {
    let synced =
        json!([{"type": "Synced", "status": "False", "reason": "Bad", "message": "cannot reach eu-1: 503"}]);
    let ready = json!([{"type": "Ready", "status": "True", "reason": "Available"}]);
    let request = RequestBuilder::new(object(&ready))
        .observed("one", object(&synced))
        .observed("two", object(&ready))
        .context("apiextensions.crossplane.io/extra-resources", json!({"things": [object(&synced)]}))
        .input(json!({"apiVersion": "x", "kind": "StatusTransformation", "statusConditionHooks": hooks}))
        .build();
    run(&StatusTransformer, request, &[]).await
}

fn hook(matchers: &Json) -> Json {
    let condition =
        json!({"type": "Custom", "status": "False", "reason": "R", "message": "{{ .Zone }} down"});
    json!([{"matchers": matchers, "setConditions": [{"condition": condition}]}])
}

/// The message of the condition that the hook sets, when it does.
async fn message(matcher: Json) -> Option<String> {
    let response = transform_with(hook(&json!([matcher]))).await;
    assert_eq!(response.conditions.last().unwrap().r#type, SUCCESS);
    let set = response.conditions.iter().find(|condition| condition.r#type == "Custom");
    set.map(|condition| condition.message.clone().unwrap())
}

#[tokio::test]
async fn matchers_match_and_capture() {
    let zone = json!({"type": "Synced", "status": "False", "message": "reach (?P<Zone>[a-z]+)-"});
    let ready = json!({"type": "Ready", "status": "True"});
    let unknown = json!({"type": "None", "status": "Unknown"});
    let any = "AnyResourceMatchesAnyCondition";
    for (matcher, expected) in [
        (json!({"resources": [{"name": "one"}], "conditions": [zone]}), Some("eu down")),
        // Patterns are not anchored.
        (json!({"resources": [{"name": "n"}], "conditions": [zone]}), Some("eu down")),
        (json!({"resources": [{"name": "."}], "conditions": [zone]}), None),
        (json!({"type": any, "resources": [{"name": "."}], "conditions": [zone]}), Some("eu down")),
        // What captured nothing is not a template.
        (json!({"type": any, "resources": [{"name": "."}], "conditions": [ready, zone]}), Some("eu down")),
        (
            json!({"type": any, "resources": [{"name": "two"}], "conditions": [ready, zone]}),
            Some("{{ .Zone }} down"),
        ),
        (
            json!({"type": "AnyResourceMatchesAllConditions", "resources": [{"name": "."}], "conditions": [zone, ready]}),
            None,
        ),
        (
            json!({"type": "AnyResourceMatchesAllConditions", "resources": [{"name": "."}], "conditions": [zone, unknown]}),
            Some("eu down"),
        ),
        (
            json!({"type": "AllResourcesMatchAnyCondition", "resources": [{"name": "."}], "conditions": [zone, ready]}),
            Some("eu down"),
        ),
        (
            json!({"type": "AllResourcesMatchAnyCondition", "resources": [{"name": "."}], "conditions": [zone]}),
            None,
        ),
        (json!({"includeCompositeAsResource": true, "conditions": [ready]}), Some("{{ .Zone }} down")),
        (json!({"conditions": [ready]}), None),
        (json!({"resources": [{"name": "."}]}), None),
        (json!({"resources": [{"name": "one"}], "conditions": [{"type": "Synced", "reason": "Good"}]}), None),
        (
            json!({"includeExtraResources": true, "resources": [{"name": r"^extra-resource\.things\.example\.org\.Thing\.ns\.x$"}],
                "conditions": [zone]}),
            Some("eu down"),
        ),
    ] {
        assert_eq!(message(matcher.clone()).await.as_deref(), expected, "{matcher}");
    }
}

#[tokio::test]
async fn the_first_to_set_a_condition_wins() {
    let set = |reason: &str, force: bool| {
        json!({"matchers": [{"includeCompositeAsResource": true, "conditions": [{"type": "Ready"}]}],
            "setConditions": [{"force": force, "target": "CompositeAndClaim",
                "condition": {"type": "C", "status": "True", "reason": reason}}],
            "createEvents": [{"event": {"type": "Warning", "reason": "E", "message": reason}}]})
    };
    let response =
        transform_with(json!([set("first", false), set("second", false), set("third", true)])).await;
    let reasons: Vec<&str> = response.conditions.iter().map(|condition| condition.reason.as_str()).collect();
    assert_eq!(reasons, ["first", "third", "Available"]);
    assert_eq!(response.conditions[0].target(), Target::CompositeAndClaim);
    let events: Vec<&str> = response.results.iter().map(|result| result.message.as_str()).collect();
    assert_eq!(events, ["first", "second", "third"]);
    assert_eq!(response.results[0].severity(), Severity::Warning);
    assert_eq!(response.results[0].target(), Target::Composite);
}

#[tokio::test]
async fn problems_are_conditions() {
    let composite =
        json!([{"includeCompositeAsResource": true, "conditions": [{"type": "Ready", "message": "()"}]}]);
    let sets = |message: &str| json!([{"matchers": composite, "setConditions": [{"condition": {"type": "C", "message": message}}]}]);
    for (hooks, reason, expected) in [
        (
            hook(&json!([{"resources": [{"name": "("}]}])),
            "MatchFailure",
            "cannot match resources, statusConditionHookIndex: 0, matchConditionIndex: 0: cannot compile resource key regex, resourcesIndex: 0: error parsing regexp: missing closing ): `(`",
        ),
        (
            hook(
                &json!([{"resources": [{"name": "one"}], "conditions": [{"type": "Synced", "message": "["}]}]),
            ),
            "MatchFailure",
            "cannot match resources, statusConditionHookIndex: 0, matchConditionIndex: 0: cannot compile message regex: error parsing regexp: missing closing ]: `[`",
        ),
        (
            sets("{{ upper .x }}"),
            "SetConditionFailure",
            "cannot set condition, statusConditionHookIndex: 0, setConditionIndex: 0: cannot parse template: template: :1: function \"upper\" not defined",
        ),
        (
            json!([{"matchers": composite, "createEvents": [{"event": {"type": "Odd"}}]}]),
            "SetConditionFailure",
            "cannot create event, statusConditionHookIndex: 0, createEventIndex: 0: invalid type Odd, must be one of [Normal, Warning]",
        ),
    ] {
        let response = transform_with(hooks).await;
        let [condition] = response.conditions.as_slice() else { panic!("{:?}", response.conditions) };
        assert_eq!((condition.reason.as_str(), condition.message.as_deref()), (reason, Some(expected)));
        assert!(response.results.is_empty());
    }
    let response = transform_with(json!([{"matcher": []}])).await;
    assert_eq!(response.conditions[0].reason, "InputFailure");
}

//! Which resources wait for which others.

use super::*;
use crate::upstream;
use serde_json::{Value, json};
use transom_function::testing::{RequestBuilder, run};

fn object(kind: &str, name: &str) -> Value {
    json!({"apiVersion": "example.org/v1", "kind": kind, "metadata": {"name": name}})
}

/// Runs with desired resources that are ready or not, and observed ones.
async fn call(input: Value, desired: &[(&str, bool)], observed: &[&str]) -> RunFunctionResponse {
    let mut builder = RequestBuilder::new(json!({"spec": {"on": true}})).input(input);
    for (name, _) in desired {
        builder = builder.desired(name, object("Desired", name));
    }
    for name in observed {
        builder = builder.observed(name, object("Observed", name));
    }
    let mut request = builder.build();
    for (name, _) in desired.iter().filter(|(_, ready)| *ready) {
        let resources = &mut request.desired.as_mut().unwrap().resources;
        resources.get_mut(*name).unwrap().set_ready(Ready::True);
    }
    run(&Sequencer, request, &[]).await
}

fn rules(sequences: &[&[&str]]) -> Value {
    json!({"rules": sequences.iter().map(|s| json!({"sequence": s})).collect::<Vec<_>>()})
}

fn outcome(response: RunFunctionResponse) -> (Vec<String>, Vec<String>) {
    let messages = response.results.into_iter().map(|result| result.message).collect();
    (response.desired.unwrap().resources.into_keys().collect(), messages)
}

#[tokio::test]
async fn creation_waits_for_what_comes_before() {
    const A: (&str, bool) = ("a", true);
    const B: (&str, bool) = ("b", false);
    const C: (&str, bool) = ("c", false);
    type Case<'a> = (Value, &'a [(&'a str, bool)], &'a [&'a str], &'a [&'a str], &'a [&'a str]);
    let cases: [Case<'_>; 8] = [
        (rules(&[&["a", "b"]]), &[A, B], &[], &["a", "b"], &[]),
        (
            rules(&[&["b", "c"]]),
            &[A, B, C],
            &[],
            &["a", "b"],
            &[r#"Delaying creation of resource(s) matching "c" because "b" is not fully ready (0 of 1)"#],
        ),
        (
            rules(&[&["none", "a"]]),
            &[A],
            &[],
            &[],
            &[r#"Delaying creation of resource(s) matching "a" because "none" does not exist yet"#],
        ),
        // What exists is not withheld, though the pattern is.
        (
            rules(&[&["b", "[ac]"]]),
            &[A, B, C],
            &["c"],
            &["b", "c"],
            &[r#"Delaying creation of resource(s) matching "[ac]" because "b" is not fully ready (0 of 1)"#],
        ),
        (rules(&[&["b", "c"]]), &[B, C], &["c"], &["b", "c"], &[]),
        // Delays cascade.
        (
            rules(&[&["b", "a"], &["a", "c"]]),
            &[A, B, C],
            &[],
            &["b"],
            &[
                r#"Delaying creation of resource(s) matching "a" because "b" is not fully ready (0 of 1)"#,
                r#"Delaying creation of resource(s) matching "c" because "a" does not exist yet"#,
            ],
        ),
        // An anchor on one side leaves the other open.
        (
            rules(&[&["^b", "^c"]]),
            &[("b1", true), ("b2", false), ("c1", false)],
            &[],
            &["b1", "b2"],
            &[r#"Delaying creation of resource(s) matching "^c" because "^b" is not fully ready (1 of 2)"#],
        ),
        (json!({"rules": [{"sequence": ["b", "c"], "deleteOnly": true}]}), &[B, C], &[], &["b", "c"], &[]),
    ];
    for (input, desired, observed, expected, messages) in cases {
        let (names, found) = outcome(call(input.clone(), desired, observed).await);
        assert_eq!(
            (names.as_slice(), found.as_slice()),
            (&owned(expected)[..], &owned(messages)[..]),
            "{input}"
        );
    }
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[tokio::test]
async fn conditions_decide_whether_a_rule_applies() {
    let rule = |condition: &str| json!({"rules": [{"sequence": ["b", "c"], "condition": condition}]});
    let desired = [("b", false), ("c", false)];
    let (names, messages) = outcome(call(rule("!observed.composite.resource.spec.on"), &desired, &[]).await);
    assert_eq!(names, ["b", "c"]);
    assert_eq!(
        messages,
        [r#"Skipping sequence [b c]: condition "!observed.composite.resource.spec.on" evaluated to false"#]
    );
    let (names, _) = outcome(call(rule("observed.composite.resource.spec.on"), &desired, &[]).await);
    assert_eq!(names, ["b"]);
    for (condition, expected) in [
        ("1", "CEL condition must return bool, got int"),
        ("context.none", "cannot evaluate CEL condition: no such key: none"),
        ("dyn(1)", "CEL condition result is not bool"),
    ] {
        let (names, messages) = outcome(call(rule(condition), &desired, &[]).await);
        let expected = format!("cannot evaluate condition {condition:?} for sequence [b c]: {expected}");
        assert_eq!((names.len(), messages), (2, vec![expected]));
    }
}

#[tokio::test]
async fn deletion_is_kept_in_order_by_usages() {
    let input = |more: Value| {
        let mut input = json!({"enableDeletionSequencing": true, "rules": [{"sequence": ["a", "b"]}]});
        for (key, value) in more.as_object().unwrap() {
            input[key] = value.clone();
        }
        input
    };
    let desired = [("a", true), ("b", true)];
    let response = call(input(json!({"replayDeletion": true})), &desired, &["a", "b"]).await;
    let usage = &response.desired.unwrap().resources["b-a-usage"];
    assert_eq!(usage.ready(), Ready::True);
    let name = usage.name().to_owned();
    assert!(name.starts_with("observed-b-observed-a-") && name.ends_with("-dependency"), "{name}");
    assert_eq!(
        usage.object(),
        &json!({
            "apiVersion": "protection.crossplane.io/v1beta1", "kind": "ClusterUsage", "metadata": {"name": name},
            "spec": {
                "by": {"apiVersion": "example.org/v1", "kind": "Observed", "resourceRef": {"name": "b"}},
                "of": {"apiVersion": "example.org/v1", "kind": "Observed", "resourceRef": {"name": "a"}},
                "reason": "dependency", "replayDeletion": true,
            },
        })
    );
    let response = call(input(json!({"usageVersion": "v1"})), &desired, &["a", "b"]).await;
    let usage = response.desired.unwrap().resources["b-a-usage"].object().clone();
    assert_eq!(
        (&usage["apiVersion"], &usage["kind"]),
        (&json!("apiextensions.crossplane.io/v1beta1"), &json!("Usage"))
    );
    for (more, observed) in [
        (json!({}), ["a"].as_slice()),
        (json!({"enableDeletionSequencing": false}), &["a", "b"]),
        (json!({"rules": [{"sequence": ["a", "b"], "createOnly": true}]}), &["a", "b"]),
    ] {
        let (names, _) = outcome(call(input(more), &desired, observed).await);
        assert_eq!(names, ["a", "b"]);
    }
}

#[tokio::test]
async fn the_composite_can_be_kept_unready() {
    let mut input = rules(&[&["b", "c"]]);
    input["resetCompositeReadiness"] = true.into();
    let response = call(input.clone(), &[("b", false), ("c", false)], &[]).await;
    assert_eq!(response.desired.unwrap().composite.unwrap().ready(), Ready::False);
    let response = call(input, &[("b", true), ("c", false)], &[]).await;
    assert!(response.desired.unwrap().composite.is_none());
}

#[tokio::test]
async fn problems_are_fatal() {
    let both = json!({"rules": [{"sequence": ["a", "b"], "createOnly": true, "deleteOnly": true}]});
    let mut broken = rules(&[&["(", "b"]]);
    let plain = "cannot compile regex (: error parsing regexp: missing closing ): `^($`";
    for (input, expected) in [
        (both, "rule for sequence [a b] cannot have both deleteOnly and createOnly set to true".to_owned()),
        (
            json!({"cacheTTL": "5x"}),
            "cannot set cacheTTL: time: unknown unit \"x\" in duration \"5x\"".to_owned(),
        ),
        (broken.clone(), plain.to_owned()),
        (
            {
                broken["enableDeletionSequencing"] = true.into();
                broken
            },
            format!("cannot generate usages for sequence: {plain}"),
        ),
    ] {
        let (names, messages) = outcome(call(input, &[("b", false)], &[]).await);
        assert_eq!((names, messages), (owned(&["b"]), vec![expected]));
    }
}

#[tokio::test]
async fn upstream_tables_of_problems() {
    for case in upstream::cases("function-sequencer/fn/TestRunFunctionCacheTTL") {
        let response = call(case["inputs"]["input"].clone(), &[("second", false)], &[]).await;
        let response = serde_json::to_value(response).unwrap();
        assert_eq!(response["results"], case["expected"]["results"], "{case}");
        assert_eq!(response["meta"]["ttl"], case["expected"]["meta"]["ttl"], "{case}");
    }
    for case in upstream::cases("function-sequencer/fn/TestRunFunctionConditionErrors") {
        let rule = json!({"sequence": ["first", "second"], "condition": case["inputs"]["condition"]});
        let response = call(json!({"rules": [rule]}), &[("second", false)], &[]).await;
        assert_eq!(response.results[0].severity(), transom_function::Severity::Fatal, "{case}");
    }
}

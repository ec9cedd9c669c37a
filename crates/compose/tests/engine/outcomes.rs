//! What the composite resource is told in the end.

use crate::script::{Case, Script, now, resource};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use transom_compose::Schema;
use transom_function::{Ready, RunFunctionRequest, RunFunctionResponse, Status, Target};

fn wanting(ready: &'static [(&'static str, Ready)]) -> impl Fn(&RunFunctionRequest) -> RunFunctionResponse {
    move |request| {
        let mut response = request.copy_response();
        for (name, ready) in ready {
            response.set_composed(*name, resource("A").with_ready(*ready));
        }
        response
    }
}

/// Type, status, reason and message of every condition.
fn conditions(xr: &Value) -> Vec<[String; 4]> {
    let list = xr["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let text = |c: &Value, field: &str| c[field].as_str().unwrap_or_default().to_owned();
    list.iter().map(|c| ["type", "status", "reason", "message"].map(|field| text(c, field))).collect()
}

fn strings(expected: &[[&str; 4]]) -> Vec<[String; 4]> {
    expected.iter().map(|row| row.map(str::to_owned)).collect()
}

#[tokio::test]
async fn readiness_is_summed_up() {
    use Ready::{False, True, Unspecified};
    type Wanted = &'static [(&'static str, Ready)];
    let cases: [(Wanted, Option<bool>, [&str; 3]); 5] = [
        (&[], None, ["True", "Available", ""]),
        (&[("a", True)], None, ["True", "Available", ""]),
        (
            &[("b", Unspecified), ("a", False), ("c", True)],
            None,
            ["False", "Creating", "Unready resources: a, b"],
        ),
        (&[("a", True)], Some(false), ["False", "Creating", ""]),
        (&[("a", False)], Some(true), ["True", "Available", ""]),
    ];
    for (resources, explicit, [status, reason, message]) in cases {
        let answer = wanting(resources);
        let script = Script::new().then(move |request| {
            let mut response = answer(request);
            if let Some(ready) = explicit {
                response.composite().ready = if ready { True } else { False } as i32;
            }
            response
        });
        let case = Case::steps(1);
        let plan = case.run(&script).await.unwrap();
        let mut xr = case.xr.clone();
        plan.conclude(&BTreeSet::new()).mark(&mut xr, Schema::Modern, now());
        assert_eq!(
            conditions(&xr),
            strings(&[["Synced", "True", "ReconcileSuccess", ""], ["Ready", status, reason, message]])
        );
        assert_eq!(xr["status"]["conditions"][0]["observedGeneration"], 4);
    }
}

#[tokio::test]
async fn refused_resources_are_named() {
    let script = Script::new().then(wanting(&[("a", Ready::True), ("b", Ready::False)]));
    let plan = Case::steps(1).run(&script).await.unwrap();
    let outcome = plan.conclude(&BTreeSet::from(["a".to_owned()]));
    assert_eq!(
        (outcome.unsynced.as_slice(), outcome.unready.as_slice()),
        (&["a".to_owned()][..], &["b".to_owned()][..])
    );
    let said: Vec<String> = outcome.events.iter().map(transom_compose::Event::text).collect();
    assert_eq!(
        said,
        [r#"Composed resource "a" is not yet valid"#, r#"Composed resource "b" is not yet ready"#]
    );
    let mut xr = json!({});
    outcome.mark(&mut xr, Schema::Modern, now());
    assert_eq!(
        conditions(&xr)[0],
        ["Synced", "False", "ReconcileError", "Unsynced resources: a"].map(str::to_owned)
    );
}

fn with_conditions(request: &RunFunctionRequest) -> RunFunctionResponse {
    let mut response = request.copy_response();
    response.condition("Ready", Status::ConditionTrue, "Mine");
    response.condition("Custom", Status::ConditionUnspecified, "Because").message = Some("m".to_owned());
    response.condition("Shared", Status::ConditionFalse, "Told").target =
        Some(Target::CompositeAndClaim as i32);
    response
}

#[tokio::test]
async fn functions_set_conditions_but_not_the_systems() {
    let plan = Case::steps(1).run(&Script::new().then(with_conditions)).await.unwrap();
    for schema in [Schema::Modern, Schema::Legacy] {
        let mut xr = json!({"metadata": {"generation": 2}, "status": {"conditions": [
            {"type": "Kept", "status": "True", "reason": "R", "lastTransitionTime": "2023-01-01T00:00:00Z"},
        ]}});
        plan.conclude(&BTreeSet::new()).mark(&mut xr, schema, now());
        assert_eq!(
            conditions(&xr),
            strings(&[
                ["Kept", "True", "R", ""],
                ["Custom", "Unknown", "Because", "m"],
                ["Shared", "False", "Told", ""],
                ["Synced", "True", "ReconcileSuccess", ""],
                ["Ready", "True", "Available", ""],
            ])
        );
        assert!(xr["status"]["conditions"][1].get("observedGeneration").is_none());
        let claim = xr["status"].get("claimConditionTypes");
        assert_eq!(claim, (schema == Schema::Legacy).then(|| json!(["Shared"])).as_ref());
    }
}

#[tokio::test]
async fn after_a_failure_what_is_not_known_is_unknown() {
    let xr = json!({"status": {"conditions": [
        {"type": "Ready", "status": "True", "reason": "Available"},
        {"type": "Custom", "status": "True", "reason": "Old"},
        {"type": "Older", "status": "True", "reason": "Old"},
    ]}});
    let unknown = "A fatal error occurred before the status of this condition could be determined.";
    let fatal = Script::new().then(|request| {
        let mut response = with_conditions(request);
        response.fatal("no");
        response
    });
    let failure = Case::steps(1).run(&fatal).await.unwrap_err();
    let mut after = xr.clone();
    failure.conclude(&xr, "cannot compose resources: no").mark(&mut after, Schema::Modern, now());
    assert_eq!(
        conditions(&after),
        strings(&[
            ["Ready", "True", "Available", ""],
            ["Custom", "Unknown", "Because", "m"],
            ["Older", "Unknown", "FatalError", unknown],
            ["Synced", "False", "ReconcileError", "cannot compose resources: no"],
            ["Shared", "False", "Told", ""],
        ])
    );
    let broken = Script::new().then(with_conditions).then_fail("gone");
    let failure = Case::steps(2).run(&broken).await.unwrap_err();
    let outcome = failure.conclude(&xr, "e");
    assert!(outcome.events.is_empty());
    let mut after = xr.clone();
    outcome.mark(&mut after, Schema::Modern, now());
    assert_eq!(conditions(&after)[1], ["Custom", "Unknown", "FatalError", unknown].map(str::to_owned));
}

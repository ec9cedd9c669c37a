//! Conditions and events at the end of a reconcile.

use crate::script::{Case, Script, now, object, resource};
use serde_json::{Value, json};
use transom_compose::{Layout, Unsynced};
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
        plan.conclude(&Unsynced::new()).mark(&mut xr, Layout::Modern, now());
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
    let outcome = plan.conclude(&Unsynced::from([("a".to_owned(), "it is invalid".to_owned())]));
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
    outcome.mark(&mut xr, Layout::Modern, now());
    assert_eq!(
        conditions(&xr)[0],
        ["Synced", "False", "ReconcileError", "Unsynced resources: a"].map(str::to_owned)
    );
}

/// The messages of `Synced` and `Ready` with their causes.
fn explained(plan: &transom_compose::Decision, unsynced: &Unsynced) -> [String; 2] {
    let mut xr = json!({});
    plan.explain(plan.conclude(unsynced), unsynced).mark(&mut xr, Layout::Modern, now());
    let all = conditions(&xr);
    ["Synced", "Ready"].map(|kind| all.iter().find(|c| c[0] == kind).expect("it is always set")[3].clone())
}

#[tokio::test]
async fn conditions_name_the_causes_after_crossplanes_words() {
    let script = Script::new().then(|request| {
        let mut response = wanting(&[("a", Ready::True), ("b", Ready::False), ("c", Ready::False)])(request);
        response.warning(r#"cannot check readiness of composed resource "b": no such field"#);
        response.warning(r#"composed resource "a" is odd"#);
        response
    });
    let mut failing = object("A", "c", true);
    failing["status"] =
        json!({"conditions": [{"type": "Synced", "status": "False", "message": "no network"}]});
    let plan = Case::steps(1).observe("c", failing).run(&script).await.unwrap();
    let refused =
        Unsynced::from([("a".to_owned(), "A \"x\" is invalid: spec.size: 0xc00012345f".to_owned())]);
    assert_eq!(
        explained(&plan, &refused),
        [
            r#"Unsynced resources: a (a: A "x" is invalid: spec.size: 0x…)"#,
            r#"Unready resources: b, c (Pipeline step "a": cannot check readiness of composed resource "b": no such field; c: no network)"#,
        ]
    );
    assert_eq!(explained(&plan, &Unsynced::new())[0], "", "what is synced needs no words");
    let many = ["r0", "r1", "r2", "r3", "r4"];
    let script = Script::new().then(move |request| {
        let mut response = request.copy_response();
        many.iter().for_each(|name| response.set_composed(*name, resource("A").with_ready(Ready::True)));
        response
    });
    let plan = Case::steps(1).run(&script).await.unwrap();
    let many: Unsynced = many.iter().map(|name| ((*name).to_owned(), "x".repeat(1 << 20))).collect();
    let [synced, _] = explained(&plan, &many);
    assert!(synced.starts_with("Unsynced resources: r0, r1, r2, and 2 more (r0: xx"), "{}", &synced[..80]);
    assert!(synced.len() < 4096 && synced.ends_with("; and 2 more, see events)"), "{}", synced.len());
}

#[tokio::test]
async fn a_function_that_holds_resources_back_is_the_cause() {
    let held = r#"not adding new composed resource "site" to desired state because of a patch"#;
    let script = |say: fn(&mut RunFunctionResponse, &str)| {
        Script::new().then(move |request| {
            let mut response = wanting(&[("a", Ready::True)])(request);
            response.composite().ready = Ready::False as i32;
            say(&mut response, held);
            response
        })
    };
    let ready = async |script: &Script| {
        let plan = Case::steps(1).run(script).await.unwrap();
        let [_, ready] = explained(&plan, &Unsynced::new());
        ready
    };
    let words = "A function reports that the composite resource is not ready";
    let told = format!("{words} (Pipeline step \"a\": {held})");
    assert_eq!(
        ready(&script(|response, held| {
            response.warning(held);
        }))
        .await,
        told
    );
    assert_eq!(
        ready(&script(|response, held| {
            response.normal(held);
        }))
        .await,
        told
    );
    assert_eq!(ready(&script(|_, _| {})).await, words);
}

#[tokio::test]
async fn many_resources_are_one_event() {
    const UNREADY: [(&str, Ready); 5] = [
        ("a", Ready::False),
        ("b", Ready::False),
        ("c", Ready::False),
        ("d", Ready::False),
        ("e", Ready::False),
    ];
    let plan = Case::steps(1).run(&Script::new().then(wanting(&UNREADY))).await.unwrap();
    let refused: Unsynced = ["a", "b"].map(|name| (name.to_owned(), "invalid".to_owned())).into();
    let concluded = plan.conclude(&refused);
    assert_eq!(concluded.events.len(), 7, "Crossplane has one for each");
    let said: Vec<String> =
        plan.explain(concluded, &refused).events.iter().map(transom_compose::Event::text).collect();
    assert_eq!(
        said,
        [
            "Composed resources a, b are not yet valid",
            "Composed resources a, b, c, and 2 more are not yet ready"
        ]
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
    for layout in [Layout::Modern, Layout::Legacy] {
        let mut xr = json!({"metadata": {"generation": 2}, "status": {"conditions": [
            {"type": "Kept", "status": "True", "reason": "R", "lastTransitionTime": "2023-01-01T00:00:00Z"},
        ]}});
        plan.conclude(&Unsynced::new()).mark(&mut xr, layout, now());
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
        assert_eq!(claim, (layout == Layout::Legacy).then(|| json!(["Shared"])).as_ref());
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
    failure.conclude(&xr, "cannot compose resources: no").mark(&mut after, Layout::Modern, now());
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
    outcome.mark(&mut after, Layout::Modern, now());
    assert_eq!(conditions(&after)[1], ["Custom", "Unknown", "FatalError", unknown].map(str::to_owned));
}

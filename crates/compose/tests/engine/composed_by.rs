//! When an event names the FunctionRevisions that composed a composite resource.

use crate::reconciling::{SELECTED, composition, drive, moment, setup, xr};
use crate::script::{Script, resource};
use serde_json::Value;
use transom_compose::{
    Answer, ComposedBy, FunctionRunner, Nesting, Objects, Reconcile, Requirements, RunError, StepRef,
};
use transom_function::{Ready, RunFunctionRequest, async_trait};

/// Answers as a FunctionRevision.
struct Revision {
    name: &'static str,
    script: Script,
}

#[async_trait]
impl FunctionRunner for Revision {
    async fn run(&self, step: StepRef<'_>, request: RunFunctionRequest) -> Result<Answer, RunError> {
        let answer = self.script.run(step, request).await?;
        Ok(Answer { revision: Some(self.name.into()), ..answer })
    }
}

/// A revision that sets a field of the status.
fn saying(name: &'static str, word: &'static str) -> Revision {
    let script = Script::new().then(move |request| {
        let mut response = request.copy_response();
        response.composite().set("status.says", word).expect("a field");
        response
    });
    Revision { name, script }
}

/// A revision that composes a resource.
fn making(name: &'static str, ready: Ready) -> Revision {
    let script = Script::new().then(move |request| {
        let mut response = request.copy_response();
        response.set_composed("part", resource("Part").with_ready(ready));
        response
    });
    Revision { name, script }
}

/// A composite resource, and what is remembered of it.
struct Thing {
    xr: Value,
    known: Option<ComposedBy>,
}

impl Thing {
    fn new() -> Self {
        Self { xr: xr(), known: None }
    }

    /// What one reconcile writes of events.
    async fn composed_by(&mut self, revision: &Revision) -> Vec<String> {
        let (composition, nesting, world) = (composition(), Nesting::default(), Objects::new());
        let setup = setup(&composition, &nesting);
        let (mut reconcile, todo) = Reconcile::start(&setup, self.xr.clone(), Requirements::new(), &moment());
        reconcile.report_revisions(self.known.clone());
        let (recorded, _) = drive(&mut reconcile, todo, revision, &world, |_| None).await;
        self.known = reconcile.composed_by().or(self.known.take());
        self.xr = reconcile.xr().clone();
        recorded.log().into_iter().filter(|line| line.starts_with("events")).collect()
    }
}

fn event(revision: &str) -> String {
    format!("events Composed by FunctionRevisions {revision}")
}

#[tokio::test]
async fn revisions_are_reported_when_they_are_others_than_before() {
    let mut thing = Thing::new();
    assert_eq!(thing.composed_by(&saying("f-1", "a")).await, [SELECTED, &event("f-1")]);
    assert_eq!(thing.composed_by(&saying("f-1", "b")).await, [""; 0], "the same revision");
    assert_eq!(thing.composed_by(&saying("f-2", "b")).await, [event("f-2")]);
    assert_eq!(thing.composed_by(&saying("f-1", "b")).await, [event("f-1")]);
}

#[tokio::test]
async fn after_a_start_they_are_reported_with_the_first_change() {
    for (revision, word) in [("f-1", "b"), ("f-2", "a"), ("f-2", "b")] {
        let mut thing = Thing::new();
        thing.composed_by(&saying("f-1", "a")).await;
        thing.known = None;
        for _ in 0..2 {
            assert_eq!(thing.composed_by(&saying("f-1", "a")).await, [""; 0], "nothing changed");
        }
        assert_eq!(thing.composed_by(&saying(revision, word)).await, [event(revision)]);
        assert_eq!(thing.composed_by(&saying(revision, "c")).await, [""; 0], "it is known now");
    }
}

#[tokio::test]
async fn an_event_about_resources_that_are_not_ready_has_them() {
    let mut thing = Thing::new();
    let unready = |revision: &str| {
        format!(
            r#"events Composed resource "part" is not yet ready (composed by FunctionRevisions {revision})"#
        )
    };
    assert_eq!(thing.composed_by(&making("f-1", Ready::False)).await, [SELECTED, &unready("f-1")]);
    assert_eq!(
        thing.composed_by(&making("f-1", Ready::False)).await,
        [unready("f-1")],
        "it is the same event"
    );
    assert_eq!(thing.composed_by(&making("f-1", Ready::True)).await, [""; 0], "they were named");
    assert_eq!(thing.composed_by(&making("f-2", Ready::True)).await, [event("f-2")]);
}

//! Functions that keep others waiting.

use crate::scenarios::user::*;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;
use transom_function::testing::serve;
use transom_function::{Error, Function, RunFunctionRequest, RunFunctionResponse, async_trait};
use transom_xapi::conditions;

/// Answers about things that are called slow when it may.
struct Hesitant(Arc<Semaphore>);

#[async_trait]
impl Function for Hesitant {
    async fn run(&self, mut request: RunFunctionRequest) -> Result<RunFunctionResponse, Error> {
        let mut response = request.start_response();
        response.meta.as_mut().unwrap().ttl = None;
        if request.observed_composite().name() == "slow" {
            let _leave = self.0.acquire().await?;
        }
        response.composite().set("status.coolerField", "answered")?;
        Ok(response)
    }
}

/// A plane whose things are composed by this function, which is called `remote`.
async fn composing_by(remote: impl Function) -> User {
    let user = User::new().await;
    let address = serve(remote).await;
    user.apply(&function("remote", &format!("transom.io/endpoint: '{address}'"))).await;
    user.apply(&definition("Thing", "Cluster", "")).await;
    user.apply(&composition("things", "Thing", &json!({}), &[("remote", Value::Null)])).await;
    user
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_that_does_not_answer_is_named_while_it_does_not() {
    let leave = Arc::new(Semaphore::new(0));
    let user = composing_by(Hesitant(leave.clone())).await;
    user.apply(&object("Thing", "slow", "")).await;
    let slow = user.until(THING, "slow", |o| reason_of(o, "Responsive") == "WaitingForFunction").await;
    assert_eq!(
        message_of(&slow, "Responsive"),
        "Pipeline step \"step-0\" waits for function \"remote\", which has not answered for 0.75 s."
    );
    user.apply(&object("Thing", "quick", "")).await;
    let quick = user.until_ready(THING, "quick").await;
    assert_eq!(reason_of(&quick, "Responsive"), "WatchCircuitClosed", "no other one waits");
    leave.add_permits(Semaphore::MAX_PERMITS / 2);
    let answered = user.until_ready(THING, "slow").await;
    assert_eq!(answered["status"]["coolerField"], "answered");
    assert_eq!(reason_of(&answered, "Responsive"), "WatchCircuitClosed");
    assert_eq!(message_of(&answered, "Responsive"), "", "nothing is left of it");
    // The second time, the condition has the time at which it changed last. Times are in seconds.
    tokio::time::sleep(Duration::from_secs(1)).await;
    leave.forget_permits(Semaphore::MAX_PERMITS / 2);
    user.apply(&object("Thing", "slow", "coolField: b")).await;
    let slow = user.until(THING, "slow", |o| reason_of(o, "Responsive") == "WaitingForFunction").await;
    leave.add_permits(Semaphore::MAX_PERMITS / 2);
    let answered = user.until(THING, "slow", |o| reason_of(o, "Responsive") == "WatchCircuitClosed").await;
    let since = |thing: &Value| conditions::get(&conditions::of(thing), "Responsive").last_transition_time;
    assert!(since(&answered) >= since(&slow), "{answered:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_that_fails_after_a_long_silence_leaves_no_word_of_the_silence() {
    /// Fails when it may.
    struct Failing(Arc<Semaphore>);
    #[async_trait]
    impl Function for Failing {
        async fn run(&self, _: RunFunctionRequest) -> Result<RunFunctionResponse, Error> {
            let _leave = self.0.acquire().await?;
            Err(std::io::Error::other("at last").into())
        }
    }
    let leave = Arc::new(Semaphore::new(0));
    let user = composing_by(Failing(leave.clone())).await;
    user.apply(&object("Thing", "one", "")).await;
    user.until(THING, "one", |o| reason_of(o, "Responsive") == "WaitingForFunction").await;
    leave.add_permits(Semaphore::MAX_PERMITS / 2);
    let failed = user.until(THING, "one", |o| message_of(o, "Synced").contains("at last")).await;
    assert_eq!(reason_of(&failed, "Synced"), "ReconcileError");
    assert_eq!(reason_of(&failed, "Responsive"), "WatchCircuitClosed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_that_is_always_slow_is_called_no_more_often_for_that() {
    /// Takes its time, and notes for whom.
    struct Slow(Arc<Mutex<Vec<String>>>);
    #[async_trait]
    impl Function for Slow {
        async fn run(&self, mut request: RunFunctionRequest) -> Result<RunFunctionResponse, Error> {
            tokio::time::sleep(Duration::from_millis(900)).await;
            self.0.lock().unwrap().push(request.observed_composite().name().to_owned());
            let mut response = request.start_response();
            response.meta.as_mut().unwrap().ttl = None;
            Ok(response)
        }
    }
    let calls: Arc<Mutex<Vec<String>>> = Arc::default();
    let user = composing_by(Slow(calls.clone())).await;
    user.apply(&object("Thing", "one", "")).await;
    user.until_ready(THING, "one").await;
    // Another that takes as long comes and goes, twice.
    for _ in 0..2 {
        user.apply(&object("Thing", "other", "")).await;
        user.until_ready(THING, "other").await;
        user.delete(THING, "other", None).await;
        user.until_gone(THING, "other").await;
    }
    let count = calls.lock().unwrap().iter().filter(|name| *name == "one").count();
    assert!(count <= 2, "it was called {count} times");
}

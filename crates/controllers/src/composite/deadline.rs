//! Calls functions within the time of one reconcile, and reports calls that are slow.
//!
//! A call that takes too long must end before the whole reconcile does: then the step and its function are known, and
//! can be named. All calls of a reconcile share its deadline.

use std::pin::pin;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use transom_compose::{Answer, FunctionRunner, RunError, RunFunctionRequest, SlowCall, StepRef};

/// What must be left of a reconcile's time to report that a function was too slow.
const REPORTING_RESERVE: Duration = Duration::from_millis(500);

/// How long a call may take before it is reported as slow.
const SLOW_CALL_AFTER: Duration = Duration::from_millis(750);

/// Runs functions until a deadline.
pub(super) struct DeadlineRunner<'a> {
    runner: &'a dyn FunctionRunner,
    started: Instant,
    until: Instant,
    slow_call: watch::Sender<Option<SlowCall>>,
}

impl<'a> DeadlineRunner<'a> {
    /// For a reconcile that started then and may take this long.
    pub(super) fn new(runner: &'a dyn FunctionRunner, started: Instant, timeout: Duration) -> Self {
        let until = started + timeout.saturating_sub(REPORTING_RESERVE);
        Self { runner, started, until, slow_call: watch::Sender::new(None) }
    }

    /// Changes whenever a call turns out to be slow.
    pub(super) fn slow_calls(&self) -> watch::Receiver<Option<SlowCall>> {
        self.slow_call.subscribe()
    }
}

#[async_trait::async_trait]
impl FunctionRunner for DeadlineRunner<'_> {
    async fn run(&self, step: StepRef<'_>, request: RunFunctionRequest) -> Result<Answer, RunError> {
        let mut call = pin!(self.runner.run(step, request));
        if let Ok(response) = timeout(SLOW_CALL_AFTER, &mut call).await {
            return response;
        }
        let (name, function) = (step.name.to_owned(), step.function.to_owned());
        let slow = SlowCall { step: name, function: function.clone(), after: SLOW_CALL_AFTER };
        self.slow_call.send_replace(Some(slow));
        timeout_at(self.until, call).await.unwrap_or_else(|_| {
            let after = self.until - self.started;
            Err(RunError::Deadline { function, after })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes this long for every call.
    struct Slow(Duration);

    #[async_trait::async_trait]
    impl FunctionRunner for Slow {
        async fn run(&self, _: StepRef<'_>, _: RunFunctionRequest) -> Result<Answer, RunError> {
            tokio::time::sleep(self.0).await;
            Ok(Answer::default())
        }
    }

    fn step(name: &str) -> StepRef<'_> {
        StepRef { name, ..StepRef::calling("slow") }
    }

    #[tokio::test(start_paused = true)]
    async fn all_steps_together_have_the_time_of_one_reconcile() {
        let slow = Slow(Duration::from_secs(60));
        let runner = DeadlineRunner::new(&slow, Instant::now(), Duration::from_secs(100));
        assert!(runner.run(step("first"), RunFunctionRequest::default()).await.is_ok());
        let late = runner.run(step("second"), RunFunctionRequest::default()).await.unwrap_err();
        assert_eq!(late.to_string(), "function \"slow\" did not answer within 99.5 s");
        assert!(runner.started.elapsed() < Duration::from_secs(100), "there is time left to report it");
    }

    #[tokio::test(start_paused = true)]
    async fn only_slow_calls_are_reported() {
        let quick = Slow(SLOW_CALL_AFTER / 2);
        let runner = DeadlineRunner::new(&quick, Instant::now(), Duration::from_secs(100));
        runner.run(step("first"), RunFunctionRequest::default()).await.unwrap();
        assert_eq!(*runner.slow_calls().borrow(), None);
        let slow = Slow(SLOW_CALL_AFTER * 2);
        let runner = DeadlineRunner::new(&slow, Instant::now(), Duration::from_secs(100));
        let mut slow_calls = runner.slow_calls();
        for name in ["first", "second"] {
            runner.run(step(name), RunFunctionRequest::default()).await.unwrap();
            slow_calls.changed().await.unwrap();
            let (step, function) = (name.to_owned(), "slow".to_owned());
            let named = SlowCall { step, function, after: SLOW_CALL_AFTER };
            assert_eq!(*slow_calls.borrow_and_update(), Some(named));
        }
    }
}

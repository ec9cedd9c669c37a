//! Calls functions with what is left of a reconcile's time, and says which one keeps it waiting.
//!
//! A call that takes too long must end before the whole reconcile does: then the step and its function are known, and
//! can be named.

use std::pin::pin;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use transom_compose::{FunctionRunner, RunError, RunFunctionRequest, RunFunctionResponse, StepRef};

/// What must be left to tell that a function was too slow.
const SPARE: Duration = Duration::from_millis(500);

/// How long a function may take before whoever waits for it is told.
pub(super) const SILENCE: Duration = Duration::from_millis(750);

/// A call that has not been answered for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unanswered {
    pub(super) step: String,
    pub(super) function: String,
}

pub(super) struct Punctual<'a> {
    runner: &'a dyn FunctionRunner,
    started: Instant,
    until: Instant,
    unanswered: watch::Sender<Option<Unanswered>>,
}

impl<'a> Punctual<'a> {
    /// For a reconcile that begins now and may take so long.
    pub(super) fn new(runner: &'a dyn FunctionRunner, time: Duration) -> Self {
        let started = Instant::now();
        let until = started + time.saturating_sub(SPARE);
        Self { runner, started, until, unanswered: watch::Sender::new(None) }
    }

    /// Changes whenever a call has not been answered for a while.
    pub(super) fn unanswered(&self) -> watch::Receiver<Option<Unanswered>> {
        self.unanswered.subscribe()
    }
}

#[async_trait::async_trait]
impl FunctionRunner for Punctual<'_> {
    async fn run(
        &self,
        step: StepRef<'_>,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        let mut call = pin!(self.runner.run(step, request));
        if let Ok(answer) = timeout(SILENCE, &mut call).await {
            return answer;
        }
        let (name, function) = (step.name.to_owned(), step.function.to_owned());
        self.unanswered.send_replace(Some(Unanswered { step: name, function: function.clone() }));
        timeout_at(self.until, call).await.unwrap_or_else(|_| {
            let after = self.until - self.started;
            Err(RunError::Deadline { function, after })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes so long for everything.
    struct Slow(Duration);

    #[async_trait::async_trait]
    impl FunctionRunner for Slow {
        async fn run(&self, _: StepRef<'_>, _: RunFunctionRequest) -> Result<RunFunctionResponse, RunError> {
            tokio::time::sleep(self.0).await;
            Ok(RunFunctionResponse::default())
        }
    }

    fn step(name: &str) -> StepRef<'_> {
        StepRef { name, index: 0, iteration: 0, function: "slow" }
    }

    #[tokio::test(start_paused = true)]
    async fn all_steps_together_have_the_time_of_one_reconcile() {
        let slow = Slow(Duration::from_secs(60));
        let runner = Punctual::new(&slow, Duration::from_secs(100));
        assert!(runner.run(step("first"), RunFunctionRequest::default()).await.is_ok());
        let late = runner.run(step("second"), RunFunctionRequest::default()).await.unwrap_err();
        assert_eq!(late.to_string(), "function \"slow\" did not answer within 99.5 s");
        assert!(runner.started.elapsed() < Duration::from_secs(100), "there is time left to say so");
    }

    #[tokio::test(start_paused = true)]
    async fn only_who_takes_long_is_named() {
        let quick = Slow(SILENCE / 2);
        let runner = Punctual::new(&quick, Duration::from_secs(100));
        runner.run(step("first"), RunFunctionRequest::default()).await.unwrap();
        assert_eq!(*runner.unanswered().borrow(), None);
        let slow = Slow(SILENCE * 2);
        let runner = Punctual::new(&slow, Duration::from_secs(100));
        let mut unanswered = runner.unanswered();
        for name in ["first", "second"] {
            runner.run(step(name), RunFunctionRequest::default()).await.unwrap();
            unanswered.changed().await.unwrap();
            let named = Unanswered { step: name.to_owned(), function: "slow".to_owned() };
            assert_eq!(*unanswered.borrow_and_update(), Some(named));
        }
    }
}

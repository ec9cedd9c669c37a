//! Calls functions with what is left of a reconcile's time.
//!
//! A call that takes too long must end before the whole reconcile does: then the step and its function are known, and
//! can be named.

use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use transom_compose::{FunctionRunner, RunError, RunFunctionRequest, RunFunctionResponse, StepRef};

/// What must be left to tell that a function was too slow.
const SPARE: Duration = Duration::from_millis(500);

pub(super) struct Punctual<'a> {
    runner: &'a dyn FunctionRunner,
    started: Instant,
    until: Instant,
}

impl<'a> Punctual<'a> {
    /// For a reconcile that begins now and may take so long.
    pub(super) fn new(runner: &'a dyn FunctionRunner, time: Duration) -> Self {
        let started = Instant::now();
        Self { runner, started, until: started + time.saturating_sub(SPARE) }
    }
}

#[async_trait::async_trait]
impl FunctionRunner for Punctual<'_> {
    async fn run(
        &self,
        step: StepRef<'_>,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        timeout_at(self.until, self.runner.run(step, request)).await.unwrap_or_else(|_| {
            let after = self.until - self.started;
            Err(RunError::Deadline { function: step.function.to_owned(), after })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes a minute for everything.
    struct Slow;

    #[async_trait::async_trait]
    impl FunctionRunner for Slow {
        async fn run(&self, _: StepRef<'_>, _: RunFunctionRequest) -> Result<RunFunctionResponse, RunError> {
            tokio::time::sleep(Duration::from_secs(60)).await;
            Ok(RunFunctionResponse::default())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn all_steps_together_have_the_time_of_one_reconcile() {
        let runner = Punctual::new(&Slow, Duration::from_secs(100));
        let step = |name| StepRef { name, index: 0, iteration: 0, function: "slow" };
        assert!(runner.run(step("first"), RunFunctionRequest::default()).await.is_ok());
        let late = runner.run(step("second"), RunFunctionRequest::default()).await.unwrap_err();
        assert_eq!(late.to_string(), "function \"slow\" did not answer within 99.5 s");
        assert!(runner.started.elapsed() < Duration::from_secs(100), "there is time left to say so");
    }
}

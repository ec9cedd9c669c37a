//! Further attempts after an overload or a lost connection: how many there are, and what is waited before each.

use super::options::RemoteOptions;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use transom_packages::{RegistryError, RegistryErrorKind};

/// The waits of one client. No two of them are alike, so that requests which failed together are not repeated together.
#[derive(Default)]
pub(super) struct Attempts {
    waits: AtomicU64,
}

impl Attempts {
    /// The result of the first attempt that succeeds, or that fails in a way that another attempt cannot change; after the
    /// last one, its error. A server that asks for a longer wait than the options allow gets no further attempt: the error
    /// says how long it asked for.
    pub(super) async fn run<T, F>(
        &self,
        options: &RemoteOptions,
        attempts_max: u32,
        attempt: impl Fn() -> F,
    ) -> Result<T, RegistryError>
    where
        F: Future<Output = Result<T, RegistryError>>,
    {
        let mut number = 1;
        loop {
            let error = match attempt().await {
                Err(error) if error.kind == RegistryErrorKind::Unavailable => error,
                result => return result,
            };
            let asked = error.retry_after.unwrap_or_default();
            if number >= attempts_max || asked > options.backoff_max {
                return Err(error);
            }
            let waits = self.waits.fetch_add(1, Ordering::Relaxed);
            let wait = options.wait(number, waits, asked);
            tracing::debug!(%error, number, ?wait, "a request to a registry is sent again");
            tokio::time::sleep(wait).await;
            number += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{not_found, unavailable};
    use std::sync::Mutex;
    use std::time::Duration;
    use tokio::time::Instant;

    const SECOND: Duration = Duration::from_secs(1);

    fn asks_for(retry_after: Option<Duration>) -> RegistryError {
        RegistryError { retry_after, ..unavailable("r.io/a:v1", "busy") }
    }

    /// Has every attempt fail like this. Returns when each was made, and the last error.
    async fn failing(options: &RemoteOptions, error: &RegistryError) -> (Vec<Duration>, RegistryError) {
        let (start, times) = (Instant::now(), Mutex::new(Vec::new()));
        let attempt = || async {
            times.lock().unwrap().push(start.elapsed());
            Err::<(), _>(error.clone())
        };
        let failed = Attempts::default().run(options, options.attempts, attempt).await.unwrap_err();
        (times.into_inner().unwrap(), failed)
    }

    /// Timers have a resolution of a millisecond.
    fn must_be(times: &[Duration], expected: &[Duration]) {
        let is_near =
            |(time, expected): (&Duration, &Duration)| time.abs_diff(*expected) <= Duration::from_millis(4);
        assert!(
            times.len() == expected.len() && times.iter().zip(expected).all(is_near),
            "{times:?} {expected:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn every_attempt_is_made_after_the_computed_wait() {
        let options = RemoteOptions { jitter_seed: 7, ..RemoteOptions::default() };
        for asked in [None, Some(Duration::ZERO), Some(SECOND), Some(SECOND * 15)] {
            let (times, error) = failing(&options, &asks_for(asked)).await;
            let wait = |number: u32| options.wait(number, u64::from(number) - 1, asked.unwrap_or_default());
            let expected: Vec<Duration> = (1..=4).map(|number| (1..number).map(wait).sum()).collect();
            must_be(&times, &expected);
            assert!(asked.is_none_or(|asked| times[1] >= asked), "{times:?} of {asked:?}");
            assert_eq!(error.retry_after, asked);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_longer_wait_is_left_to_the_caller() {
        let (times, error) = failing(&RemoteOptions::default(), &asks_for(Some(SECOND * 16))).await;
        assert_eq!((times.len(), error.retry_after), (1, Some(SECOND * 16)));
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_that_stays_is_returned_at_once() {
        let (times, error) = failing(&RemoteOptions::default(), &not_found("r.io/a:v1", "no such tag")).await;
        assert_eq!((times.len(), error.kind), (1, RegistryErrorKind::NotFound));
    }
}

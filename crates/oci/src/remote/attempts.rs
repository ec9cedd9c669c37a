//! Further attempts after an overload or a lost connection: how many there are, and what is waited before each.

use super::options::RemoteOptions;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use transom_packages::{RegistryError, RegistryErrorKind};

/// The waits of one client. No two of them are alike, so that requests which failed together are not repeated together.
#[derive(Default)]
pub(super) struct Attempts {
    waits: AtomicU64,
}

impl Attempts {
    /// The result of the first attempt that succeeds, or that fails in a way that another attempt cannot change; after the
    /// last one, its error. A server that asks for longer waits, together, than the options allow gets no further attempt: the
    /// error says how long it asked for. Callers that limit the time of an operation would otherwise not learn of it.
    pub(super) async fn run<T, F>(
        &self,
        options: &RemoteOptions,
        attempts_max: u32,
        attempt: impl Fn() -> F,
    ) -> Result<T, RegistryError>
    where
        F: Future<Output = Result<T, RegistryError>>,
    {
        let (mut number, mut asked_in_all) = (1, Duration::ZERO);
        loop {
            let error = match attempt().await {
                Err(error) if error.kind == RegistryErrorKind::Unavailable => error,
                result => return result,
            };
            let asked = error.retry_after.unwrap_or_default();
            asked_in_all = asked_in_all.saturating_add(asked);
            if number >= attempts_max || asked_in_all > options.backoff_max {
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
        for asked in [None, Some(Duration::ZERO), Some(SECOND), Some(SECOND * 5)] {
            let (times, error) = failing(&options, &asks_for(asked)).await;
            let wait = |number: u32| options.wait(number, u64::from(number) - 1, asked.unwrap_or_default());
            let expected: Vec<Duration> = (1..=4).map(|number| (1..number).map(wait).sum()).collect();
            must_be(&times, &expected);
            assert!(asked.is_none_or(|asked| times[1] >= asked), "{times:?} of {asked:?}");
            assert_eq!(error.retry_after, asked);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn longer_waits_are_left_to_the_caller() {
        for (asked, attempts) in [(16, 1), (15, 2), (8, 2), (7, 3), (5, 4)].map(|(s, n)| (SECOND * s, n)) {
            let (times, error) = failing(&RemoteOptions::default(), &asks_for(Some(asked))).await;
            assert_eq!((times.len(), error.retry_after), (attempts, Some(asked)));
            let last = times[attempts - 1];
            assert!(
                last < SECOND * 19,
                "a caller that allows a minute for two requests gets their errors: {last:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_that_stays_is_returned_at_once() {
        let (times, error) = failing(&RemoteOptions::default(), &not_found("r.io/a:v1", "no such tag")).await;
        assert_eq!((times.len(), error.kind), (1, RegistryErrorKind::NotFound));
    }
}

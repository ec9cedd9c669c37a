//! When managed resources are looked at: polls that are spread over time, and a limit for all reconciles of a provider.

use serde_json::Value;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;
use transom_engine::Pace;
use transom_xapi::metadata;

/// How a provider behaves.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How often a managed resource that is as it should be is looked at; none for never.
    pub poll_interval: Option<Duration>,
    /// The shortest interval that the annotation for polling may ask for.
    pub min_poll_interval: Duration,
    /// Whether a provider can have what it wants to look at soon, such as what is not ready, observed before the next poll.
    pub sooner_polls: bool,
    /// By how many percent, at most, the time until a poll is shorter or longer.
    pub poll_jitter_percent: u32,
    /// How many reconciles begin in a second, of all managed resources of the provider together. Ten times as many may
    /// begin at once.
    pub max_reconcile_rate: u32,
    /// How long connecting, observing, creating, updating and deleting may take in one reconcile.
    pub timeout: Duration,
    /// Whether management policies are supported.
    pub management_policies: bool,
    /// How long a managed resource waits after the first failure.
    pub first_backoff: Duration,
    /// The longest wait after failures.
    pub longest_backoff: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            poll_interval: Some(Duration::from_secs(60)),
            min_poll_interval: Duration::from_secs(1),
            sooner_polls: true,
            poll_jitter_percent: 10,
            max_reconcile_rate: 100,
            timeout: Duration::from_secs(60),
            management_policies: true,
            first_backoff: Duration::from_secs(1),
            longest_backoff: Duration::from_secs(60),
        }
    }
}

impl Settings {
    /// How keys that fail wait. Half of each wait is spread, so that what failed together is not retried together.
    pub(crate) fn pace(&self) -> Pace {
        Pace {
            first_backoff: self.first_backoff,
            longest_backoff: self.longest_backoff,
            spread_percent: 50,
            ..Pace::default()
        }
    }

    /// How long until a managed resource is looked at again; `draw` is a random number.
    pub(crate) fn poll_after(&self, object: &Value, draw: u32) -> Option<Duration> {
        let nanos = |duration: Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        let interval = match (self.poll_interval, metadata::poll_interval(object)) {
            (_, Some(asked)) => asked.max(nanos(self.min_poll_interval)),
            (Some(interval), None) => nanos(interval),
            (None, None) => return None,
        };
        // From minus to plus the jitter, in steps of a thousandth of it.
        let jitter = interval / 100 * i64::from(self.poll_jitter_percent.min(100));
        let offset = jitter / 1000 * (i64::from(draw % 2001) - 1000);
        u64::try_from(interval + offset).ok().map(Duration::from_nanos)
    }
}

/// Limits how many reconciles begin in a second.
pub(crate) struct Limiter {
    /// The time that one reconcile stands for.
    interval: Duration,
    /// How many may begin at once.
    burst: u32,
    /// When the next reconcile could begin if the burst was used up.
    next: Mutex<Instant>,
}

impl Limiter {
    pub(crate) fn new(rate: u32) -> Self {
        let rate = rate.max(1);
        Self {
            interval: Duration::from_secs(1) / rate,
            burst: rate.saturating_mul(10),
            next: Mutex::new(Instant::now()),
        }
    }

    /// Waits for the turn of a reconcile.
    pub(crate) async fn turn(&self) {
        let begin = {
            let now = Instant::now();
            let mut next = self.next.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            *next = (*next).max(now) + self.interval;
            let saved = self.interval * self.burst;
            next.checked_sub(saved).filter(|begin| *begin > now)
        };
        if let Some(begin) = begin {
            tokio::time::sleep_until(begin).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use transom_engine::Rng;

    #[test]
    fn polls_are_spread_evenly_around_the_interval() {
        let (settings, rng) = (Settings::default(), Rng::new(7));
        let mut tenths = [0; 12];
        for _ in 0..12_000 {
            let wait = settings.poll_after(&json!({}), rng.draw()).unwrap();
            assert!((54.0..=66.0).contains(&wait.as_secs_f64()), "{wait:?}");
            let tenth = ((wait.as_secs_f64() - 54.0) as usize).min(11);
            tenths[tenth] += 1;
        }
        assert!(tenths.iter().all(|count| (850..1150).contains(count)), "{tenths:?}");
    }

    #[test]
    fn the_annotation_asks_for_another_interval() {
        let settings = Settings {
            poll_jitter_percent: 0,
            min_poll_interval: Duration::from_secs(60),
            ..Settings::default()
        };
        let seconds = |settings: &Settings, text: &str| {
            let object = json!({"metadata": {"annotations": {"crossplane.io/poll-interval": text}}});
            settings.poll_after(&object, 5).map(|wait| wait.as_secs())
        };
        let settings = Settings { poll_interval: Some(Duration::from_secs(600)), ..settings };
        for (text, expected) in [("30s", 60), ("90s", 90), ("abc", 600), ("-1s", 600)] {
            assert_eq!(seconds(&settings, text), Some(expected), "R43: {text}");
        }
        let never = Settings { poll_interval: None, ..settings };
        assert_eq!((seconds(&never, "abc"), seconds(&never, "90s")), (None, Some(90)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_begins_at_once_and_the_rest_at_the_rate() {
        let (limiter, started) = (Limiter::new(10), Instant::now());
        for _ in 0..100 {
            limiter.turn().await;
        }
        assert_eq!(started.elapsed(), Duration::ZERO);
        for _ in 0..50 {
            limiter.turn().await;
        }
        assert!((Duration::from_millis(4900)..=Duration::from_millis(5100)).contains(&started.elapsed()));
    }
}

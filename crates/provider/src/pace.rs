//! When managed resources are looked at: polls that are spread over time, and a limit for all reconciles of a provider.

use serde_json::Value;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;
use transom_engine::Pace;
use transom_object::hash::{fnv1a, split_mix};
use transom_object::meta;
use transom_object::time::Timestamp;
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
    /// Whether each managed resource has its own times to be looked at, so that those that are created together are not
    /// looked at together. Otherwise the interval begins with each reconcile.
    pub spread_polls: bool,
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
            spread_polls: true,
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

    /// How long until a managed resource is looked at again. Its times are one interval apart, and where in the interval they
    /// are follows from its uid and a seed: whenever many are reconciled together, because they are new or because the process
    /// started, their next polls are spread over the whole interval. What was reconciled less than a tenth of the interval
    /// before its time is looked at one interval later.
    pub(crate) fn poll_after(&self, object: &Value, now: Timestamp, seed: u64) -> Option<Duration> {
        let nanos = |duration: Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        let interval = match (self.poll_interval, metadata::poll_interval(object)) {
            (_, Some(asked)) => asked.max(nanos(self.min_poll_interval)),
            (Some(interval), None) => nanos(interval),
            (None, None) => return None,
        };
        let interval = i128::from(interval.max(1));
        if !self.spread_polls {
            return u64::try_from(interval).ok().map(Duration::from_nanos);
        }
        let own_time = i128::from(place_of(meta::uid(object), seed));
        let left = interval - (now.as_nanosecond() - own_time).rem_euclid(interval);
        let wait = if left < interval / 10 { left + interval } else { left };
        u64::try_from(wait).ok().map(Duration::from_nanos)
    }
}

/// A number that differs between uids and seeds, and is spread evenly over its range.
fn place_of(uid: &str, seed: u64) -> u64 {
    split_mix(seed ^ fnv1a(uid.bytes()))
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
    use transom_object::time::parse;

    fn named(n: u32) -> Value {
        json!({"metadata": {"uid": format!("6f1c0d5e-0000-4000-8000-{n:012x}")}})
    }

    /// A thousand that are created together, and are then looked at whenever they are due.
    #[test]
    fn what_is_created_together_is_not_polled_together() {
        let settings = Settings { poll_interval: Some(Duration::from_secs(600)), ..Settings::default() };
        let start = parse("2024-01-01T00:00:00Z").unwrap();
        let mut due: Vec<Timestamp> = vec![start; 1000];
        for round in 0..3 {
            let mut minutes = [0; 11];
            for (object, due) in (0..).map(named).zip(&mut due) {
                let wait = settings.poll_after(&object, *due, 7).unwrap();
                assert!((60.0..660.0).contains(&wait.as_secs_f64()), "{wait:?}");
                assert!(round == 0 || wait == Duration::from_secs(600), "then at the interval: {wait:?}");
                *due = due.checked_add(wait).unwrap();
                let since = due.duration_since(start).as_secs() - 600 * round;
                minutes[usize::try_from(since / 60).unwrap()] += 1;
            }
            assert!(minutes[1..].iter().all(|count| (60..150).contains(count)), "{round}: {minutes:?}");
        }
    }

    #[test]
    fn places_depend_on_the_seed_and_on_the_uid() {
        assert_ne!(place_of("a", 1), place_of("a", 2));
        assert_ne!(place_of("a", 1), place_of("b", 1));
        assert_eq!(place_of("a", 1), place_of("a", 1));
    }

    /// A poll that comes a little early, or a change shortly before one, does not cause two polls in a row.
    #[test]
    fn a_poll_that_is_almost_due_is_left_out() {
        let settings = Settings::default();
        let now = parse("2024-01-01T00:00:00Z").unwrap();
        let until = settings.poll_after(&named(1), now, 7).unwrap();
        let shortly_before = now.checked_add(until.saturating_sub(Duration::from_millis(1))).unwrap();
        let wait = settings.poll_after(&named(1), shortly_before, 7).unwrap();
        assert_eq!(wait, Duration::from_secs(60) + Duration::from_millis(1));
    }

    #[test]
    fn the_annotation_asks_for_another_interval() {
        let settings = Settings {
            spread_polls: false,
            min_poll_interval: Duration::from_secs(60),
            ..Settings::default()
        };
        let seconds = |settings: &Settings, text: &str| {
            let object = json!({"metadata": {"annotations": {"crossplane.io/poll-interval": text}}});
            settings.poll_after(&object, Timestamp::UNIX_EPOCH, 5).map(|wait| wait.as_secs())
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

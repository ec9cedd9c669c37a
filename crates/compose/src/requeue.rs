//! When a composite resource is reconciled again.

use std::time::Duration;

/// What to do with the key of a composite resource after a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing, until something changes.
    Wait,
    /// Run again after this long, or sooner if something changes.
    After(Duration),
    /// Run again at once: the run itself changed what it is based on.
    Again,
    /// Run again after a delay that grows each time.
    Backoff,
    /// The same, because of this error, which the status of the composite resource reports.
    Failed(String),
    /// The same, because of this error.
    Error(String),
    /// Run again at once: another client changed an object first.
    Conflict,
    /// Nothing: the composite resource is gone.
    Gone,
}

/// How often composite resources are reconciled although nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Polling {
    /// Whether changes of composed and required resources are watched. If not, they are polled.
    pub realtime: bool,
    /// Without watches: the interval for a composite resource that is ready.
    pub interval: Duration,
    /// The shortest interval that an annotation or a TTL may ask for.
    pub min_interval: Duration,
}

impl Default for Polling {
    fn default() -> Self {
        Self { realtime: true, interval: Duration::from_secs(60), min_interval: Duration::from_secs(1) }
    }
}

/// The state of a composite resource after a run that changed nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Requeue {
    /// A composed resource could not be deleted because it is in use, and no watch reports when it no longer is.
    pub(crate) blocked: bool,
    /// A composed resource is not synced or not ready.
    pub(crate) unfinished: bool,
    /// How long the responses of functions are valid.
    pub(crate) ttl: Option<Duration>,
    /// The interval that the annotation asks for, in nanoseconds.
    pub(crate) asked: Option<i64>,
}

impl Requeue {
    /// When to run again, give or take a tenth by a number drawn at random. The result is never shorter than the
    /// shortest interval.
    pub(crate) fn next(self, polling: &Polling, random: u32) -> Next {
        match self.pause(polling) {
            Next::After(pause) => Next::After(jitter(pause, random).max(pause.min(polling.min_interval))),
            next => next,
        }
    }

    /// With watches: when responses expire, or when asked to. Without watches changes are found by polling only, so that
    /// is done whatever the TTL of responses is, and sooner while something is unfinished.
    fn pause(self, polling: &Polling) -> Next {
        if self.blocked || (self.unfinished && !polling.realtime) {
            return Next::Backoff;
        }
        let asked = self.asked.and_then(|nanos| u64::try_from(nanos).ok()).map(Duration::from_nanos);
        let at_least = |wanted: Option<Duration>| {
            wanted.filter(|pause| !pause.is_zero()).map(|pause| pause.max(polling.min_interval))
        };
        let pause = match polling.realtime {
            true => at_least(self.ttl).or(at_least(asked)),
            false => at_least(asked).or(Some(polling.interval)),
        };
        pause.filter(|pause| !pause.is_zero()).map_or(Next::Wait, Next::After)
    }
}

/// The duration, give or take a tenth, and no longer than a duration can be.
fn jitter(duration: Duration, random: u32) -> Duration {
    let factor = 0.9 + 0.2 * f64::from(random) / f64::from(u32::MAX);
    Duration::try_from_secs_f64(duration.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn asked(seconds: i64) -> Requeue {
        Requeue { asked: Some(seconds * 1_000_000_000), ..Requeue::default() }
    }

    fn holding(seconds: u32) -> Requeue {
        Requeue { ttl: Some(SECOND * seconds), ..Requeue::default() }
    }

    fn after(seconds: u32) -> Next {
        Next::After(SECOND * seconds)
    }

    #[test]
    fn the_rules_of_requeueing() {
        let unfinished = Requeue { unfinished: true, ..Requeue::default() };
        let short = Requeue { asked: Some(1), ..Requeue::default() };
        let tiny = Requeue { ttl: Some(Duration::from_nanos(1)), ..Requeue::default() };
        for (what, requeue, with_watches, without) in [
            ("something is unready", unfinished, Next::Wait, Next::Backoff),
            ("unready, with a TTL", Requeue { ttl: Some(SECOND * 7), ..unfinished }, after(7), Next::Backoff),
            ("unready, asked to poll", Requeue { unfinished: true, ..asked(5) }, after(5), Next::Backoff),
            ("all fine, with a TTL", holding(7), after(7), after(60)),
            ("a TTL of nothing", holding(0), Next::Wait, after(60)),
            ("a tiny TTL", tiny, after(1), after(60)),
            ("all fine", Requeue::default(), Next::Wait, after(60)),
            ("asked to poll", asked(5), after(5), after(5)),
            ("asked to poll without end", short, after(1), after(1)),
            ("asked for nonsense", asked(-5), Next::Wait, after(60)),
            ("asked for nothing", asked(0), Next::Wait, after(60)),
            ("a TTL wins", Requeue { asked: Some(5_000_000_000), ..holding(7) }, after(7), after(5)),
            ("in use", Requeue { blocked: true, ..holding(7) }, Next::Backoff, Next::Backoff),
        ] {
            let polling = Polling::default();
            assert_eq!(requeue.pause(&polling), with_watches, "{what}, with watches");
            let polling = Polling { realtime: false, ..polling };
            assert_eq!(requeue.pause(&polling), without, "{what}, without");
        }
        let never = Polling { realtime: false, interval: Duration::ZERO, ..Polling::default() };
        assert_eq!(Requeue::default().pause(&never), Next::Wait, "an interval of nothing means no polling");
    }

    #[test]
    fn chance_makes_no_pause_shorter_than_the_shortest_nor_too_long_to_wait_for() {
        let polling = Polling::default();
        let of = |ttl| Requeue { ttl: Some(ttl), ..Requeue::default() };
        for random in (0..=u32::MAX).step_by(1 << 24).chain([u32::MAX]) {
            let Next::After(pause) = of(Duration::from_nanos(1)).next(&polling, random) else {
                unreachable!("it has a TTL")
            };
            assert!((SECOND..SECOND * 2).contains(&pause), "{pause:?}");
            assert!(matches!(of(Duration::MAX).next(&polling, random), Next::After(_)));
        }
    }

    #[test]
    fn jitter_stays_within_a_tenth() {
        let minute = Duration::from_secs(60);
        assert_eq!(jitter(minute, 0), SECOND * 54);
        assert_eq!(jitter(minute, u32::MAX), SECOND * 66);
        assert!(jitter(Duration::MAX, u32::MAX) > minute, "the longest, too");
    }
}

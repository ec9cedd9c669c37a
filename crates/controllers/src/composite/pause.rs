//! When a composite resource is looked at again although nothing happened to it.

use crate::plane::{Options, Rng};
use std::time::Duration;
use transom_engine::Next;

/// What a reconcile that changed nothing leaves behind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rest {
    /// Something could not be deleted because it is used, and nobody says when it no longer is.
    pub(super) blocked: bool,
    /// A composed resource is not synced or not ready.
    pub(super) unfinished: bool,
    /// How long the answers of functions hold.
    pub(super) ttl: Option<Duration>,
    /// The interval that the annotation asks for, in nanoseconds.
    pub(super) asked: Option<i64>,
}

impl Rest {
    /// When to look again, give or take a tenth. Chance makes no interval shorter than the shortest.
    pub(super) fn next(self, options: &Options, rng: &Rng) -> Next {
        match self.pause(options) {
            Next::After(pause) => Next::After(rng.jitter(pause).max(pause.min(options.min_poll_interval))),
            next => next,
        }
    }

    /// With watches: when answers no longer hold, or when asked to. Without them changes are found no other way than
    /// by looking, so that is done whatever answers say, and sooner while something is unfinished.
    fn pause(self, options: &Options) -> Next {
        if self.blocked || (self.unfinished && !options.realtime) {
            return Next::Backoff;
        }
        let asked = self.asked.and_then(|nanos| u64::try_from(nanos).ok()).map(Duration::from_nanos);
        let at_least = |wanted: Option<Duration>| {
            wanted.filter(|pause| !pause.is_zero()).map(|pause| pause.max(options.min_poll_interval))
        };
        let pause = match options.realtime {
            true => at_least(self.ttl).or(at_least(asked)),
            false => at_least(asked).or(Some(options.poll_interval)),
        };
        pause.filter(|pause| !pause.is_zero()).map_or(Next::Wait, Next::After)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn asked(seconds: i64) -> Rest {
        Rest { asked: Some(seconds * 1_000_000_000), ..Rest::default() }
    }

    fn holding(seconds: u32) -> Rest {
        Rest { ttl: Some(SECOND * seconds), ..Rest::default() }
    }

    fn after(seconds: u32) -> Next {
        Next::After(SECOND * seconds)
    }

    #[test]
    fn the_rules_of_requeueing() {
        let unfinished = Rest { unfinished: true, ..Rest::default() };
        let short = Rest { asked: Some(1), ..Rest::default() };
        for (what, rest, with_watches, without) in [
            ("something is unready", unfinished, Next::Wait, Next::Backoff),
            ("unready, with a TTL", Rest { ttl: Some(SECOND * 7), ..unfinished }, after(7), Next::Backoff),
            ("unready, asked to poll", Rest { unfinished: true, ..asked(5) }, after(5), Next::Backoff),
            ("all fine, with a TTL", holding(7), after(7), after(60)),
            ("a TTL of nothing", holding(0), Next::Wait, after(60)),
            (
                "a tiny TTL",
                Rest { ttl: Some(Duration::from_nanos(1)), ..Rest::default() },
                after(1),
                after(60),
            ),
            ("all fine", Rest::default(), Next::Wait, after(60)),
            ("asked to poll", asked(5), after(5), after(5)),
            ("asked to poll without end", short, after(1), after(1)),
            ("asked for nonsense", asked(-5), Next::Wait, after(60)),
            ("asked for nothing", asked(0), Next::Wait, after(60)),
            ("a TTL wins", Rest { asked: Some(5_000_000_000), ..holding(7) }, after(7), after(5)),
            ("in use", Rest { blocked: true, ..holding(7) }, Next::Backoff, Next::Backoff),
        ] {
            let options = Options::default();
            assert_eq!(rest.pause(&options), with_watches, "{what}, with watches");
            let options = Options { realtime: false, ..options };
            assert_eq!(rest.pause(&options), without, "{what}, without");
        }
        let never = Options { realtime: false, poll_interval: Duration::ZERO, ..Options::default() };
        assert_eq!(Rest::default().pause(&never), Next::Wait, "an interval of nothing is no polling");
    }

    #[test]
    fn chance_makes_no_pause_shorter_than_the_shortest_nor_too_long_to_wait_for() {
        let (options, rng) = (Options::default(), Rng::new(1));
        let of = |ttl| Rest { ttl: Some(ttl), ..Rest::default() };
        for _ in 0..100 {
            let Next::After(pause) = of(Duration::from_nanos(1)).next(&options, &rng) else {
                unreachable!("it has a TTL")
            };
            assert!((SECOND..SECOND * 2).contains(&pause), "{pause:?}");
            assert!(matches!(of(Duration::MAX).next(&options, &rng), Next::After(_)));
        }
    }
}

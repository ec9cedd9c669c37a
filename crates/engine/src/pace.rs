//! How fast the keys of a queue are tried again.

use crate::queue::Key;
use std::time::Duration;

/// How long failing keys wait, and how often busy keys run.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The wait after a first failure. It doubles with each further one.
    pub first_backoff: Duration,
    /// The longest wait after failures.
    pub longest_backoff: Duration,
    /// How many wake-ups run at once before a key is slowed down.
    pub burst: u32,
    /// How long a slowed key waits between runs, and how long until one wake-up of the burst is available again.
    pub refill: Duration,
    /// Whether the metrics show the slowing down of keys as a circuit breaker that opens and closes.
    pub circuit_breaker: bool,
    /// By how many percent, at most, the wait of a key after a failure is shorter: each key has its own share, so that keys
    /// that failed together are not all tried again at once.
    pub spread_percent: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            first_backoff: Duration::from_secs(1),
            longest_backoff: Duration::from_secs(60),
            burst: 100,
            refill: Duration::from_secs(1),
            circuit_breaker: false,
            spread_percent: 0,
        }
    }
}

impl Pace {
    /// How long a key waits after this many failures.
    pub(crate) fn backoff(&self, key: &Key, failures: u32) -> Duration {
        let factor = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        let longest = self.first_backoff.saturating_mul(factor).min(self.longest_backoff);
        let thousandths = share_of(key, failures) * self.spread_percent.min(100) / 100;
        longest.saturating_sub(longest / 1000 * thousandths)
    }

    /// The same if a server asked for a wait: that wait and up to a tenth more, so that keys which the server asked for the
    /// same wait do not all return at once.
    pub(crate) fn backoff_of_at_least(&self, key: &Key, failures: u32, asked: Duration) -> Duration {
        let spread = asked / 10_000 * share_of(key, failures);
        self.backoff(key, failures).max(asked.saturating_add(spread))
    }
}

/// A number below 1000 that differs between keys and between the failures of a key, and is the same in every process.
fn share_of(key: &Key, failures: u32) -> u32 {
    const PRIME: u32 = 16_777_619;
    let bytes = key.namespace.bytes().chain([0]).chain(key.name.bytes()).chain(failures.to_le_bytes());
    let hash = bytes.fold(2_166_136_261_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(PRIME));
    (hash ^ (hash >> 15)) % 1000
}

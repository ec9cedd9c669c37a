//! What a store can be told when it is opened.

use std::time::Duration;

#[derive(Clone, Debug, Default)]
pub struct Options {
    pub history: HistoryLimits,
    pub batch: BatchLimits,
}

/// How much of the past is kept for watches that resume and lists that continue. An event goes when a hard
/// limit is passed, or when it is both older than `min_age` and not among the newest `min_events`.
#[derive(Clone, Debug)]
pub struct HistoryLimits {
    pub min_age: Duration,
    pub min_events: usize,
    pub max_events: usize,
    /// Bounds the bytes held by history alone: bodies that were replaced or deleted.
    pub max_bytes: u64,
}

/// How many writes share one sync.
#[derive(Clone, Debug)]
pub struct BatchLimits {
    pub max_writes: usize,
    pub max_bytes: usize,
    /// Relaxed writes are synced at most this much later.
    pub relaxed_delay: Duration,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        Self {
            min_age: Duration::from_secs(5 * 60),
            min_events: 1_000,
            max_events: 100_000,
            max_bytes: 32 << 20,
        }
    }
}

impl Default for BatchLimits {
    fn default() -> Self {
        Self { max_writes: 512, max_bytes: 4 << 20, relaxed_delay: Duration::from_millis(50) }
    }
}

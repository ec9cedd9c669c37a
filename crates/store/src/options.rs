//! The options with which a store is opened.

use crate::disk::{Disk, SystemDisk};
use std::sync::Arc;
use std::time::Duration;

/// The options of a store. The defaults suit a control plane of a few hundred thousand objects.
#[derive(Clone, Debug)]
pub struct Options {
    /// How much of the past is kept in memory.
    pub history: HistoryLimits,
    /// How many writes share one sync.
    pub batch: BatchLimits,
    /// How the files are cut and cleaned up.
    pub log: LogLimits,
    /// The file system of a store on disk; tests use one that fails.
    pub disk: Arc<dyn Disk>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            history: HistoryLimits::default(),
            batch: BatchLimits::default(),
            log: LogLimits::default(),
            disk: Arc::new(SystemDisk),
        }
    }
}

/// How much of the past is kept for watches that resume and lists that continue. An event is dropped when a hard
/// limit is passed, or when it is both older than `min_age` and not among the newest `min_events`.
#[derive(Clone, Debug)]
pub struct HistoryLimits {
    /// Younger events are kept, within the hard limits.
    pub min_age: Duration,
    /// This many events are kept whatever their age, within the hard limits.
    pub min_events: usize,
    /// A hard limit.
    pub max_events: usize,
    /// A hard limit on the bytes held by history alone: bodies that were replaced or deleted.
    pub max_bytes: u64,
}

/// How many writes share one sync.
#[derive(Clone, Debug)]
pub struct BatchLimits {
    /// The most writes in one batch.
    pub max_writes: usize,
    /// The most bytes in one batch, unless a single write is larger.
    pub max_bytes: usize,
    /// Relaxed writes are synced at most this much later.
    pub relaxed_delay: Duration,
}

/// How the log on disk is cut and cleaned up.
#[derive(Clone, Debug)]
pub struct LogLimits {
    /// A segment that has reached this size is followed by a new one.
    pub segment_bytes: u64,
    /// A snapshot is written when it makes at least this much of the log obsolete, and at least as much as
    /// the live objects take.
    pub compact_bytes: u64,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self { segment_bytes: 16 << 20, compact_bytes: 16 << 20 }
    }
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

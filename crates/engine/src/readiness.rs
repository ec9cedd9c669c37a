//! Whether controllers have seen everything that existed when they started.

use crate::{Queue, Watches};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Reached once every watch has listed its kind and the queues that start controllers are empty. Readiness latches: it is
/// never lost again.
pub struct Readiness {
    watches: Watches,
    /// The queues of the controllers that start other controllers.
    queues: Vec<Arc<Queue>>,
    reached: AtomicBool,
}

impl Readiness {
    /// Readiness of these watches and queues.
    pub fn new(watches: Watches, queues: Vec<Arc<Queue>>) -> Self {
        Self { watches, queues, reached: AtomicBool::new(false) }
    }

    /// Whether everything has been seen.
    pub fn is_reached(&self) -> bool {
        if self.reached.load(Ordering::Relaxed) {
            return true;
        }
        // Listed objects are in the queues. What their runs start to watch is watched before the queues are empty, so the
        // watches are checked again last.
        let reached =
            self.watches.are_filled() && self.queues.iter().all(|q| q.is_idle()) && self.watches.are_filled();
        self.reached.fetch_or(reached, Ordering::Relaxed);
        reached
    }
}

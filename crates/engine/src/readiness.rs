//! Whether the controllers know what exists, and act on it.

use crate::{Queue, Watches};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Reached once everything that existed at the start is known: definitions have their controllers, functions can be
/// called, and what is watched has been seen. It is never lost again: what comes later is nobody's start.
pub struct Readiness {
    watches: Watches,
    /// The queues of those who start controllers and install functions.
    queues: Vec<Arc<Queue>>,
    reached: AtomicBool,
}

impl Readiness {
    pub fn new(watches: Watches, queues: Vec<Arc<Queue>>) -> Self {
        Self { watches, queues, reached: AtomicBool::new(false) }
    }

    pub fn is_reached(&self) -> bool {
        if self.reached.load(Ordering::Relaxed) {
            return true;
        }
        // What was seen is in the queues; what comes of it is watched before the queues are empty, and seen last.
        let reached =
            self.watches.are_filled() && self.queues.iter().all(|q| q.is_idle()) && self.watches.are_filled();
        self.reached.fetch_or(reached, Ordering::Relaxed);
        reached
    }
}

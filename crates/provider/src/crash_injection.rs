//! Lets tests kill the process at a chosen call of an external system. Release builds do not contain this module.
//!
//! `TRANSOM_DIE_AT=POINT:N` ends the process with SIGKILL at the N-th place, of which each call has two: before it is sent, and
//! after its response. `external:1` is before the first call, and `external:2` after it unless another one began meanwhile.
//!
//! | point | which calls are counted |
//! |---|---|
//! | `external` | all: connecting, observing, creating, updating and deleting |
//! | `external-change` | those that change something: creating, updating and deleting |

use rustix::process::{Signal, getpid, kill_process};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

const DIE_AT: &str = "TRANSOM_DIE_AT";

static CRASH: LazyLock<Option<Crash>> = LazyLock::new(|| {
    let requested = std::env::var(DIE_AT).ok()?;
    let (point, at) = requested.split_once(':')?;
    let only_changes = match point {
        "external" => false,
        "external-change" => true,
        _ => return None,
    };
    Some(Crash { only_changes, at: at.parse().ok()?, reached: AtomicU64::new(0) })
});

struct Crash {
    only_changes: bool,
    /// The number of the place, from one.
    at: u64,
    reached: AtomicU64,
}

/// A place before or after a call.
pub(crate) fn reach(is_change: bool) {
    let Some(crash) = CRASH.as_ref() else { return };
    if (is_change || !crash.only_changes) && crash.reached.fetch_add(1, Ordering::Relaxed) + 1 == crash.at {
        let _ = kill_process(getpid(), Signal::KILL);
        loop {
            std::thread::park();
        }
    }
}

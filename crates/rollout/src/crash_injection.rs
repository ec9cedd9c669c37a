//! Lets tests kill the command at a chosen write. Release builds do not contain this module.
//!
//! `TRANSOM_DIE_AT=unsent:N` ends the process with SIGKILL before its N-th write is sent, `answered:N` after it was
//! answered and before anything came of that.

use rustix::process::{Signal, getpid, kill_process};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

const DIE_AT: &str = "TRANSOM_DIE_AT";

static CRASH: LazyLock<Option<Crash>> = LazyLock::new(|| {
    let requested = std::env::var(DIE_AT).ok()?;
    let (point, at) = requested.split_once(':')?;
    Some(Crash {
        point: point.to_owned(),
        at: at.parse().ok()?,
        before: AtomicU64::new(0),
        after: AtomicU64::new(0),
    })
});

struct Crash {
    point: String,
    /// The number of the write, from one.
    at: u64,
    before: AtomicU64,
    after: AtomicU64,
}

pub(crate) fn before_write() {
    reach("unsent", |crash| &crash.before);
}

pub(crate) fn after_write() {
    reach("answered", |crash| &crash.after);
}

fn reach(point: &str, counter: impl Fn(&Crash) -> &AtomicU64) {
    let Some(crash) = CRASH.as_ref() else { return };
    if counter(crash).fetch_add(1, Ordering::Relaxed) + 1 == crash.at && crash.point == point {
        let _ = kill_process(getpid(), Signal::KILL);
        loop {
            std::thread::park();
        }
    }
}

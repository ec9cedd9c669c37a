//! Deterministic simulation: the real controllers and the real server in virtual time, with chance deciding what users
//! do, what goes wrong and when. See [`life`].
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod acts;
mod chance;
mod idle;
mod ledger;
mod life;
mod model;
mod plane;
mod platform;
mod replay;
mod wire;

use life::{Failure, live};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Schedules in one life.
const SCHEDULES: u64 = 125;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

fn report(failure: &Failure) -> String {
    let Failure { seed, schedule, why, script, trace } = failure;
    format!(
        "seed {seed}, schedule {schedule}: {why}\n\nrepeat with TRANSOM_SIMULATION_SEED={seed}\n\nacts:\n{}\n\nwrites:\n{}\n",
        script.join("\n"),
        trace.join("\n")
    )
}

#[test]
fn everything_is_as_wanted_when_nothing_goes_wrong_any_more() {
    let one = setting("TRANSOM_SIMULATION_SEED");
    let lives = if one.is_some() {
        1
    } else {
        setting("TRANSOM_SIMULATION_SCHEDULES").unwrap_or(100_000).div_ceil(SCHEDULES)
    };
    let (next, failed) = (AtomicU64::new(0), Mutex::new(None));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while failed.lock().unwrap().is_none() {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= lives {
                        return;
                    }
                    if let Err(failure) = live(one.unwrap_or(index), SCHEDULES, false) {
                        *failed.lock().unwrap() = Some(failure);
                    }
                }
            });
        }
    });
    if let Some(failure) = failed.into_inner().unwrap() {
        panic!("{}", report(&failure));
    }
}

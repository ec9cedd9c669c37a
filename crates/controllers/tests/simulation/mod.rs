//! Deterministic simulation: the real controllers and the real server in virtual time, with chance deciding what users
//! do, what goes wrong and when. A seed decides everything, so that what failed fails again.
//!
//! | module | what it holds |
//! |---|---|
//! | `life` | one plane and its schedules, one after the other: acts while things go wrong, then rest |
//! | `acts` | what users do: apply, delete, meddle, pause, change Compositions, take names that others want |
//! | `foreign` | names that composite resources want, taken by others |
//! | `wire` | what goes wrong: delays, refusals, lost answers, watches that are late, cut or gone, controllers that die |
//! | `ledger` | what must never happen, checked at every write |
//! | `model` | what must be when nothing goes wrong any more, computed from the acts alone |
//! | `idle` | a thousand that are ready, in ten minutes in which nothing happens |
//! | `packages` | the same for packages: acts, registry, ledger, model |
//! | `functions` | the same for revisions of a function that come, go and flap while composite resources choose them |
//! | `replay` | that a seed decides everything |
//!
//! At every write: what is composed is referenced before it exists and until it is deleted; no part exists twice; no
//! claim has two composite resources; nothing is deleted that was wanted all the time. At rest: everything is as the
//! user wants it, nothing is left over, nothing of others was touched, claims and secrets are in step. And then nothing
//! is written and no function called for ten minutes.
//!
//! That it finds mistakes was tried by making some, one at a time.
//!
//! | mistake | found by | after schedules |
//! |---|---|---|
//! | composed resources are applied before their references | what is composed is referenced | 1 to 3 |
//! | a run that met a conflict is not repeated | everything is as wanted | 4 to 27 |
//! | the composite resource of a claim is written before the claim | no claim has two | 12 |
//! | what happens while a key runs is forgotten | everything is as wanted | 9 to 16 |
//! | what a run wrote counts as read, with what others wrote before it | everything is as wanted | some 500 |
//! | a watch that failed goes on from where it was, without a new list | everything is as wanted | some 500 |
//! | what is deleted is not deleted by uid | nothing of others was touched | some 1,200 |
//! | what is gone before a watch begins is not reported | everything is as wanted | some 70,000 |
//!
//! At every write of packages: at most one revision of a package is active; the Lock has no entry without a revision; what
//! a package brought is not deleted, always has the package as an owner and never two controllers, while the package is
//! installed; controllers delete no package. At rest: the Lock has exactly the active revisions, and a package whose dependencies are
//! there controls exactly what its image brings. These mistakes were tried:
//!
//! | mistake | found by | after schedules |
//! |---|---|---|
//! | a revision is activated before the one before is deactivated | one is active | some 30 |
//! | a revision that is deactivated removes the package from the owners of its objects | what was brought has its package | some 30 |
//! | a revision that met a conflict is not run again | everything is as wanted | some 30 |
//! | dependencies whose tags could not be listed are not tried again | everything is as wanted | some 40 |
//! | an object that a package brought and a user deleted is not missed | everything is as wanted | some 70 |
//! | a change of the Lock wakes no revision | everything is as wanted | some 70 |
//! | the Lock is not run when a package is deleted that others depend on | everything is as wanted | some 200 |
//! | a revision is gone although its entry in the Lock could not be removed | the Lock has what exists | some 300 |
//! | content is fetched by its tag instead of the digest of the revision | everything is as wanted | some 300 |
//! | a write of the Lock that failed counts as made | the Lock has what exists | some 400 |
//!
//! It also found that a revision that was slow to fetch its content could take the Lock and the objects from the one that had
//! replaced it, and, after some 1,100 schedules, that a definition stayed when its CRD was deleted before the first list of CRDs.
//!
//! At every call of a revision of a function: it is one that the step chose, it was active, and it was not released. At every write:
//! a revision that works ends only when another one worked, or when the user ends it. At rest: the revisions that must be are
//! active, with the health that they have, and every composite resource was composed by exactly the revision that its step
//! chooses, or reports that there is none and keeps what it has. The theme found these mistakes in the controllers:
//!
//! | mistake | found by | after schedules |
//! |---|---|---|
//! | a revision that is read again while it is activated counts as seen, with labels that the run does not use | everything is as wanted | some 200 |
//! | a revision whose spec changed counts as ill until it reports again, and ends | a revision that works ends only when another one worked | 50 to 150 |
//!
//! Two more, of packages, make no difference: an inactive revision that stays in the Lock leaves it when the next one joins, and
//! a registry that every run asks is not asked at rest, when nothing runs.

mod acts;
mod foreign;
mod functions;
mod idle;
mod ledger;
mod life;
mod model;
mod packages;
mod plane;
mod platform;
mod replay;
mod wire;

use life::{Failure, Theme, live};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Schedules in one life.
const SCHEDULES: u64 = 400;
/// The same for functions, of which fewer are run: several seeds have their turn.
const FUNCTIONS_SCHEDULES: u64 = 80;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

fn report(failure: &Failure) -> String {
    let Failure { theme, seed, schedule, why, script, trace } = failure;
    format!(
        "{theme:?}: seed {seed}, schedule {schedule}: {why}\n\nrepeat with TRANSOM_SIMULATION_SEED={seed}\n\nacts:\n{}\n\nwrites:\n{}\n",
        script.join("\n"),
        trace.join("\n")
    )
}

/// Schedules of a plain run. CI runs more: 4,000 find all but the last of the mistakes above.
const ENOUGH: u64 = 1_600;
/// For so many schedules of composite resources, one of functions is run, which takes longer.
const FUNCTIONS_SHARE: u64 = 10;

/// Lives as many schedules about a theme as are asked for, or one life with the seed that is.
fn live_all(theme: Theme) {
    let one = setting("TRANSOM_SIMULATION_SEED");
    let asked = setting("TRANSOM_SIMULATION_SCHEDULES").unwrap_or(ENOUGH);
    // Schedules of packages and functions take longer, and find mistakes sooner.
    let (asked, schedules) = match theme {
        Theme::Composites => (asked, SCHEDULES),
        Theme::Packages => (asked / 2, SCHEDULES),
        Theme::Functions => (asked / FUNCTIONS_SHARE, FUNCTIONS_SCHEDULES),
    };
    let lives = if one.is_some() { 1 } else { asked.div_ceil(schedules) };
    let began = Instant::now();
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
                    if let Err(failure) = live(theme, one.unwrap_or(index), schedules, false) {
                        *failed.lock().unwrap() = Some(failure);
                    }
                }
            });
        }
    });
    if let Some(failure) = failed.into_inner().unwrap() {
        panic!("{}", report(&failure));
    }
    let lived = next.into_inner().min(lives);
    println!("{} schedules of {theme:?} in {:?}", lived * schedules, began.elapsed());
}

#[test]
fn everything_is_as_wanted_when_nothing_goes_wrong_any_more() {
    live_all(Theme::Composites);
}

#[test]
fn packages_are_as_wanted_when_nothing_goes_wrong_any_more() {
    live_all(Theme::Packages);
}

#[test]
fn composite_resources_are_composed_by_the_revisions_that_they_select() {
    live_all(Theme::Functions);
}

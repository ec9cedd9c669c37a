//! What comes next in a rollout, decided from its record and from the objects as they are. Pure.
//!
//! Nothing else is remembered: a command that continues a rollout decides the same as the one that was interrupted.

use crate::choice::Choice;
use crate::record::{Phase, Problem, Record, Target};
use serde_json::Value;
use transom_engine::Key;
use transom_object::meta;
use transom_object::shorten::shorten;
use transom_xapi::composite::Layout;
use transom_xapi::conditions;
use transom_xapi::constants::condition;

/// The most bytes of the message of a condition that the record keeps.
const MAX_MESSAGE_BYTES: usize = 4 << 10;

/// How one composite resource stands to what is wanted of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Standing {
    /// It was deleted, or is being deleted: nothing is wanted of it.
    Gone,
    /// This is to be written first.
    Due(Write),
    /// It has what it should have and is not ready yet, for this reason.
    Waiting(String),
    /// It has what it should have and is ready.
    Ready,
    /// It has what it should have, and its last reconcile failed.
    Failed(String),
}

/// A merge patch of an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Write {
    pub(crate) of: Moved,
    pub(crate) key: Key,
    pub(crate) patch: Value,
}

/// What is written to move a composite resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Moved {
    Composite,
    Claim,
}

/// What comes next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// These objects are written, in any order.
    Write(Vec<Write>),
    /// Something is not ready yet: how many are, and what the first of the others waits for.
    Wait { ready: usize, first: Problem },
    /// The record gets this state. Nothing else is written before that.
    Record { phase: Phase, wave: usize, problem: Option<Problem> },
    /// Nothing.
    End,
}

/// The objects of a target, as they are.
#[derive(Clone, Copy, Default)]
pub(crate) struct Objects<'a> {
    pub(crate) xr: Option<&'a Value>,
    pub(crate) claim: Option<&'a Value>,
}

/// What comes next, given the objects of each target that may have been moved.
pub(crate) fn decide(record: &Record, objects: &[Objects<'_>]) -> Action {
    match record.phase {
        Phase::Stopped | Phase::Done | Phase::RolledBack => Action::End,
        Phase::Progressing => forward(record, &standings(record, objects)),
        Phase::RollingBack => back(record, &standings(record, objects)),
    }
}

/// How each composite resource stands that may have been moved.
pub(crate) fn standings(record: &Record, objects: &[Objects<'_>]) -> Vec<Standing> {
    let rolls_back = matches!(record.phase, Phase::RollingBack | Phase::RolledBack);
    let stands = |(target, objects): (&Target, &Objects<'_>)| match rolls_back {
        true => restored(target, record.layout, *objects),
        false => moved(target, record, *objects),
    };
    record.begun().iter().zip(objects).map(stands).collect()
}

fn forward(record: &Record, standings: &[Standing]) -> Action {
    let failed = standings.iter().zip(&record.targets).find_map(|(standing, target)| match standing {
        Standing::Failed(why) => Some(problem(record, target, why)),
        _ => None,
    });
    if let Some(problem) = failed {
        return Action::Record {
            phase: if record.rollback_on_failure { Phase::RollingBack } else { Phase::Stopped },
            wave: record.wave,
            problem: Some(problem),
        };
    }
    if let Some(next) = write_or_wait(record, standings) {
        return next;
    }
    let last = record.wave + 1 >= record.waves();
    Action::Record {
        phase: if last { Phase::Done } else { Phase::Progressing },
        wave: if last { record.wave } else { record.wave + 1 },
        problem: None,
    }
}

/// Rolls back even what fails then: the rollout must not keep anything of what it did.
fn back(record: &Record, standings: &[Standing]) -> Action {
    let as_waiting = |standing: &Standing| match standing {
        Standing::Failed(why) => Standing::Waiting(why.clone()),
        other => other.clone(),
    };
    let standings: Vec<Standing> = standings.iter().map(as_waiting).collect();
    let done =
        Action::Record { phase: Phase::RolledBack, wave: record.wave, problem: record.problem.clone() };
    write_or_wait(record, &standings).unwrap_or(done)
}

fn write_or_wait(record: &Record, standings: &[Standing]) -> Option<Action> {
    let due = standings.iter().filter_map(|standing| match standing {
        Standing::Due(write) => Some(write.clone()),
        _ => None,
    });
    let due: Vec<Write> = due.collect();
    if !due.is_empty() {
        return Some(Action::Write(due));
    }
    let ready = standings.iter().filter(|s| matches!(s, Standing::Ready | Standing::Gone)).count();
    let first = standings.iter().zip(&record.targets).find_map(|(standing, target)| match standing {
        Standing::Waiting(why) => Some(problem(record, target, why)),
        _ => None,
    });
    first.map(|first| Action::Wait { ready, first })
}

/// What the record gets when a wave takes too long because of a problem.
pub(crate) fn too_slow(record: &Record, problem: Problem) -> Action {
    let phase = match record.phase {
        Phase::RollingBack => Phase::RolledBack,
        _ if record.rollback_on_failure => Phase::RollingBack,
        _ => Phase::Stopped,
    };
    Action::Record { phase, wave: record.wave, problem: Some(problem) }
}

/// What the record gets when something cannot be written. Going back is not over until everything was written.
pub(crate) fn unwritable(record: &Record, problem: Problem) -> Action {
    match record.phase {
        Phase::RollingBack => {
            Action::Record { phase: Phase::RollingBack, wave: record.wave, problem: Some(problem) }
        }
        _ => too_slow(record, problem),
    }
}

fn problem(record: &Record, target: &Target, why: &str) -> Problem {
    let message = shorten(why, MAX_MESSAGE_BYTES).into_owned();
    Problem { resource: format!("{} {}", record.kind.kind, target.xr), message }
}

fn of_composite(target: &Target, patch: Value) -> Write {
    Write { of: Moved::Composite, key: target.xr.clone(), patch }
}

fn of_claim(claim: &Value, patch: Value) -> Write {
    Write { of: Moved::Claim, key: Key::of(claim), patch }
}

/// How a composite resource stands to being at the new revision.
fn moved(target: &Target, record: &Record, objects: Objects<'_>) -> Standing {
    let Some(xr) = objects.xr.filter(|xr| !meta::is_deleting(xr)) else { return Standing::Gone };
    let wanted = Choice::pinned(&record.to);
    let own = Choice::of(xr, record.layout);
    if target.claim.is_some() {
        let Some(claim) = objects.claim.filter(|claim| !meta::is_deleting(claim)) else {
            return Standing::Gone;
        };
        let claimed = Choice::of(claim, Layout::Legacy);
        // A claim with the policy Automatic takes its revision from its composite resource, so the policy comes first
        // and must have reached the composite resource before the revision is written.
        if !claimed.is_manual() {
            return Standing::Due(of_claim(claim, wanted.policy_patch(Layout::Legacy)));
        }
        if !own.is_manual() {
            return Standing::Waiting("the update policy of its claim has not reached it yet".to_owned());
        }
        if claimed != wanted {
            return Standing::Due(of_claim(claim, wanted.patch(Layout::Legacy)));
        }
        if own != wanted {
            return Standing::Waiting("the revision of its claim has not reached it yet".to_owned());
        }
    } else if own != wanted {
        return Standing::Due(of_composite(target, wanted.patch(record.layout)));
    }
    readiness(xr)
}

/// How a composite resource stands to having what it had before.
fn restored(target: &Target, layout: Layout, objects: Objects<'_>) -> Standing {
    let Some(xr) = objects.xr.filter(|xr| !meta::is_deleting(xr)) else { return Standing::Gone };
    let own = Choice::of(xr, layout);
    let Some((_, before)) = &target.claim else {
        return match own.means(&target.before) {
            true => readiness(xr),
            false => Standing::Due(of_composite(target, target.before.patch(layout))),
        };
    };
    let Some(claim) = objects.claim.filter(|claim| !meta::is_deleting(claim)) else { return Standing::Gone };
    if !Choice::of(claim, Layout::Legacy).means(before) {
        return Standing::Due(of_claim(claim, before.patch(Layout::Legacy)));
    }
    match (own.means(&target.before), before.policy.is_some()) {
        (true, _) => readiness(xr),
        (false, true) => {
            Standing::Waiting("the update policy of its claim has not reached it yet".to_owned())
        }
        // What the claim does not say, the composite resource had of its own.
        (false, false) => Standing::Due(of_composite(target, target.before.patch(layout))),
    }
}

/// Whether a composite resource was reconciled as it is now, and is ready.
pub(crate) fn readiness(xr: &Value) -> Standing {
    let generation = meta::generation(xr);
    let all = conditions::of(xr);
    let [synced, ready] = [condition::SYNCED, condition::READY].map(|kind| conditions::get(&all, kind));
    // Old versions of Crossplane do not say which generation a condition is about.
    let is_current = |observed: i64| observed == 0 || observed >= generation;
    let words = |kind: &str, condition: &conditions::Condition| {
        let words = [condition.reason.as_str(), condition.message.as_str()];
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        format!("{kind} is {}: {}", condition.status, words.join(": "))
            .trim_end_matches([':', ' '])
            .to_owned()
    };
    if !is_current(synced.observed_generation) || synced.status == "Unknown" {
        return Standing::Waiting("it has not been reconciled since it was changed".to_owned());
    }
    if !synced.is_true() {
        return Standing::Failed(words(condition::SYNCED, &synced));
    }
    match ready.is_true() && is_current(ready.observed_generation) {
        true => Standing::Ready,
        false => Standing::Waiting(words(condition::READY, &ready)),
    }
}

#[cfg(test)]
mod tests;

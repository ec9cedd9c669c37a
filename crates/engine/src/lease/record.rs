//! Leases as objects, and what several of them mean together. Pure.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;
use transom_object::meta;
use transom_object::time::{self, Timestamp};

/// The label of the Leases that processes share their work by. Its value is [`MEMBER`] or [`SHARD`].
pub(super) const LABEL: &str = "transom.io/lease";
pub(super) const MEMBER: &str = "member";
pub(super) const SHARD: &str = "shard";
/// How the names of the Leases of processes and of shards begin. Nothing else has such Leases; that of the leader has a name
/// that others use, too.
pub const OWN_LEASE_PREFIXES: [&str; 2] = [MEMBER_PREFIX, SHARD_PREFIX];
const MEMBER_PREFIX: &str = "transom-member-";
const SHARD_PREFIX: &str = "transom-shard-";

/// The name of the Lease of a shard; `leader` is that of the first one.
pub(super) fn shard_name(leader: &str, shard: u32) -> String {
    match shard {
        0 => leader.to_owned(),
        shard => format!("{SHARD_PREFIX}{shard}"),
    }
}

/// The name of the Lease of a process.
pub(super) fn member_name(identity: &str) -> String {
    format!("{MEMBER_PREFIX}{identity}")
}

/// The holder of a Lease; empty if it was given up.
pub(super) fn holder(lease: &Value) -> &str {
    lease["spec"]["holderIdentity"].as_str().unwrap_or_default()
}

/// A Lease that this identity holds from now on. `before` is what is stored.
pub(super) fn held(
    before: Option<&Value>,
    name: &str,
    namespace: &str,
    role: &str,
    identity: &str,
    duration: Duration,
    now: Timestamp,
) -> Value {
    let mut lease = before.cloned().unwrap_or_else(|| {
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name, "namespace": namespace}})
    });
    let now = time::format_micro(now);
    let (transitions, acquired) = match before {
        Some(before) if holder(before) == identity => (
            before["spec"]["leaseTransitions"].as_u64().unwrap_or_default(),
            before["spec"]["acquireTime"].clone(),
        ),
        Some(before) => {
            (before["spec"]["leaseTransitions"].as_u64().unwrap_or_default() + 1, now.clone().into())
        }
        None => (0, now.clone().into()),
    };
    lease["metadata"]["labels"][LABEL] = role.into();
    lease["spec"] = json!({
        "holderIdentity": identity,
        "leaseDurationSeconds": duration.as_secs().max(1),
        "acquireTime": acquired,
        "renewTime": now,
        "leaseTransitions": transitions,
    });
    lease
}

/// A Lease that was given up.
pub(super) fn given_up(before: &Value) -> Value {
    let mut lease = before.clone();
    lease["spec"]["holderIdentity"] = "".into();
    // As client-go does: processes that read it need not wait.
    lease["spec"]["leaseDurationSeconds"] = 1.into();
    lease
}

/// When each Lease was first seen in its present version. Clocks of other machines are not compared: a Lease has run out
/// when it was not renewed for its duration while this process looked.
#[derive(Default)]
pub(super) struct Sightings(BTreeMap<String, (String, Instant)>);

impl Sightings {
    /// Notes what was read.
    pub(super) fn note<'a>(&mut self, leases: impl Iterator<Item = &'a Value>, now: Instant) {
        let mut next = BTreeMap::new();
        for lease in leases {
            let (name, version) = (meta::name(lease).to_owned(), meta::resource_version(lease).to_owned());
            let since = match self.0.get(&name) {
                Some((seen, since)) if *seen == version => *since,
                _ => now,
            };
            next.insert(name, (version, since));
        }
        self.0 = next;
    }

    /// How long a Lease has not changed.
    fn age(&self, name: &str, now: Instant) -> Duration {
        self.0.get(name).map_or(Duration::ZERO, |(_, since)| now.saturating_duration_since(*since))
    }

    /// Whether a Lease is held and was renewed within its duration.
    fn is_live(&self, lease: &Value, now: Instant) -> bool {
        let seconds = lease["spec"]["leaseDurationSeconds"].as_u64().unwrap_or_default();
        let since = self.0.get(meta::name(lease)).map(|(_, since)| *since);
        !holder(lease).is_empty()
            && since.is_some_and(|since| now.saturating_duration_since(since) < Duration::from_secs(seconds))
    }
}

/// What a process is to do about one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// Take it: no process holds it.
    Take(u32),
    /// Hand it over: another process is to have it.
    HandOver(u32),
}

/// Everything that was read at once.
pub(super) struct View<'a> {
    /// The name of the leader's Lease.
    pub(super) leader: &'a str,
    pub(super) leases: &'a [Value],
    pub(super) sightings: &'a Sightings,
    pub(super) now: Instant,
}

impl View<'_> {
    pub(super) fn find(&self, name: &str) -> Option<&Value> {
        self.leases.iter().find(|lease| meta::name(lease) == name)
    }

    /// The Leases of processes that have not been renewed for this long.
    pub(super) fn forgotten(&self, limit: Duration) -> Vec<String> {
        let members = self.leases.iter().filter(|lease| meta::label(lease, LABEL) == Some(MEMBER));
        let names = members.map(|lease| meta::name(lease).to_owned());
        names.filter(|name| self.sightings.age(name, self.now) > limit).collect()
    }

    /// The processes that work at present.
    pub(super) fn members(&self) -> BTreeSet<&str> {
        let members = self.leases.iter().filter(|lease| meta::label(lease, LABEL) == Some(MEMBER));
        members.filter(|lease| self.sightings.is_live(lease, self.now)).map(holder).collect()
    }

    /// The process that holds a shard, if it works at present.
    pub(super) fn live_holder(&self, shard: u32) -> Option<&str> {
        let lease = self.find(&shard_name(self.leader, shard))?;
        let holder = holder(lease);
        let of_member = self.find(&member_name(holder));
        match of_member {
            // The Leases of shards are not renewed: their holders' own are.
            Some(member) => self.sightings.is_live(member, self.now).then_some(holder),
            // That of another program, or of a process whose own Lease was removed.
            None => self.sightings.is_live(lease, self.now).then_some(holder),
        }
    }

    /// The shards that this process is to take and to hand over. Nothing is held while another program leads.
    pub(super) fn moves(&self, me: &str, shards: u32, held: impl Fn(u32) -> bool) -> Vec<Move> {
        let members = self.members();
        let leader = self.live_holder(0);
        let foreign = leader.is_some_and(|leader| !members.contains(leader));
        let assigned = assign(&members, shards);
        let moves = (0..shards).filter_map(|shard| {
            let mine = !foreign
                && match (shard, leader) {
                    // A leader stays for as long as it works.
                    (0, Some(leader)) => leader == me,
                    _ => assigned.get(shard as usize).is_some_and(|owner| *owner == me),
                };
            let holder = self.live_holder(shard);
            match (mine, held(shard), holder) {
                (false, true, _) => Some(Move::HandOver(shard)),
                // Its term ended, and another process is to have it: that one waits for as long as this one works.
                (false, false, Some(holder)) if holder == me => Some(Move::HandOver(shard)),
                (true, false, None) => Some(Move::Take(shard)),
                // What this process held before its term ended is taken anew.
                (true, false, Some(holder)) if holder == me => Some(Move::Take(shard)),
                _ => None,
            }
        });
        moves.collect()
    }
}

/// Which process is to have each shard: by rank of a hash, and none has more than its part. When a process comes or goes,
/// few shards move that need not.
fn assign<'a>(members: &BTreeSet<&'a str>, shards: u32) -> Vec<&'a str> {
    let mut counts: BTreeMap<&str, usize> = members.iter().map(|member| (*member, 0)).collect();
    let divided = shards.saturating_sub(1) as usize;
    let most = divided.div_ceil(members.len().max(1));
    let ranked = |shard: u32| {
        let mut ranked: Vec<&'a str> = members.iter().copied().collect();
        ranked.sort_by_key(|member| std::cmp::Reverse(rank(member, shard)));
        ranked
    };
    let owners = (0..shards).filter_map(|shard| {
        let ranked = ranked(shard);
        let has_room = |member: &&&str| shard == 0 || counts.get(**member).is_some_and(|n| *n < most);
        let owner = *ranked.iter().find(has_room)?;
        if shard > 0 {
            *counts.entry(owner).or_default() += 1;
        }
        Some(owner)
    });
    owners.collect()
}

fn rank(member: &str, shard: u32) -> u64 {
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(format!("{shard}/{member}"));
    digest.iter().take(8).fold(0, |rank, byte| rank << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_divided_evenly_and_few_move_when_a_process_comes() {
        let three: BTreeSet<&str> = ["a", "b", "c"].into();
        let four: BTreeSet<&str> = ["a", "b", "c", "d"].into();
        let (before, after) = (assign(&three, 13), assign(&four, 13));
        for (owners, members) in [(&before, 3), (&after, 4)] {
            assert_eq!(owners.len(), 13);
            for member in ["a", "b", "c", "d"].iter().take(members) {
                let count = owners[1..].iter().filter(|owner| *owner == member).count();
                assert_eq!(count, 12 / members, "{owners:?}");
            }
        }
        let moved = before[1..].iter().zip(&after[1..]).filter(|(b, a)| b != a && **a != "d").count();
        assert!(moved <= 3, "{before:?} {after:?}");
        assert!(assign(&BTreeSet::new(), 3).is_empty());
    }
}

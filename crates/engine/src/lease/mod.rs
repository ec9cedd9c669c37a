//! Leases: which process leads, and which process reconciles which shard.
//!
//! | Lease | meaning | written |
//! |---|---|---|
//! | `transom-member-IDENTITY` | the process works | renewed by the process in every round |
//! | [`ElectionOptions::leader_lease`] | who leads; another program may use the same Lease | renewed by its holder in every round |
//! | `transom-shard-N` | who reconciles the keys of the shard | when it changes hands only |
//!
//! A shard is taken when its Lease was given up, or when its holder has not renewed its own Lease for its duration. The
//! holder counts from the moment before it *sent* the renewal, and for less than that duration (`renew_deadline`), so its
//! terms ([`crate::Ownership`]) are over before another process may take the shard, however clocks differ and however
//! long either process was stopped. A renewal that succeeds after the deadline revives nothing: shards are taken anew.
//! What a request may do after it was sent, in the network or in the server, is not bounded by this; requests that write
//! are given up when the Lease could be taken.

mod record;

pub use record::OWN_LEASE_PREFIXES;

use crate::clock::Clock;
use crate::cluster::{Cluster, DeleteOptions};
use crate::error::{Error, ErrorContext, Result};
use crate::ownership::{LEADER_SHARD, Ownership};
use futures_util::future::join_all;
use record::{LABEL, MEMBER, Move, SHARD, Sightings, View, given_up, held, member_name, shard_name};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use transom_object::{GroupVersionKind, meta};

/// How long runs of a shard may take to end before the shard is handed over.
const HAND_OVER_WITHIN: Duration = Duration::from_secs(2);
/// The Lease of a process that ended without removing it is removed after this many times its duration.
const FORGOTTEN_AFTER: u32 = 20;

/// How Leases are used.
#[derive(Clone, Debug)]
pub struct ElectionOptions {
    /// The namespace of the Leases.
    pub namespace: String,
    /// The name of the leader's Lease. While another program holds it, this process leads nothing and holds no shard.
    pub leader_lease: String,
    /// The name of this process, which no other process has or had.
    pub identity: String,
    /// How long others wait for a renewal.
    pub lease_duration: Duration,
    /// How long this process works after the last successful renewal; shorter than the duration.
    pub renew_deadline: Duration,
    /// The pause between rounds.
    pub retry_period: Duration,
}

/// Takes part in the election of a leader and the division of shards.
pub struct Election {
    cluster: Cluster,
    clock: Clock,
    options: ElectionOptions,
    ownership: Ownership,
    sightings: Sightings,
    /// The Lease of this process as it is stored.
    own: Option<Value>,
    /// Until when the last renewal counts.
    deadline: Option<Instant>,
}

impl Election {
    /// An election whose results are in `ownership`. The client must not be one whose writes depend on them.
    pub fn new(cluster: Cluster, clock: Clock, options: ElectionOptions, ownership: Ownership) -> Self {
        Self {
            cluster,
            clock,
            options,
            ownership,
            sightings: Sightings::default(),
            own: None,
            deadline: None,
        }
    }

    /// Takes part until `stop` is true; then hands everything over.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) {
        loop {
            let round = tokio::time::timeout(self.options.renew_deadline, self.round());
            match round.await {
                Ok(Ok(())) => {}
                Ok(Err(e)) => tracing::warn!(error = %e.chain(), "cannot renew Leases"),
                Err(_) => tracing::warn!("cannot renew Leases: the server does not answer in time"),
            }
            let pause = self.options.retry_period;
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => break,
                () = tokio::time::sleep(pause) => {}
            }
        }
        let leaving = tokio::time::timeout(self.options.renew_deadline, self.leave());
        if let Ok(Err(e)) | Err(e) = leaving.await.map_err(|_| Error::domain("no answer in time")) {
            tracing::warn!(error = %e.chain(), "cannot give up Leases");
        }
    }

    async fn round(&mut self) -> Result<()> {
        self.renew_own().await?;
        let sent = Instant::now();
        let leases = self.read().await?;
        self.sightings.note(leases.values(), Instant::now());
        let leases: Vec<Value> = leases.into_values().collect();
        let view = View {
            leader: &self.options.leader_lease,
            leases: &leases,
            sightings: &self.sightings,
            now: sent,
        };
        if self.ownership.holds(LEADER_SHARD) {
            self.renew_leader(&view).await;
        }
        let shards = self.ownership.held_apart();
        let moves = view.moves(&self.options.identity, shards, |shard| self.ownership.holds(shard));
        join_all(moves.into_iter().map(|next| self.make(next, &view))).await;
        if self.ownership.holds(LEADER_SHARD) {
            self.forget_members(&view).await;
        }
        Ok(())
    }

    /// Until when a Lease that is written now counts: never longer than that of the process itself.
    fn counts_until(&self, sent: Instant) -> Instant {
        let until = sent + self.options.renew_deadline;
        self.deadline.map_or(until, |own| own.min(until))
    }

    async fn renew_own(&mut self) -> Result<()> {
        let name = member_name(&self.options.identity);
        let sent = Instant::now();
        let lease = self.lease(self.own.as_ref(), &name, MEMBER);
        let written = match &self.own {
            Some(_) => self.cluster.update(&lease, MANAGER).await,
            None => self.cluster.create(&lease, MANAGER).await,
        };
        let written = match written {
            Err(e) if e.is_conflict() || e.is_already_exists() || e.is_not_found() => {
                // Another client changed or removed it, or an earlier request succeeded without an answer.
                self.own = self.cluster.get(&gvk(), &self.options.namespace, &name).await?;
                return Err(e).context(format!("cannot renew Lease {name}"));
            }
            written => written.context(format!("cannot renew Lease {name}"))?,
        };
        self.own = Some(written);
        if self.deadline.is_none_or(|deadline| Instant::now() >= deadline) {
            (0..self.ownership.held_apart()).for_each(|shard| self.ownership.end(shard));
        }
        self.deadline = Some(sent + self.options.renew_deadline);
        // That of the leader has a Lease of its own to be renewed.
        for shard in 1..self.ownership.held_apart() {
            self.ownership.extend(shard, sent + self.options.renew_deadline);
        }
        Ok(())
    }

    fn lease(&self, before: Option<&Value>, name: &str, role: &str) -> Value {
        let ElectionOptions { namespace, identity, lease_duration, .. } = &self.options;
        held(before, name, namespace, role, identity, *lease_duration, self.clock.now())
    }

    fn shard_name(&self, shard: u32) -> String {
        shard_name(&self.options.leader_lease, shard)
    }

    /// All Leases of the election by name.
    async fn read(&self) -> Result<BTreeMap<String, Value>> {
        let namespace = &self.options.namespace;
        let mut leases = BTreeMap::new();
        for role in [MEMBER, SHARD] {
            let labels = BTreeMap::from([(LABEL.to_owned(), role.to_owned())]);
            for lease in self.cluster.list(&gvk(), namespace, &labels).await.context("cannot list Leases")? {
                leases.insert(meta::name(&lease).to_owned(), lease);
            }
        }
        // That of another program has no label.
        let leader = self.shard_name(LEADER_SHARD);
        if !leases.contains_key(&leader)
            && let Some(lease) = self.cluster.get(&gvk(), namespace, &leader).await?
        {
            leases.insert(leader, lease);
        }
        Ok(leases)
    }

    async fn renew_leader(&self, view: &View<'_>) {
        let name = self.shard_name(LEADER_SHARD);
        let Some(lease) = view.find(&name).filter(|lease| record::holder(lease) == self.options.identity)
        else {
            return self.ownership.end(LEADER_SHARD);
        };
        let sent = Instant::now();
        match self.cluster.update(&self.lease(Some(lease), &name, SHARD), MANAGER).await {
            Ok(_) => self.ownership.extend(LEADER_SHARD, self.counts_until(sent)),
            Err(e) => tracing::warn!(error = %e.chain(), "cannot renew Lease {name}"),
        }
    }

    async fn make(&self, next: Move, view: &View<'_>) {
        let (Move::Take(shard) | Move::HandOver(shard)) = next;
        let name = self.shard_name(shard);
        let lease = view.find(&name);
        let done = match next {
            Move::Take(_) => {
                let sent = Instant::now();
                let taken = self.lease(lease, &name, SHARD);
                let written = match lease {
                    Some(_) => self.cluster.update(&taken, MANAGER).await,
                    None => self.cluster.create(&taken, MANAGER).await,
                };
                written.map(|_| {
                    tracing::info!(shard, "took a shard");
                    self.ownership.begin(shard, self.counts_until(sent));
                })
            }
            Move::HandOver(_) => {
                self.ownership.hand_over(shard, HAND_OVER_WITHIN).await;
                tracing::info!(shard, "hands over a shard");
                match lease.filter(|lease| record::holder(lease) == self.options.identity) {
                    Some(lease) => self.cluster.update(&given_up(lease), MANAGER).await.map(drop),
                    None => Ok(()),
                }
            }
        };
        match done {
            // Another process was faster.
            Err(e) if e.is_conflict() || e.is_already_exists() => {}
            Err(e) => tracing::warn!(error = %e.chain(), "cannot write Lease {name}"),
            Ok(()) => {}
        }
    }

    /// Removes the Leases of processes that ended without doing so.
    async fn forget_members(&self, view: &View<'_>) {
        let limit = self.options.lease_duration * FORGOTTEN_AFTER;
        for name in view.forgotten(limit) {
            let namespace = &self.options.namespace;
            if let Err(e) = self.cluster.delete(&gvk(), namespace, &name, DeleteOptions::default()).await {
                tracing::debug!(error = %e.chain(), "cannot remove Lease {name}");
            }
        }
    }

    /// Hands everything over.
    async fn leave(&mut self) -> Result<()> {
        let shards = self.ownership.held_apart();
        let ownership = &self.ownership;
        let held: Vec<u32> = (0..shards).filter(|shard| ownership.holds(*shard)).collect();
        join_all(held.iter().map(|shard| ownership.hand_over(*shard, HAND_OVER_WITHIN))).await;
        let leases = self.read().await?;
        for shard in held {
            let name = self.shard_name(shard);
            let lease = leases.get(&name).filter(|lease| record::holder(lease) == self.options.identity);
            if let Some(lease) = lease {
                self.cluster.update(&given_up(lease), MANAGER).await?;
            }
        }
        let own = member_name(&self.options.identity);
        self.cluster.delete(&gvk(), &self.options.namespace, &own, DeleteOptions::default()).await
    }
}

/// The field manager of Leases.
const MANAGER: &str = "transom";

fn gvk() -> GroupVersionKind {
    GroupVersionKind::new("coordination.k8s.io", "v1", "Lease")
}

#[cfg(test)]
mod tests;

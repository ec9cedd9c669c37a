//! Addresses and node ports that Services use, so that none is assigned to two of them.
//!
//! The index follows the changes of Services in the store and catches up before each allocation: an allocation costs
//! what changed since the one before, not a look at every Service. What was chosen for a write that is not visible yet
//! is reserved.

use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use transom_store::{Entry, Event, Store};

/// The name under which the store keeps Services.
const SERVICES: &str = "services";
/// After this time the claims of an abandoned request are released: its write may still be waiting for the disk.
const ABANDONED_CLAIM_TIMEOUT: Duration = Duration::from_secs(300);

/// Something that only one Service may have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Claim {
    Address(String),
    NodePort(i64),
}

/// What the spec of a Service holds.
pub(super) fn claims_of(spec: &Value) -> Vec<Claim> {
    let first = spec["clusterIP"].as_str().into_iter();
    let all = spec["clusterIPs"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut addresses: Vec<&str> = first.chain(all).filter(|ip| !ip.is_empty() && *ip != "None").collect();
    addresses.sort_unstable();
    addresses.dedup();
    let ports = spec["ports"].as_array().into_iter().flatten().filter_map(|port| port["nodePort"].as_i64());
    // The ports of one Service may share a number, one for each protocol.
    let mut ports: Vec<i64> = ports.filter(|port| *port != 0).collect();
    ports.sort_unstable();
    ports.dedup();
    let addresses = addresses.into_iter().map(|ip| Claim::Address(ip.to_owned()));
    addresses.chain(ports.into_iter().map(Claim::NodePort)).collect()
}

/// The index of a server. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Claims(Arc<Mutex<Index>>);

#[derive(Default)]
pub(super) struct Index {
    /// The changes up to this revision are counted; 0 before the first look.
    seen: u64,
    /// How many Services hold a claim: several where clients chose it themselves.
    held: HashMap<Claim, usize>,
    /// How many writes that are under way would hold it.
    reserved: HashMap<Claim, usize>,
    abandoned: Vec<(Instant, Vec<Claim>)>,
}

impl Claims {
    /// Locks the index and updates it to every Service that is visible in the store.
    pub(super) fn current(&self, store: &Store) -> MutexGuard<'_, Index> {
        let mut index = self.lock();
        index.catch_up(store);
        index
    }

    /// Reserves `claims` until the write has completed.
    pub(super) fn reserve(&self, index: &mut Index, claims: Vec<Claim>) -> Reservation {
        claims.iter().for_each(|claim| *index.reserved.entry(claim.clone()).or_default() += 1);
        Reservation { index: Some(self.clone()), claims, submitted: false }
    }

    fn lock(&self) -> MutexGuard<'_, Index> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Index {
    pub(super) fn is_free(&self, claim: &Claim) -> bool {
        !self.held.contains_key(claim) && !self.reserved.contains_key(claim)
    }

    fn catch_up(&mut self, store: &Store) {
        let now = Instant::now();
        while let Some(index) = self.abandoned.iter().position(|(until, _)| *until <= now) {
            let (_, claims) = self.abandoned.swap_remove(index);
            self.release(&claims);
        }
        let followed = if self.seen == 0 { None } else { store.watch(SERVICES, self.seen).ok() };
        let Some(mut changes) = followed else { return self.rebuild(store) };
        while let Some(event) = changes.try_next() {
            self.note(&event);
        }
        self.seen = changes.revision().max(self.seen);
    }

    /// From every Service that is stored: at first, and when the changes since the last look are no longer kept.
    fn rebuild(&mut self, store: &Store) {
        let snapshot = store.snapshot(SERVICES);
        self.held.clear();
        snapshot.objects.values().for_each(|entry| self.count(entry, true));
        self.seen = snapshot.revision;
    }

    fn note(&mut self, event: &Event) {
        self.seen = event.revision;
        event.old.iter().for_each(|entry| self.count(entry, false));
        event.new.iter().for_each(|entry| self.count(entry, true));
    }

    fn count(&mut self, entry: &Entry, more: bool) {
        let Ok(service) = serde_json::from_slice::<Value>(&entry.body) else { return };
        for claim in claims_of(&service["spec"]) {
            if more {
                *self.held.entry(claim).or_default() += 1;
            } else {
                decrement(&mut self.held, &claim);
            }
        }
    }

    fn release(&mut self, claims: &[Claim]) {
        claims.iter().for_each(|claim| decrement(&mut self.reserved, claim));
    }
}

fn decrement(counts: &mut HashMap<Claim, usize>, claim: &Claim) {
    if let Some(count) = counts.get_mut(claim) {
        *count -= 1;
        if *count == 0 {
            counts.remove(claim);
        }
    }
}

/// Claims that a write under way makes. Dropping it releases them: by then the write has either failed or is visible.
#[derive(Default)]
pub(crate) struct Reservation {
    index: Option<Claims>,
    claims: Vec<Claim>,
    submitted: bool,
}

impl Reservation {
    /// From here on the write may happen even if the request is abandoned, and the reservation dropped with it.
    pub(crate) fn submitted(&mut self) {
        self.submitted = true;
    }

    /// The outcome of the write is known.
    pub(crate) fn decided(mut self) {
        self.submitted = false;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let Some(claims) = self.index.take() else { return };
        let mut index = claims.lock();
        if self.submitted {
            index
                .abandoned
                .push((Instant::now() + ABANDONED_CLAIM_TIMEOUT, std::mem::take(&mut self.claims)));
        } else {
            index.release(&self.claims);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_service_holds_its_addresses_and_node_ports() {
        let spec = json!({
            "clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9", "fd00::9"],
            "ports": [
                {"port": 53, "protocol": "UDP", "nodePort": 30053}, {"port": 53, "protocol": "TCP", "nodePort": 30053},
                {"port": 80}, {"port": 81, "nodePort": 0},
            ],
        });
        let address = |ip: &str| Claim::Address(ip.to_owned());
        assert_eq!(claims_of(&spec), [address("10.96.0.9"), address("fd00::9"), Claim::NodePort(30053)]);
        assert!(claims_of(&json!({"clusterIP": "None", "clusterIPs": ["None"]})).is_empty());
    }

    #[test]
    fn the_claims_of_an_abandoned_write_stay_reserved_and_others_do_not() {
        let store = Store::in_memory(transom_store::Options::default());
        let claims = Claims::default();
        let port = Claim::NodePort(30000);
        let reserve = || claims.reserve(&mut claims.current(&store), vec![port.clone()]);
        let is_free = || claims.current(&store).is_free(&port);
        let reservation = reserve();
        assert!(!is_free());
        drop(reservation);
        assert!(is_free(), "refused before it was submitted");
        let mut reservation = reserve();
        reservation.submitted();
        reservation.decided();
        assert!(is_free(), "decided: the store knows");
        let mut reservation = reserve();
        reservation.submitted();
        drop(reservation);
        assert!(!is_free(), "nobody knows whether it was written");
        claims.lock().abandoned.iter_mut().for_each(|(until, _)| *until = Instant::now());
        assert!(is_free(), "by now it is visible or never will be");
    }
}

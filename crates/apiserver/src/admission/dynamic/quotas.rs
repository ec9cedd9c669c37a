//! ResourceQuotas and LimitRanges of a namespace.
//!
//! Usage is charged in the status of a quota before the write that uses it, by compare-and-swap, so it is never exceeded
//! however many writes there are at once. What is charged for a write that fails then, and what deletions free, is
//! counted again by upkeep. A count waits until no charged write is under way, and none begins meanwhile.

use crate::admission::{Operation, Request};
use crate::resource::Resource;
use crate::server::Inner;
use crate::subresource::Subresource;
use crate::write::encode_for_store;
use serde_json::{Value, json};
use std::ops::Bound;
use std::sync::Arc;
use tokio::sync::RwLockReadGuard;
use transom_admission::quota::{
    Amounts, Counted, amounts, charge, in_scope, increase, missing, to_value, usage,
};
use transom_admission::{limits, quota};
use transom_object::Status;
use transom_store::{Entry, Expect, Key, ObjectKey, Write, WriteError, WriteOp};

const QUOTAS: &str = "resourcequotas";
const LIMITS: &str = "limitranges";

/// What a write was charged with. Held until the write is decided.
#[derive(Default)]
pub(crate) struct Charge<'a> {
    until_decided: Option<RwLockReadGuard<'a, ()>>,
    /// By the name of the quota.
    amounts: Vec<(String, Amounts)>,
}

impl Inner {
    fn in_namespace(&self, resource: &str, namespace: &str) -> Vec<Arc<Entry>> {
        let snapshot = self.store.snapshot(resource);
        let key = |ns: &str| ObjectKey { namespace: ns.into(), name: "".into() };
        let range = (Bound::Included(key(namespace)), Bound::Excluded(key(&format!("{namespace}\0"))));
        snapshot.objects.range(range).map(|(_, entry)| entry.clone()).collect()
    }

    fn limit_ranges(&self, request: &Request<'_>) -> Vec<Value> {
        let limited = request.resource.group.is_empty()
            && matches!(request.resource.names.kind.as_str(), "Pod" | "PersistentVolumeClaim")
            && request.subresource == Subresource::Main
            && request.operation == Operation::Create;
        if !limited {
            return Vec::new();
        }
        let entries = self.in_namespace(LIMITS, request.namespace);
        entries.iter().filter_map(|entry| serde_json::from_slice(&entry.body).ok()).collect()
    }

    /// Whether LimitRanges are for the request.
    pub(super) fn has_limits(&self, request: &Request<'_>) -> bool {
        !self.limit_ranges(request).is_empty()
    }

    /// Fills in what LimitRanges have for a new pod. Returns whether it changed.
    pub(super) fn fill_limits(&self, request: &Request<'_>, object: &mut Value) -> bool {
        let pod = request.resource.names.kind == "Pod";
        let ranges = self.limit_ranges(request);
        let mut changed = false;
        for range in ranges.iter().filter(|_| pod) {
            changed |= limits::fill_pod(range, object);
        }
        changed
    }

    /// Refuses what LimitRanges do not allow.
    pub(super) fn check_limits(&self, request: &Request<'_>, object: Option<&Value>) -> Result<(), Status> {
        let Some(object) = object else { return Ok(()) };
        let mut errors = Vec::new();
        for range in self.limit_ranges(request) {
            errors.extend(match request.resource.names.kind.as_str() {
                "Pod" => limits::check_pod(&range, object),
                _ => limits::check_claim(&range, object),
            });
        }
        let why = match errors.len() {
            0 => return Ok(()),
            1 => errors.remove(0),
            _ => format!("[{}]", errors.join(", ")),
        };
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        Err(Status::forbidden(&request.resource.group_resource(), name, why))
    }

    /// Charges the quotas of the namespace with what a write adds, or refuses it. Keep the result until the write is decided.
    pub(crate) async fn charge_quotas(
        &self,
        resource: &Resource,
        namespace: &str,
        new: &Value,
        old: Option<&Value>,
        dry_run: bool,
    ) -> Result<Charge<'_>, Status> {
        if !resource.namespaced || self.in_namespace(QUOTAS, namespace).is_empty() {
            return Ok(Charge::default());
        }
        let until_decided = self.dynamic.charging.read().await;
        let kind = Counted { group: &resource.group, resource: &resource.names.plural };
        let (after, before) = (usage(kind, new), old.map(|old| usage(kind, old)));
        let mut charge = Charge { until_decided: Some(until_decided), amounts: Vec::new() };
        for entry in self.in_namespace(QUOTAS, namespace) {
            let name = &entry.header.name;
            let charged =
                self.charge_quota(resource, name, namespace, new, (&after, before.as_ref()), dry_run).await;
            match charged {
                Ok(added) if added.is_empty() => {}
                Ok(added) => charge.amounts.push((name.clone(), added)),
                Err(status) => {
                    self.finish_charge(namespace, charge, false).await;
                    return Err(status);
                }
            }
        }
        Ok(charge)
    }

    /// Ends a charge: what a write that was not stored was charged with is given back.
    pub(crate) async fn finish_charge(&self, namespace: &str, charge: Charge<'_>, stored: bool) {
        for (name, added) in charge.amounts.iter().filter(|_| !stored) {
            loop {
                let Some(entry) = self.store.get(&Key::new(QUOTAS, namespace, name.as_str())) else { break };
                let Ok(mut quota) = serde_json::from_slice::<Value>(&entry.body) else { break };
                let mut used = amounts(&quota["status"]["used"]);
                for (resource, amount) in added {
                    if let Some(less) = used.get(resource).and_then(|used| used.checked_sub(amount)) {
                        used.insert(resource.clone(), less);
                    }
                }
                quota["status"]["used"] = to_value(&used);
                match self.put_quota(&entry, &quota).await {
                    Err(WriteError::Mismatch(_)) => {}
                    // Upkeep counts again with the next change.
                    _ => break,
                }
            }
        }
        drop(charge.until_decided);
    }

    async fn charge_quota(
        &self,
        resource: &Resource,
        name: &str,
        namespace: &str,
        object: &Value,
        (after, before): (&Amounts, Option<&Amounts>),
        dry_run: bool,
    ) -> Result<Amounts, Status> {
        let kind = Counted { group: &resource.group, resource: &resource.names.plural };
        let refuse = |why: String| {
            let object = object["metadata"]["name"].as_str().unwrap_or_default();
            Status::forbidden(&resource.group_resource(), object, why)
        };
        loop {
            let Some(entry) = self.store.get(&Key::new(QUOTAS, namespace, name)) else {
                return Ok(Amounts::new());
            };
            let mut stored: Value = serde_json::from_slice(&entry.body).map_err(Status::internal)?;
            let hard = amounts(&stored["status"]["hard"]);
            if !in_scope(&stored, kind, object) {
                return Ok(Amounts::new());
            }
            if before.is_none()
                && kind.group.is_empty()
                && kind.resource == "pods"
                && let Some(why) = missing(name, &hard, object)
            {
                return Err(refuse(why));
            }
            let added = increase(kind, &hard, after, before);
            if added.is_empty() {
                return Ok(added);
            }
            let used = amounts(&stored["status"]["used"]);
            let next = charge(name, &hard, &used, &added).map_err(|error| refuse(error.to_string()))?;
            if dry_run {
                return Ok(Amounts::new());
            }
            stored["status"]["used"] = to_value(&next);
            match self.put_quota(&entry, &stored).await {
                Ok(()) => return Ok(added),
                Err(WriteError::Mismatch(_)) => {}
                Err(e) => return Err(crate::write::unavailable(&e)),
            }
        }
    }

    async fn put_quota(&self, entry: &Entry, stored: &Value) -> Result<(), WriteError> {
        let Ok(put) = encode_for_store(stored) else { return Ok(()) };
        let write = Write {
            key: Key::new(QUOTAS, &entry.header.namespace, &entry.header.name),
            expect: Expect::Revision(entry.revision),
            op: WriteOp::Put(put),
            durability: transom_store::Durability::Strict,
        };
        self.store.commit(write).await.map(drop)
    }

    /// Whether a namespace has quotas.
    pub(crate) fn has_quotas(&self, namespace: &str) -> bool {
        !namespace.is_empty() && !self.in_namespace(QUOTAS, namespace).is_empty()
    }

    /// Counts the usage of a namespace's quotas again, and writes what differs.
    pub(crate) async fn count_quotas(&self, namespace: &str) -> Result<(), Status> {
        let _nothing_under_way = self.dynamic.charging.write().await;
        for entry in self.in_namespace(QUOTAS, namespace) {
            let mut stored: Value = serde_json::from_slice(&entry.body).map_err(Status::internal)?;
            let hard = amounts(&stored["spec"]["hard"]);
            let status =
                json!({"hard": to_value(&hard), "used": to_value(&self.used(namespace, &stored, &hard)?)});
            if stored["status"] == status {
                continue;
            }
            stored["status"] = status;
            self.put_quota(&entry, &stored).await.map_err(|e| Status::internal(e.to_string()))?;
        }
        Ok(())
    }

    fn used(&self, namespace: &str, stored: &Value, hard: &Amounts) -> Result<Amounts, Status> {
        let zero = || transom_object::quantity::Quantity::new(0, transom_object::quantity::Format::DecimalSi);
        let mut used: Amounts = hard.keys().map(|name| (name.clone(), zero())).collect();
        for resource in self.registry.served().stored_kinds().iter().filter(|r| r.namespaced) {
            let kind = Counted { group: &resource.group, resource: &resource.names.plural };
            if !hard.keys().any(|name| quota::counts(kind, name)) {
                continue;
            }
            for entry in self.in_namespace(&resource.store_key, namespace) {
                let object = resource.decode(&entry)?;
                if !in_scope(stored, kind, &object) {
                    continue;
                }
                for (name, amount) in usage(kind, &object) {
                    if let Some(sum) =
                        used.get_mut(&name).and_then(|sum| sum.checked_add(&amount).map(|new| (sum, new)))
                    {
                        *sum.0 = sum.1;
                    }
                }
            }
        }
        Ok(used)
    }
}

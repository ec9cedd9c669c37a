//! Admission that objects configure: webhooks, admission policies, LimitRanges and ResourceQuotas.
//!
//! | phase | order |
//! |---|---|
//! | mutating | LimitRanges → MutatingAdmissionPolicies → mutating webhooks, one after the other by name; then once more those with `reinvocationPolicy: IfNeeded` whose object was changed after them |
//! | validating | LimitRanges → ValidatingAdmissionPolicies → validating webhooks, all at once → ResourceQuotas |
//!
//! Configurations are compiled when one of them changed, and found in an index: a write that none of them names costs the
//! comparison of its rules. A configuration is in force for every request after its own write is answered.

mod access;
mod annotations;
mod caller;
mod endpoints;
mod policies;
mod quotas;
mod review;
mod webhooks;

pub use caller::{WebhookCall, WebhookCallError, WebhookCaller};

use super::{Phase, Request};
use crate::server::Inner;
use annotations::CallPosition;
use arc_swap::ArcSwap;
use review::Reviewed;
use serde_json::Value;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use transom_admission::policy::{Binding, Policy};
use transom_admission::webhook::Webhook;
use transom_object::Status;
use transom_store::Store;

const GROUP: &str = "admissionregistration.k8s.io";

/// The compiled configurations, and what they need besides the store.
#[derive(Default)]
pub(crate) struct Dynamic {
    index: ArcSwap<Index>,
    /// Counts writes of configurations; an index that was built before the last one is not used.
    changes: AtomicU64,
    building: Mutex<()>,
    caller: Option<Arc<dyn WebhookCaller>>,
    /// Held for reading from the moment a quota is charged until the write is decided, for writing while usage is
    /// counted again: a count never misses a write that is charged and under way.
    charging: tokio::sync::RwLock<()>,
}

/// What is configured, by name.
#[derive(Default)]
struct Index {
    /// The number of changes that it contains, plus one.
    built: u64,
    mutating: Vec<Webhook>,
    validating: Vec<Webhook>,
    mutating_policies: Vec<Bound>,
    validating_policies: Vec<Bound>,
}

/// A policy with its bindings.
struct Bound {
    policy: Policy,
    bindings: Vec<Binding>,
}

impl Index {
    fn build(store: &Store, built: u64) -> Self {
        let read = |plural: &str| -> Vec<Value> {
            let snapshot = store.snapshot(&format!("{plural}.{GROUP}"));
            snapshot.objects.values().filter_map(|entry| serde_json::from_slice(&entry.body).ok()).collect()
        };
        let webhooks = |plural: &str| read(plural).iter().flat_map(Webhook::parse_all).collect();
        let policies = |policies: &str, bindings: &str| {
            let all: Vec<Binding> = read(bindings).iter().map(Binding::parse).collect();
            let of =
                |policy: &Policy| all.iter().filter(|b| b.policy == policy.name).cloned().collect::<Vec<_>>();
            let parsed = read(policies).into_iter().map(|policy| Policy::parse(&policy));
            parsed
                .map(|policy| Bound { bindings: of(&policy), policy })
                .filter(|b| !b.bindings.is_empty())
                .collect()
        };
        Self {
            built,
            mutating: webhooks("mutatingwebhookconfigurations"),
            validating: webhooks("validatingwebhookconfigurations"),
            mutating_policies: policies("mutatingadmissionpolicies", "mutatingadmissionpolicybindings"),
            validating_policies: policies("validatingadmissionpolicies", "validatingadmissionpolicybindings"),
        }
    }
}

impl Dynamic {
    pub(crate) fn new(caller: Option<Arc<dyn WebhookCaller>>) -> Self {
        Self { caller, ..Self::default() }
    }

    /// A configuration was written: what is compiled is no longer in force.
    pub(crate) fn changed(&self, group: &str) {
        if group == GROUP {
            self.changes.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// The index with every change that was counted so far.
    fn index(&self, store: &Store) -> Arc<Index> {
        let newest = self.changes.load(Ordering::Acquire) + 1;
        let current = self.index.load_full();
        if current.built >= newest {
            return current;
        }
        let _building = self.building.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = self.changes.load(Ordering::Acquire) + 1;
        let current = self.index.load_full();
        if current.built >= newest {
            return current;
        }
        let index = Arc::new(Index::build(store, newest));
        self.index.store(index.clone());
        index
    }
}

impl Inner {
    /// Whether anything reviews the write in this phase.
    pub(crate) fn is_reviewed(&self, phase: Phase, request: &Request<'_>) -> bool {
        if self.admission.wants(phase, request) || self.has_limits(request) {
            return true;
        }
        let index = self.dynamic.index(&self.store);
        match phase {
            Phase::Mutate => !index.mutating.is_empty() || !index.mutating_policies.is_empty(),
            Phase::Validate => !index.validating.is_empty() || !index.validating_policies.is_empty(),
        }
    }

    /// The mutating phase. Returns whether the object was replaced.
    pub(crate) async fn admit_mutating(
        &self,
        request: &Request<'_>,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<bool, Status> {
        let mut replaced = self.admission.mutate(request, object, old).await?;
        replaced |= self.fill_limits(request, object);
        let index = self.dynamic.index(&self.store);
        if (index.mutating.is_empty() && index.mutating_policies.is_empty()) || request.configures_admission()
        {
            return Ok(replaced);
        }
        let mut reviewed = Reviewed::new(self, request, std::mem::take(object), old);
        let outcome = self.mutate_by_configuration(&index, &mut reviewed).await;
        *object = reviewed.into_object();
        Ok(outcome? || replaced)
    }

    async fn mutate_by_configuration(
        &self,
        index: &Index,
        reviewed: &mut Reviewed<'_>,
    ) -> Result<bool, Status> {
        let count = index.mutating_policies.len() + index.mutating.len();
        // Which of them changed the object last, and after which change each of them saw it.
        let (mut changes, mut seen) = (0_usize, vec![0_usize; count]);
        for round in 0..2 {
            for (i, last) in seen.iter_mut().enumerate() {
                let policy = index.mutating_policies.get(i);
                let place = i.checked_sub(index.mutating_policies.len());
                let webhook = place.map(|i| &index.mutating[i]);
                let again =
                    policy.is_some_and(|p| p.policy.reinvoked) || webhook.is_some_and(|w| w.reinvoked);
                if round == 1 && !(again && changes > *last) {
                    continue;
                }
                let changed = match (policy, webhook) {
                    (Some(policy), _) => self.mutate_by_policy(policy, reviewed)?,
                    (None, Some(webhook)) => {
                        let place = CallPosition { mutating: true, round, index: place.unwrap_or_default() };
                        self.mutate_by_webhook(webhook, place, reviewed).await?
                    }
                    (None, None) => false,
                };
                changes += usize::from(changed);
                *last = changes;
            }
        }
        Ok(changes > 0)
    }

    /// The validating phase, but for quotas, which are charged just before the commit.
    pub(crate) async fn admit_validating(
        &self,
        request: &Request<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        self.admission.validate(request, object, old).await?;
        self.check_limits(request, object)?;
        let index = self.dynamic.index(&self.store);
        if (index.validating.is_empty() && index.validating_policies.is_empty())
            || request.configures_admission()
        {
            return Ok(());
        }
        let reviewed = Reviewed::new(self, request, object.cloned().unwrap_or_default(), old);
        self.validate_by_policies(&index.validating_policies, &reviewed)?;
        self.validate_by_webhooks(&index.validating, &reviewed).await
    }

    /// Both phases of a deletion.
    pub(crate) async fn admit_deletion(&self, request: &Request<'_>, old: &Value) -> Result<(), Status> {
        self.admission.delete(request, old).await?;
        let index = self.dynamic.index(&self.store);
        if !index.mutating.is_empty() && !request.configures_admission() {
            let mut reviewed = Reviewed::new(self, request, Value::Null, Some(old));
            for (i, webhook) in index.mutating.iter().enumerate() {
                let place = CallPosition { mutating: true, round: 0, index: i };
                self.mutate_by_webhook(webhook, place, &mut reviewed).await?;
            }
        }
        if (index.validating.is_empty() && index.validating_policies.is_empty())
            || request.configures_admission()
        {
            return Ok(());
        }
        let reviewed = Reviewed::new(self, request, Value::Null, Some(old));
        self.validate_by_policies(&index.validating_policies, &reviewed)?;
        self.validate_by_webhooks(&index.validating, &reviewed).await
    }
}

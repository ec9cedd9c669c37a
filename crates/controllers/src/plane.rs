//! What the controllers share, and how they behave.

use crate::catalog::Catalog;
use crate::composite::{AllCallers, Nesting};
use crate::conversion::ConversionEndpoint;
use serde_json::Value;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use transom_compose::FunctionRunner;
use transom_engine::{Engine, Error, Key, ReportedError, Rng, RunLog};
use transom_xapi::{Condition, conditions};

/// How many large plans of composite resources are carried out at the same time, of all kinds together.
pub(crate) const MAX_LARGE_RUNS: usize = 4;

/// How controllers behave.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether composite resources watch what they compose and require. Otherwise they poll.
    pub realtime: bool,
    /// Without watches: how long until a composite resource that is ready is reconciled again.
    pub poll_interval: Duration,
    /// The shortest interval that the annotation for polling or the TTL of a function's answer may ask for.
    pub min_poll_interval: Duration,
    /// Whether functions may require resources. Resources that a Composition requires for them are always given.
    pub extra_resources: bool,
    /// How often watches of kinds that no composite resource depends on any longer are ended.
    pub sweep_interval: Duration,
    /// The namespace of pull secrets, and of the service account whose image pull secrets are used for all packages.
    pub namespace: String,
    /// The name of that service account.
    pub service_account: String,
    /// Whether packages that others depend on are changed to later versions that all of these accept.
    pub dependency_upgrades: bool,
    /// Whether they are changed to earlier versions, too, if no later one will do.
    pub dependency_downgrades: bool,
    /// What the policy `default` activates, which is made at start if it does not exist; without any there is none.
    pub activations: Vec<String>,
    /// Whether the CRDs of the control plane's own kinds and the policy `default` are installed at the start.
    pub install: bool,
    /// Whether the API server is reached over a network.
    pub remote: bool,
    /// What converts the versions of composite resources whose definition has rules.
    pub conversion: ConversionEndpoint,
    /// The seed of random choices. Equal seeds on equal schedules lead to equal choices.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            realtime: true,
            poll_interval: Duration::from_secs(60),
            min_poll_interval: Duration::from_secs(1),
            extra_resources: true,
            sweep_interval: Duration::from_secs(60),
            namespace: "crossplane-system".to_owned(),
            service_account: "crossplane".to_owned(),
            dependency_upgrades: false,
            dependency_downgrades: false,
            activations: Vec::new(),
            install: true,
            remote: false,
            conversion: ConversionEndpoint::default(),
            seed: 0x5eed,
        }
    }
}

/// A composite resource or claim became ready, or stopped working.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The kind of the object.
    pub kind: String,
    /// Its namespace; empty for a cluster-scoped object.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// `None` when it became ready, otherwise why it does not work.
    pub problem: Option<String>,
}

/// Receives what users wait for.
pub type Announce = Arc<dyn Fn(&Notice) + Send + Sync>;

/// What the controllers of one control plane share: the engine, and what is known of Crossplane's kinds.
pub(crate) struct Plane {
    pub(crate) engine: Engine,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) rng: Rng,
    pub(crate) runner: Arc<dyn FunctionRunner>,
    pub(crate) options: Options,
    pub(crate) announce: Announce,
    pub(crate) nesting: Nesting,
    /// The composite resources that depend on the revisions of functions.
    pub(crate) callers: AllCallers,
    /// The turns of reconciles with large plans.
    pub(crate) large_runs: Semaphore,
}

/// A plane is an engine for Crossplane's kinds: controllers use the engine through it.
impl Deref for Plane {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

impl Plane {
    /// Ends a run that failed: records an event and the condition `Synced: False`, and returns the error so that the
    /// queue tries again. A conflict is returned without a report.
    pub(crate) async fn fail(
        &self,
        controller: &str,
        log: &RunLog,
        object: &mut Value,
        before: &Value,
        failure: ReportedError,
    ) -> Error {
        let ReportedError { reason, error } = failure;
        if error.is_conflict() {
            return error;
        }
        let words = error.chain().to_string();
        self.events.warning(controller, object, reason, words.clone());
        conditions::mark_observed(object, [Condition::reconcile_error(words)], self.clock.now());
        // The error is what matters; a status that cannot be written is written next time.
        if let Err(e) = self.write_status(log, object, before).await {
            tracing::debug!(controller, key = %Key::of(object), error = %e.chain(), "cannot update status");
        }
        error
    }
}

//! Composite resources: one controller per definition, started and stopped with it.
//!
//! Everything about a composite resource is decided by [`transom_compose::Reconcile`]. This module drives that state
//! machine, reads for it and executes its plans.
//!
//! | file | what |
//! |---|---|
//! | `mod` | the controller of a definition: its watches, and what it remembers of each composite resource |
//! | `reconcile` | one run: drives the state machine from the key to what comes next |
//! | `execute` | carries out plans: one request for each step that changes something |
//! | `world`, `catalog` | what the state machine reads: the API, and what is installed |
//! | `deadline` | calls functions within the time of a run, and reports slow calls |
//! | `followers` | which composite resources a new revision of a Composition concerns |
//! | `callers` | which composite resources a change of the revisions of a function concerns |
//! | `rights` | the rights that the control plane lacks |
//! | `announcement` | announces to the operator what became ready or failed |

mod announcement;
mod callers;
mod catalog;
mod deadline;
mod execute;
mod followers;
mod reconcile;
mod rights;
mod world;

pub(crate) use callers::AllCallers;
pub(crate) use transom_compose::Nesting;

use crate::catalog::kinds;
use crate::plane::Plane;
use callers::Callers;
use followers::{Followers, OwnChanges, part, wake_followers};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use transom_compose::{ComposedBy, Requirements};
use transom_engine::{
    Cluster, Controller, Depth, Following, Key, Next, Pace, Queue, Reconciler, Result, RunLog,
};
use transom_object::GroupVersionKind;
use transom_xapi::AccountReference;
use transom_xapi::composite::Layout;
use transom_xapi::definition::Definition;

/// The controller of one definition's composite resources; it stops when dropped.
pub(crate) struct CompositeController {
    _controller: Controller,
}

/// Reconciles the composite resources of one definition.
struct Composites {
    plane: Arc<Plane>,
    /// `composite/<definition>`.
    name: String,
    definition: Arc<Definition>,
    gvk: GroupVersionKind,
    layout: Layout,
    queue: Arc<Queue>,
    /// What each composes and requires.
    following: Arc<Following>,
    /// The functions whose revisions each depends on.
    callers: Arc<Callers>,
    /// What the steps of each required the last time.
    required: Mutex<HashMap<Key, Requirements>>,
    /// The FunctionRevisions that composed each the last time.
    composed_by: Mutex<HashMap<Key, ComposedBy>>,
}

/// The name of the controller of a definition's composite resources.
pub(crate) fn controller_name(definition: &str) -> String {
    format!("composite/{definition}")
}

impl CompositeController {
    pub(crate) fn start(plane: &Arc<Plane>, definition: Arc<Definition>) -> Self {
        let longest_backoff = Duration::from_secs(30);
        let pace = Pace { longest_backoff, circuit_breaker: true, ..Pace::default() };
        let name = controller_name(&definition.metadata.name);
        let (gvk, layout) = (definition.composite_type(), definition.layout());
        let mut controller = plane.controller(&*name, pace);
        controller.divide();
        let queue = controller.queue().clone();
        let following = controller.follow(|_| true);
        let followers: Arc<Followers> = Arc::default();
        let own = OwnChanges::new(followers.clone(), queue.clone());
        controller.watch(&gvk, Depth::Part("composition", part), Arc::new(own));
        controller.counted("CompositeResource");
        let revisions = wake_followers(followers, queue.clone(), gvk.clone());
        controller.watch(&kinds::revision(), Depth::Whole, Arc::new(revisions));
        controller.counted("CompositionRevision");
        let callers = Arc::new(Callers::new(queue.clone()));
        plane.callers.add(&callers);
        let composites = Composites {
            plane: plane.clone(),
            name,
            definition,
            gvk,
            layout,
            queue,
            following,
            callers,
            required: Mutex::default(),
            composed_by: Mutex::default(),
        };
        Self { _controller: controller.start(composites) }
    }
}

impl Composites {
    fn required(&self) -> MutexGuard<'_, HashMap<Key, Requirements>> {
        self.required.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers what steps required, in place of what they required before.
    fn remember(&self, key: &Key, requirements: &Requirements) {
        if requirements.is_empty() {
            self.required().remove(key);
        } else {
            self.required().insert(key.clone(), requirements.clone());
        }
    }

    fn composed_by(&self) -> MutexGuard<'_, HashMap<Key, ComposedBy>> {
        self.composed_by.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self, key: &Key) {
        self.composed_by().remove(key);
        self.following.forget(key);
        self.callers.forget(key);
        self.required().remove(key);
    }
}

/// One run for a composite resource.
struct Run<'a> {
    composites: &'a Composites,
    key: &'a Key,
    log: &'a RunLog,
    started: Instant,
    /// The service account that it is composed under, if its definition names one.
    account: Option<AccountReference>,
    /// Reads what functions are given and writes composed resources, as that account.
    composed: Cluster,
    /// How long it waited for its turn to carry out a large plan, which does not count as composing.
    waited: OnceLock<Duration>,
    /// The functions whose revisions it depends on.
    followed: Mutex<BTreeSet<String>>,
}

impl Reconciler for Composites {
    async fn reconcile(&self, key: &Key, log: &RunLog) -> Result<Next> {
        self.run(key, log).await
    }
}

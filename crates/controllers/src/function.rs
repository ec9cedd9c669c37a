//! Functions: makes them callable through the [`Installer`], and reports on the object whether they are installed and
//! whether they can be reached. A function that cannot be reached is tried again with growing pauses until it can.
//!
//! How a function is run is not decided here: the installer resolves a Function to a revision, and a
//! [`FunctionRuntime`](transom_runner::FunctionRuntime) runs it.

use crate::catalog::kinds;
use crate::plane::Plane;
use serde::Deserialize;
use std::sync::Arc;
use transom_engine::{Controller, Depth, Error, ErrorContext, Key, Next, Pace, Reconciler, Result, RunLog};
use transom_object::meta;
use transom_runner::{Installer, RuntimeState};
use transom_xapi::constants::{condition, event, reason};
use transom_xapi::{Condition, Function, conditions};

const NAME: &str = "packages/function.pkg.crossplane.io";

struct Functions {
    plane: Arc<Plane>,
    installer: Installer,
}

/// Starts the controller of Functions.
pub(crate) fn start(plane: &Arc<Plane>, installer: Installer) -> Controller {
    let mut controller = plane.controller(NAME, Pace::default());
    controller.watch_own(&kinds::function(), Depth::Header);
    let queue = controller.queue().clone();
    installer.on_change(move |name| queue.wake(&Key::new("", name)));
    controller.start(Functions { plane: plane.clone(), installer })
}

impl Reconciler for Functions {
    async fn reconcile(&self, key: &Key, log: &RunLog) -> Result<Next> {
        let read = self.plane.read(log, &kinds::function(), "", &key.name).await;
        let Some(mut object) = read.context("cannot get Function")? else {
            self.installer.remove(&key.name).await;
            return Ok(Next::Gone);
        };
        if meta::is_deleting(&object) {
            self.installer.remove(&key.name).await;
            return Ok(Next::Wait);
        }
        let function = Function::deserialize(&object).map_err(Error::unfit)?;
        // Probed when it is installed and when calls become able or unable to reach it, never at intervals.
        let state = self.installer.install(&function).await;
        let next = if matches!(state, RuntimeState::Pending { .. }) { Next::Backoff } else { Next::Wait };
        let health = conditions_of(&function, &state);
        let before = object.get("status").cloned();
        conditions::mark_observed(&mut object, health, self.plane.clock.now());
        if object.get("status") != before.as_ref() {
            if let Some(fields) = function.without_effect() {
                self.plane.events.warning(NAME, &object, event::composition::NO_EFFECT, fields);
            }
            self.plane.update_status(log, &mut object).await.context("cannot update Function status")?;
        }
        Ok(next)
    }
}

/// Whether a function is installed, and whether it can be reached.
fn conditions_of(function: &Function, state: &RuntimeState) -> [Condition; 2] {
    let installed = match state {
        RuntimeState::Failed(problem) => Condition::package_inactive().with_message(problem.message.clone()),
        RuntimeState::Pending { .. } | RuntimeState::Ready(_) => {
            Condition::package_active().with_message(function.without_effect().unwrap_or_default())
        }
    };
    let healthy = match state.problem() {
        None => Condition::new(condition::HEALTHY, "True", reason::HEALTHY_PACKAGE_REVISION),
        Some(problem) => Condition::new(condition::HEALTHY, "False", reason::UNHEALTHY_PACKAGE_REVISION)
            .with_message(problem.message.clone()),
    };
    [installed, healthy]
}

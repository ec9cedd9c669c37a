//! Functions: makes those that a pipeline may name callable, and says on the object whether they are, and whether they
//! can be reached. One that cannot be is tried again with growing pauses until it can.
//!
//! Where a function runs is a [`FunctionRuntime`]'s business: in this process, at an address, or (with a package
//! manager) wherever a package says.

use crate::catalog::kinds;
use crate::plane::Plane;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use std::sync::Arc;
use transom_engine::{Controller, Depth, Error, ErrorContext, Key, Next, Pace, Reconciler, Result, RunLog};
use transom_object::meta;
use transom_xapi::constants::{condition, event, reason};
use transom_xapi::{Condition, Function, conditions};

const NAME: &str = "packages/function.pkg.crossplane.io";

/// Makes functions callable.
pub trait FunctionRuntime: Send + Sync + 'static {
    /// Makes a function callable under its name, or says why it cannot be.
    fn install(&self, function: &Function) -> std::result::Result<(), String>;

    /// Forgets a function.
    fn remove(&self, name: &str);

    /// Whether an installed function can be reached where it runs, or why it cannot be. It is not called.
    fn reach<'a>(&'a self, _name: &'a str) -> BoxFuture<'a, std::result::Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Has `changed` called with the name of a function that calls begin or cease to reach.
    fn on_change(&self, _changed: Arc<dyn Fn(&str) + Send + Sync>) {}
}

struct Functions {
    plane: Arc<Plane>,
    runtime: Arc<dyn FunctionRuntime>,
}

/// Starts the controller of Functions.
pub(crate) fn start(plane: &Arc<Plane>, runtime: Arc<dyn FunctionRuntime>) -> Controller {
    let mut controller = plane.controller(NAME, Pace::default());
    controller.watch_own(&kinds::function(), Depth::Header);
    let queue = controller.queue().clone();
    runtime.on_change(Arc::new(move |name| queue.wake(&Key::new("", name))));
    controller.start(Functions { plane: plane.clone(), runtime })
}

impl Reconciler for Functions {
    async fn reconcile(&self, key: &Key, log: &RunLog) -> Result<Next> {
        let read = self.plane.read(log, &kinds::function(), "", &key.name).await;
        let Some(mut object) = read.context("cannot get Function")? else {
            self.runtime.remove(&key.name);
            return Ok(Next::Gone);
        };
        if meta::is_deleting(&object) {
            self.runtime.remove(&key.name);
            return Ok(Next::Wait);
        }
        let function = Function::deserialize(&object).map_err(Error::unfit)?;
        let installed = self.runtime.install(&function);
        // Looked at when it is installed and when calls begin or cease to get through, never at intervals.
        let reached = match &installed {
            Ok(()) => self.runtime.reach(&key.name).await,
            Err(why) => Err(why.clone()),
        };
        let next = if installed.is_ok() && reached.is_err() { Next::Backoff } else { Next::Wait };
        let health = [
            match installed {
                Ok(()) => {
                    Condition::package_active().with_message(function.without_effect().unwrap_or_default())
                }
                Err(why) => Condition::package_inactive().with_message(why),
            },
            match reached {
                Ok(()) => Condition::new(condition::HEALTHY, "True", reason::HEALTHY_PACKAGE_REVISION),
                Err(why) => Condition::new(condition::HEALTHY, "False", reason::UNHEALTHY_PACKAGE_REVISION)
                    .with_message(why),
            },
        ];
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

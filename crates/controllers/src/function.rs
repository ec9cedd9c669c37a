//! Functions: makes those that a pipeline may name callable, and says on the object whether they are.
//!
//! Where a function runs is a [`FunctionRuntime`]'s business: in this process, at an address, or (with a package
//! manager) wherever a package says.

use crate::catalog::kinds;
use crate::engine::{
    Depth, Key, Next, Pace, Pass, Queue, Reconciler, Running, Subscription, start, wake_itself,
};
use crate::error::{Attempt, Error, Result};
use crate::plane::Plane;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use std::sync::Arc;
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
}

/// The controller of Functions.
pub(crate) struct FunctionController {
    running: Running,
    _subscription: Subscription,
}

struct Functions {
    plane: Arc<Plane>,
    runtime: Arc<dyn FunctionRuntime>,
}

impl FunctionController {
    pub(crate) fn start(plane: &Arc<Plane>, runtime: Arc<dyn FunctionRuntime>) -> Self {
        let queue = Arc::new(Queue::new(Pace::default()));
        let subscription =
            plane.watches.subscribe(&kinds::function(), Depth::Header, wake_itself(queue.clone()));
        let functions = Functions { plane: plane.clone(), runtime };
        let running = start(Arc::new(functions), queue, plane.metrics.clone());
        Self { running, _subscription: subscription }
    }

    pub(crate) fn queue(&self) -> Arc<Queue> {
        self.running.queue().clone()
    }
}

impl Functions {
    async fn run(&self, key: &Key, pass: &Pass) -> Result<Next> {
        let read = self.plane.read(pass, &kinds::function(), "", &key.name).await;
        let Some(mut object) = read.to("cannot get Function")? else {
            self.runtime.remove(&key.name);
            return Ok(Next::Gone);
        };
        if meta::is_deleting(&object) {
            self.runtime.remove(&key.name);
            return Ok(Next::Wait);
        }
        let function = Function::deserialize(&object).map_err(|e| Error::unfit(e.to_string()))?;
        let health = match self.runtime.install(&function) {
            Ok(()) => [
                Condition::new(condition::INSTALLED, "True", reason::ACTIVE_PACKAGE_REVISION)
                    .with_message(function.without_effect().unwrap_or_default()),
                Condition::new(condition::HEALTHY, "True", reason::HEALTHY_PACKAGE_REVISION),
            ],
            Err(why) => [
                Condition::new(condition::INSTALLED, "False", reason::INACTIVE_PACKAGE_REVISION)
                    .with_message(why.clone()),
                Condition::new(condition::HEALTHY, "False", reason::UNHEALTHY_PACKAGE_REVISION)
                    .with_message(why),
            ],
        };
        let before = object.get("status").cloned();
        conditions::mark_observed(&mut object, health, self.plane.clock.now());
        if object.get("status") != before.as_ref() {
            if let Some(fields) = function.without_effect() {
                self.plane.events.warning(NAME, &object, event::composition::NO_EFFECT, fields);
            }
            self.plane.update_status(pass, &mut object).await.to("cannot update Function status")?;
        }
        Ok(Next::Wait)
    }
}

impl Reconciler for Functions {
    fn name(&self) -> &str {
        NAME
    }

    fn reconcile<'a>(&'a self, key: &'a Key, pass: &'a Pass) -> BoxFuture<'a, Result<Next>> {
        Box::pin(self.run(key, pass))
    }
}

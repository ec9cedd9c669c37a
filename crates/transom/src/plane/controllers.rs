//! The controllers and their functions, on any client: of the server in this process, or of a cluster.

use super::args::ControllerArgs;
use super::data_location::DataLocation;
use super::functions::Functions;
use super::links::Links;
use super::packages::Packages;
use crate::containers::{FunctionRuntimes, Place, SecretCredentials};
use crate::failure::Failure;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use transom_controllers::{Announce, Context, Controllers, Options};
use transom_engine::Clock;
use transom_object::time::Timestamp;

/// How long a function in a container may take to end when it is asked to.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// Running controllers, and the tasks that belong to them. They stop when dropped.
pub(crate) struct ControllerManager {
    #[cfg_attr(
        not(debug_assertions),
        expect(dead_code, reason = "only tests look at it; dropping it stops it")
    )]
    controllers: Arc<Controllers>,
    cache_expiry: Option<AbortHandle>,
    runtimes: Arc<FunctionRuntimes>,
}

impl Drop for ControllerManager {
    fn drop(&mut self) {
        if let Some(task) = &self.cache_expiry {
            task.abort();
        }
    }
}

impl ControllerManager {
    /// Starts the controllers and everything they do on `runtime`. Functions read templates below one directory only, and
    /// those from packages keep their files in another one.
    pub(crate) async fn start(
        client: kube::Client,
        args: &ControllerArgs,
        location: &DataLocation,
        packages: Packages,
        links: &Links,
        announce: Announce,
        runtime: &Handle,
    ) -> Result<Self, Failure> {
        let credentials = SecretCredentials { client: client.clone(), namespace: args.namespace.clone() };
        let place = Place {
            dir: location.containers_dir(),
            images: packages.images,
            credentials: Arc::new(credentials),
            grace: STOP_WITHIN,
        };
        let templates = location.templates_dir();
        let mut functions = Functions::new(&templates, args, place, links.account.clone())?;
        if let Some(options) = args.cache() {
            functions = functions.cached(options);
        }
        let (cache, runtimes) = (functions.cache(), functions.runtimes());
        let now = Timestamp::now();
        let context = Context {
            client,
            runner: functions.runner(),
            functions: functions.installer(),
            packages: packages.sources,
            clock: Clock::starting_at(now),
            announce,
            metrics: links.metrics.clone(),
            protection: links.protection.clone(),
            options: Options {
                seed: u64::try_from(now.as_microsecond()).unwrap_or_default(),
                ..args.options()
            },
        };
        let failed = |e: String| Failure::new(format!("cannot start the controllers: {e}"));
        let started = runtime.spawn(Controllers::start(context)).await;
        let controllers =
            started.map_err(|e| failed(e.to_string()))?.map_err(|e| failed(e.chain().to_string()))?;
        links.set_readiness(controllers.readiness());
        let cache_expiry =
            cache.map(|cache| runtime.spawn(async move { cache.expire().await }).abort_handle());
        Ok(Self { controllers: Arc::new(controllers), cache_expiry, runtimes })
    }

    /// Stops the controllers, then what runs functions.
    pub(super) async fn stop(self) {
        let runtimes = self.runtimes.clone();
        drop(self);
        runtimes.stop().await;
    }

    /// The controllers.
    #[cfg(debug_assertions)]
    pub(super) fn controllers(&self) -> &Arc<Controllers> {
        &self.controllers
    }
}

//! Controllers that are started to find out what they would do, on a client that writes nothing.

use super::args::{ControllerArgs, PackageArgs};
use super::controllers::{ControllerManager, Purpose, ServerAccess};
use super::data_location::DataLocation;
use super::links::Links;
use super::packages;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use transom_console::Failure;
use transom_engine::Ownership;

/// The controllers have looked at everything if they were idle for this long.
const QUIET_PERIOD: Duration = Duration::from_secs(3);
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Controllers that rehearse.
pub(crate) struct Rehearsing {
    controllers: ControllerManager,
    links: Links,
}

impl Rehearsing {
    pub(crate) async fn start(
        client: kube::Client,
        args: &ControllerArgs,
        wanted: &PackageArgs,
        location: &DataLocation,
        runtime: &Handle,
    ) -> Result<Self, Failure> {
        let links = Links::of(Purpose::Rehearsal, Ownership::whole());
        let packages = packages::open(wanted, args, location).await?;
        let announce = Arc::new(|_: &transom_controllers::Notice| {});
        let server = ServerAccess::of_cluster(client);
        let starting = ControllerManager::start(server, args, location, packages, &links, announce, runtime);
        Ok(Self { controllers: starting.await?, links })
    }

    /// Waits until the controllers have looked at everything, and stops them.
    pub(crate) async fn finish(self, within: Duration) -> Result<(), Failure> {
        let (_, is_ready) = self.links.controllers_ready();
        let controllers = self.controllers.controllers().clone();
        let looking = async {
            let mut quiet = Duration::ZERO;
            while quiet < QUIET_PERIOD {
                tokio::time::sleep(CHECK_INTERVAL).await;
                let idle = is_ready() && controllers.is_idle();
                quiet = if idle { quiet + CHECK_INTERVAL } else { Duration::ZERO };
            }
        };
        let looked = tokio::time::timeout(within, looking).await;
        drop(controllers);
        self.controllers.stop().await;
        looked.map_err(|_| {
            Failure::new("the controllers were still busy when the time limit was reached")
                .remedy("pass a longer --timeout")
        })
    }
}

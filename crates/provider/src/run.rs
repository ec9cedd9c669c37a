//! A provider as a process of its own.

use crate::provider::{Context, Provider};
use std::pin::pin;
use std::sync::Arc;
use transom_engine::{Clock, Cluster, Ownership, Result};
use transom_object::time::Timestamp;

impl Context {
    /// What a process runs with that reconciles all objects of its kinds: the time of the system, metrics of its own, and
    /// random choices that differ from start to start.
    pub fn new(client: kube::Client) -> Self {
        let now = Timestamp::now();
        Self {
            client,
            clock: Clock::starting_at(now),
            metrics: Arc::default(),
            seed: u64::try_from(now.as_microsecond()).unwrap_or_default(),
            ownership: Ownership::whole(),
        }
    }
}

impl Provider {
    /// Installs its kinds in a cluster, and runs its controllers until `shutdown` completes. There is no leader election: run
    /// one process for a cluster. Whatever a process leaves half-done, the next one continues.
    pub async fn run(self, client: kube::Client, shutdown: impl Future<Output = ()>) -> Result<()> {
        let mut shutdown = pin!(shutdown);
        let cluster = Cluster::new(client.clone());
        tokio::select! {
            installed = self.install(&cluster) => installed?,
            () = &mut shutdown => return Ok(()),
        }
        let _running = self.start(Context::new(client));
        shutdown.await;
        Ok(())
    }
}

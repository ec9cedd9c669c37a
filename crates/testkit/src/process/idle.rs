//! Whether the controllers of a plane have anything left to do.

use super::{Client, Gone, Plane, WAIT_LIMIT};
use std::time::{Duration, Instant};

const POLL_INTERVAL: Duration = Duration::from_millis(2);

impl Plane {
    /// Waits until the plane is idle: the controllers know all objects, no key runs or is ready to run, and the server has
    /// no upkeep to do. Keys that wait for a time do not count.
    pub async fn until_idle(&self) {
        until_ok(&self.client().await, "/readyz/idle").await.expect("the plane runs");
    }
}

impl Client {
    /// Waits until the plane is idle, and no key waits because its last run failed: nothing will happen without a change
    /// from outside.
    pub async fn until_settled(&self) -> Result<(), Gone> {
        until_ok(self, "/readyz/no-retries").await
    }
}

/// Waits for a probe. Debug builds of the binary serve it.
async fn until_ok(client: &Client, path: &str) -> Result<(), Gone> {
    let started = Instant::now();
    loop {
        let reply = client.get(path).await?;
        match reply.status {
            200 => return Ok(()),
            404 => panic!("{path} is not served; only debug builds of the binary serve it"),
            _ => assert!(
                started.elapsed() < WAIT_LIMIT,
                "{path} is not ok after {WAIT_LIMIT:?}: {}",
                reply.text()
            ),
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

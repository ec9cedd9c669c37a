//! A Lease through crashes. Its writes are relaxed: the newest may be lost, but none that is older than an
//! acknowledged strict write of anything else.

use serde_json::json;
use transom_testkit::process::{Client, Gone};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

#[derive(Default)]
pub(crate) struct Lease {
    /// The number last sent.
    sent: u64,
    /// Acknowledged numbers with their revisions, since the last restart.
    acknowledged: Vec<(u64, u64)>,
    exists: bool,
}

impl Lease {
    /// Writes the next number; returns its revision.
    pub(crate) async fn renew(&mut self, client: &Client) -> Result<u64, Gone> {
        self.sent += 1;
        let spec = json!({"leaseTransitions": self.sent});
        let reply = if self.exists {
            client.merge(&format!("{LEASES}/crash"), &json!({"spec": spec})).await?
        } else {
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": "crash"}, "spec": spec,
            });
            client.post(LEASES, &lease).await?
        };
        assert!(reply.ok(), "{}", reply.text());
        self.exists = true;
        self.acknowledged.push((self.sent, reply.revision()));
        Ok(reply.revision())
    }

    /// Compares with what a restarted server says, when everything up to `durable` was said to be durable.
    pub(crate) async fn compare_after_restart(&mut self, client: &Client, durable: u64) -> Result<(), Gone> {
        let reply = client.get(&format!("{LEASES}/crash")).await?;
        let found = match reply.status {
            404 => 0,
            _ => reply.json()["spec"]["leaseTransitions"].as_u64().unwrap_or(0),
        };
        let safe = self.acknowledged.iter().filter(|(_, revision)| *revision <= durable);
        let safe = safe.map(|(n, _)| *n).max().unwrap_or(0);
        assert!(found >= safe, "the lease went back to {found}, {safe} was durable");
        assert!(found <= self.sent, "the lease says {found}, only {} was written", self.sent);
        self.acknowledged = vec![(found, 0)];
        self.exists = reply.status == 200;
        Ok(())
    }
}

//! Hostile clients: whatever is sent, the answer is a clean refusal, memory stays bounded, nothing panics, and
//! other clients are served.

mod bodies;
mod connections;
mod patches;
mod requests;
mod schemas;
mod tokens;
mod watches;

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use transom_testkit::process::{Client, Home, Plane, Reply};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// What a plane with little in it may grow by, whatever is thrown at it.
const GROWTH_MIB: u64 = 200;
/// No request may keep the server busy for longer than this, unoptimised and on a busy machine.
const REQUEST_LIMIT: Duration = Duration::from_secs(60);

/// A plane that a test attacks.
struct Target {
    home: Home,
    plane: Plane,
    client: Client,
    resident_before: u64,
}

impl Target {
    async fn start() -> Self {
        Self::with(&[]).await
    }

    /// A plane with more flags.
    async fn with(flags: &[&str]) -> Self {
        let home = Home::new();
        let plane = Plane::start_with(&home, &[&["--in-memory"], flags].concat());
        let client = plane.client().await;
        let reply = client.post(CONFIG_MAPS, &config_map("bystander")).await.expect("it answers");
        assert_eq!(reply.status, 201, "{}", reply.text());
        let resident_before = plane.resident_mib();
        Self { home, plane, client, resident_before }
    }

    /// The plane serves other clients, its memory has not grown beyond a limit, and none of its tasks has panicked.
    async fn assert_intact(&self) {
        let fresh = self.plane.client().await;
        let reply = fresh.get(&format!("{CONFIG_MAPS}/bystander")).await.expect("it answers");
        assert_eq!(reply.status, 200, "{}", reply.text());
        let reply = fresh.merge(&format!("{CONFIG_MAPS}/bystander"), &json!({"data": {"seen": "yes"}})).await;
        assert_eq!(reply.expect("it answers").status, 200);
        self.home.assert_no_panic();
        let grown = self.plane.resident_mib().saturating_sub(self.resident_before);
        assert!(grown < GROWTH_MIB, "memory grew by {grown} MiB");
    }

    /// Sends a body and expects a refusal.
    async fn refuses(&self, what: &str, method: http::Method, path: &str, ty: &str, body: Vec<u8>) -> Reply {
        let reply = self.try_send(what, method, path, ty, body).await;
        assert!((400..500).contains(&reply.status), "{what}: {} {}", reply.status, shorten(&reply.text()));
        reply
    }

    /// Sends a body and expects an answer that is not a failure of the server, in reasonable time.
    async fn try_send(&self, what: &str, method: http::Method, path: &str, ty: &str, body: Vec<u8>) -> Reply {
        let started = Instant::now();
        let request = self.client.request(method, path).header("content-type", ty);
        let reply = self.client.send(request, body).await;
        let Ok(reply) = reply else { unreachable!("{what}: no answer: {reply:?}") };
        assert!(started.elapsed() < REQUEST_LIMIT, "{what} took {:?}", started.elapsed());
        assert!(reply.status < 500, "{what}: {}", shorten(&reply.text()));
        if reply.status >= 400 {
            reply.assert_status(reply.status, what);
        }
        reply
    }
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "v"}})
}

fn shorten(text: &str) -> String {
    text.chars().take(400).collect()
}

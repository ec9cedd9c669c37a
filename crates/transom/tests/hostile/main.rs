//! Hostile clients: whatever is sent, the answer is a clean refusal, memory stays bounded, nothing panics, and
//! everyone else is served.

mod bodies;
mod connections;
mod patches;
#[path = "../plane/mod.rs"]
mod plane;
mod requests;
mod schemas;
mod watches;

use plane::{Client, Home, Plane, Reply};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// What a plane with little in it may grow by, whatever is thrown at it.
const GROWTH_MIB: u64 = 200;
/// No request may keep the server busy for longer, unoptimised and on a busy machine.
const BUSY: Duration = Duration::from_secs(20);

/// A plane under attack.
struct Siege {
    home: Home,
    plane: Plane,
    client: Client,
    resident_before: u64,
}

impl Siege {
    async fn begin() -> Self {
        let home = Home::new();
        let plane = Plane::start_with(&home, &["--in-memory"]);
        let client = plane.client().await;
        let reply = client.post(CONFIG_MAPS, &config_map("bystander")).await.expect("it answers");
        assert_eq!(reply.status, 201, "{}", reply.text());
        let resident_before = plane.resident_mib();
        Self { home, plane, client, resident_before }
    }

    /// The plane answers others, has not grown beyond measure, and no task of it has panicked.
    async fn survived(&self) {
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

    /// Sends a body and expects an answer that is no failure of the server, in reasonable time.
    async fn try_send(&self, what: &str, method: http::Method, path: &str, ty: &str, body: Vec<u8>) -> Reply {
        let started = Instant::now();
        let request = self.client.request(method, path).header("content-type", ty);
        let reply = self.client.send(request, body).await;
        let Ok(reply) = reply else { unreachable!("{what}: no answer: {reply:?}") };
        assert!(started.elapsed() < BUSY, "{what} took {:?}", started.elapsed());
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

/// xorshift64*: the same garbage on every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| (self.roll() >> 32) as u8).collect()
    }
}

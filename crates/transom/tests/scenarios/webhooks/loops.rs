//! A webhook whose answer needs another write that calls it again: it has no end of its own.

use super::{certificate, configuration, map, serve_with};
use crate::scenarios::user::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use transom_testkit::process::{Access, Client, wait_until};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Counts calls of the webhook, and those that are not answered yet.
#[derive(Default)]
struct Calls {
    begun: AtomicUsize,
    open: AtomicUsize,
}

/// Ends with the call, also if the caller has given it up.
struct Open(Arc<Calls>);

impl Open {
    fn new(calls: &Arc<Calls>) -> Self {
        calls.begun.fetch_add(1, Ordering::SeqCst);
        calls.open.fetch_add(1, Ordering::SeqCst);
        Self(calls.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Creates another object, which is reviewed by the same webhook, and refuses whatever comes of it.
async fn create_another(access: Access, review: Value) -> Value {
    if let Ok(client) = Client::connect(&access).await {
        let another =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "another-"}});
        // Whether it succeeds does not matter.
        let _ = client.post(MAPS, &another).await;
    }
    let response =
        json!({"uid": review["request"]["uid"], "allowed": false, "status": {"message": "in a loop"}});
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_calls_itself_ends_by_timeouts() {
    let user = User::without_functions(&[], &[]).await;
    let (calls, access) = (Arc::new(Calls::default()), user.plane.access.clone());
    let (certificate, key) = certificate();
    let counted = calls.clone();
    let answer = move |request: http::Request<hyper::body::Incoming>| {
        let (open, access) = (Open::new(&counted), access.clone());
        async move {
            let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
            let review = serde_json::from_slice(&body).unwrap_or_default();
            let review = create_another(access, review).await;
            drop(open);
            Ok(http::Response::new(Full::new(Bytes::from(review.to_string()))))
        }
    };
    let port = serve_with("127.0.0.1:0", &certificate, &key, answer).await;
    let client =
        json!({"url": format!("https://127.0.0.1:{port}/x"), "caBundle": STANDARD.encode(&certificate)});
    let mut hooks: Value = serde_json::from_str(&configuration(&client)).unwrap();
    hooks["webhooks"][0]["timeoutSeconds"] = json!(1);
    user.apply(&hooks.to_string()).await;

    // The first write ends, and meanwhile the server answers everything that the webhook does not review.
    let plain = user.client().await;
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "first"}});
    let first = plain.post(MAPS, &object);
    let others = async {
        wait_until("the webhook has called itself", async || calls.begun.load(Ordering::SeqCst) > 3).await;
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other"}});
        let client = user.client().await;
        let made = client.post("/api/v1/namespaces/default/secrets", &secret).await.unwrap();
        assert_eq!(made.status, 201, "a secret");
        assert_eq!(client.get(MAPS).await.unwrap().status, 200, "the list");
        assert_eq!(client.get("/readyz").await.unwrap().status, 200, "ready");
    };
    let (reply, ()) = tokio::join!(first, others);
    let reply = reply.unwrap();
    assert!(reply.status >= 400, "{}", reply.text());
    plain.get(&format!("{MAPS}/first")).await.unwrap().assert_status(404, "first");

    // The loop has nothing left to call once the webhook is gone, and nothing stays open.
    let hooks = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/hooks";
    assert_eq!(plain.delete(hooks).await.unwrap().status, 200, "the configuration");
    user.apply(&map("after")).await;
    wait_until("every call has ended", async || calls.open.load(Ordering::SeqCst) == 0).await;
    let begun = calls.begun.load(Ordering::SeqCst);
    user.apply(&map("later")).await;
    assert_eq!(calls.begun.load(Ordering::SeqCst), begun, "no call after the configuration is gone");
}

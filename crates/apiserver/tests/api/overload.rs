//! More requests at the same time than are answered.

use crate::client::{Client, config_map};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::Semaphore;
use transom_apiserver::{
    Admission, ClientAddress, Endpoint, Identity, Limits, Operation, Options, Phase, Review, Verdict,
    async_trait,
};
use transom_store::Store;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Reviews of ConfigMaps wait until the test lets them go.
struct Gate(Arc<Semaphore>);

#[async_trait]
impl Admission for Gate {
    fn name(&self) -> &str {
        "gate"
    }

    fn wants(&self, phase: Phase, _: Operation, endpoint: &Endpoint<'_>) -> bool {
        phase == Phase::Validate && endpoint.resource == "configmaps"
    }

    async fn review(&self, _: &Review<'_>) -> Verdict {
        let _open = self.0.acquire().await;
        Verdict::allow()
    }
}

/// As a client from outside, which the limits are for.
async fn send(client: &Client, user: &Identity, method: Method, path: &str, body: &Value) -> (u16, bool) {
    let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let mut request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let extensions = request.extensions_mut().unwrap();
    extensions.insert(ClientAddress([192, 0, 2, 1].into()));
    extensions.insert(user.clone());
    let request = request.body(Full::<Bytes>::from(bytes)).unwrap();
    let response = client.server.handle(request).await;
    (response.status().as_u16(), response.headers().contains_key("retry-after"))
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_is_refused_and_probes_and_leases_are_answered() {
    let store = Store::in_step(transom_store::Options::default());
    let gate = Arc::new(Semaphore::new(0));
    let options = Options {
        rbac: true,
        limits: Limits { reads: 1, writes: 1, leases: 1 },
        admission: vec![Box::new(Gate(gate.clone()))],
        ..Options::default()
    };
    let client = Client::with(&store, options).await;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "jane"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}],
    });
    client.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await.expect(201);
    let (jane, admin) = (Identity::new("jane", []), Identity::admin("admin"));
    let first = tokio::spawn({
        let (client, jane) = (client.clone(), jane.clone());
        async move { send(&client, &jane, Method::POST, MAPS, &config_map("first")).await }
    });
    tokio::task::yield_now().await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    assert_eq!(send(&client, &jane, Method::POST, secrets, &secret).await, (429, true));
    assert_eq!(
        send(&client, &jane, Method::GET, MAPS, &Value::Null).await,
        (200, false),
        "reads have their own seats"
    );
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {}});
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    assert_eq!(send(&client, &jane, Method::POST, leases, &lease).await, (201, false));
    assert_eq!(send(&client, &jane, Method::GET, "/readyz", &Value::Null).await.0, 200);
    assert_eq!(
        send(&client, &admin, Method::POST, secrets, &secret).await,
        (201, false),
        "masters are exempt"
    );
    gate.add_permits(1);
    assert_eq!(first.await.unwrap(), (201, false));
    let again = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "t"}});
    assert_eq!(
        send(&client, &jane, Method::POST, secrets, &again).await,
        (201, false),
        "there is room again"
    );
}

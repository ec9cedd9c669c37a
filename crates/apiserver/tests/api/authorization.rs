//! The authorizer is called for every request, whatever it is for and wherever it comes from.

use crate::client::{Client, config_map};
use http::Method;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use transom_apiserver::{Attributes, Authorizer, Decision, Identity, Options, async_trait};
use transom_store::Store;

/// Denies what the test says, and notes what it was asked.
struct Recording {
    asked: Arc<Mutex<Vec<String>>>,
    denies: fn(&Attributes<'_>) -> bool,
}

#[async_trait]
impl Authorizer for Recording {
    async fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        let a = attributes;
        let line = if a.is_path {
            format!("{} {} {}", a.user.user, a.verb, a.path)
        } else {
            let target = [a.group, a.version, a.resource, a.subresource, a.namespace, a.name].join(":");
            format!("{} {} {target}", a.user.user, a.verb)
        };
        self.asked.lock().unwrap().push(line);
        if (self.denies)(attributes) {
            Decision::Denied { reason: "by the test".into() }
        } else {
            Decision::Allowed
        }
    }
}

async fn recording(denies: fn(&Attributes<'_>) -> bool) -> (Client, Arc<Mutex<Vec<String>>>) {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let authorizer = Box::new(Recording { asked: asked.clone(), denies });
    let store = Store::in_memory(transom_store::Options::default());
    let client = Client::with(&store, Options { authorizer, ..Options::default() }).await;
    (client, asked)
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// One request of each kind, with the attributes that the authorizer must see.
fn every_kind_of_request() -> Vec<(Method, String, &'static str, Value, String)> {
    let json = "application/json";
    let in_default = |verb: &str, name: &str| format!("{verb} :v1:configmaps::default:{name}");
    let review = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let mut all = vec![
        (Method::GET, format!("{MAPS}/a"), json, Value::Null, in_default("get", "a")),
        (Method::GET, MAPS.into(), json, Value::Null, in_default("list", "")),
        (Method::GET, format!("{MAPS}?watch=1"), json, Value::Null, in_default("watch", "")),
        (Method::POST, MAPS.into(), json, config_map("a"), in_default("create", "")),
        (Method::PUT, format!("{MAPS}/a"), json, config_map("a"), in_default("update", "a")),
        (
            Method::PATCH,
            format!("{MAPS}/a"),
            "application/merge-patch+json",
            json!({}),
            in_default("patch", "a"),
        ),
        (Method::DELETE, format!("{MAPS}/a"), json, Value::Null, in_default("delete", "a")),
        (Method::DELETE, MAPS.into(), json, Value::Null, in_default("deletecollection", "")),
        (Method::OPTIONS, format!("{MAPS}/a"), json, Value::Null, in_default("", "a")),
        (Method::GET, "/api/v1/configmaps".into(), json, Value::Null, "list :v1:configmaps:::".into()),
        (Method::GET, "/api/v1/nonsense".into(), json, Value::Null, "list :v1:nonsense:::".into()),
        (
            Method::GET,
            crds.into(),
            json,
            Value::Null,
            "list apiextensions.k8s.io:v1:customresourcedefinitions:::".into(),
        ),
        (
            Method::PUT,
            "/api/v1/namespaces/default/status".into(),
            json,
            json!({}),
            "update :v1:namespaces:status:default:default".into(),
        ),
        (
            Method::POST,
            "/api/v1/namespaces/default/serviceaccounts/default/token".into(),
            json,
            json!({}),
            "create :v1:serviceaccounts:token:default:default".into(),
        ),
        (
            Method::GET,
            "/apis/apps/v1/namespaces/default/deployments/d/scale".into(),
            json,
            Value::Null,
            "get apps:v1:deployments:scale:default:d".into(),
        ),
        (
            Method::POST,
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews".into(),
            json,
            review,
            "create authorization.k8s.io:v1:selfsubjectaccessreviews:::".into(),
        ),
    ];
    for path in [
        "/",
        "/api",
        "/api/v1",
        "/apis",
        "/apis/apps",
        "/apis/apps/v1",
        "/openapi/v2",
        "/openapi/v3",
        "/healthz",
        "/livez",
        "/readyz",
        "/version",
        "/metrics",
        "/nonsense",
    ] {
        all.push((Method::GET, path.into(), json, Value::Null, format!("get {path}")));
    }
    all
}

#[tokio::test]
async fn every_kind_of_request_can_be_denied() {
    let (client, asked) = recording(|_| true).await;
    asked.lock().unwrap().clear();
    // An in-process controller has an identity in the request's extensions, exactly as this client.
    let controller = "system:serviceaccount:crossplane-system:crossplane";
    for identity in [Identity::admin(controller), Identity::new("jane", [])] {
        let client = client.seen_by(Some(identity.clone()));
        for (method, path, media, body, expected) in every_kind_of_request() {
            let reply = client.send(method.clone(), &path, media, &body).await;
            assert_eq!(reply.status, 403, "{method} {path}: {}", reply.text());
            let status = reply.json();
            assert_eq!(status["reason"], "Forbidden", "{method} {path}");
            let message = status["message"].as_str().unwrap();
            assert!(message.ends_with(": by the test"), "{message}");
            let asked = std::mem::take(&mut *asked.lock().unwrap());
            assert_eq!(asked, [format!("{} {expected}", identity.user)], "{method} {path}");
        }
    }
    let anonymous = client.seen_by(None);
    for (method, path, media, body, _) in every_kind_of_request() {
        anonymous.send(method, &path, media, &body).await.expect(403);
    }
}

#[tokio::test]
async fn the_message_names_what_is_denied() {
    let (client, _) = recording(|a| a.user.user == "jane").await;
    let jane = client.seen_by(Some(Identity::new("jane", [])));
    let message = |status: Value| status["message"].as_str().unwrap().to_owned();
    let denied = jane.get(&format!("{MAPS}/a")).await.expect(403).json();
    assert_eq!(
        message(denied),
        "configmaps \"a\" is forbidden: User \"jane\" cannot get resource \"configmaps\" in API group \"\" in the namespace \"default\": by the test"
    );
    let denied = jane.get("/apis/apps/v1/namespaces/x/deployments/d/status").await.expect(403).json();
    assert_eq!(
        message(denied),
        "deployments.apps \"d\" is forbidden: User \"jane\" cannot get resource \"deployments/status\" in API group \"apps\" in the namespace \"x\": by the test"
    );
    let denied = jane.get("/metrics").await.expect(403).json();
    assert_eq!(message(denied), "forbidden: User \"jane\" cannot get path \"/metrics\": by the test");
}

#[tokio::test]
async fn impersonation_is_authorized_before_the_request_itself() {
    let (client, asked) = recording(|a| a.verb == "impersonate" && a.name == "root").await;
    asked.lock().unwrap().clear();
    let as_user = |user: &str| [("impersonate-user", user.to_owned())];
    client.send_with(Method::GET, MAPS, &as_user("jane"), &Value::Null).await.expect(200);
    let expected = ["admin impersonate ::users:::jane", "jane list :v1:configmaps::default:"];
    assert_eq!(std::mem::take(&mut *asked.lock().unwrap()), expected);
    let denied = client.send_with(Method::GET, MAPS, &as_user("root"), &Value::Null).await.expect(403).json();
    assert_eq!(
        denied["message"],
        "users \"root\" is forbidden: User \"admin\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope: by the test"
    );
}

#[tokio::test]
async fn an_update_that_creates_needs_the_right_to_create() {
    let (client, asked) = recording(|a| a.verb == "create" && a.name == "denied").await;
    let apply = |name: &str| {
        let (client, path, body) =
            (client.clone(), format!("{MAPS}/{name}?fieldManager=m"), config_map(name));
        async move { client.send(Method::PATCH, &path, "application/apply-patch+yaml", &body).await }
    };
    apply("denied").await.expect(403);
    client.get(&format!("{MAPS}/denied")).await.expect(404);
    asked.lock().unwrap().clear();
    apply("allowed").await.expect(201);
    apply("allowed").await.expect(200);
    let (patch, create) =
        ("admin patch :v1:configmaps::default:allowed", "admin create :v1:configmaps::default:allowed");
    assert_eq!(*asked.lock().unwrap(), [patch, create, patch]);
}

#[tokio::test]
async fn the_default_lets_only_masters_write() {
    let client = Client::in_memory().await;
    let jane = client.seen_by(Some(Identity::new("jane", [])));
    jane.get(MAPS).await.expect(403);
    jane.post(MAPS, &config_map("a")).await.expect(403);
    for path in ["/api", "/apis/apps/v1", "/openapi/v3", "/version", "/readyz"] {
        jane.get(path).await.expect(200);
    }
    let review = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    assert_eq!(jane.post(reviews, &review).await.expect(201).json()["status"], json!({"allowed": false}));
    assert_eq!(client.post(reviews, &review).await.expect(201).json()["status"], json!({"allowed": true}));
    let anonymous = client.seen_by(None);
    anonymous.get("/version").await.expect(200);
    anonymous.get("/api").await.expect(403);
    anonymous.get(MAPS).await.expect(403);
}

#[tokio::test(start_paused = true)]
async fn an_authorizer_that_panics_or_hangs_fails_its_request_only() {
    struct Failing;

    #[async_trait]
    impl Authorizer for Failing {
        async fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
            match (attributes.name, attributes.path) {
                ("panics", _) | (_, "/openapi/v3") => panic!("as the test wants"),
                ("hangs", _) | (_, "/metrics") => std::future::pending().await,
                ("slow", _) => tokio::time::sleep(Duration::from_secs(10)).await,
                _ => {}
            }
            Decision::Allowed
        }
    }

    let store = Store::in_step(transom_store::Options::default());
    let client = Client::with(&store, Options { authorizer: Box::new(Failing), ..Options::default() }).await;
    let started = tokio::time::Instant::now();
    let others = async {
        for path in [&*format!("{MAPS}/panics"), "/openapi/v3"] {
            let failed = client.get(path).await.expect(500).json();
            let message = failed["message"].as_str().unwrap();
            assert!(message.contains("the request handler failed unexpectedly"), "{message}");
        }
        client.post(MAPS, &config_map("slow")).await.expect(201);
        assert!(started.elapsed() < Duration::from_secs(1), "nothing waits for the authorizer that hangs");
    };
    let after = async |path: &str| {
        let reply = client.get(path).await.expect(504).json();
        assert_eq!(reply["message"], "Timeout: request did not complete within the allotted timeout");
        started.elapsed().as_secs()
    };
    let (default, shorter) = (format!("{MAPS}/hangs"), format!("{MAPS}/hangs?timeout=5s"));
    let (default, shorter, watch, path, ()) = tokio::join!(
        after(&default),
        after(&shorter),
        after("/api/v1/watch/namespaces/default/configmaps/hangs?timeout=5s"),
        after("/metrics"),
        others
    );
    assert_eq!((default, shorter, watch, path), (60, 5, 60, 60), "seconds");
    client.get(&format!("{MAPS}/slow")).await.expect(200);
    client.get(&format!("{MAPS}/slow?timeout=5s")).await.expect(504);
}

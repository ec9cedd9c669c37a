//! Admission on the real binary: webhooks that are real HTTPS servers, and policies, which outlive a restart. `loops` is about a
//! webhook whose own writes call it again.

mod loops;

use crate::scenarios::user::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Serves `answer` with a certificate of its own. Its port, and its certificate as PEM.
async fn serve() -> (u16, String) {
    let (certificate, key) = certificate();
    (serve_at("127.0.0.1:0", &certificate, &key).await, certificate)
}

/// A certificate of its own, and its key, as PEM.
fn certificate() -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let names = ["127.0.0.1".to_owned(), "hooks.default.svc".to_owned()];
    let mut params = CertificateParams::new(names).unwrap();
    // As `openssl req -x509` makes them: an authority and a server at once.
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap();
    (certificate.pem(), key.serialize_pem())
}

/// Serves `answer` at an address, with a certificate and its key as PEM. Returns the port.
pub(super) async fn serve_at(address: &str, certificate: &str, key: &str) -> u16 {
    serve_with(address, certificate, key, answer).await
}

/// The same with other answers.
async fn serve_with<A, F>(address: &str, certificate: &str, key: &str, answer: A) -> u16
where
    A: Fn(http::Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Result<http::Response<Full<Bytes>>, Infallible>> + Send + 'static,
{
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect::<Result<_, _>>().unwrap();
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap())
        .unwrap();
    let (acceptor, listener) =
        (TlsAcceptor::from(Arc::new(config)), TcpListener::bind(address).await.expect("a free port"));
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            let service = hyper::service::service_fn(answer.clone());
            let connection =
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            tokio::spawn(connection);
        }
    });
    port
}

/// Denies objects whose name begins with `bad`, annotates all others.
async fn answer(request: http::Request<Incoming>) -> Result<http::Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    let name = review["request"]["name"].as_str().unwrap_or_default().to_owned();
    let mut response = json!({"uid": review["request"]["uid"], "allowed": !name.starts_with("bad")});
    if name.starts_with("bad") {
        response["status"] = json!({"message": "no name begins with bad"});
    } else {
        let patch = json!([{"op": "add", "path": "/metadata/annotations", "value": {"seen": "yes"}}]);
        response["patchType"] = "JSONPatch".into();
        response["patch"] = STANDARD.encode(patch.to_string()).into();
    }
    let review =
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    Ok(http::Response::new(Full::new(Bytes::from(review.to_string()))))
}

fn configuration(client: &Value) -> String {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "hooks"},
        "webhooks": [{
            "name": "hooks.example.org", "sideEffects": "None", "admissionReviewVersions": ["v1"], "clientConfig": client,
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
        }],
    })
    .to_string()
}

fn map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: default}}\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_are_called_over_https() {
    let user = User::new().await;
    let (port, certificate) = serve().await;
    let bundle = STANDARD.encode(&certificate);
    user.apply(&configuration(&json!({"url": format!("https://127.0.0.1:{port}/x"), "caBundle": bundle})))
        .await;
    user.apply(&map("good")).await;
    let made = user.get(MAP, "default/good").await.unwrap();
    assert_eq!(made["metadata"]["annotations"]["seen"], "yes");
    let refusal = user.refusal(&map("bad")).await;
    assert!(
        refusal
            .contains("admission webhook \"hooks.example.org\" denied the request: no name begins with bad"),
        "{refusal}"
    );
    // An authority that did not sign the certificate.
    let (_, other) = serve().await;
    let client = json!({"url": format!("https://127.0.0.1:{port}/x"), "caBundle": STANDARD.encode(&other)});
    user.apply(&configuration(&client)).await;
    let refusal = user.refusal(&map("unsigned")).await;
    assert!(refusal.contains("failed calling webhook") && refusal.contains("tls:"), "{refusal}");
    // A Service, by its endpoints.
    user.apply("apiVersion: v1\nkind: Service\nmetadata: {name: hooks, namespace: default}\nspec: {ports: [{port: 443}]}\n").await;
    let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": "hooks", "namespace": "default", "labels": {"kubernetes.io/service-name": "hooks"}},
        "addressType": "IPv4", "endpoints": [{"addresses": ["127.0.0.1"]}], "ports": [{"port": port}]});
    user.apply(&slice.to_string()).await;
    let service = json!({"service": {"namespace": "default", "name": "hooks"}, "caBundle": bundle});
    user.apply(&configuration(&service)).await;
    user.apply(&map("served")).await;
    assert_eq!(user.get(MAP, "default/served").await.unwrap()["metadata"]["annotations"]["seen"], "yes");
}

/// docs/admission.md, whose policy refuses a claim with the sentence that the page shows.
#[tokio::test(flavor = "multi_thread")]
async fn the_policy_of_the_guide_refuses_a_claim() {
    let guide = include_str!("../../../../docs/admission.md");
    let block = |after: &str| {
        let (_, rest) = guide.split_once(after).unwrap_or_else(|| panic!("the guide has no {after:?}"));
        rest.split("```").next().unwrap()
    };
    let user = User::without_functions(&[], &[]).await;
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}});
    let xrd = json!({"apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
        "metadata": {"name": "xdatabases.example.org"}, "spec": {"group": "example.org",
            "names": {"kind": "XDatabase", "plural": "xdatabases"}, "claimNames": {"kind": "Database", "plural": "databases"},
            "versions": [{"name": "v1", "served": true, "referenceable": true, "schema": {"openAPIV3Schema": schema}}]}});
    user.apply(&xrd.to_string()).await;
    user.until_true(XRD, "xdatabases.example.org", "Offered").await;
    for object in documents(block("```yaml\n")) {
        user.apply(&object.to_string()).await;
    }
    let claim = |size: u32| {
        json!({"apiVersion": "example.org/v1", "kind": "Database", "metadata": {"name": "orders", "namespace": "default"},
            "spec": {"size": size}})
        .to_string()
    };
    let shown = block("$ kubectl apply -f database.yaml\n").trim();
    let (_, sentence) = shown.split_once("is invalid: ").expect("the refusal of kubectl");
    let refusal = user.refusal(&claim(500)).await;
    assert!(refusal.contains(sentence), "{refusal}\n{sentence}");
    user.apply(&claim(100)).await;
}

/// What a new user does first: a policy that refuses a composite resource with a sentence of its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_policy_outlives_a_restart() {
    let mut user = User::new().await;
    user.apply(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: named}\nspec:\n  \
         matchConstraints:\n    resourceRules:\n    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}\n  \
         validations:\n  - {expression: \"!object.metadata.name.startsWith('bad')\", message: choose another name}\n",
    )
    .await;
    user.apply(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: named}\n\
         spec: {policyName: named, validationActions: [Deny]}\n",
    )
    .await;
    for _ in 0..2 {
        let refusal = user.refusal(&map("bad")).await;
        assert!(refusal.contains("denied request: choose another name"), "{refusal}");
        user.restart(&[]).await;
    }
    user.apply(&map("good")).await;
}

//! Tokens of an OpenID Connect issuer, which changes its keys.

use super::{CONFIG_MAPS, refused};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use transom_testkit::process::{Client, Home, Plane, wait_until};

struct SigningKey(EcdsaKeyPair);

impl SigningKey {
    fn new() -> Self {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        Self(EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random).unwrap())
    }

    fn document(&self, id: &str) -> Value {
        let point = self.0.public_key().as_ref();
        let (x, y) = (URL_SAFE_NO_PAD.encode(&point[1..33]), URL_SAFE_NO_PAD.encode(&point[33..]));
        json!({"keys": [{"kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": id}]})
    }

    fn token(&self, id: &str, claims: &Value) -> String {
        let encoded = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", encoded(&json!({"alg": "ES256", "kid": id})), encoded(claims));
        let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
    }
}

/// An issuer on a loopback address. Returns its URL, its certificate, and its keys, which can be changed.
async fn issuer(first: Value) -> (String, String, Arc<Mutex<Value>>) {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
    let certificate = CertificateDer::from(certified.cert.der().to_vec());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let keys = Arc::new(Mutex::new(first));
    let (served, address) = (keys.clone(), url.clone());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                match stream.read_u8().await {
                    Ok(byte) => head.push(byte),
                    Err(_) => break,
                }
            }
            let body = if head.starts_with(b"GET /keys ") {
                served.lock().unwrap().to_string()
            } else {
                json!({"issuer": address, "jwks_uri": format!("{address}/keys")}).to_string()
            };
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    (url, certified.cert.pem(), keys)
}

fn configuration(url: &str, certificate: &str) -> String {
    let config = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
        "jwt": [{
            "issuer": {"url": url, "audiences": ["transom"], "certificateAuthority": certificate},
            "claimValidationRules": [{"expression": "claims.hd == 'example.org'", "message": "another organization"}],
            "claimMappings": {"username": {"expression": "'oidc:' + claims.sub"}, "groups": {"claim": "groups", "prefix": "oidc:"}},
        }],
    });
    transom_object::yaml::write(&config)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_an_issuer_is_a_user_also_after_its_keys_changed() {
    let (one, two) = (SigningKey::new(), SigningKey::new());
    let (url, certificate, keys) = issuer(one.document("one")).await;
    let home = Home::new();
    let file = home.root().join("authentication.yaml");
    std::fs::write(&file, configuration(&url, &certificate)).unwrap();
    let plane = Plane::start_with(&home, &["--authentication-config", file.to_str().unwrap()]);
    let admin = plane.client().await;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "devs"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "oidc:devs"}],
    });
    let bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
    assert_eq!(admin.post(bindings, &binding).await.unwrap().status, 201, "the binding");
    let claims = |more: Value| {
        let mut claims = json!({"iss": url, "aud": "transom", "sub": "jane", "hd": "example.org", "exp": 4_000_000_000_u64, "groups": ["devs"]});
        claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        claims
    };
    let status = async |token: &str| {
        let client = Client::connect(&plane.access.with_token(token)).await.unwrap();
        client.get(CONFIG_MAPS).await.unwrap().status
    };
    assert_eq!(status(&one.token("one", &claims(json!({})))).await, 200);
    assert_eq!(status(&one.token("one", &claims(json!({"groups": []})))).await, 403, "known, without rights");
    for (more, why) in [
        (json!({"exp": 1_000}), "expired"),
        (json!({"nbf": 4_000_000_000_u64}), "not valid yet"),
        (json!({"aud": "other"}), "another audience"),
        (json!({"iss": "https://localhost:1"}), "another issuer"),
        (json!({"hd": "other.org"}), "a rule"),
    ] {
        assert_eq!(status(&one.token("one", &claims(more))).await, 401, "{why}");
    }
    assert_eq!(status(&two.token("one", &claims(json!({})))).await, 401, "another key");
    *keys.lock().unwrap() = two.document("two");
    wait_until("the new key is known", async || status(&two.token("two", &claims(json!({})))).await == 200)
        .await;
    assert_eq!(status(&one.token("one", &claims(json!({})))).await, 401, "the old key is gone");
    home.assert_no_panic();
}

#[test]
fn a_configuration_that_cannot_be_used_prevents_the_start() {
    let home = Home::new();
    let file = home.root().join("authentication.yaml");
    std::fs::write(&file, configuration("http://issuer.example.org", "")).unwrap();
    let why = refused(&home, &["--authentication-config", file.to_str().unwrap()]);
    assert!(why.contains("jwt[0].issuer.url: must be a URL that begins with https://"), "{why}");
}

//! Tokens of service accounts that are signed by the plane's own key and must not be accepted all the same.

use super::{CONFIG_MAPS, Target};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use transom_testkit::process::{Client, Home, Plane};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const HOUR_SECONDS: i64 = 3600;

/// The key of a plane, read from its data directory.
struct PlaneKey(EcdsaKeyPair);

impl PlaneKey {
    fn of(data: &Path) -> Self {
        let key = std::fs::read(data.join("pki/tokens.key")).unwrap();
        Self(EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key, &SystemRandom::new()).unwrap())
    }

    fn sign(&self, claims: &Value) -> String {
        let encoded = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", encoded(&json!({"alg": "ES256", "typ": "JWT"})), encoded(claims));
        let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
    }
}

/// A token for the service account `bot`, which may read ConfigMaps, and its claims.
async fn token(admin: &Client) -> (String, Value) {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "bot"}});
    assert_eq!(admin.post(ACCOUNTS, &account).await.unwrap().status, 201, "the account");
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "bot"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "bot", "namespace": "default"}]});
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    assert_eq!(admin.post(bindings, &binding).await.unwrap().status, 201, "the binding");
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let reply = admin.post(&format!("{ACCOUNTS}/bot/token"), &request).await.unwrap();
    assert_eq!(reply.status, 201, "the token");
    let token = reply.json()["status"]["token"].as_str().unwrap().to_owned();
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap();
    (token, serde_json::from_slice(&claims).unwrap())
}

async fn status(plane: &Plane, token: &str) -> u16 {
    let client = Client::connect(&plane.access.with_token(token)).await.unwrap();
    client.get(CONFIG_MAPS).await.unwrap().status
}

#[tokio::test]
async fn tokens_that_have_expired_or_are_not_valid_yet_are_refused() {
    let home = Home::new();
    let plane = Plane::start(&home);
    let admin = plane.client().await;
    let (token, claims) = token(&admin).await;
    assert_eq!(status(&plane, &token).await, 200, "the token itself");
    let key = PlaneKey::of(&home.data());
    assert_eq!(status(&plane, &key.sign(&claims)).await, 200, "the test signs as the plane does");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs().cast_signed();
    let with = |changes: &[(&str, Value)]| {
        let mut claims = claims.clone();
        for (claim, value) in changes {
            claims[*claim] = value.clone();
        }
        key.sign(&claims)
    };
    let forged = [
        ("expired", with(&[("exp", json!(now - HOUR_SECONDS))])),
        ("expired in this second", with(&[("exp", json!(now))])),
        ("not valid yet", with(&[("nbf", json!(now + HOUR_SECONDS))])),
        ("without an end", with(&[("exp", Value::Null)])),
        ("without a beginning", with(&[("nbf", Value::Null)])),
        ("with an end that is no number", with(&[("exp", json!("4000000000"))])),
        ("for another server", with(&[("aud", json!(["https://elsewhere"]))])),
        ("of another issuer", with(&[("iss", json!("https://elsewhere"))])),
    ];
    for (what, token) in &forged {
        assert_eq!(status(&plane, token).await, 401, "{what}");
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
        let reviewed = admin.post(REVIEWS, &review).await.unwrap().json();
        assert_eq!(reviewed["status"].get("authenticated"), None, "{what}: {reviewed}");
    }
    home.assert_no_panic();
}

#[tokio::test]
async fn a_token_of_another_plane_is_refused() {
    let target = Target::start().await;
    let home = Home::new();
    let other = Plane::start(&home);
    let (token, _) = token(&other.client().await).await;
    assert_eq!(status(&other, &token).await, 200, "its own plane");
    assert_eq!(status(&target.plane, &token).await, 401, "another plane");
    target.assert_intact().await;
}

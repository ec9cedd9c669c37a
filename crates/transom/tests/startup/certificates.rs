//! Certificates for people: requested, approved, signed, and good for what bindings give to their names and nothing else.

use super::{CONFIG_MAPS, config_map};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};
use transom_testkit::process::{Client, Home, Plane, wait_until};

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";

fn request(name: &str, user: &str, group: &str, key: &KeyPair) -> Value {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, group);
    params.distinguished_name.push(DnType::CommonName, user);
    let pem = params.serialize_request(key).unwrap().pem().unwrap();
    json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name},
        "spec": {"request": STANDARD.encode(pem), "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["client auth"], "expirationSeconds": 3600}})
}

async fn approve(admin: &Client, name: &str) {
    let approved = json!({"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "KubectlApprove"}]}});
    let reply = admin.merge(&format!("{REQUESTS}/{name}/approval"), &approved).await.unwrap();
    assert_eq!(reply.status, 200, "{}", reply.text());
}

/// The certificate of an approved request, in PEM.
async fn issued(admin: &Client, name: &str) -> Vec<u8> {
    let path = format!("{REQUESTS}/{name}");
    let mut certificate = String::new();
    wait_until("the certificate is issued", async || {
        let request = admin.get(&path).await.unwrap().json();
        request["status"]["certificate"].as_str().unwrap_or_default().clone_into(&mut certificate);
        !certificate.is_empty()
    })
    .await;
    STANDARD.decode(certificate).unwrap()
}

#[tokio::test]
async fn an_approved_certificate_lets_its_user_in_with_the_rights_of_its_bindings() {
    let home = Home::new();
    let plane = Plane::start(&home);
    let admin = plane.client().await;
    assert_eq!(admin.post(CONFIG_MAPS, &config_map("a")).await.unwrap().status, 201, "a");
    let key = KeyPair::generate().unwrap();
    let asked = admin.post(REQUESTS, &request("jane", "jane", "developers", &key)).await.unwrap();
    assert_eq!(asked.status, 201, "{}", asked.text());
    let masters = request("root", "jane", "system:masters", &key);
    admin.post(REQUESTS, &masters).await.unwrap().assert_status(403, "a member of system:masters");
    approve(&admin, "jane").await;
    let certificate = issued(&admin, "jane").await;
    let access = plane.access.with_certificate(&certificate, key.serialize_pem().as_bytes());
    let jane = Client::connect(&access).await.unwrap();
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let me = jane.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &review).await.unwrap().json();
    assert_eq!(me["status"]["userInfo"]["username"], "jane");
    assert_eq!(me["status"]["userInfo"]["groups"], json!(["developers", "system:authenticated"]));
    jane.get(CONFIG_MAPS).await.unwrap().assert_status(403, "no rights come with the certificate");
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "developers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "developers"}]});
    assert_eq!(admin.post(BINDINGS, &binding).await.unwrap().status, 201, "the binding");
    assert_eq!(jane.get(CONFIG_MAPS).await.unwrap().status, 200, "the binding counts");
    jane.post(CONFIG_MAPS, &config_map("b")).await.unwrap().assert_status(403, "view does not write");
    jane.get("/api/v1/configmaps").await.unwrap().assert_status(403, "all namespaces");
    // She cannot help herself to another certificate.
    jane.post(REQUESTS, &request("more", "root", "operators", &key))
        .await
        .unwrap()
        .assert_status(403, "more");
    drop(plane);
    home.assert_no_panic();
}

//! CertificateSigningRequests: whose they are, who decides and signs, and what could be tried to get a certificate without a
//! right to it.

mod signing;

use crate::client::{Client, Reply};
use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair};
use serde_json::{Value, json};
use transom_apiserver::{Identity, Options};
use transom_store::Store;

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const CLIENTS: &str = "kubernetes.io/kube-apiserver-client";
const OTHERS: &str = "example.org/others";

fn base64(text: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(text)
}

/// A certificate in PEM.
fn certificate() -> String {
    let key = KeyPair::generate().unwrap();
    CertificateParams::default().self_signed(&key).unwrap().pem()
}

fn pkcs10(user: &str, group: &str) -> String {
    with_subject([(DnType::OrganizationName, group.into()), (DnType::CommonName, user.into())])
}

fn with_subject(names: impl IntoIterator<Item = (DnType, DnValue)>) -> String {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    for (kind, name) in names {
        params.distinguished_name.push(kind, name);
    }
    params.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap()
}

fn request(name: &str, signer: &str) -> Value {
    json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name},
        "spec": {"request": base64(&pkcs10("jane", "developers")), "signerName": signer, "usages": ["client auth"]}})
}

fn condition(kind: &str) -> Value {
    json!({"type": kind, "status": "True", "reason": "Test", "message": "by a test"})
}

async fn server() -> Client {
    let store = Store::in_memory(transom_store::Options::default());
    Client::with(&store, Options { rbac: true, ..Options::default() }).await
}

fn user(client: &Client, name: &str) -> Client {
    let mut identity = Identity::new(name, ["people".to_owned()]);
    identity.uid = format!("uid-of-{name}");
    identity.extra.insert("example.org/team".into(), vec!["a".into(), "b".into()]);
    client.seen_by(Some(identity))
}

/// Gives a user a rule in all namespaces.
async fn grant(admin: &Client, to: &str, name: &str, rule: Value) {
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": [rule]});
    admin.post(&format!("{RBAC}/clusterroles"), &role).await.expect(201);
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": to}]});
    admin.post(&format!("{RBAC}/clusterrolebindings"), &binding).await.expect(201);
}

fn on_requests(resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": ["certificates.k8s.io"], "resources": resources, "verbs": verbs})
}

fn on_signers(names: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": ["certificates.k8s.io"], "resources": ["signers"], "resourceNames": names, "verbs": verbs})
}

/// Everything on the endpoints, and nothing on signers.
async fn with_endpoints(admin: &Client, name: &str) -> Client {
    grant(
        admin,
        name,
        &format!("{name}-endpoints"),
        on_requests(
            &[
                "certificatesigningrequests",
                "certificatesigningrequests/approval",
                "certificatesigningrequests/status",
            ],
            &["*"],
        ),
    )
    .await;
    user(admin, name)
}

fn message(reply: &Reply) -> String {
    reply.json()["message"].as_str().unwrap_or_default().to_owned()
}

async fn decide(client: &Client, name: &str, kind: &str) -> Reply {
    client
        .merge(&format!("{REQUESTS}/{name}/approval"), &json!({"status": {"conditions": [condition(kind)]}}))
        .await
}

#[tokio::test]
async fn a_request_is_its_creators_whatever_the_body_says() {
    let admin = server().await;
    let jane = with_endpoints(&admin, "jane").await;
    let mut forged = request("a", OTHERS);
    forged["spec"]["username"] = json!("system:admin");
    forged["spec"]["groups"] = json!(["system:masters"]);
    forged["spec"]["uid"] = json!("0");
    forged["spec"]["extra"] = json!({"x": ["y"]});
    forged["status"] = json!({"conditions": [condition("Approved")], "certificate": base64(&certificate())});
    let made = jane.post(REQUESTS, &forged).await.expect(201).json();
    assert_eq!(made["spec"]["username"], "jane");
    assert_eq!(made["spec"]["uid"], "uid-of-jane");
    assert_eq!(made["spec"]["groups"], json!(["people", "system:authenticated"]));
    assert_eq!(made["spec"]["extra"], json!({"example.org/team": ["a", "b"]}));
    assert_eq!(made["status"], json!({}));
    for (method, path) in [("main", ""), ("status", "/status"), ("approval", "/approval")] {
        let at = format!("{REQUESTS}/a{path}");
        let change =
            json!({"spec": {"username": "root", "groups": ["system:masters"], "signerName": CLIENTS}});
        // Nothing else differs, so that no right on the signer is needed; `approval` always needs it.
        let reply = admin.merge(&at, &change).await.expect(200).json();
        assert_eq!(reply["spec"], made["spec"], "{method}");
    }
    let mut replaced = made.clone();
    replaced["spec"]["extra"] = Value::Null;
    replaced["spec"]["request"] = json!(base64(&pkcs10("root", "system:masters")));
    let reply = jane.put(&format!("{REQUESTS}/a"), &replaced).await.expect(200).json();
    assert_eq!(reply["spec"], made["spec"]);
}

#[tokio::test]
async fn approval_and_status_change_only_what_is_theirs() {
    let admin = server().await;
    admin.post(REQUESTS, &request("a", OTHERS)).await.expect(201);
    let at = format!("{REQUESTS}/a");
    let issued = json!({"status": {"certificate": base64(&certificate())}});
    let of_main = admin.merge(&at, &json!({"status": {"conditions": [condition("Approved")]}})).await;
    assert_eq!(
        of_main.expect(200).json()["status"],
        json!({}),
        "the object itself does not write the status"
    );
    let refused = admin
        .merge(&format!("{at}/status"), &json!({"status": {"conditions": [condition("Approved")]}}))
        .await
        .expect(422);
    assert!(message(&refused).contains("updates may not add a condition of type \"Approved\""));
    let approval = admin.merge(&format!("{at}/approval"), &issued).await.expect(200).json();
    assert!(approval["status"].get("certificate").is_none(), "approval does not write certificates");
    let approved = decide(&admin, "a", "Approved").await.expect(200).json();
    let decision = &approved["status"]["conditions"][0];
    assert!(decision["lastUpdateTime"].is_string() && decision["lastTransitionTime"].is_string());
    let signed = admin.merge(&format!("{at}/status"), &issued).await.expect(200).json();
    assert_eq!(signed["status"]["certificate"], issued["status"]["certificate"]);
    let changed = json!({"status": {"certificate": base64(&certificate())}});
    let refused = admin.merge(&format!("{at}/status"), &changed).await.expect(422);
    assert!(message(&refused).contains("updates may not modify existing certificate content"));
    let kept =
        json!({"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "Forged"}]}});
    let kept = admin.merge(&format!("{at}/status"), &kept).await.expect(200).json();
    assert_eq!(kept["status"]["conditions"][0], *decision, "status keeps the decision");
}

#[tokio::test]
async fn a_decision_is_final() {
    let admin = server().await;
    for (name, first, second) in [("a", "Approved", "Denied"), ("b", "Denied", "Approved")] {
        admin.post(REQUESTS, &request(name, OTHERS)).await.expect(201);
        decide(&admin, name, first).await.expect(200);
        let replaced = decide(&admin, name, second).await.expect(422);
        let why = format!("updates may not remove a condition of type {first:?}");
        assert!(message(&replaced).contains(&why), "{}", message(&replaced));
        let both = json!({"status": {"conditions": [condition(first), condition(second)]}});
        let both = admin.merge(&format!("{REQUESTS}/{name}/approval"), &both).await.expect(422);
        assert!(message(&both).contains("Approved and Denied conditions are mutually exclusive"));
        let live = admin.get(&format!("{REQUESTS}/{name}")).await.json();
        assert_eq!(live["status"]["conditions"].as_array().unwrap().len(), 1);
        assert_eq!(live["status"]["conditions"][0]["type"], first);
    }
    let mut lie = condition("Approved");
    lie["status"] = json!("False");
    admin.post(REQUESTS, &request("c", OTHERS)).await.expect(201);
    let lie = json!({"status": {"conditions": [lie]}});
    let refused = admin.merge(&format!("{REQUESTS}/c/approval"), &lie).await.expect(422);
    assert!(message(&refused).contains("Unsupported value: \"False\": supported values: \"True\""));
}

#[tokio::test]
async fn approving_needs_a_right_on_the_signer() {
    let admin = server().await;
    let jane = with_endpoints(&admin, "jane").await;
    for (name, signer) in [("a", OTHERS), ("b", CLIENTS), ("c", "example.com/others")] {
        admin.post(REQUESTS, &request(name, signer)).await.expect(201);
        let refused = decide(&jane, name, "Approved").await.expect(403);
        let why = format!("user not permitted to approve requests with signerName {signer:?}");
        assert!(message(&refused).ends_with(&why), "{}", message(&refused));
        decide(&jane, name, "Denied").await.expect(403);
    }
    // The right to sign is not the right to approve, and names of signers are not prefixes.
    grant(&admin, "jane", "signs", on_signers(&[OTHERS], &["sign", "attest"])).await;
    grant(&admin, "jane", "near", on_signers(&["example.org/other", "example.org", "*"], &["approve"])).await;
    decide(&jane, "a", "Approved").await.expect(403);
    // Another signer's name in the same request does not help.
    let both = json!({"spec": {"signerName": "example.org/other"}, "status": {"conditions": [condition("Approved")]}});
    jane.merge(&format!("{REQUESTS}/a/approval"), &both).await.expect(403);
    grant(&admin, "jane", "domain", on_signers(&["example.org/*"], &["approve"])).await;
    decide(&jane, "a", "Approved").await.expect(200);
    decide(&jane, "b", "Approved").await.expect(403);
    decide(&jane, "c", "Approved").await.expect(403);
    grant(&admin, "jane", "exactly", on_signers(&[CLIENTS], &["approve"])).await;
    decide(&jane, "b", "Approved").await.expect(200);
    // The right on the signer alone opens no endpoint.
    grant(&admin, "joe", "joe", on_signers(&[OTHERS], &["approve"])).await;
    admin.post(REQUESTS, &request("d", OTHERS)).await.expect(201);
    decide(&user(&admin, "joe"), "d", "Approved").await.expect(403);
}

#[tokio::test]
async fn signing_needs_a_right_on_the_signer() {
    let admin = server().await;
    let jane = with_endpoints(&admin, "jane").await;
    grant(&admin, "jane", "approves", on_signers(&[OTHERS], &["approve"])).await;
    admin.post(REQUESTS, &request("a", OTHERS)).await.expect(201);
    let at = format!("{REQUESTS}/a/status");
    let issued = json!({"status": {"certificate": base64(&certificate())}});
    let refused = jane.merge(&at, &issued).await.expect(403);
    let why = format!("user not permitted to sign requests with signerName {OTHERS:?}");
    assert!(message(&refused).ends_with(&why), "{}", message(&refused));
    let failed = json!({"status": {"conditions": [condition("Failed")]}});
    jane.merge(&at, &failed).await.expect(403);
    jane.merge(&at, &json!({"metadata": {"labels": {"a": "b"}}})).await.expect(200);
    grant(&admin, "jane", "signs", on_signers(&["example.org/*"], &["sign"])).await;
    let wrong = json!({"status": {"certificate": base64("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")}});
    let refused = jane.merge(&at, &wrong).await.expect(422);
    assert!(message(&refused).contains("only CERTIFICATE PEM blocks are allowed, found \"PRIVATE KEY\""));
    let wrong = jane.merge(&at, &json!({"status": {"certificate": base64("no PEM")}})).await.expect(422);
    assert!(message(&wrong).contains("must contain at least one CERTIFICATE PEM block"));
    jane.merge(&at, &issued).await.expect(200);
}

#[tokio::test]
async fn a_certificate_of_the_masters_cannot_be_requested() {
    let admin = server().await;
    let mut masters = request("a", CLIENTS);
    masters["spec"]["request"] = json!(base64(&pkcs10("jane", "system:masters")));
    let refused = admin.post(REQUESTS, &masters).await.expect(403);
    let why = "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed";
    assert!(message(&refused).ends_with(why), "{}", message(&refused));
    admin.post(&format!("{REQUESTS}?dryRun=All"), &masters).await.expect(403);
    // Other signers decide about their subjects themselves.
    masters["spec"]["signerName"] = json!(OTHERS);
    admin.post(REQUESTS, &masters).await.expect(201);
    admin.merge(&format!("{REQUESTS}/a"), &json!({"spec": {"signerName": CLIENTS}})).await.expect(200);
    let live = admin.get(&format!("{REQUESTS}/a")).await.json();
    assert_eq!(live["spec"]["signerName"], OTHERS);
}

#[tokio::test]
async fn requests_that_cannot_work_are_refused() {
    let admin = server().await;
    let made = pkcs10("jane", "developers");
    let mut lines: Vec<String> = made.lines().map(str::to_owned).collect();
    // The end is the signature.
    let last = lines.len() - 2;
    lines[last] = if lines[last].starts_with('A') { "B" } else { "A" }.to_owned() + &lines[last][1..];
    let unsigned = lines.join("\n") + "\n";
    for (field, value, why) in [
        ("request", json!(base64("no PEM")), "PEM block type must be CERTIFICATE REQUEST"),
        ("request", json!(base64(&certificate())), "PEM block type must be CERTIFICATE REQUEST"),
        ("request", json!(base64(&unsigned)), "x509: ECDSA verification failure"),
        ("usages", json!([]), "spec.usages: Required value"),
        ("usages", json!(["client auth", "client auth"]), "spec.usages[1]: Duplicate value: \"client auth\""),
        ("usages", json!(["flying"]), "spec.usages[0]: Unsupported value: \"flying\""),
        ("signerName", json!(""), "spec.signerName: Required value"),
        ("signerName", json!("single"), "must be a fully qualified domain and path"),
        ("signerName", json!("local/x"), "should be a domain with at least two segments separated by dots"),
        ("signerName", json!("kubernetes.io/legacy-unknown"), "the legacy signerName is not allowed"),
        ("expirationSeconds", json!(599), "may not specify a duration less than 600 seconds (10 minutes)"),
    ] {
        let mut wrong = request("a", OTHERS);
        wrong["spec"][field] = value;
        let reply = admin.post(REQUESTS, &wrong).await.expect(422);
        assert!(message(&reply).contains(why), "{field}: {}", message(&reply));
    }
    let mut named = request("Any Name: is fine", OTHERS);
    named["spec"]["expirationSeconds"] = json!(600);
    admin.post(REQUESTS, &named).await.expect(201);
}

#[tokio::test]
async fn requests_are_found_described_and_printed() {
    let admin = server().await;
    admin.post(REQUESTS, &request("a", OTHERS)).await.expect(201);
    admin.post(REQUESTS, &request("b", CLIENTS)).await.expect(201);
    decide(&admin, "b", "Denied").await.expect(200);
    let list =
        admin.get(&format!("{REQUESTS}?fieldSelector=spec.signerName%3Dexample.org/others")).await.json();
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    let resources = admin.get("/apis/certificates.k8s.io/v1").await.json();
    let names: Vec<&str> =
        resources["resources"].as_array().unwrap().iter().map(|r| r["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "certificatesigningrequests",
            "certificatesigningrequests/approval",
            "certificatesigningrequests/status"
        ]
    );
    assert_eq!(resources["resources"][0]["shortNames"], json!(["csr"]));
    assert_eq!(resources["resources"][1]["verbs"], json!(["get", "patch", "update"]));
    let table = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io".to_owned())];
    let table =
        admin.send_with(http::Method::GET, &format!("{REQUESTS}/b"), &table, &Value::Null).await.json();
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    assert_eq!(cells[2..], [json!(CLIENTS), json!("admin"), json!("<none>"), json!("Denied")]);
}

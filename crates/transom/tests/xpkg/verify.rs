//! Signatures: the command that verifies them, and a control plane that installs what is signed and nothing else.

#[path = "../../../oci/tests/sigstore.rs"]
#[expect(dead_code, reason = "the tests of the crate need more of it")]
mod sigstore;

use self::sigstore::{ISSUER, Leaf, SIGNED_AT, SUBJECT, Sigstore, hex, sha256};
use super::{COMPOSITION, Folder, META};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{KeyPair, SigningKey};
use serde_json::{Value, json};
use transom_oci::testing::{Fault, Image, Server};
use transom_packages::Digest;
use transom_testkit::process::{Home, Plane, wait_until};

const SIMPLE: &str = "application/vnd.dev.cosign.simplesigning.v1+json";

/// Signs an image of the repository `acme/package` as cosign does.
pub(crate) fn sign(server: &Server, digest: &str, key: &KeyPair) {
    let payload = payload(digest);
    let signature = STANDARD.encode(key.sign(payload.as_bytes()).unwrap());
    store_signature(server, digest, payload, json!({"dev.cosignproject.cosign/signature": signature}));
}

/// The same without a key of one's own: by a certificate of a Sigstore instance, and in its log.
fn sign_keyless(server: &Server, digest: &str, sigstore: &Sigstore) {
    let payload = payload(digest);
    let certified = sigstore.issue(&Leaf::default());
    let signature = STANDARD.encode(certified.key.sign(payload.as_bytes()).unwrap());
    let certificate = STANDARD.encode(certified.pem());
    let body = json!({"apiVersion": "0.0.1", "kind": "hashedrekord", "spec": {
        "data": {"hash": {"algorithm": "sha256", "value": hex(sha256(&payload))}},
        "signature": {"content": signature, "publicKey": {"content": certificate}},
    }});
    let annotations = json!({
        "dev.cosignproject.cosign/signature": signature,
        "dev.sigstore.cosign/certificate": certified.pem(),
        "dev.sigstore.cosign/bundle": sigstore.entry(&body, SIGNED_AT + 60).to_string(),
    });
    store_signature(server, digest, payload, annotations);
}

fn payload(digest: &str) -> String {
    json!({"critical": {"image": {"docker-manifest-digest": digest}}}).to_string()
}

fn store_signature(server: &Server, digest: &str, payload: String, annotations: Value) {
    let config = "{}".to_owned();
    let descriptor = |media_type: &str, content: &str| json!({"mediaType": media_type, "size": content.len(), "digest": Digest::of(content.as_bytes()).as_str()});
    let mut layer = descriptor(SIMPLE, &payload);
    layer["annotations"] = annotations;
    let manifest = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("application/vnd.oci.image.config.v1+json", &config), "layers": [layer],
    });
    let blobs = vec![payload.into_bytes(), config.into_bytes()];
    let image = Image { manifest: manifest.to_string().into_bytes(), blobs };
    server.store(&format!("{}.sig", digest.replace(':', "-")), &image);
}

/// A package in a registry: its reference and digest.
fn pushed(folder: &Folder, server: &Server, tag: &str, files: &[(&str, &str)]) -> (String, String) {
    folder.build(tag, files);
    let reference = server.reference(tag).to_string();
    let digest = folder.ok(&["push", &reference, "-f", &format!("{tag}.xpkg")]);
    (reference, digest)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_is_verified_by_a_key_from_the_command_line() {
    let (server, folder) = (Server::start().await, Folder::new());
    let (key, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    folder.write("cosign.pub", &key.public_key_pem()).write("other.pub", &other.public_key_pem());
    let (reference, digest) = pushed(&folder, &server, "v1", &[("crossplane.yaml", META)]);
    let verify = |file: &str| folder.error(&["verify", &reference, "--key", file], 1);
    assert!(verify("cosign.pub").contains("no signature of it was found"));
    sign(&server, &digest, &key);
    let verified = folder.ok(&["verify", &reference, "--key", "cosign.pub"]);
    assert_eq!(verified, format!("{}/acme/package@{digest}", server.host));
    assert!(verify("other.pub").contains("a signature is not by its key"));
    assert!(verify("absent.pub").contains("cannot read absent.pub"));
    folder.write("bad.pub", "no key");
    assert!(verify("bad.pub").contains("it must be a PUBLIC KEY in PEM"));
    let attested = ["verify", &reference, "--key", "cosign.pub", "--type", "slsaprovenance1"];
    assert!(folder.error(&attested, 1).contains("no attestation of it was found"));
    folder.write("root.json", "{}");
    let keyless = |file: &str| folder.error(&["verify", &reference, "--trusted-root", file], 1);
    assert!(keyless("absent.json").contains("there is no file absent.json"));
    assert!(keyless("root.json").contains("root.json: the Sigstore trust root cannot be used"));
    // Without the flag, it is that of the public instance, where cosign keeps it.
    let public =
        ["verify", &reference, "--certificate-identity", "me", "--certificate-oidc-issuer", "https://a"];
    assert!(folder.error(&public, 1).contains("run `cosign initialize`"));
    let kept = ".sigstore/root/tuf-repo-cdn.sigstore.dev/targets/trusted_root.json";
    folder.write(kept, "{}");
    let error = folder.error(&public, 1);
    assert!(error.contains(kept) && error.contains("the Sigstore trust root cannot be used"), "{error}");
    let sigstore = Sigstore::new();
    folder.write(kept, &sigstore.trust_root().to_string());
    assert!(folder.error(&public, 1).contains("is not verified"), "it is signed by a key alone");
    sign_keyless(&server, &digest, &sigstore);
    let by = |who: &str| {
        let who = ["--certificate-identity", who, "--certificate-oidc-issuer", ISSUER];
        folder.run(&[&["verify", &reference], &who[..]].concat())
    };
    let verified = by(SUBJECT);
    assert_eq!(verified.status.code(), Some(0), "{}", String::from_utf8_lossy(&verified.stderr));
    assert_eq!(by("someone@example.org").status.code(), Some(1));
    sign(&server, &digest, &key);
    folder.ok(&["verify", &reference, "--key", "cosign.pub", "-o", "json"]);
    folder.error(&["verify", &reference], 80);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plane_installs_what_is_signed_and_nothing_else() {
    let (server, folder, home) = (Server::start().await, Folder::new(), Home::new());
    let key = KeyPair::generate().unwrap();
    let (signed, digest) = pushed(&folder, &server, "v1", &[("crossplane.yaml", META)]);
    sign(&server, &digest, &key);
    let unsigned_files = [("crossplane.yaml", META), ("c.yaml", COMPOSITION)];
    let (unsigned, unsigned_digest) = pushed(&folder, &server, "v2", &unsigned_files);
    let plane = Plane::start_with(&home, &["--with-controllers", "--enable-signature-verification"]);
    let client = plane.client().await;
    let configurations = "/apis/pkg.crossplane.io/v1/configurations";
    wait_until("Configurations are served", async || client.get(configurations).await.is_ok_and(|r| r.ok()))
        .await;
    let post = async |path: &str, value: serde_json::Value| {
        let reply = client.post(path, &value).await.unwrap();
        assert!(reply.ok(), "{path}: {}", reply.json());
    };
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "crossplane-system"}});
    client.post("/api/v1/namespaces", &namespace).await.unwrap();
    let pem = STANDARD.encode(key.public_key_pem());
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "k"}, "data": {"cosign.pub": pem}});
    post("/api/v1/namespaces/crossplane-system/secrets", secret).await;
    let by_key = json!({"name": "team", "key": {"secretRef": {"name": "k", "key": "cosign.pub"}, "hashAlgorithm": "sha256"}});
    let config = json!({
        "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "ImageConfig", "metadata": {"name": "signed"},
        "spec": {
            "matchImages": [{"type": "Prefix", "prefix": server.host}],
            "verification": {"provider": "Cosign", "cosign": {"authorities": [by_key]}},
        },
    });
    post("/apis/pkg.crossplane.io/v1beta1/imageconfigs", config).await;
    let package = |name: &str, package: &str| {
        json!({"apiVersion": "pkg.crossplane.io/v1", "kind": "Configuration", "metadata": {"name": name},
               "spec": {"package": package}})
    };
    post(configurations, package("signed", &signed)).await;
    post(configurations, package("unsigned", &unsigned)).await;
    let condition = async |name: &str, status: &str, message: &str| {
        let object = client.get(&format!("{configurations}/{name}")).await.unwrap().json();
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|c| {
            c["type"] == "Installed"
                && c["status"] == status
                && c["message"].as_str().unwrap_or_default().contains(message)
        })
    };
    wait_until("it is installed", async || condition("signed", "True", "").await).await;
    let reason = "authority \"team\": no signature of it was found";
    wait_until("it is refused", async || condition("unsigned", "False", reason).await).await;
    // A tag that moves: the digest that it had first is verified, and that very image is used.
    folder.ok(&["push", &server.reference("moved").to_string(), "-f", "v2.xpkg"]);
    server.fault("HEAD /v2/acme/package/manifests/moved", Fault::NamesDigest(digest.clone()), Some(1));
    post(configurations, package("moved", &server.reference("moved").to_string())).await;
    wait_until("it is installed", async || condition("moved", "True", "").await).await;
    folder.ok(&["push", &server.reference("swapped").to_string(), "-f", "v1.xpkg"]);
    server.fault("HEAD /v2/acme/package/manifests/swapped", Fault::NamesDigest(unsigned_digest), None);
    post(configurations, package("swapped", &server.reference("swapped").to_string())).await;
    wait_until("it is refused", async || condition("swapped", "False", reason).await).await;
    let brought = client.get("/apis/apiextensions.crossplane.io/v1/compositions/apps").await.unwrap();
    assert!(!brought.ok(), "{}", brought.json());
}

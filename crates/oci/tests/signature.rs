//! Signatures and attestations by keys.

use crate::images::{CONFIG, image};
use base64::Engine as _;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair};
use transom_oci::signature::{HashAlgorithm, PublicKey, SignedKind, find};
use transom_oci::testing::{Server, client};
use transom_packages::Digest;

const PAYLOAD: &str = r#"{"critical":{"type":"cosign container image signature"}}"#;

fn base64(bytes: impl AsRef<[u8]>) -> String {
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

type Sign = Box<dyn Fn(&[u8]) -> Vec<u8>>;

/// A signer, and its public key in PEM.
struct Signer {
    pem: String,
    sign: Sign,
}

fn ecdsa() -> Signer {
    let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let (pem, random) = (pair.public_key_pem(), SystemRandom::new());
    let key =
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &pair.serialize_der(), &random).unwrap();
    Signer {
        pem,
        sign: Box::new(move |message| key.sign(&SystemRandom::new(), message).unwrap().as_ref().to_vec()),
    }
}

fn ed25519() -> Signer {
    let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&pair.serialize_der()).unwrap();
    Signer { pem: pair.public_key_pem(), sign: Box::new(move |message| key.sign(message).as_ref().to_vec()) }
}

/// Stores an image whose layers are of a media type, each with annotations.
pub(crate) fn store(server: &Server, tag: &str, media_type: &str, layers: &[(String, serde_json::Value)]) {
    let blobs: Vec<Vec<u8>> = layers.iter().map(|(content, _)| content.as_bytes().to_vec()).collect();
    let mut image = image(CONFIG, &blobs, false);
    let mut manifest: serde_json::Value = serde_json::from_slice(&image.manifest).unwrap();
    for (layer, (_, annotations)) in manifest["layers"].as_array_mut().unwrap().iter_mut().zip(layers) {
        layer["mediaType"] = media_type.into();
        layer["annotations"] = annotations.clone();
    }
    image.manifest = manifest.to_string().into_bytes();
    server.store(tag, &image);
}

#[tokio::test]
async fn signatures_verify_by_their_key_and_no_other() {
    for (signer, other) in [(ecdsa(), ecdsa()), (ed25519(), ed25519()), (ecdsa(), ed25519())] {
        let server = Server::start().await;
        let digest = Digest::of(b"image");
        let signature = |sign: &Signer, over: &str| serde_json::json!({"dev.cosignproject.cosign/signature": base64((sign.sign)(over.as_bytes()))});
        let layers = [
            (PAYLOAD.to_owned(), signature(&signer, PAYLOAD)),
            ("another payload".to_owned(), signature(&signer, PAYLOAD)),
            ("without".to_owned(), serde_json::json!({})),
            ("not base64".to_owned(), serde_json::json!({"dev.cosignproject.cosign/signature": "%"})),
        ];
        let kind = "application/vnd.dev.cosign.simplesigning.v1+json";
        store(&server, &format!("sha256-{}.sig", digest.hex()), kind, &layers);
        let reference = server.reference("v1");
        let found = find(&client(), &reference, &digest, SignedKind::Signature, &[]).await.unwrap();
        let by = |pem: &str| -> Vec<bool> {
            let key = PublicKey::from_pem(pem.as_bytes()).unwrap();
            found.iter().map(|signed| signed.is_signed_by(&key, HashAlgorithm::Sha256).unwrap()).collect()
        };
        assert_eq!(by(&signer.pem), [true, false]);
        assert_eq!(by(&other.pem), [false, false]);
        assert_eq!(&found[0].payload[..], PAYLOAD.as_bytes());
    }
}

#[tokio::test]
async fn attestations_verify_with_their_type() {
    let (server, signer, digest) = (Server::start().await, ecdsa(), Digest::of(b"image"));
    let statement =
        r#"{"_type":"https://in-toto.io/Statement/v1","predicateType":"https://slsa.dev/provenance/v1"}"#;
    let kind = "application/vnd.in-toto+json";
    let message = format!("DSSEv1 {} {kind} {} {statement}", kind.len(), statement.len());
    let envelope = |kind: &str| {
        let signature = base64((signer.sign)(message.as_bytes()));
        let envelope = serde_json::json!({
            "payloadType": kind, "payload": base64(statement), "signatures": [{"keyid": "", "sig": signature}],
        });
        (envelope.to_string(), serde_json::json!({}))
    };
    let layers = [envelope(kind), envelope("text/plain"), ("nonsense".to_owned(), serde_json::json!({}))];
    let media_type = "application/vnd.dsse.envelope.v1+json";
    store(&server, &format!("sha256-{}.att", digest.hex()), media_type, &layers);
    let found =
        find(&client(), &server.reference("v1"), &digest, SignedKind::Attestation, &[]).await.unwrap();
    let key = PublicKey::from_pem(signer.pem.as_bytes()).unwrap();
    let verified: Vec<bool> =
        found.iter().map(|signed| signed.is_signed_by(&key, HashAlgorithm::Sha256).unwrap()).collect();
    // What is not a statement is not an attestation.
    assert_eq!(verified, [true]);
    assert_eq!(&found[0].payload[..], statement.as_bytes());
    // Without signatures there is nothing, which is not an error.
    let none = find(&client(), &server.reference("v1"), &digest, SignedKind::Signature, &[]).await.unwrap();
    assert_eq!(none, []);
}

#[tokio::test]
async fn bundles_are_found_as_referrers() {
    let (server, signer) = (Server::start().await, ecdsa());
    let stored = server.store("v1", &image(CONFIG, &[crate::images::package_layer("a")], true));
    let digest = stored.digest.clone().unwrap();
    let bundle_type = "application/vnd.dev.sigstore.bundle.v0.3+json";
    let kind = "application/vnd.in-toto+json";
    let mut referrers = Vec::new();
    for predicate in ["https://sigstore.dev/cosign/sign/v1", "https://slsa.dev/provenance/v1"] {
        let statement = format!(r#"{{"predicateType":"{predicate}"}}"#);
        let message = format!("DSSEv1 {} {kind} {} {statement}", kind.len(), statement.len());
        let bundle = serde_json::json!({"mediaType": bundle_type, "dsseEnvelope": {
            "payloadType": kind, "payload": base64(&statement),
            "signatures": [{"sig": base64((signer.sign)(message.as_bytes()))}],
        }});
        let tag = format!("referrer-{}", referrers.len());
        store(&server, &tag, bundle_type, &[(bundle.to_string(), serde_json::json!({}))]);
        let bytes = server.state.lock().unwrap().manifests[&tag].1.clone();
        referrers.push(serde_json::json!({
            "mediaType": crate::images::MANIFEST, "artifactType": bundle_type,
            "size": bytes.len(), "digest": Digest::of(&bytes).to_string(),
        }));
    }
    let index =
        serde_json::json!({"schemaVersion": 2, "mediaType": crate::images::INDEX, "manifests": referrers});
    // Without the API for referrers, they are at a tag.
    let tag = format!("sha256-{}", digest.hex());
    server.store_manifest(&tag, crate::images::INDEX, index.to_string().as_bytes());
    let key = PublicKey::from_pem(signer.pem.as_bytes()).unwrap();
    let one_each = async |source: &dyn transom_oci::ImageSource| {
        for (wanted, text) in
            [(SignedKind::Signature, "cosign/sign"), (SignedKind::Attestation, "provenance")]
        {
            let found = find(source, &stored, &digest, wanted, &[]).await.unwrap();
            assert_eq!(found.len(), 1);
            assert!(String::from_utf8_lossy(&found[0].payload).contains(text));
            assert!(found[0].is_signed_by(&key, HashAlgorithm::Sha256).unwrap());
        }
    };
    one_each(&client()).await;
    // They go into a bundle with their image.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bundle.tar");
    let mut writer = transom_oci::layout::BundleWriter::create(&path).await.unwrap();
    writer.add(&client(), &stored, &[]).await.unwrap();
    assert_eq!(writer.add_signatures(&client(), &stored, &digest, &[]).await.unwrap(), 2);
    writer.finish().await.unwrap();
    let limits = transom_oci::layer::LayerLimits::default();
    one_each(&transom_oci::layout::LocalRegistry::open(&path, limits).await.unwrap()).await;
    // With the API, only that is asked.
    let state = std::sync::Arc::clone(&server.state);
    state.lock().unwrap().manifests.remove(&tag);
    server.fault("/referrers/", transom_oci::testing::Fault::Replace(index.to_string().into()), None);
    one_each(&client()).await;
}

#[test]
fn keys_that_cannot_be_used_are_refused() {
    for pem in ["", "nonsense", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"] {
        let error = PublicKey::from_pem(pem.as_bytes()).unwrap_err();
        assert!(error.to_string().contains("public key cannot be used"), "{error}");
    }
}

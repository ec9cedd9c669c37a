//! Attestations, and Sigstore bundles: what is accepted, and everything that must be right about them.

use crate::images::{INDEX, MANIFEST};
use crate::signature::store;
use crate::signature_keyless::{LATER, SIMPLE, digest, identities, judged, keyless, signed, verdict_of};
use crate::sigstore::{Certified, Leaf, Sigstore, base64, hex, sha256};
use rcgen::{PublicKeyData, SigningKey};
use serde_json::{Value, json};
use transom_oci::testing::Server;
use transom_packages::Digest;

const ENVELOPE: &str = "application/vnd.dsse.envelope.v1+json";
const STATEMENT: &str = "application/vnd.in-toto+json";
const SLSA: &str = "https://slsa.dev/provenance/v1";

/// An envelope of a statement, its signature, and the statement.
fn attested(certified: &Certified, of: &Digest, predicate_type: &str) -> (String, Vec<u8>, String) {
    let statement = json!({
        "_type": "https://in-toto.io/Statement/v1", "predicateType": predicate_type,
        "subject": [{"name": "image", "digest": {"sha256": of.hex()}}], "predicate": {},
    })
    .to_string();
    let message = format!("DSSEv1 {} {STATEMENT} {} {statement}", STATEMENT.len(), statement.len());
    let signature = certified.key.sign(message.as_bytes()).unwrap();
    let envelope = json!({
        "payloadType": STATEMENT, "payload": base64(&statement),
        "signatures": [{"keyid": "", "sig": base64(&signature)}],
    });
    (envelope.to_string(), signature, statement)
}

fn attestation_layer(envelope: &str, certificate: &str, entry: &Value) -> (String, Value) {
    let annotations = json!({
        "dev.cosignproject.cosign/signature": "",
        "dev.sigstore.cosign/certificate": certificate,
        "dev.sigstore.cosign/bundle": entry.to_string(),
    });
    (envelope.to_owned(), annotations)
}

/// The entries of a log that Rekor makes of an attestation, over its versions.
fn attestation_bodies(envelope: &str, signature: &[u8], statement: &str, pem: &str) -> [Value; 3] {
    let hash = |of: &str| json!({"algorithm": "sha256", "value": hex(sha256(of))});
    [
        json!({"apiVersion": "0.0.1", "kind": "intoto", "spec": {
            "content": {"hash": hash(envelope), "payloadHash": hash(statement)}, "publicKey": base64(pem),
        }}),
        json!({"apiVersion": "0.0.2", "kind": "intoto", "spec": {"content": {
            "hash": hash(envelope), "payloadHash": hash(statement), "envelope": {
                "payloadType": STATEMENT,
                "signatures": [{"sig": base64(base64(signature)), "publicKey": base64(pem)}],
            },
        }}}),
        json!({"apiVersion": "0.0.1", "kind": "dsse", "spec": {
            "envelopeHash": hash(envelope), "payloadHash": hash(statement),
            "signatures": [{"signature": base64(signature), "verifier": base64(pem)}],
        }}),
    ]
}

fn attesting() -> Value {
    let mut authority = keyless(&identities());
    authority["attestations"] = json!([{"name": "provenance", "predicateType": "slsaprovenance1"}]);
    authority
}

#[tokio::test]
async fn attestations_are_accepted_with_every_entry_that_is_theirs() {
    let sigstore = Sigstore::new();
    let certified = sigstore.issue(&Leaf::default());
    let (root, pem) = (sigstore.trust_root(), certified.pem());
    let (envelope, signature, statement) = attested(&certified, &digest(), SLSA);
    let (another, of_another, other_statement) = attested(&certified, &digest(), "https://other");
    let wrong = attestation_bodies(&another, &of_another, &other_statement, &pem);
    let foreign =
        attestation_bodies(&envelope, &signature, &statement, &sigstore.issue(&Leaf::default()).pem());
    for (at, body) in attestation_bodies(&envelope, &signature, &statement, &pem).iter().enumerate() {
        let judge = async |body: &Value| {
            let layer = attestation_layer(&envelope, &pem, &sigstore.entry(body, LATER));
            verdict_of(Some(&root), &attesting(), ENVELOPE, &[layer]).await
        };
        judge(body).await.unwrap();
        let error = judge(&wrong[at]).await.unwrap_err();
        assert!(error.contains("is of another payload"), "{body}: {error}");
        let error = judge(&foreign[at]).await.unwrap_err();
        assert!(error.contains("is of another"), "{body}: {error}");
    }
}

#[tokio::test]
async fn attestations_of_other_things_are_refused() {
    let sigstore = Sigstore::new();
    let certified = sigstore.issue(&Leaf::default());
    let (root, pem) = (sigstore.trust_root(), certified.pem());
    let judge = async |of: &Digest, predicate_type: &str, authority: &Value| {
        let (envelope, signature, statement) = attested(&certified, of, predicate_type);
        let body = &attestation_bodies(&envelope, &signature, &statement, &pem)[2];
        let layer = attestation_layer(&envelope, &pem, &sigstore.entry(body, LATER));
        verdict_of(Some(&root), authority, ENVELOPE, &[layer]).await
    };
    judge(&digest(), SLSA, &attesting()).await.unwrap();
    let error = judge(&Digest::of(b"other"), SLSA, &attesting()).await.unwrap_err();
    assert!(error.contains("about another image"), "{error}");
    let error = judge(&digest(), "https://spdx.dev/Document", &attesting()).await.unwrap_err();
    assert!(error.contains("no attestation of type slsaprovenance1 found"), "{error}");
    // An attestation is not a signature, and a signature is not an attestation.
    let error = judge(&digest(), SLSA, &keyless(&identities())).await.unwrap_err();
    assert!(error.contains("no signature of it was found"), "{error}");
    let signature = signed(&sigstore, &Leaf::default());
    let error = verdict_of(Some(&root), &attesting(), SIMPLE, &[signature.layer()]).await.unwrap_err();
    assert!(error.contains("no attestation of it was found"), "{error}");
}

/// A log with four entries, of which ours is the third: its root, and the hashes that lead to it.
fn tree(body: &[u8]) -> (Vec<u8>, Vec<Vec<u8>>) {
    let leaf = |bytes: &[u8]| sha256([&[0], bytes].concat());
    let node = |left: &[u8], right: &[u8]| sha256([&[1], left, right].concat());
    let (before, beside) = (node(&leaf(b"0"), &leaf(b"1")), leaf(b"3"));
    (node(&before, &node(&leaf(body), &beside)), vec![beside, before])
}

/// What a bundle is to be like.
struct Recipe {
    promise: bool,
    proof: bool,
    timestamp: Option<&'static str>,
    at: i64,
    edit: fn(&mut Value),
}

impl Default for Recipe {
    fn default() -> Self {
        Self { promise: true, proof: false, timestamp: None, at: LATER, edit: |_| {} }
    }
}

fn bundle(sigstore: &Sigstore, certified: &Certified, predicate_type: &str, recipe: &Recipe) -> Value {
    let (envelope, signature, statement) = attested(certified, &digest(), predicate_type);
    let [.., body] = attestation_bodies(&envelope, &signature, &statement, &certified.pem());
    let entry = sigstore.entry(&body, recipe.at);
    let body = body.to_string();
    let id = sha256(sigstore.log.subject_public_key_info());
    let mut entry = json!({
        "logIndex": "42", "logId": {"keyId": base64(&id)}, "kindVersion": {"kind": "dsse", "version": "0.0.1"},
        "integratedTime": recipe.at.to_string(), "canonicalizedBody": base64(&body),
        "inclusionPromise": {"signedEntryTimestamp": entry["SignedEntryTimestamp"]},
    });
    if !recipe.promise {
        entry.as_object_mut().unwrap().remove("inclusionPromise");
    }
    if recipe.proof {
        let (root, hashes) = tree(body.as_bytes());
        let text = format!("log.example.org - 1\n4\n{}\n", base64(&root));
        let signature = [&id[..4], &sigstore.log.sign(text.as_bytes()).unwrap()].concat();
        entry["inclusionProof"] = json!({
            "logIndex": "2", "treeSize": "4", "rootHash": base64(&root),
            "hashes": hashes.iter().map(base64).collect::<Vec<_>>(),
            "checkpoint": {"envelope": format!("{text}\n\u{2014} log.example.org {}\n", base64(signature))},
        });
    }
    let mut bundle = json!({
        "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
        "verificationMaterial": {"certificate": {"rawBytes": base64(&certified.der)}, "tlogEntries": [entry]},
        "dsseEnvelope": serde_json::from_str::<Value>(&envelope).unwrap(),
    });
    if let Some(time) = recipe.timestamp {
        let timestamp = base64(sigstore.timestamp(&signature, time));
        bundle["verificationMaterial"]["timestampVerificationData"] =
            json!({"rfc3161Timestamps": [{"signedTimestamp": timestamp}]});
    }
    (recipe.edit)(&mut bundle);
    bundle
}

/// What an authority says about an image that a bundle refers to.
async fn verdict_of_bundle(sigstore: &Sigstore, authority: &Value, bundle: &Value) -> Result<(), String> {
    let (server, digest) = (Server::start().await, digest());
    let kind = "application/vnd.dev.sigstore.bundle.v0.3+json";
    store(&server, "bundle", kind, &[(bundle.to_string(), json!({}))]);
    let bytes = server.state.lock().unwrap().manifests["bundle"].1.clone();
    let referrer = json!({
        "mediaType": MANIFEST, "artifactType": kind, "size": bytes.len(), "digest": Digest::of(&bytes).to_string(),
    });
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [referrer]}).to_string();
    server.store_manifest(&format!("sha256-{}", digest.hex()), INDEX, index.as_bytes());
    judged(&server, Some(&sigstore.trust_root()), authority, &digest).await
}

const SIGN: &str = "https://sigstore.dev/cosign/sign/v1";

#[tokio::test]
async fn bundles_are_accepted_by_promise_or_by_proof_and_timestamp() {
    let sigstore = Sigstore::new();
    let certified = sigstore.issue(&Leaf::default());
    let (signing, attesting) = (keyless(&identities()), attesting());
    for recipe in [
        Recipe::default(),
        Recipe { proof: true, ..Recipe::default() },
        Recipe { promise: false, proof: true, timestamp: Some("20260102030505Z"), ..Recipe::default() },
        Recipe {
            promise: false,
            proof: true,
            timestamp: Some("20260102030505.25Z"),
            at: 0,
            ..Recipe::default()
        },
    ] {
        for (predicate_type, authority) in [(SIGN, &signing), (SLSA, &attesting)] {
            let bundle = bundle(&sigstore, &certified, predicate_type, &recipe);
            verdict_of_bundle(&sigstore, authority, &bundle).await.unwrap();
        }
    }
    // Certificates in a chain, as older bundles have them.
    let chained = |bundle: &mut Value| {
        let material = &mut bundle["verificationMaterial"];
        let certificate = material.as_object_mut().unwrap().remove("certificate").unwrap();
        material["x509CertificateChain"] = json!({"certificates": [certificate]});
    };
    let older = bundle(&sigstore, &certified, SIGN, &Recipe { edit: chained, ..Recipe::default() });
    verdict_of_bundle(&sigstore, &signing, &older).await.unwrap();
}

#[tokio::test]
async fn bundles_that_are_not_right_are_refused() {
    let sigstore = Sigstore::new();
    let certified = sigstore.issue(&Leaf::default());
    let entry = "/verificationMaterial/tlogEntries/0";
    fn set(bundle: &mut Value, pointer: &str, value: Value) {
        *bundle.pointer_mut(&format!("/verificationMaterial/tlogEntries/0{pointer}")).unwrap() = value;
    }
    let proven =
        || Recipe { promise: false, proof: true, timestamp: Some("20260102030505Z"), ..Recipe::default() };
    let edited = |edit: fn(&mut Value)| Recipe { edit, ..proven() };
    let wrong_proof = "the proof that the transparency log contains the entry is wrong";
    let cases = [
        ("no time", Recipe { promise: false, proof: true, ..Recipe::default() }, "no trusted time"),
        ("neither", Recipe { promise: false, ..Recipe::default() }, "neither a promise nor a proof"),
        ("no entries", edited(|b| b["verificationMaterial"]["tlogEntries"] = json!([])), "no entry"),
        ("index", edited(|b| set(b, "/inclusionProof/logIndex", "1".into())), wrong_proof),
        ("beyond", edited(|b| set(b, "/inclusionProof/logIndex", "9".into())), wrong_proof),
        ("size", edited(|b| set(b, "/inclusionProof/treeSize", "9".into())), wrong_proof),
        ("negative", edited(|b| set(b, "/inclusionProof/treeSize", "-1".into())), "malformed"),
        ("no hashes", edited(|b| set(b, "/inclusionProof/hashes", json!([]))), wrong_proof),
        ("root", edited(|b| set(b, "/inclusionProof/rootHash", base64("r").into())), wrong_proof),
        ("hashes", edited(|b| set(b, "/inclusionProof/hashes", json!(vec![base64("h"); 65]))), wrong_proof),
        (
            "checkpoint",
            edited(|b| {
                let note =
                    b.pointer("/verificationMaterial/tlogEntries/0/inclusionProof/checkpoint/envelope");
                let note = note.unwrap().as_str().unwrap().replacen("\n4\n", "\n5\n", 1);
                set(b, "/inclusionProof/checkpoint/envelope", note.into());
            }),
            "checkpoint of the transparency log is not signed by it",
        ),
        ("no checkpoint", edited(|b| set(b, "/inclusionProof/checkpoint/envelope", "".into())), "checkpoint"),
        (
            "late timestamp",
            Recipe { timestamp: Some("20260103030505Z"), ..proven() },
            "not trusted at 2026-01-03",
        ),
        (
            "odd timestamp",
            Recipe { timestamp: Some("20269999030505Z"), ..proven() },
            "(RFC 3161) is malformed",
        ),
        (
            "cut timestamp",
            edited(|b| {
                let stamps =
                    "/verificationMaterial/timestampVerificationData/rfc3161Timestamps/0/signedTimestamp";
                *b.pointer_mut(stamps).unwrap() = base64([0x30, 3, 2]).into();
            }),
            "(RFC 3161) is malformed",
        ),
        (
            "payload type",
            Recipe { edit: |b| b["dsseEnvelope"]["payloadType"] = "text/plain".into(), ..Recipe::default() },
            "no signature of it was found",
        ),
        (
            "no certificate",
            Recipe { edit: |b| b["verificationMaterial"]["certificate"] = Value::Null, ..Recipe::default() },
            "a signature has no certificate",
        ),
        (
            "no signatures",
            Recipe { edit: |b| b["dsseEnvelope"]["signatures"] = json!([]), ..Recipe::default() },
            "an envelope has no signatures",
        ),
        (
            "many entries",
            edited(|b| {
                let entry = b.pointer("/verificationMaterial/tlogEntries/0").unwrap().clone();
                b["verificationMaterial"]["tlogEntries"] = json!(vec![entry; 21]);
            }),
            "more than 20 log entries",
        ),
        ("attestation", Recipe::default(), "no signature of it was found"),
    ];
    for (name, recipe, reason) in cases {
        let predicate_type = if name == "attestation" { SLSA } else { SIGN };
        let bundle = bundle(&sigstore, &certified, predicate_type, &recipe);
        assert!(bundle.pointer(entry).is_some() || name == "no entries");
        let error = verdict_of_bundle(&sigstore, &keyless(&identities()), &bundle).await.unwrap_err();
        assert!(error.contains(reason), "{name}: {error}");
    }
    // A timestamp of another signature.
    let mut moved = bundle(&sigstore, &certified, SIGN, &proven());
    let stamp = base64(sigstore.timestamp(b"another signature", "20260102030505Z"));
    let stamps = "/verificationMaterial/timestampVerificationData/rfc3161Timestamps/0/signedTimestamp";
    *moved.pointer_mut(stamps).unwrap() = stamp.into();
    let error = verdict_of_bundle(&sigstore, &keyless(&identities()), &moved).await.unwrap_err();
    assert!(error.contains("the timestamp is of another signature"), "{error}");
}

#[tokio::test]
async fn a_changed_timestamp_is_refused_or_says_the_same() {
    let sigstore = Sigstore::new();
    let certified = sigstore.issue(&Leaf::default());
    let recipe =
        Recipe { promise: false, proof: true, timestamp: Some("20260102030505Z"), ..Recipe::default() };
    let right = bundle(&sigstore, &certified, SIGN, &recipe);
    let stamps = "/verificationMaterial/timestampVerificationData/rfc3161Timestamps/0/signedTimestamp";
    let encoded = right.pointer(stamps).unwrap().as_str().unwrap();
    let stamp = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, encoded).unwrap();
    // Some bytes are not signed: the status of the response, and what repeats the signature's algorithm.
    let mut accepted = 0;
    for at in 0..stamp.len() {
        let mut changed = stamp.clone();
        changed[at] ^= 1 << (at % 8);
        let mut bundle = right.clone();
        *bundle.pointer_mut(stamps).unwrap() = base64(&changed).into();
        accepted += u32::from(verdict_of_bundle(&sigstore, &keyless(&identities()), &bundle).await.is_ok());
    }
    assert!(accepted < 40, "{accepted} of {} changes", stamp.len());
}

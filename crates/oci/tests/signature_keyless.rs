//! Keyless signatures: what is accepted, and everything that must be right about them.

use crate::images::{CONFIG, image};
use crate::signature::store;
use crate::sigstore::{
    Certified, ISSUER, Leaf, SIGNED_AT, SUBJECT, Sigstore, Timestamps, base64, hex, sha256,
};
use rcgen::{ExtendedKeyUsagePurpose, KeyPair, SanType, SigningKey};
use serde_json::{Value, json};
use std::sync::Arc;
use transom_oci::signature::{CosignVerifier, TrustRoot};
use transom_oci::testing::{Server, client};
use transom_packages::Digest;
use transom_packages::trust::{Authority, Policy, SignatureVerifier, decide};

pub(crate) const SIMPLE: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
pub(crate) const LATER: i64 = SIGNED_AT + 60;

pub(crate) fn digest() -> Digest {
    Digest::of(b"image")
}

fn payload(of: &Digest) -> String {
    json!({"critical": {"image": {"docker-manifest-digest": of.as_str()}}}).to_string()
}

/// A signature with all that comes with it, as cosign stores it.
pub(crate) struct Signature {
    payload: String,
    signature: Vec<u8>,
    certificate: Option<String>,
    chain: Option<String>,
    entry: Option<String>,
    timestamp: Option<Vec<u8>>,
}

impl Signature {
    pub(crate) fn layer(&self) -> (String, Value) {
        let mut annotations = json!({"dev.cosignproject.cosign/signature": base64(&self.signature)});
        for (name, value) in [
            ("dev.sigstore.cosign/certificate", &self.certificate),
            ("dev.sigstore.cosign/chain", &self.chain),
            ("dev.sigstore.cosign/bundle", &self.entry),
        ] {
            if let Some(value) = value {
                annotations[name] = value.as_str().into();
            }
        }
        if let Some(timestamp) = &self.timestamp {
            let signed = json!({"SignedRFC3161Timestamp": base64(timestamp)});
            annotations["dev.sigstore.cosign/rfc3161timestamp"] = signed.to_string().into();
        }
        (self.payload.clone(), annotations)
    }
}

fn hashedrekord(payload: &str, signature: &[u8], certificate: &str) -> Value {
    json!({"apiVersion": "0.0.1", "kind": "hashedrekord", "spec": {
        "data": {"hash": {"algorithm": "sha256", "value": hex(sha256(payload))}},
        "signature": {"content": base64(signature), "publicKey": {"content": base64(certificate)}},
    }})
}

/// A signature of the image, logged a minute after its certificate was issued.
pub(crate) fn signed(sigstore: &Sigstore, leaf: &Leaf) -> Signature {
    signed_at(sigstore, leaf, LATER)
}

fn signed_at(sigstore: &Sigstore, leaf: &Leaf, at: i64) -> Signature {
    signed_by(sigstore, &sigstore.issue(leaf), at)
}

fn signed_by(sigstore: &Sigstore, certified: &Certified, at: i64) -> Signature {
    let payload = payload(&digest());
    let signature = certified.key.sign(payload.as_bytes()).unwrap();
    let body = hashedrekord(&payload, &signature, &certified.pem());
    let entry = Some(sigstore.entry(&body, at).to_string());
    let certificate = Some(certified.pem());
    Signature { payload, signature, certificate, chain: None, entry, timestamp: None }
}

pub(crate) fn identities() -> Value {
    json!([{"issuer": ISSUER, "subject": SUBJECT}])
}

pub(crate) fn keyless(identities: &Value) -> Value {
    json!({"name": "ci", "keyless": {"identities": identities}})
}

/// What an authority says about an image with such layers at the tag of its signatures or attestations.
pub(crate) async fn verdict_of(
    root: Option<&Value>,
    authority: &Value,
    kind: &str,
    layers: &[(String, Value)],
) -> Result<(), String> {
    let server = Server::start().await;
    let (suffix, digest) = (if kind == SIMPLE { "sig" } else { "att" }, digest());
    store(&server, &format!("sha256-{}.{suffix}", digest.hex()), kind, layers);
    judged(&server, root, authority, &digest).await
}

pub(crate) async fn judged(
    server: &Server,
    root: Option<&Value>,
    authority: &Value,
    digest: &Digest,
) -> Result<(), String> {
    let root = root.map(|root| TrustRoot::parse(root.to_string().as_bytes()).unwrap());
    let verifier = CosignVerifier::new(Arc::new(client()), root, "give one".to_owned());
    let config = serde_json::from_value(authority.clone()).unwrap();
    let policy =
        Policy { image_config: "signed".to_owned(), authorities: vec![Authority { config, key: None }] };
    let image = server.reference("v1").at(digest.clone());
    let evidence = verifier.evidence(&image, &policy.authorities, &[]).await;
    decide(&policy, &evidence, digest).map(drop).map_err(|untrusted| untrusted.to_string())
}

async fn verdict(sigstore: &Sigstore, authority: &Value, signature: &Signature) -> Result<(), String> {
    verdict_of(Some(&sigstore.trust_root()), authority, SIMPLE, &[signature.layer()]).await
}

#[tokio::test]
async fn a_signature_of_the_identity_is_accepted() {
    let sigstore = Sigstore::new();
    let authority = keyless(&identities());
    verdict(&sigstore, &authority, &signed(&sigstore, &Leaf::default())).await.unwrap();
    // The first and the last second of the certificate belong to it.
    for at in [SIGNED_AT, SIGNED_AT + 600] {
        verdict(&sigstore, &authority, &signed_at(&sigstore, &Leaf::default(), at)).await.unwrap();
    }
    // What is wrong beside it does not matter.
    let wrong = Signature { entry: None, ..signed(&sigstore, &Leaf::default()) };
    let layers = [wrong.layer(), signed(&sigstore, &Leaf::default()).layer()];
    verdict_of(Some(&sigstore.trust_root()), &authority, SIMPLE, &layers).await.unwrap();
    // The certificate of the authority may come with the signature instead.
    let mut root = sigstore.trust_root();
    let chain = root.pointer_mut("/certificateAuthorities/0/certChain/certificates").unwrap();
    chain.as_array_mut().unwrap().remove(0);
    let pem = |der: &[u8]| Certified { der: der.to_vec(), key: KeyPair::generate().unwrap() }.pem();
    let with_chain =
        Signature { chain: Some(pem(sigstore.fulcio.der())), ..signed(&sigstore, &Leaf::default()) };
    verdict_of(Some(&root), &authority, SIMPLE, &[with_chain.layer()]).await.unwrap();
    let without = signed(&sigstore, &Leaf::default());
    assert!(verdict_of(Some(&root), &authority, SIMPLE, &[without.layer()]).await.is_err());
}

#[tokio::test]
async fn identities_match_by_text_or_expression() {
    let sigstore = Sigstore::new();
    let workflow = "https://github.com/acme/platform/.github/workflows/release.yaml@refs/tags/v1";
    let leaf = Leaf { subject: SanType::URI(workflow.try_into().unwrap()), ..Leaf::default() };
    let signature = signed(&sigstore, &leaf);
    for (identity, accepted) in [
        (json!({"issuer": ISSUER, "subject": workflow}), true),
        (json!({"issuer": ISSUER, "subjectRegExp": "^https://github\\.com/acme/"}), true),
        (json!({"issuerRegExp": "^https://issuer\\.", "subjectRegExp": "refs/tags/v[0-9]$"}), true),
        (json!({"issuer": ISSUER, "subject": "https://github.com/acme/platform"}), false),
        (json!({"issuer": ISSUER, "subjectRegExp": "^https://github\\.com/acme/platform$"}), false),
        (json!({"issuer": ISSUER, "subjectRegExp": "^github\\.com/acme/"}), false),
        (json!({"issuer": "https://issuer", "subject": workflow}), false),
        (json!({"issuerRegExp": "^https://issuer$", "subject": workflow}), false),
        (json!({"issuerRegExp": "(", "subject": workflow}), false),
        (json!({}), false),
    ] {
        let result = verdict(&sigstore, &keyless(&json!([identity])), &signature).await;
        assert_eq!(result.is_ok(), accepted, "{identity}: {result:?}");
    }
    let refusal = verdict(&sigstore, &keyless(&json!([])), &signature).await.unwrap_err();
    assert!(refusal.contains("none of its identities matches"), "{refusal}");
    let anonymous = signed(&sigstore, &Leaf { issuer: None, ..Leaf::default() });
    assert!(verdict(&sigstore, &keyless(&identities()), &anonymous).await.is_err());
}

#[tokio::test]
async fn certificates_that_are_not_right_are_refused() {
    let sigstore = Sigstore::new();
    let stranger = Sigstore::new();
    let of = |leaf: Leaf| signed(&sigstore, &leaf);
    let with = |timestamps: Timestamps| of(Leaf { timestamps, ..Leaf::default() });
    let another = "by a certificate log of the trust root";
    let cases = [
        ("after its time", signed_at(&sigstore, &Leaf::default(), SIGNED_AT + 601), "had expired"),
        ("before its time", signed_at(&sigstore, &Leaf::default(), SIGNED_AT - 1), "was not valid yet"),
        (
            "for servers",
            of(Leaf { usage: ExtendedKeyUsagePurpose::ServerAuth, ..Leaf::default() }),
            "code signing",
        ),
        ("an authority", of(Leaf { is_authority: true, ..Leaf::default() }), "not of a signer"),
        ("without SCT", with(Timestamps::None), "has no timestamp (SCT)"),
        ("SCT of a stranger", with(Timestamps::OfStranger), another),
        ("SCT of another time", with(Timestamps::OfOtherTime), another),
        ("SCT of another certificate", with(Timestamps::OfOtherCertificate), another),
        ("malformed SCT", with(Timestamps::Malformed), "(SCT) in the certificate is malformed"),
        (
            "another authority",
            signed_by(&sigstore, &stranger.issue(&Leaf::default()), LATER),
            "not trusted at 2026-01-02T03:05:05Z: its path to a certificate authority",
        ),
    ];
    for (name, signature, reason) in cases {
        let error = verdict(&sigstore, &keyless(&identities()), &signature).await.unwrap_err();
        assert!(error.contains(reason), "{name}: {error}");
        assert!(error.contains("ImageConfig \"signed\"") && error.contains("authority \"ci\""), "{error}");
    }
    let mut authority = keyless(&identities());
    authority["keyless"]["insecureIgnoreSCT"] = true.into();
    verdict(&sigstore, &authority, &with(Timestamps::None)).await.unwrap();
}

#[tokio::test]
async fn the_trust_root_says_when_it_is_to_be_trusted() {
    let sigstore = Sigstore::new();
    let signature = signed(&sigstore, &Leaf::default());
    for (part, reason) in [
        ("/tlogs/0/publicKey", "was not trusted at 2026-01-02T03:05:05Z"),
        ("/ctlogs/0/publicKey", "by a certificate log of the trust root"),
        ("/certificateAuthorities/0", "no certificate authority that was valid then"),
    ] {
        for (limit, time) in [("end", "2026-01-02T03:04:04Z"), ("start", "2026-01-02T03:05:06Z")] {
            let mut root = sigstore.trust_root();
            root.pointer_mut(part).unwrap()["validFor"] = json!({limit: time});
            let error = verdict_of(Some(&root), &keyless(&identities()), SIMPLE, &[signature.layer()]).await;
            let error = error.unwrap_err();
            assert!(error.contains(reason), "{part} {limit}: {error}");
        }
    }
    let none = verdict_of(None, &keyless(&identities()), SIMPLE, &[signature.layer()]).await.unwrap_err();
    assert!(none.contains("there is no Sigstore trust root; give one"), "{none}");
}

#[tokio::test]
async fn log_entries_that_are_not_of_the_signature_are_refused() {
    let sigstore = Sigstore::new();
    let certified = sigstore.issue(&Leaf::default());
    let right = || signed_by(&sigstore, &certified, LATER);
    let logged = |body: &Value| Some(sigstore.entry(body, LATER).to_string());
    let with_entry = |entry: Option<String>| Signature { entry, ..right() };
    let edited = |pointer: &str, value: Value| {
        let mut entry: Value = serde_json::from_str(&right().entry.unwrap()).unwrap();
        *entry.pointer_mut(pointer).unwrap() = value;
        with_entry(Some(entry.to_string()))
    };
    let pem = certified.pem();
    let text = payload(&digest());
    let again = certified.key.sign(text.as_bytes()).unwrap();
    let other_pem = sigstore.issue(&Leaf::default()).pem();
    let stranger = KeyPair::generate().unwrap();
    let foreign = stranger.sign(text.as_bytes()).unwrap();
    let mut of_kind = hashedrekord(&text, &right().signature, &pem);
    of_kind["kind"] = "rekord".into();
    let by_key = Signature { certificate: None, ..right() };
    let own = right();
    let of_own = |payload: &str, certificate: &str| {
        let entry = logged(&hashedrekord(payload, &own.signature, certificate));
        Signature { entry, signature: own.signature.clone(), ..right() }
    };
    let cases = [
        ("none", with_entry(None), "has no entry in a transparency log"),
        ("not JSON", with_entry(Some("{".to_owned())), "is malformed"),
        ("not base64", edited("/Payload/body", "%".into()), "is malformed"),
        (
            "another log",
            {
                let body = hashedrekord(&own.payload, &own.signature, &pem);
                let entry = Some(Sigstore::entry_by(&stranger, &body, LATER).to_string());
                Signature { entry, signature: own.signature.clone(), ..right() }
            },
            "the trust root has no transparency log",
        ),
        ("another body", edited("/Payload/body", base64("{}").into()), "did not sign this entry (SET)"),
        (
            "another time",
            edited("/Payload/integratedTime", SIGNED_AT.into()),
            "did not sign this entry (SET)",
        ),
        ("another index", edited("/Payload/logIndex", 43.into()), "did not sign this entry (SET)"),
        ("no promise", edited("/SignedEntryTimestamp", "".into()), "did not sign this entry (SET)"),
        ("replayed", with_entry(logged(&hashedrekord(&text, &again, &pem))), "is of another signature"),
        ("another payload", of_own("other", &pem), "is of another payload"),
        ("another certificate", of_own(&text, &other_pem), "is of another certificate"),
        ("unknown kind", with_entry(logged(&of_kind)), "\"rekord\" \"0.0.1\" of a transparency log are not"),
        ("empty", with_entry(logged(&json!({}))), "are not supported"),
        (
            "another key",
            {
                let entry = logged(&hashedrekord(&text, &foreign, &pem));
                Signature { entry, signature: foreign.clone(), ..right() }
            },
            "not by the key of its certificate",
        ),
        ("tampered", Signature { payload: payload(&Digest::of(b"other")), ..right() }, "of another payload"),
        ("by a key", by_key, "a signature has no certificate"),
        ("cut", Signature { certificate: Some(pem[..pem.len() / 2].to_owned()), ..right() }, "certificate"),
        (
            "many certificates",
            Signature { chain: Some(other_pem.repeat(200)), ..right() },
            "another signature",
        ),
    ];
    for (name, signature, reason) in cases {
        let error = verdict(&sigstore, &keyless(&identities()), &signature).await;
        match name {
            // Of certificates beside it, only some are looked at.
            "many certificates" => error.unwrap(),
            _ => {
                let error = error.unwrap_err();
                assert!(error.contains(reason), "{name}: {error}");
            }
        }
    }
}

#[tokio::test]
async fn a_certificate_that_is_too_large_is_refused() {
    let sigstore = Sigstore::new();
    let huge = Certified { der: vec![0x30; 65 << 10], ..sigstore.issue(&Leaf::default()) };
    let error = verdict(&sigstore, &keyless(&identities()), &signed_by(&sigstore, &huge, LATER)).await;
    assert!(error.unwrap_err().contains("certificate has more than 65536 bytes"));
}

#[tokio::test]
async fn a_signature_of_another_image_is_refused() {
    let sigstore = Sigstore::new();
    let certified = sigstore.issue(&Leaf::default());
    let other = payload(&Digest::of(b"other"));
    let signature = certified.key.sign(other.as_bytes()).unwrap();
    let body = hashedrekord(&other, &signature, &certified.pem());
    let entry = Some(sigstore.entry(&body, LATER).to_string());
    let moved = Signature { payload: other, signature, entry, ..signed_by(&sigstore, &certified, LATER) };
    let error = verdict(&sigstore, &keyless(&identities()), &moved).await.unwrap_err();
    assert!(error.contains("a signature is for sha256:"), "{error}");
}

#[tokio::test]
async fn timestamps_say_when_as_well() {
    let sigstore = Sigstore::new();
    let certified = sigstore.issue(&Leaf::default());
    let with = |timestamp: &dyn Fn(&[u8]) -> Vec<u8>| {
        let signature = signed_by(&sigstore, &certified, LATER);
        Signature { timestamp: Some(timestamp(&signature.signature)), ..signature }
    };
    let authority = keyless(&identities());
    let right = with(&|signature| sigstore.timestamp(signature, "20260102030505Z"));
    verdict(&sigstore, &authority, &right).await.unwrap();
    // One that is not trusted says nothing; one that is trusted must agree.
    let foreign = KeyPair::generate().unwrap();
    let unknown = with(&|signature| Sigstore::timestamp_by(&foreign, signature, "20260102030505Z"));
    verdict(&sigstore, &authority, &unknown).await.unwrap();
    let late = with(&|signature| sigstore.timestamp(signature, "20260103030505Z"));
    let error = verdict(&sigstore, &authority, &late).await.unwrap_err();
    assert!(error.contains("not trusted at 2026-01-03T03:05:05Z"), "{error}");
}

#[tokio::test]
async fn too_many_or_too_large_signatures_are_refused() {
    let sigstore = Sigstore::new();
    let right = signed(&sigstore, &Leaf::default());
    let many: Vec<(String, Value)> = (0..101).map(|_| right.layer()).collect();
    let root = sigstore.trust_root();
    let error = verdict_of(Some(&root), &keyless(&identities()), SIMPLE, &many).await.unwrap_err();
    assert!(error.contains("101 layers; at most 100 are read"), "{error}");
    let (server, digest) = (Server::start().await, digest());
    let mut large = image(CONFIG, &[b"payload".to_vec()], false);
    let mut manifest: Value = serde_json::from_slice(&large.manifest).unwrap();
    manifest["layers"][0]["mediaType"] = SIMPLE.into();
    manifest["layers"][0]["size"] = (65 << 20).into();
    large.manifest = manifest.to_string().into_bytes();
    server.store(&format!("sha256-{}.sig", digest.hex()), &large);
    let error = judged(&server, Some(&root), &keyless(&identities()), &digest).await.unwrap_err();
    assert!(error.contains("more than 67108864 bytes together"), "{error}");
}

#[test]
fn trust_roots_that_cannot_be_used_are_refused() {
    let right = Sigstore::new().trust_root();
    let edited = |pointer: &str, value: Value| {
        let mut root = right.clone();
        *root.pointer_mut(pointer).unwrap() = value;
        root.to_string()
    };
    assert!(TrustRoot::parse(right.to_string().as_bytes()).is_ok());
    for (text, reason) in [
        ("{".to_owned(), "is not a trusted_root.json"),
        ("{}".to_owned(), "needs at least one"),
        (edited("/tlogs", json!([])), "needs at least one"),
        (edited("/certificateAuthorities", json!([])), "needs at least one"),
        (edited("/tlogs/0/publicKey/rawBytes", "%".into()), "tlogs[0]: "),
        (edited("/tlogs/0/publicKey/rawBytes", base64("key").into()), "needs at least one"),
        (edited("/ctlogs/0/publicKey/validFor/start", "soon".into()), "ctlogs[0]: validFor: \"soon\""),
        (
            edited("/certificateAuthorities/0/certChain/certificates", json!([])),
            "certChain must have 1 to 10",
        ),
        (edited("/tlogs", json!(vec![right["tlogs"][0].clone(); 101])), "tlogs has more than 100 entries"),
        (format!("{right}{}", " ".repeat(4 << 20)), "more than 4194304 bytes"),
    ] {
        let error = TrustRoot::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(reason), "{reason}: {error}");
    }
}

#[tokio::test]
async fn no_bit_of_a_certificate_can_be_changed() {
    let sigstore = Sigstore::new();
    let mut certified = sigstore.issue(&Leaf::default());
    let authority = keyless(&identities());
    verdict(&sigstore, &authority, &signed_by(&sigstore, &certified, LATER)).await.unwrap();
    for at in (0..certified.der.len()).step_by(5) {
        // The log has the changed certificate, so what is refused is the certificate.
        let bit = 1 << (at % 8);
        certified.der[at] ^= bit;
        let changed = signed_by(&sigstore, &certified, LATER);
        assert!(verdict(&sigstore, &authority, &changed).await.is_err(), "bit {bit} of byte {at}");
        certified.der[at] ^= bit;
    }
    for length in (0..certified.der.len()).step_by(11) {
        let cut = Certified { der: certified.der[..length].to_vec(), ..sigstore.issue(&Leaf::default()) };
        assert!(
            verdict(&sigstore, &authority, &signed_by(&sigstore, &cut, LATER)).await.is_err(),
            "{length}"
        );
    }
}

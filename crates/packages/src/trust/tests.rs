//! Tests of whether signatures make an image trusted.

use super::*;
use serde_json::json;

fn image() -> Digest {
    Digest::of(b"image")
}

fn authority(rest: &Value) -> CosignAuthority {
    let mut value = json!({"name": "a", "key": {"secretRef": {"name": "s", "key": "k"}}});
    for (key, field) in rest.as_object().unwrap() {
        value[key] = field.clone();
    }
    serde_json::from_value(value).unwrap()
}

fn keyless(identities: &Value) -> CosignAuthority {
    authority(&json!({"key": null, "keyless": {"identities": identities, "insecureIgnoreSCT": true}}))
}

fn signature(digest: &Digest) -> Signed {
    let payload = json!({"critical": {"image": {"docker-manifest-digest": digest.as_str()}}});
    Signed { payload: payload.to_string().into_bytes(), signer: None }
}

fn statement(digest: &Digest, predicate_type: &str) -> Value {
    json!({"subject": [{"digest": {"sha256": "0"}}, {"digest": {"sha256": digest.hex()}}],
           "predicateType": predicate_type})
}

fn attested(value: &Value) -> Signed {
    Signed { payload: value.to_string().into_bytes(), signer: None }
}

fn policy(authorities: impl IntoIterator<Item = CosignAuthority>) -> Policy {
    let authorities = authorities.into_iter().map(|config| Authority { config, key: None }).collect();
    Policy { image_config: "signed".to_owned(), authorities }
}

fn found(verified: Vec<Signed>) -> Evidence {
    Evidence::Found { verified, refused: Vec::new() }
}

fn verdict(authority: CosignAuthority, signed: Vec<Signed>) -> Result<String, String> {
    let policy = policy([authority]);
    let decision = decide(&policy, &[found(signed)], &image());
    decision.map(str::to_owned).map_err(|untrusted| untrusted.reasons.join("; "))
}

#[test]
fn a_signature_must_be_of_the_image() {
    let key = || authority(&json!({}));
    assert_eq!(verdict(key(), vec![signature(&image())]).as_deref(), Ok("a"));
    let other = Digest::of(b"other");
    assert_eq!(verdict(key(), vec![signature(&other), signature(&image())]).as_deref(), Ok("a"));
    let in_bundle = attested(&statement(&image(), SIGNATURE_PREDICATE));
    assert_eq!(verdict(key(), vec![in_bundle]).as_deref(), Ok("a"));
    for (signed, reason) in [
        (vec![signature(&other)], "a signature is for sha256:"),
        (vec![], "no signature of it was found"),
        (vec![attested(&json!({}))], "names no image"),
        (vec![Signed { payload: b"?".to_vec(), signer: None }], "not JSON"),
        (vec![attested(&statement(&image(), "x"))], "an attestation is not a signature"),
        (vec![attested(&statement(&other, SIGNATURE_PREDICATE))], "about another image"),
    ] {
        let error = verdict(key(), signed).unwrap_err();
        assert!(error.starts_with("authority \"a\": ") && error.contains(reason), "{error}");
    }
    assert!(verdict(authority(&json!({"key": null})), vec![signature(&image())]).is_err());
}

#[test]
fn the_first_authority_that_accepts_the_image_decides() {
    let authorities =
        policy([authority(&json!({})), authority(&json!({"name": "b"})), authority(&json!({"name": "c"}))]);
    let good = || found(vec![signature(&image())]);
    let unknown = || Evidence::Unknown("timeout".to_owned());
    assert_eq!(decide(&authorities, &[unknown(), good(), good()], &image()), Ok("b"));
    let error = decide(&authorities, &[unknown(), unknown()], &image()).unwrap_err();
    assert_eq!(error.reasons.len(), 3);
    assert!(
        error.to_string().contains("authority \"b\": signature verification failed with timeout"),
        "{error}"
    );
    assert!(error.reasons[2].contains("were not looked for"), "{error}");
    assert!(error.to_string().contains("ImageConfig \"signed\""), "{error}");
    let untrusted = decide(&policy([]), &[good()], &image()).unwrap_err();
    assert!(untrusted.to_string().contains("without authorities"));
    let refused = (0..9).map(|n| format!("reason {n}")).collect();
    let error = decide(&authorities, &[Evidence::Found { verified: vec![], refused }], &image()).unwrap_err();
    assert!(error.to_string().contains("reason 4, and 4 more"), "{error}");
}

#[test]
fn a_certificate_must_be_of_an_identity() {
    let signer = Signer {
        issuer: "https://issuer".to_owned(),
        subjects: vec!["x@a.b".to_owned(), "y@a.b".to_owned()],
    };
    let signed = || vec![Signed { signer: Some(signer.clone()), ..signature(&image()) }];
    for (identities, trusted) in [
        (json!([{"issuer": "https://issuer", "subject": "y@a.b"}]), true),
        (json!([{"issuer": "https://other", "subject": "y@a.b"}, {"subject": "x@a.b"}]), true),
        (json!([{"issuerRegExp": "^https://iss", "subjectRegExp": "@a\\.b$"}]), true),
        (json!([{"issuer": "https://issuer"}]), true),
        (json!([{"subjectRegExp": "a"}]), true),
        // Anchors are those of Go: the beginning and end of all of the text.
        (json!([{"subjectRegExp": "^a\\.b$"}]), false),
        (json!([{"issuerRegExp": "^https://iss$"}]), false),
        (json!([{"issuer": "https://issuer", "subject": "z@a.b"}]), false),
        (json!([{"issuer": "https://issue", "subject": "y@a.b"}]), false),
        // An expression wins over the exact value beside it.
        (json!([{"issuer": "https://issuer", "issuerRegExp": "^other"}]), false),
        (json!([{}]), false),
        (json!([]), false),
        (json!([{"issuerRegExp": "("}]), false),
    ] {
        assert_eq!(verdict(keyless(&identities), signed()).is_ok(), trusted, "{identities}");
    }
    let unsigned = verdict(keyless(&json!([{"issuer": "https://issuer"}])), vec![signature(&image())]);
    assert!(unsigned.unwrap_err().contains("no certificate"));
    // With a key, no identity is asked for.
    assert!(verdict(authority(&json!({"keyless": {"identities": []}})), vec![signature(&image())]).is_ok());
}

#[test]
fn one_of_the_attestations_must_be_there() {
    let wants = |types: &[&str]| {
        let list: Vec<Value> = types.iter().map(|t| json!({"name": "n", "predicateType": t})).collect();
        authority(&json!({"attestations": list}))
    };
    let slsa = "https://slsa.dev/provenance/v1";
    let plain = || vec![attested(&statement(&image(), slsa))];
    assert!(verdict(wants(&["slsaprovenance1"]), plain()).is_ok());
    assert!(verdict(wants(&["spdx", slsa]), plain()).is_ok());
    let wrong = verdict(wants(&["spdx"]), plain()).unwrap_err();
    assert!(wrong.contains("no attestation of type spdx found"), "{wrong}");
    assert!(verdict(wants(&[""]), vec![attested(&statement(&image(), ""))]).is_err());
    let other = vec![attested(&statement(&Digest::of(b"other"), slsa))];
    assert!(verdict(wants(&[slsa]), other).unwrap_err().contains("about another image"));
    // A signature is not an attestation.
    assert!(verdict(wants(&[slsa]), vec![signature(&image())]).is_err());
    assert!(verdict(wants(&[slsa]), vec![]).unwrap_err().contains("no attestation"));
}

#[test]
fn names_of_predicate_types_are_cosigns() {
    assert_eq!(predicate_uri("slsaprovenance"), predicate_uri("slsaprovenance02"));
    assert_eq!(predicate_uri("spdx"), "https://spdx.dev/Document");
    assert_eq!(predicate_uri("https://x"), "https://x");
}

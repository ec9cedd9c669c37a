//! Whether a package is trusted, given what cryptography found out. Nothing is verified here: who calls has checked which
//! payloads are signed by the key or certificate of an authority, and this module decides whether they speak of the image,
//! and of what its authority must attest.
//!
//! What is not known to be right is wrong: no authorities, no identities, a payload that cannot be read or speaks of another
//! digest do not make an image trusted.

mod policy;

use crate::digest::Digest;
use serde_json::Value;
use std::time::Duration;
use transom_go::regexp::{self, Limits};
use transom_xapi::image_config::{Attestation, CosignAuthority, CosignIdentity};

pub use policy::{Authority, KeyMissing, Policy, ReadKey, SignatureVerifier, is_record_of, key_secrets};

/// The predicate type of a signature that is a statement, as in Sigstore's bundles.
pub const SIGNATURE_PREDICATE: &str = "https://sigstore.dev/cosign/sign/v1";

/// How many problems of an authority a message lists.
const PROBLEMS_MAX: usize = 5;

/// Cosign's names of predicate types.
const PREDICATE_TYPES: [(&str, &str); 10] = [
    ("custom", "https://cosign.sigstore.dev/attestation/v1"),
    ("slsaprovenance", "https://slsa.dev/provenance/v0.2"),
    ("slsaprovenance02", "https://slsa.dev/provenance/v0.2"),
    ("slsaprovenance1", "https://slsa.dev/provenance/v1"),
    ("spdx", "https://spdx.dev/Document"),
    ("spdxjson", "https://spdx.dev/Document"),
    ("cyclonedx", "https://cyclonedx.org/bom"),
    ("link", "https://in-toto.io/Link/v1"),
    ("vuln", "https://cosign.sigstore.dev/attestation/vuln/v1"),
    ("openvex", "https://openvex.dev/ns"),
];

/// The URI of a predicate type.
pub fn predicate_uri(predicate_type: &str) -> &str {
    let alias = PREDICATE_TYPES.iter().find(|(alias, _)| *alias == predicate_type);
    alias.map_or(predicate_type, |(_, uri)| uri)
}

/// What was found for one authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// What was found beside the image.
    Found {
        /// Payloads whose signatures verify by its key, or by a certificate that its trust root issued.
        verified: Vec<Signed>,
        /// Why others do not verify.
        refused: Vec<String>,
    },
    /// It could not be found out: a key is missing, the registry or the log does not respond.
    Unknown(String),
    /// It could not be found out, because the registry is overloaded: the problem, and after which time it may be asked again.
    Busy(String, Duration),
}

impl Evidence {
    /// The time before which the registry is not to be asked again, if it named one.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Busy(_, retry_after) => Some(*retry_after),
            Self::Found { .. } | Self::Unknown(_) => None,
        }
    }
}

/// A payload whose signature verifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// What was signed: a simple signing payload, or an in-toto statement without its envelope.
    pub payload: Vec<u8>,
    /// Whom the certificate was issued to; `None` for keys.
    pub signer: Option<Signer>,
}

/// Whom a certificate was issued to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signer {
    /// By whom.
    pub issuer: String,
    /// Its names.
    pub subjects: Vec<String>,
}

/// An image is not trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no authority of ImageConfig {image_config:?} accepts {image}: {}", reasons.join("; "))]
pub struct Untrusted {
    /// The ImageConfig that has the authorities.
    pub image_config: String,
    /// The digest of the image.
    pub image: Digest,
    /// Why, for each authority.
    pub reasons: Vec<String>,
}

/// Whether one of the authorities of a policy accepts an image: the name of the first that does. `evidence` has an
/// entry for each authority, in the same order.
pub fn decide<'a>(policy: &'a Policy, evidence: &[Evidence], image: &Digest) -> Result<&'a str, Untrusted> {
    let mut reasons = Vec::new();
    let missing = Evidence::Unknown("signatures were not looked for".to_owned());
    for (i, Authority { config, .. }) in policy.authorities.iter().enumerate() {
        match check_authority(config, evidence.get(i).unwrap_or(&missing), image) {
            Ok(()) => return Ok(&config.name),
            Err(reason) => reasons.push(format!("authority {:?}: {reason}", config.name)),
        }
    }
    if policy.authorities.is_empty() {
        reasons.push("verification is configured without authorities".to_owned());
    }
    Err(Untrusted { image_config: policy.image_config.clone(), image: image.clone(), reasons })
}

fn check_authority(authority: &CosignAuthority, evidence: &Evidence, image: &Digest) -> Result<(), String> {
    let (verified, refused) = match evidence {
        Evidence::Found { verified, refused } => (verified, refused),
        Evidence::Unknown(problem) | Evidence::Busy(problem, _) => {
            return Err(format!("signature verification failed with {problem}"));
        }
    };
    if authority.key.is_none() && authority.keyless.is_none() {
        return Err("it has neither a key nor keyless identities".to_owned());
    }
    let mut problems = refused.clone();
    for signed in verified {
        let checked = check_signer(authority, signed.signer.as_ref())
            .and_then(|()| check_claim(authority, signed, image));
        match checked {
            Ok(()) => return Ok(()),
            Err(problem) => problems.push(problem),
        }
    }
    problems.sort_unstable();
    problems.dedup();
    if problems.is_empty() {
        let what = if authority.attestations.is_empty() { "signature" } else { "attestation" };
        problems.push(format!("no {what} of it was found"));
    }
    let hidden = problems.len().saturating_sub(PROBLEMS_MAX);
    problems.truncate(PROBLEMS_MAX);
    let more = if hidden == 0 { String::new() } else { format!(", and {hidden} more") };
    Err(format!("{}{more}", problems.join(", ")))
}

/// A signature by a key needs no further check of the signer; one by a certificate must match an accepted identity.
fn check_signer(authority: &CosignAuthority, signer: Option<&Signer>) -> Result<(), String> {
    let (None, Some(keyless)) = (&authority.key, &authority.keyless) else { return Ok(()) };
    let signer = signer.ok_or("a signature has no certificate")?;
    for identity in &keyless.identities {
        if matches(identity, signer)? {
            return Ok(());
        }
    }
    let Signer { issuer, subjects } = signer;
    Err(format!("none of its identities matches {} of {issuer}", subjects.join(" or ")))
}

/// Whether a certificate was issued to an identity. Of issuer and subject one may be left open, not both.
fn matches(identity: &CosignIdentity, signer: &Signer) -> Result<bool, String> {
    let CosignIdentity { issuer, subject, issuer_reg_exp, subject_reg_exp } = identity;
    if [issuer, subject, issuer_reg_exp, subject_reg_exp].into_iter().all(String::is_empty) {
        return Err("an identity has neither issuer nor subject".to_owned());
    }
    let issuers = std::slice::from_ref(&signer.issuer);
    Ok(agrees(issuer, issuer_reg_exp, issuers)? && agrees(subject, subject_reg_exp, &signer.subjects)?)
}

/// As in Cosign, an expression need not match all of the text: `^` and `$` say where it begins and ends.
fn agrees(exact: &str, expression: &str, texts: &[String]) -> Result<bool, String> {
    if !expression.is_empty() {
        let expression = regexp::compile(expression, Limits::default()).map_err(|error| error.to_string())?;
        return Ok(texts.iter().any(|text| expression.is_match(text)));
    }
    Ok(exact.is_empty() || texts.iter().any(|text| text == exact))
}

fn check_claim(authority: &CosignAuthority, signed: &Signed, image: &Digest) -> Result<(), String> {
    let payload: Value =
        serde_json::from_slice(&signed.payload).map_err(|_| "a payload is not JSON".to_owned())?;
    if authority.attestations.is_empty() {
        return check_signature(&payload, image);
    }
    check_subject(&payload, image)?;
    let statement = payload;
    let found = statement.get("predicateType").and_then(Value::as_str).unwrap_or_default();
    let wanted = |attestation: &Attestation| {
        !attestation.predicate_type.is_empty() && predicate_uri(&attestation.predicate_type) == found
    };
    if authority.attestations.iter().any(wanted) {
        return Ok(());
    }
    let types: Vec<&str> = authority.attestations.iter().map(|a| a.predicate_type.as_str()).collect();
    Err(format!("no attestation of type {} found, but {found:?}", types.join(" or ")))
}

/// A simple signing payload names the digest of what was signed. A statement is a signature only if it is of that type.
fn check_signature(payload: &Value, image: &Digest) -> Result<(), String> {
    if let Some(predicate_type) = payload.get("predicateType") {
        if predicate_type != SIGNATURE_PREDICATE {
            return Err("an attestation is not a signature".to_owned());
        }
        return check_subject(payload, image);
    }
    let digest = payload.pointer("/critical/image/docker-manifest-digest").and_then(Value::as_str);
    match digest {
        Some(digest) if digest == image.as_str() => Ok(()),
        Some(digest) => Err(format!("a signature is for {digest}")),
        None => Err("a signature names no image".to_owned()),
    }
}

fn check_subject(statement: &Value, image: &Digest) -> Result<(), String> {
    let subjects = statement.get("subject").and_then(Value::as_array);
    let is_image =
        |subject: &Value| subject.pointer("/digest/sha256").and_then(Value::as_str) == Some(image.hex());
    if subjects.into_iter().flatten().any(is_image) {
        return Ok(());
    }
    Err("a statement is about another image".to_owned())
}

#[cfg(test)]
mod tests;

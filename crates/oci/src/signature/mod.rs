//! Signatures and attestations of cosign: found beside an image (at the tags `sha256-….sig` and `sha256-….att`, or as
//! referrers in Sigstore's bundle format), verified by a public key or by the trust root of a Sigstore instance.
//!
//! | module | what it holds |
//! |---|---|
//! | `key` | public keys and what verifies by them |
//! | `trust_root` | authorities and logs that keyless signatures are trusted by |
//! | `keyless` | all that must be right about a keyless signature, in order |
//! | `certificate`, `sct` | the certificate of a signer, and its entry in a log of certificates |
//! | `log`, `timestamp` | that and when a signature was made |
//! | `bundle` | Sigstore's file format for all of this |
//! | `verifier` | what the authorities of an ImageConfig signed of an image |
//!
//! This module says which payloads are signed, and by whom. Whether a payload speaks of the image, and whether that makes
//! the image trusted, `transom_packages::trust` decides. Only what lies beside the image is downloaded. A malformed
//! signature is ignored. Sizes and numbers are bounded.

mod bundle;
mod certificate;
mod der;
mod key;
mod keyless;
mod log;
mod sct;
mod timestamp;
mod trust_root;
mod verifier;

use crate::failure::{chain, invalid};
use crate::image::{Descriptor, Document, Manifest, media_type};
use crate::source::ImageSource;
use base64::Engine as _;
use bundle::Bundle;
use bytes::Bytes;
use keyless::Material;
use serde::Deserialize;
use transom_packages::trust::SIGNATURE_PREDICATE;
use transom_packages::{Credentials, Digest, Reference, RegistryError, RegistryErrorKind};

pub use key::{HashAlgorithm, KeyError, PublicKey};
pub use trust_root::{TRUST_ROOT_BYTES_MAX, TrustRoot, TrustRootError};
pub use verifier::{CosignVerifier, evidence};

/// The most signatures of one image that are read.
const SIGNATURES_MAX: usize = 100;
/// The largest signed payload, in bytes: attestations hold whole lists of materials.
const PAYLOAD_BYTES_MAX: u64 = 32 << 20;
/// The most bytes of all payloads of one image.
const PAYLOADS_BYTES_MAX: u64 = 64 << 20;

const BUNDLE_TYPE: &str = "application/vnd.dev.sigstore.bundle";
const EMPTY_TYPE: &str = "application/vnd.oci.empty.v1+json";
const STATEMENT_TYPE: &str = "application/vnd.in-toto+json";
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
const CERTIFICATE: &str = "dev.sigstore.cosign/certificate";
const CHAIN: &str = "dev.sigstore.cosign/chain";
const LOG_ENTRY: &str = "dev.sigstore.cosign/bundle";
const TIMESTAMP: &str = "dev.sigstore.cosign/rfc3161timestamp";

/// What was signed, and its signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedPayload {
    /// The payload: a simple signing payload, or an in-toto statement without its envelope.
    pub payload: Bytes,
    /// The bytes that are signed: the payload itself, or the encoding of it that DSSE prescribes.
    message: Bytes,
    /// The envelope as it is stored, where it is stored by itself.
    envelope: Option<Bytes>,
    signatures: Vec<Vec<u8>>,
    /// What keyless signatures are verified with, or why it cannot be read.
    material: Result<Material, String>,
}

impl SignedPayload {
    /// Whether one of the signatures is by a key.
    pub fn is_signed_by(&self, key: &PublicKey, hash: HashAlgorithm) -> Result<bool, KeyError> {
        for signature in &self.signatures {
            if key.verifies(&self.message, signature, hash)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// What is looked for beside an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignedKind {
    /// Signatures of the image.
    Signature,
    /// Attestations about the image.
    Attestation,
}

/// The signatures or attestations of a digest. None is not an error.
pub async fn find(
    source: &dyn ImageSource,
    reference: &Reference,
    digest: &Digest,
    kind: SignedKind,
    with: &[Credentials],
) -> Result<Vec<SignedPayload>, RegistryError> {
    let mut found = at_tag(source, reference, digest, kind, with).await?;
    found.extend(in_bundles(source, reference, digest, kind, with).await?);
    Ok(found)
}

/// Those at the tag that cosign makes of the digest.
async fn at_tag(
    source: &dyn ImageSource,
    reference: &Reference,
    digest: &Digest,
    kind: SignedKind,
    with: &[Credentials],
) -> Result<Vec<SignedPayload>, RegistryError> {
    let suffix = match kind {
        SignedKind::Signature => "sig",
        SignedKind::Attestation => "att",
    };
    let tag = Some(format!("sha256-{}.{suffix}", digest.hex()));
    let beside = Reference { tag, digest: None, ..reference.clone() };
    let raw = match source.manifest(&beside, with).await {
        Err(error) if error.kind == RegistryErrorKind::NotFound => return Ok(Vec::new()),
        result => result?,
    };
    let beside = beside.at(raw.digest.clone());
    read(source, &beside, &image(&beside, &raw.bytes)?, kind, with).await
}

/// Those in bundles that refer to the digest.
async fn in_bundles(
    source: &dyn ImageSource,
    reference: &Reference,
    digest: &Digest,
    kind: SignedKind,
    with: &[Credentials],
) -> Result<Vec<SignedPayload>, RegistryError> {
    let is_bundle = |media_type: &str| media_type.starts_with(BUNDLE_TYPE);
    let referrers = source.referrers(reference, digest, with).await?;
    // Some registries do not say of what type a referrer is; its layers do.
    let artifact = |d: &Descriptor| match d.other.get("artifactType").and_then(|v| v.as_str()) {
        Some(media_type) => is_bundle(media_type) || media_type == EMPTY_TYPE,
        None => true,
    };
    let mut all = Vec::new();
    let mut budget = Budget::default();
    for referrer in referrers.iter().filter(|d| artifact(d)).take(SIGNATURES_MAX) {
        let beside = reference.at(referrer.digest.clone());
        let raw = source.manifest(&beside, with).await?;
        let manifest = image(&beside, &raw.bytes)?;
        let layers = manifest.layers.iter().filter(|layer| is_bundle(&layer.media_type));
        for layer in layers.take(SIGNATURES_MAX) {
            budget.take(&beside, layer)?;
            let bytes = source.blob(&beside, layer, with).await?.bytes(PAYLOAD_BYTES_MAX).await?;
            let bundle: Option<Bundle> = serde_json::from_slice(&bytes).ok();
            let found = bundle.and_then(|mut bundle| {
                let material = bundle.material();
                opened(&bundle.dsse_envelope, None, material)
            });
            all.extend(found.filter(|found| kind_of(&found.payload) == kind));
        }
    }
    Ok(all)
}

/// In bundles, a signature is a statement as well, of a type of its own.
fn kind_of(statement: &[u8]) -> SignedKind {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Statement {
        predicate_type: String,
    }
    match serde_json::from_slice::<Statement>(statement) {
        Ok(statement) if statement.predicate_type == SIGNATURE_PREDICATE => SignedKind::Signature,
        _ => SignedKind::Attestation,
    }
}

fn image(beside: &Reference, bytes: &[u8]) -> Result<Manifest, RegistryError> {
    match Document::parse(bytes).map_err(|problem| invalid(beside, chain(&problem)))? {
        Document::Manifest(manifest) => Ok(manifest),
        Document::Index(_) => {
            Err(invalid(beside, "is an index; signatures are expected as layers of an image"))
        }
    }
}

async fn read(
    source: &dyn ImageSource,
    beside: &Reference,
    manifest: &Manifest,
    kind: SignedKind,
    with: &[Credentials],
) -> Result<Vec<SignedPayload>, RegistryError> {
    if manifest.layers.len() > SIGNATURES_MAX {
        let problem = format!("has {} layers; at most {SIGNATURES_MAX} are read", manifest.layers.len());
        return Err(invalid(beside, problem));
    }
    // The tag says what they are: cosign's library writes attestations with either type.
    let known = |layer: &&Descriptor| {
        matches!(&*layer.media_type, media_type::COSIGN_PAYLOAD | media_type::DSSE_ENVELOPE)
    };
    let mut all = Vec::new();
    let mut budget = Budget::default();
    for layer in manifest.layers.iter().filter(known) {
        budget.take(beside, layer)?;
        let bytes = source.blob(beside, layer, with).await?.bytes(PAYLOAD_BYTES_MAX).await?;
        let found = match kind {
            SignedKind::Signature => simple(layer, bytes),
            SignedKind::Attestation => envelope(layer, bytes),
        };
        // What cannot be read is not a signature; others may be.
        match found {
            Some(found) => all.push(found),
            None => tracing::debug!(layer = %layer.digest, "a malformed signature is ignored"),
        }
    }
    Ok(all)
}

/// How much of the payloads of an image was read.
#[derive(Default)]
struct Budget(u64);

impl Budget {
    fn take(&mut self, beside: &Reference, layer: &Descriptor) -> Result<(), RegistryError> {
        self.0 = self.0.saturating_add(layer.size);
        if self.0 > PAYLOADS_BYTES_MAX {
            let problem = format!("signatures have more than {PAYLOADS_BYTES_MAX} bytes together");
            return Err(invalid(beside, problem));
        }
        Ok(())
    }
}

fn simple(layer: &Descriptor, payload: Bytes) -> Option<SignedPayload> {
    let signatures = vec![decode(layer.annotations.get(SIGNATURE)?)?];
    let material = annotated(layer);
    Some(SignedPayload { message: payload.clone(), payload, envelope: None, signatures, material })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    payload_type: String,
    payload: String,
    signatures: Vec<EnvelopeSignature>,
}

#[derive(Deserialize)]
struct EnvelopeSignature {
    sig: String,
}

fn envelope(layer: &Descriptor, bytes: Bytes) -> Option<SignedPayload> {
    let envelope: Envelope = serde_json::from_slice(&bytes).ok()?;
    opened(&envelope, Some(bytes), annotated(layer))
}

/// DSSE: type and payload are signed together, each with its length. Only statements are of interest.
fn opened(
    envelope: &Envelope,
    stored: Option<Bytes>,
    material: Result<Material, String>,
) -> Option<SignedPayload> {
    let payload = decode(&envelope.payload)?;
    let kind = &envelope.payload_type;
    if kind != STATEMENT_TYPE {
        return None;
    }
    let mut message = format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len()).into_bytes();
    message.extend_from_slice(&payload);
    let signatures = envelope.signatures.iter().take(SIGNATURES_MAX).filter_map(|s| decode(&s.sig)).collect();
    let (payload, message) = (payload.into(), message.into());
    Some(SignedPayload { payload, message, envelope: stored, signatures, material })
}

/// What the annotations of a layer say about a keyless signature.
fn annotated(layer: &Descriptor) -> Result<Material, String> {
    let annotation = |name: &str| layer.annotations.get(name).map(String::as_str).filter(|v| !v.is_empty());
    let timestamp = annotation(TIMESTAMP).map(|text| {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Annotation {
            #[serde(rename = "SignedRFC3161Timestamp")]
            signed: String,
        }
        let parsed: Option<Annotation> = serde_json::from_str(text).ok();
        parsed.and_then(|parsed| decode(&parsed.signed)).ok_or("the timestamp (RFC 3161) is malformed")
    });
    let timestamp = timestamp.transpose().map_err(str::to_owned)?;
    Material::from_annotations(annotation(CERTIFICATE), annotation(CHAIN), annotation(LOG_ENTRY), timestamp)
}

fn decode(text: &str) -> Option<Vec<u8>> {
    base64::engine::general_purpose::STANDARD.decode(text.trim()).ok()
}

//! Signatures and attestations of cosign: found beside an image (at the tags `sha256-….sig` and `sha256-….att`, or as
//! referrers in Sigstore's bundle format), verified by a public key.
//!
//! This module says which payloads are signed by a key. Whether a payload speaks of the image, and whether that makes
//! the image trusted, `transom_packages::trust` decides. Keyless signatures are returned with their certificates, but
//! certificates, transparency logs and trust roots are not verified here.

mod key;

use crate::failure::invalid;
use crate::image::{Descriptor, Document, Manifest, media_type};
use crate::source::ImageSource;
use base64::Engine as _;
use bytes::Bytes;
use serde::Deserialize;
use transom_packages::{Credentials, Digest, Reference, RegistryError, RegistryErrorKind};

pub use key::{HashAlgorithm, KeyError, PublicKey};

/// The most signatures of one image that are read.
const SIGNATURES_MAX: usize = 100;
/// The largest signed payload, in bytes: attestations hold whole lists of materials.
const PAYLOAD_BYTES_MAX: u64 = 32 << 20;

const BUNDLE_TYPE: &str = "application/vnd.dev.sigstore.bundle";
const SIGN_PREDICATE: &str = "https://sigstore.dev/cosign/sign/v1";
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
const CERTIFICATE: &str = "dev.sigstore.cosign/certificate";
const CHAIN: &str = "dev.sigstore.cosign/chain";
const BUNDLE: &str = "dev.sigstore.cosign/bundle";

/// What was signed, and its signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedPayload {
    /// The payload: a simple signing payload, or an in-toto statement without its envelope.
    pub payload: Bytes,
    /// The bytes that are signed: the payload itself, or the encoding of it that DSSE prescribes.
    message: Bytes,
    signatures: Vec<Vec<u8>>,
    /// The certificate of the signer in PEM, for keyless signatures. Not verified.
    pub certificate: Option<String>,
    /// The certificates that issued it, in PEM. Not verified.
    pub chain: Option<String>,
    /// The entry of the transparency log, in JSON. Not verified.
    pub bundle: Option<String>,
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
    let artifact =
        |d: &Descriptor| d.other.get("artifactType").and_then(|v| v.as_str()).is_some_and(is_bundle);
    let mut all = Vec::new();
    for referrer in referrers.iter().filter(|d| artifact(d)).take(SIGNATURES_MAX) {
        let beside = reference.at(referrer.digest.clone());
        let raw = source.manifest(&beside, with).await?;
        let manifest = image(&beside, &raw.bytes)?;
        let layers = manifest.layers.iter().filter(|layer| is_bundle(&layer.media_type));
        for layer in layers.take(SIGNATURES_MAX) {
            let bytes = source.blob(&beside, layer, with).await?.bytes(PAYLOAD_BYTES_MAX).await?;
            let bundle: Option<SigstoreBundle> = serde_json::from_slice(&bytes).ok();
            let found = bundle.and_then(|bundle| opened(layer, &bundle.dsse_envelope));
            all.extend(found.filter(|found| kind_of(&found.payload) == kind));
        }
    }
    Ok(all)
}

/// A bundle of Sigstore. Its certificates and log entries are not read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SigstoreBundle {
    dsse_envelope: Envelope,
}

/// In bundles, a signature is a statement as well, of a type of its own.
fn kind_of(statement: &[u8]) -> SignedKind {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Statement {
        predicate_type: String,
    }
    match serde_json::from_slice::<Statement>(statement) {
        Ok(statement) if statement.predicate_type == SIGN_PREDICATE => SignedKind::Signature,
        _ => SignedKind::Attestation,
    }
}

fn image(beside: &Reference, bytes: &[u8]) -> Result<Manifest, RegistryError> {
    match Document::parse(bytes).map_err(|problem| invalid(beside, problem))? {
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
    let expected = match kind {
        SignedKind::Signature => media_type::COSIGN_PAYLOAD,
        SignedKind::Attestation => media_type::DSSE_ENVELOPE,
    };
    let mut all = Vec::new();
    for layer in manifest.layers.iter().filter(|layer| layer.media_type == expected) {
        let bytes = source.blob(beside, layer, with).await?.bytes(PAYLOAD_BYTES_MAX).await?;
        let found = match kind {
            SignedKind::Signature => simple(layer, bytes),
            SignedKind::Attestation => envelope(layer, &bytes),
        };
        // What cannot be read is not a signature; others may be.
        match found {
            Some(found) => all.push(found),
            None => tracing::debug!(layer = %layer.digest, "a malformed signature is ignored"),
        }
    }
    Ok(all)
}

fn simple(layer: &Descriptor, payload: Bytes) -> Option<SignedPayload> {
    let signature = decode(layer.annotations.get(SIGNATURE)?)?;
    Some(signed(layer, payload.clone(), payload, vec![signature]))
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

fn envelope(layer: &Descriptor, bytes: &[u8]) -> Option<SignedPayload> {
    opened(layer, &serde_json::from_slice(bytes).ok()?)
}

/// DSSE: type and payload are signed together, each with its length.
fn opened(layer: &Descriptor, envelope: &Envelope) -> Option<SignedPayload> {
    let payload = decode(&envelope.payload)?;
    let kind = &envelope.payload_type;
    let mut message = format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len()).into_bytes();
    message.extend_from_slice(&payload);
    let signatures = envelope.signatures.iter().take(SIGNATURES_MAX).filter_map(|s| decode(&s.sig)).collect();
    Some(signed(layer, payload.into(), message.into(), signatures))
}

fn signed(layer: &Descriptor, payload: Bytes, message: Bytes, signatures: Vec<Vec<u8>>) -> SignedPayload {
    let annotation = |name: &str| layer.annotations.get(name).cloned();
    let (certificate, chain, bundle) = (annotation(CERTIFICATE), annotation(CHAIN), annotation(BUNDLE));
    SignedPayload { payload, message, signatures, certificate, chain, bundle }
}

fn decode(text: &str) -> Option<Vec<u8>> {
    base64::engine::general_purpose::STANDARD.decode(text.trim()).ok()
}

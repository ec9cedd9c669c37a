//! What the authorities of an ImageConfig signed of an image.

use super::trust_root::TrustRoot;
use super::{HashAlgorithm, PublicKey, SignedKind, SignedPayload, find};
use crate::failure::invalid;
use crate::source::ImageSource;
use async_trait::async_trait;
use std::sync::Arc;
use transom_packages::trust::{Authority, Evidence, SignatureVerifier, Signed};
use transom_packages::{Credentials, Reference, RegistryError};

/// Verifies the signatures that lie beside images, wherever these come from.
pub struct CosignVerifier {
    source: Arc<dyn ImageSource>,
    trust_root: Option<TrustRoot>,
    /// What to do to get a trust root, for messages.
    remedy: String,
}

impl CosignVerifier {
    /// For signatures in this place. Keyless authorities need a trust root: without one, their reason ends in the remedy.
    pub fn new(source: Arc<dyn ImageSource>, trust_root: Option<TrustRoot>, remedy: String) -> Self {
        Self { source, trust_root, remedy }
    }
}

#[async_trait]
impl SignatureVerifier for CosignVerifier {
    fn trust_root(&self) -> &str {
        self.trust_root.as_ref().map_or("", |root| root.digest().as_str())
    }

    async fn evidence(
        &self,
        image: &Reference,
        authorities: &[Authority],
        with: &[Credentials],
    ) -> Vec<Evidence> {
        let root = self.trust_root.as_ref().ok_or(self.remedy.as_str());
        evidence(&*self.source, root, image, authorities, with).await
    }
}

/// What is signed of the image at a reference with a digest, in a place: an entry for each authority, in the same order. In
/// place of a trust root, what to do to get one.
pub async fn evidence(
    source: &dyn ImageSource,
    root: Result<&TrustRoot, &str>,
    image: &Reference,
    authorities: &[Authority],
    with: &[Credentials],
) -> Vec<Evidence> {
    let mut found: Vec<(SignedKind, Result<Vec<SignedPayload>, RegistryError>)> = Vec::new();
    let mut all = Vec::new();
    for authority in authorities {
        let kind = match authority.config.attestations.is_empty() {
            true => SignedKind::Signature,
            false => SignedKind::Attestation,
        };
        let at = match found.iter().position(|(of, _)| *of == kind) {
            Some(at) => at,
            None => {
                found.push((kind, beside(source, image, kind, with).await));
                found.len() - 1
            }
        };
        all.push(match &found[at].1 {
            Ok(found) => of_authority(authority, root, found).unwrap_or_else(Evidence::Unknown),
            Err(RegistryError { message, retry_after: None, .. }) => Evidence::Unknown(message.clone()),
            Err(RegistryError { message, retry_after: Some(asked), .. }) => {
                Evidence::Busy(message.clone(), *asked)
            }
        });
    }
    all
}

async fn beside(
    source: &dyn ImageSource,
    image: &Reference,
    kind: SignedKind,
    with: &[Credentials],
) -> Result<Vec<SignedPayload>, RegistryError> {
    let digest = image.digest.as_ref().ok_or_else(|| invalid(image, "the image has no digest"))?;
    find(source, image, digest, kind, with).await
}

/// What one authority signed, of what was found.
fn of_authority(
    authority: &Authority,
    root: Result<&TrustRoot, &str>,
    found: &[SignedPayload],
) -> Result<Evidence, String> {
    if authority.config.key.is_some() {
        return by_key(authority, found);
    }
    match (&authority.config.keyless, root) {
        (Some(keyless), Ok(root)) => {
            Ok(by_identity(keyless.insecure_ignore_sct.unwrap_or_default(), root, found))
        }
        (Some(_), Err(remedy)) => Err(format!("there is no Sigstore trust root; {remedy}")),
        (None, _) => Err("it has neither a key nor keyless identities".to_owned()),
    }
}

fn by_key(authority: &Authority, found: &[SignedPayload]) -> Result<Evidence, String> {
    let key = authority.config.key.as_ref().ok_or("it has no key")?;
    let pem = authority.key.as_ref().ok_or("its key was not read")?;
    let pem = pem.as_ref().map_err(ToString::to_string)?;
    let hash = HashAlgorithm::named(&key.hash_algorithm).ok_or_else(|| {
        let name = &key.hash_algorithm;
        format!("hashAlgorithm {name:?} is not supported; sha224, sha256, sha384 and sha512 are")
    })?;
    let (secret, field) = (&key.secret_ref.name, &key.secret_ref.key);
    let named = |e: super::KeyError| format!("key {field:?} of Secret {secret:?}: {e}");
    let public = PublicKey::from_pem(pem).map_err(named)?;
    let (mut verified, mut refused) = (Vec::new(), Vec::new());
    for signed in found {
        if signed.is_signed_by(&public, hash).map_err(named)? {
            verified.push(Signed { payload: signed.payload.to_vec(), signer: None });
        } else {
            refused.push("a signature is not by its key".to_owned());
        }
    }
    Ok(Evidence::Found { verified, refused })
}

fn by_identity(ignore_sct: bool, root: &TrustRoot, found: &[SignedPayload]) -> Evidence {
    let (mut verified, mut refused) = (Vec::new(), Vec::new());
    for signed in found {
        match signed.signer(root, ignore_sct) {
            Ok(signer) => verified.push(Signed { payload: signed.payload.to_vec(), signer: Some(signer) }),
            Err(reason) => refused.push(reason),
        }
    }
    Evidence::Found { verified, refused }
}

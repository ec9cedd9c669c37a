//! Keyless signatures: by the key of a certificate that was valid for minutes only. A transparency log or a timestamp
//! authority proves that the signature was made while the certificate was valid.

use super::log::{Entry, Logged};
use super::trust_root::TrustRoot;
use super::{SignedPayload, certificate, timestamp};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use transom_packages::trust::Signer;

/// The most certificates that may come with a signature.
const CHAIN_MAX: usize = 10;

/// What comes with a keyless signature. Nothing in it is verified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Material {
    /// The certificate of the signer in DER; none for signatures by a key.
    pub(super) certificate: Option<Vec<u8>>,
    /// Certificates that issued it.
    pub(super) chain: Vec<Vec<u8>>,
    pub(super) entries: Vec<Entry>,
    /// Timestamps of RFC 3161.
    pub(super) timestamps: Vec<Vec<u8>>,
}

impl Material {
    /// Reads the annotations of cosign: certificates in PEM, and the entry of the log.
    pub(super) fn from_annotations(
        certificate: Option<&str>,
        chain: Option<&str>,
        entry: Option<&str>,
        timestamp: Option<Vec<u8>>,
    ) -> Result<Self, String> {
        let read = |pem: Option<&str>| -> Result<Vec<Vec<u8>>, String> {
            let all = CertificateDer::pem_slice_iter(pem.unwrap_or_default().as_bytes());
            let all = all.take(CHAIN_MAX).map(|certificate| certificate.map(|der| der.to_vec()));
            all.collect::<Result<_, _>>().map_err(|_| "the certificate is malformed".to_owned())
        };
        let mut own = read(certificate)?;
        own.truncate(1);
        Ok(Self {
            certificate: own.pop(),
            chain: read(chain)?,
            entries: entry.map(Entry::from_annotation).transpose()?.into_iter().collect(),
            timestamps: timestamp.into_iter().collect(),
        })
    }
}

impl SignedPayload {
    /// Whom the certificate says that it was issued to, which is not verified; nothing for signatures by a key.
    pub fn claimed_signer(&self) -> Option<Signer> {
        certificate::claimed(self.material.as_ref().ok()?.certificate.as_ref()?)
    }

    /// Who signed this, by a certificate of the trust root. Without `ignore_sct`, the certificate must be listed in a log
    /// of certificates.
    pub(crate) fn signer(&self, root: &TrustRoot, ignore_sct: bool) -> Result<Signer, String> {
        let material = self.material.as_ref().map_err(Clone::clone)?;
        let certificate = material.certificate.as_deref().ok_or("a signature has no certificate")?;
        if material.chain.len() > CHAIN_MAX {
            return Err(format!("more than {CHAIN_MAX} certificates come with the signature"));
        }
        let mut problem = "an envelope has no signatures".to_owned();
        for signature in &self.signatures {
            let logged = Logged {
                payload: &self.payload,
                message: &self.message,
                envelope: self.envelope.as_deref(),
                signature,
                certificate,
            };
            match self.signer_of(material, &logged, root, ignore_sct) {
                Ok(signer) => return Ok(signer),
                Err(reason) => problem = reason,
            }
        }
        Err(problem)
    }

    fn signer_of(
        &self,
        material: &Material,
        logged: &Logged<'_>,
        root: &TrustRoot,
        ignore_sct: bool,
    ) -> Result<Signer, String> {
        // One entry is needed. Others may be of logs that the trust root does not know.
        let (mut times, mut is_logged) = (Vec::new(), false);
        let mut problem = "the signature has no entry in a transparency log".to_owned();
        for entry in &material.entries {
            match entry.verify(root, logged) {
                Ok(at) => {
                    times.extend(at);
                    is_logged = true;
                }
                Err(reason) => problem = reason,
            }
        }
        if !is_logged {
            return Err(problem);
        }
        for response in &material.timestamps {
            match timestamp::verify(response, logged.signature, root) {
                Ok(at) => times.push(at),
                // One of an authority that is not trusted says nothing, and need not.
                Err(_) if !times.is_empty() => {}
                Err(reason) => return Err(reason),
            }
        }
        let (signer, key) =
            certificate::verify(logged.certificate, &material.chain, root, &times, ignore_sct)?;
        if !key.verifies_by_default(&self.message, logged.signature) {
            return Err("the signature is not by the key of its certificate".to_owned());
        }
        Ok(signer)
    }
}

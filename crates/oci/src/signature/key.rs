//! Public keys, as cosign writes them: `PUBLIC KEY` in PEM.

use p256::ecdsa::signature::hazmat::PrehashVerifier;
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;
use sha2::{Digest as _, Sha224, Sha256, Sha384, Sha512};
use x509_parser::prelude::FromDer;
use x509_parser::x509::SubjectPublicKeyInfo;

/// The hash that a signature is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HashAlgorithm {
    /// SHA-224.
    Sha224,
    /// SHA-256.
    #[default]
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl HashAlgorithm {
    /// The hash of this name, as an ImageConfig has it; nothing for other names.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name.trim().to_ascii_lowercase().as_str() {
            "" | "sha256" => Self::Sha256,
            "sha224" => Self::Sha224,
            "sha384" => Self::Sha384,
            "sha512" => Self::Sha512,
            _ => return None,
        })
    }

    /// The hash of a message.
    pub(super) fn digest(self, message: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha224 => Sha224::digest(message).to_vec(),
            Self::Sha256 => Sha256::digest(message).to_vec(),
            Self::Sha384 => Sha384::digest(message).to_vec(),
            Self::Sha512 => Sha512::digest(message).to_vec(),
        }
    }
}

/// A key that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the public key cannot be used: {problem}")]
pub struct KeyError {
    /// What is wrong, and what is expected.
    pub problem: String,
}

/// A public key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    kind: Kind,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    P256,
    P384,
    P521,
    Rsa,
    Ed25519,
}

impl PublicKey {
    /// Reads a key in PEM.
    pub fn from_pem(pem: &[u8]) -> Result<Self, KeyError> {
        let der = SubjectPublicKeyInfoDer::from_pem_slice(pem).map_err(|_| {
            wrong("it must be a PUBLIC KEY in PEM, such as the cosign.pub of cosign".to_owned())
        })?;
        Self::from_der(&der)
    }

    /// Reads a key in DER, with its algorithm.
    pub fn from_der(der: &[u8]) -> Result<Self, KeyError> {
        let (rest, info) = SubjectPublicKeyInfo::from_der(der)
            .map_err(|_| wrong("it does not hold the encoding of a public key".to_owned()))?;
        if !rest.is_empty() {
            return Err(wrong("something follows the encoding of the public key".to_owned()));
        }
        let parameter = info.algorithm.parameters.as_ref().and_then(|value| value.as_oid().ok());
        let curve = parameter.map(|oid| oid.to_id_string());
        let kind = match (&*info.algorithm.algorithm.to_id_string(), curve.as_deref()) {
            ("1.2.840.10045.2.1", Some("1.2.840.10045.3.1.7")) => Kind::P256,
            ("1.2.840.10045.2.1", Some("1.3.132.0.34")) => Kind::P384,
            ("1.2.840.10045.2.1", Some("1.3.132.0.35")) => Kind::P521,
            ("1.2.840.113549.1.1.1", _) => Kind::Rsa,
            ("1.3.101.112", _) => Kind::Ed25519,
            (algorithm, _) => {
                let supported = "ECDSA on P-256, P-384 or P-521, RSA and Ed25519 are supported";
                return Err(wrong(format!("its algorithm {algorithm} is not supported; {supported}")));
            }
        };
        Ok(Self { kind, bytes: info.subject_public_key.data.to_vec() })
    }

    /// Whether a signature of a message is by this key.
    pub fn verifies(&self, message: &[u8], signature: &[u8], hash: HashAlgorithm) -> Result<bool, KeyError> {
        let algorithms = self.algorithms(hash);
        if !algorithms.is_empty() {
            let by = |algorithm: &&'static dyn VerificationAlgorithm| {
                UnparsedPublicKey::new(*algorithm, &self.bytes).verify(message, signature).is_ok()
            };
            return Ok(algorithms.iter().any(by));
        }
        self.verifies_hash(&hash.digest(message), signature)
            .ok_or_else(|| wrong(format!("{:?} with {hash:?} is not supported; sign with sha256", self.kind)))
    }

    /// The same with the hash that belongs to the key: what certificates and logs are used with.
    pub(super) fn verifies_by_default(&self, message: &[u8], signature: &[u8]) -> bool {
        use HashAlgorithm::{Sha256, Sha384, Sha512};
        let hashes: &[HashAlgorithm] = match self.kind {
            Kind::P256 | Kind::Rsa | Kind::Ed25519 => &[Sha256],
            // cosign signs with SHA-256 whatever the curve; others take the hash of the curve's size.
            Kind::P384 => &[Sha384, Sha256],
            Kind::P521 => &[Sha512, Sha256],
        };
        hashes.iter().any(|hash| self.verifies(message, signature, *hash) == Ok(true))
    }

    /// The algorithms of `ring`, which has the usual hash of each curve and no P-521.
    fn algorithms(&self, hash: HashAlgorithm) -> Vec<&'static dyn VerificationAlgorithm> {
        use HashAlgorithm::{Sha256, Sha384, Sha512};
        match (self.kind, hash) {
            (Kind::P256, Sha256) => vec![&signature::ECDSA_P256_SHA256_ASN1],
            (Kind::P256, Sha384) => vec![&signature::ECDSA_P256_SHA384_ASN1],
            (Kind::P384, Sha256) => vec![&signature::ECDSA_P384_SHA256_ASN1],
            (Kind::P384, Sha384) => vec![&signature::ECDSA_P384_SHA384_ASN1],
            (Kind::Rsa, Sha256) => {
                vec![&signature::RSA_PKCS1_2048_8192_SHA256, &signature::RSA_PSS_2048_8192_SHA256]
            }
            (Kind::Rsa, Sha384) => {
                vec![&signature::RSA_PKCS1_2048_8192_SHA384, &signature::RSA_PSS_2048_8192_SHA384]
            }
            (Kind::Rsa, Sha512) => {
                vec![&signature::RSA_PKCS1_2048_8192_SHA512, &signature::RSA_PSS_2048_8192_SHA512]
            }
            // Ed25519 hashes by itself.
            (Kind::Ed25519, _) => vec![&signature::ED25519],
            _ => Vec::new(),
        }
    }

    /// ECDSA over a hash that `ring` does not combine with the curve. Nothing for other keys.
    fn verifies_hash(&self, hash: &[u8], signature: &[u8]) -> Option<bool> {
        let key = &self.bytes;
        Some(match self.kind {
            Kind::P256 => {
                let key = p256::ecdsa::VerifyingKey::from_sec1_bytes(key).ok();
                let signature = p256::ecdsa::Signature::from_der(signature).ok();
                key.zip(signature).is_some_and(|(key, sig)| key.verify_prehash(hash, &sig).is_ok())
            }
            Kind::P384 => {
                let key = p384::ecdsa::VerifyingKey::from_sec1_bytes(key).ok();
                let signature = p384::ecdsa::Signature::from_der(signature).ok();
                key.zip(signature).is_some_and(|(key, sig)| key.verify_prehash(hash, &sig).is_ok())
            }
            Kind::P521 => {
                // The crate refuses hashes of less than half the size of the curve. Zeros in front change nothing.
                let zeros = [0; 64];
                let hash = &[&zeros[hash.len().min(64)..], hash].concat()[..];
                let key = p521::ecdsa::VerifyingKey::from_sec1_bytes(key).ok();
                let signature = p521::ecdsa::Signature::from_der(signature).ok();
                key.zip(signature).is_some_and(|(key, sig)| key.verify_prehash(hash, &sig).is_ok())
            }
            Kind::Rsa | Kind::Ed25519 => return None,
        })
    }
}

fn wrong(problem: String) -> KeyError {
    KeyError { problem }
}

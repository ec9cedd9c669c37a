//! Public keys, as cosign writes them: `PUBLIC KEY` in PEM.

use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::prelude::FromDer;
use x509_parser::x509::SubjectPublicKeyInfo;

/// The hash that a signature is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HashAlgorithm {
    /// SHA-224, which is not supported.
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
        Some(match name {
            "" | "sha256" => Self::Sha256,
            "sha224" => Self::Sha224,
            "sha384" => Self::Sha384,
            "sha512" => Self::Sha512,
            _ => return None,
        })
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
#[derive(Clone, Debug)]
pub struct PublicKey {
    kind: Kind,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    P256,
    P384,
    Rsa,
    Ed25519,
}

impl PublicKey {
    /// Reads a key in PEM.
    pub fn from_pem(pem: &[u8]) -> Result<Self, KeyError> {
        let wrong = |problem: String| KeyError { problem };
        let der = SubjectPublicKeyInfoDer::from_pem_slice(pem).map_err(|_| {
            wrong("it must be a PUBLIC KEY in PEM, such as the cosign.pub of cosign".to_owned())
        })?;
        let (_, info) = SubjectPublicKeyInfo::from_der(&der)
            .map_err(|_| wrong("its PEM does not hold the encoding of a public key".to_owned()))?;
        let parameter = info.algorithm.parameters.as_ref().and_then(|value| value.as_oid().ok());
        let curve = parameter.map(|oid| oid.to_id_string());
        let kind = match (&*info.algorithm.algorithm.to_id_string(), curve.as_deref()) {
            ("1.2.840.10045.2.1", Some("1.2.840.10045.3.1.7")) => Kind::P256,
            ("1.2.840.10045.2.1", Some("1.3.132.0.34")) => Kind::P384,
            ("1.2.840.113549.1.1.1", _) => Kind::Rsa,
            ("1.3.101.112", _) => Kind::Ed25519,
            (algorithm, _) => {
                let supported = "ECDSA on P-256 or P-384, RSA and Ed25519 are supported";
                return Err(wrong(format!("its algorithm {algorithm} is not supported; {supported}")));
            }
        };
        Ok(Self { kind, bytes: info.subject_public_key.data.to_vec() })
    }

    /// Whether a signature of a message is by this key.
    pub fn verifies(&self, message: &[u8], signature: &[u8], hash: HashAlgorithm) -> Result<bool, KeyError> {
        let algorithms = self.algorithms(hash)?;
        let by = |algorithm: &&'static dyn VerificationAlgorithm| {
            UnparsedPublicKey::new(*algorithm, &self.bytes).verify(message, signature).is_ok()
        };
        Ok(algorithms.iter().any(by))
    }

    fn algorithms(&self, hash: HashAlgorithm) -> Result<Vec<&'static dyn VerificationAlgorithm>, KeyError> {
        use HashAlgorithm::{Sha256, Sha384, Sha512};
        Ok(match (self.kind, hash) {
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
            (kind, hash) => {
                return Err(KeyError {
                    problem: format!("{kind:?} with {hash:?} is not supported; sign with sha256"),
                });
            }
        })
    }
}

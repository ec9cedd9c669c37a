//! PKCS#10: the request in a CertificateSigningRequest. What it asks for, and the proof that its author has the key.
//!
//! A [`SigningRequest`] exists only for a request whose signature was verified. RSA keys from 2,048 bits, P-256, P-384 and
//! Ed25519 are known, with the signatures that certificates of such keys are used with.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use std::net::IpAddr;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::pem::{Pem, parse_x509_pem};
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::x509::AttributeTypeAndValue;

/// A request whose signature is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningRequest {
    /// The distinguished name, in DER.
    pub subject: Vec<u8>,
    /// The common names: the user. More than one is ambiguous.
    pub common_names: Vec<String>,
    /// The organizations: the groups of the user.
    pub organizations: Vec<String>,
    /// How many common names and organizations there are besides, in encodings that are not read, such as BMPString. Other
    /// programs may show them.
    pub unread_names: usize,
    /// The key, a SubjectPublicKeyInfo in DER.
    pub public_key: Vec<u8>,
    /// Further names of the subject.
    pub alternative_names: Vec<AlternativeName>,
}

/// A subject alternative name of a kind that certificates carry over from requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlternativeName {
    /// A DNS name.
    Dns(String),
    /// An address for e-mail.
    Email(String),
    /// A URI.
    Uri(String),
    /// An IP address.
    Ip(IpAddr),
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SigningRequestError {
    /// There is no PEM block of a request.
    #[error("PEM block type must be CERTIFICATE REQUEST")]
    NotARequest,
    /// The content of the block is not a PKCS#10 request.
    #[error("x509: malformed certificate request")]
    Malformed,
    /// The key or the signature is of a kind that is not known.
    #[error("x509: cannot verify signature: algorithm unimplemented")]
    UnknownAlgorithm,
    /// The signature was not made with the key.
    #[error("{0}")]
    Signature(&'static str),
}

impl SigningRequest {
    /// Reads a request in PEM, as it is in `spec.request`, and verifies its signature.
    pub fn parse(pem: &[u8]) -> Result<Self, SigningRequestError> {
        let (_, pem) = parse_x509_pem(pem).map_err(|_| SigningRequestError::NotARequest)?;
        if pem.label != "CERTIFICATE REQUEST" {
            return Err(SigningRequestError::NotARequest);
        }
        let parsed = X509CertificationRequest::from_der(&pem.contents);
        let (rest, request) = parsed.map_err(|_| SigningRequestError::Malformed)?;
        if !rest.is_empty() {
            return Err(SigningRequestError::Malformed);
        }
        verify(&request)?;
        let info = &request.certification_request_info;
        let mut unread_names = 0;
        let mut texts = |names: &mut dyn Iterator<Item = &AttributeTypeAndValue<'_>>| {
            let mut read = Vec::new();
            for name in names {
                match name.as_str() {
                    Ok(name) => read.push(name.to_owned()),
                    Err(_) => unread_names += 1,
                }
            }
            read
        };
        let common_names = texts(&mut info.subject.iter_common_name());
        let organizations = texts(&mut info.subject.iter_organization());
        Ok(Self {
            subject: info.subject.as_raw().to_vec(),
            common_names,
            organizations,
            unread_names,
            public_key: info.subject_pki.raw.to_vec(),
            alternative_names: alternative_names(&request),
        })
    }

    /// Reads the value of a `bytes` field, which JSON has as base64.
    pub fn parse_base64(text: &str) -> Result<Self, SigningRequestError> {
        Self::parse(&STANDARD.decode(text).unwrap_or_default())
    }
}

fn alternative_names(request: &X509CertificationRequest<'_>) -> Vec<AlternativeName> {
    let mut found = Vec::new();
    for extension in request.requested_extensions().into_iter().flatten() {
        let ParsedExtension::SubjectAlternativeName(names) = extension else { continue };
        found.extend(names.general_names.iter().filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(AlternativeName::Dns((*name).to_owned())),
            GeneralName::RFC822Name(name) => Some(AlternativeName::Email((*name).to_owned())),
            GeneralName::URI(name) => Some(AlternativeName::Uri((*name).to_owned())),
            GeneralName::IPAddress(octets) => address(octets).map(AlternativeName::Ip),
            _ => None,
        }));
    }
    found
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(octets).ok().map(IpAddr::from);
    four.or_else(|| <[u8; 16]>::try_from(octets).ok().map(IpAddr::from))
}

const RSA: &str = "crypto/rsa: verification error";
const ECDSA: &str = "x509: ECDSA verification failure";
const ED25519: &str = "x509: Ed25519 verification failure";

/// Whether the request is signed with the key that it names.
fn verify(request: &X509CertificationRequest<'_>) -> Result<(), SigningRequestError> {
    let key = &request.certification_request_info.subject_pki;
    let curve = key.algorithm.parameters.as_ref().and_then(|p| p.as_oid().ok());
    let curve = curve.map(|oid| oid.to_id_string()).unwrap_or_default();
    let signed_with = request.signature_algorithm.algorithm.to_id_string();
    let of_key = key.algorithm.algorithm.to_id_string();
    let known: (&dyn VerificationAlgorithm, &str) = match (&*of_key, &*curve, &*signed_with) {
        ("1.2.840.113549.1.1.1", _, "1.2.840.113549.1.1.11") => (&signature::RSA_PKCS1_2048_8192_SHA256, RSA),
        ("1.2.840.113549.1.1.1", _, "1.2.840.113549.1.1.12") => (&signature::RSA_PKCS1_2048_8192_SHA384, RSA),
        ("1.2.840.113549.1.1.1", _, "1.2.840.113549.1.1.13") => (&signature::RSA_PKCS1_2048_8192_SHA512, RSA),
        ("1.2.840.10045.2.1", P256, "1.2.840.10045.4.3.2") => (&signature::ECDSA_P256_SHA256_ASN1, ECDSA),
        ("1.2.840.10045.2.1", P256, "1.2.840.10045.4.3.3") => (&signature::ECDSA_P256_SHA384_ASN1, ECDSA),
        ("1.2.840.10045.2.1", P384, "1.2.840.10045.4.3.2") => (&signature::ECDSA_P384_SHA256_ASN1, ECDSA),
        ("1.2.840.10045.2.1", P384, "1.2.840.10045.4.3.3") => (&signature::ECDSA_P384_SHA384_ASN1, ECDSA),
        ("1.3.101.112", _, "1.3.101.112") => (&signature::ED25519, ED25519),
        _ => return Err(SigningRequestError::UnknownAlgorithm),
    };
    let (algorithm, otherwise) = known;
    let key = UnparsedPublicKey::new(algorithm, &*key.subject_public_key.data);
    let content = request.certification_request_info.raw;
    key.verify(content, &request.signature_value.data).map_err(|_| SigningRequestError::Signature(otherwise))
}

const P256: &str = "1.2.840.10045.3.1.7";
const P384: &str = "1.3.132.0.34";

/// What is wrong with the content of `status.certificate`: anything but certificates in PEM.
pub(crate) fn certificate_problem(content: &[u8]) -> Option<String> {
    if content.is_empty() {
        return None;
    }
    let mut certificates = 0;
    // A block that cannot be decoded is not a block, as for Go.
    for block in Pem::iter_from_buffer(content).map_while(Result::ok) {
        if block.label != "CERTIFICATE" {
            return Some(format!("only CERTIFICATE PEM blocks are allowed, found {:?}", block.label));
        }
        let mut rest = block.contents.as_slice();
        if rest.is_empty() {
            return Some("found CERTIFICATE PEM block containing 0 certificates".into());
        }
        while !rest.is_empty() {
            match X509Certificate::from_der(rest) {
                Ok((after, _)) => rest = after,
                Err(_) => return Some("x509: malformed certificate".into()),
            }
        }
        certificates += 1;
    }
    (certificates == 0).then(|| "must contain at least one CERTIFICATE PEM block".into())
}

/// When the first certificate in a `bytes` field expires, in Unix seconds; none if there is none.
pub fn expiry_of_base64(text: &str) -> Option<i64> {
    let content = STANDARD.decode(text).ok()?;
    let (_, pem) = parse_x509_pem(&content).ok()?;
    let (_, certificate) = X509Certificate::from_der(&pem.contents).ok()?;
    Some(certificate.validity().not_after.timestamp())
}

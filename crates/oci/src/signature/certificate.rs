//! Certificates of signers: issued by an authority of the trust root for code signing, valid when they were used, listed in
//! a log of certificates, and to whom they were issued.

use super::der;
use super::key::PublicKey;
use super::sct;
use super::trust_root::{CertificateAuthority, TrustRoot};
use rustls::pki_types::{CertificateDer, UnixTime};
use std::time::Duration;
use transom_packages::trust::Signer;
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::{FromDer, X509Certificate};

/// 1.3.6.1.5.5.7.3.3
const CODE_SIGNING: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x03];
/// 1.3.6.1.5.5.7.3.8
pub(super) const TIME_STAMPING: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x08];
/// The issuer of the identity: as text, and before that as bare bytes.
const ISSUER: &str = "1.3.6.1.4.1.57264.1.8";
const ISSUER_OLD: &str = "1.3.6.1.4.1.57264.1.1";
/// The name of an identity that is neither an address nor a URI.
const USER_NAME: &str = "1.3.6.1.4.1.57264.1.7";
/// The largest certificate, in bytes.
pub(super) const CERTIFICATE_BYTES_MAX: usize = 64 << 10;

/// Whom a certificate was issued to, and their key, if it was valid at all these times. `beside` are certificates that came
/// with it.
pub(super) fn verify(
    certificate: &[u8],
    beside: &[Vec<u8>],
    root: &TrustRoot,
    times: &[i64],
    ignore_sct: bool,
) -> Result<(Signer, PublicKey), String> {
    let parsed = parse(certificate)?;
    must_sign_code(&parsed)?;
    if times.is_empty() {
        return Err("there is no trusted time at which the signature was made".to_owned());
    }
    for at in times {
        let mut problem = "the trust root has no certificate authority that was valid then".to_owned();
        let mut is_listed = Ok(());
        let issued = root.authorities(*at).any(|authority| {
            match issuer_key(certificate, beside, authority, *at, CODE_SIGNING) {
                Ok(_) if ignore_sct => is_listed = Ok(()),
                Ok(key) => is_listed = sct::verify(certificate, &key, root),
                Err(reason) => {
                    problem = reason;
                    return false;
                }
            }
            true
        });
        is_listed?;
        if !issued {
            return Err(format!("the certificate is not trusted at {}: {problem}", moment(*at)));
        }
    }
    let key = PublicKey::from_der(parsed.public_key().raw).map_err(|e| format!("the certificate: {e}"))?;
    Ok((signer(&parsed), key))
}

/// Whom a certificate says that it was issued to.
pub(super) fn claimed(certificate: &[u8]) -> Option<Signer> {
    parse(certificate).ok().map(|parsed| signer(&parsed))
}

pub(super) fn parse(certificate: &[u8]) -> Result<X509Certificate<'_>, String> {
    if certificate.len() > CERTIFICATE_BYTES_MAX {
        return Err(format!("the certificate has more than {CERTIFICATE_BYTES_MAX} bytes"));
    }
    match X509Certificate::from_der(certificate) {
        Ok((&[], parsed)) => Ok(parsed),
        _ => Err("the certificate is malformed".to_owned()),
    }
}

/// The key, with its algorithm, of the certificate that issued another one for a usage, if that leads to the root of an
/// authority at a time.
pub(super) fn issuer_key(
    certificate: &[u8],
    beside: &[Vec<u8>],
    authority: &CertificateAuthority,
    at: i64,
    usage: &'static [u8],
) -> Result<Vec<u8>, String> {
    let (root, intermediates) = authority.chain.split_last().ok_or("the authority has no certificates")?;
    let of_root = parse(root).map_err(|_| "the root certificate of the trust root is malformed")?;
    let is_valid =
        of_root.validity().not_before.timestamp() <= at && at <= of_root.validity().not_after.timestamp();
    if !is_valid {
        return Err("the root certificate was not valid then".to_owned());
    }
    let anchor = anchor_from_trusted_cert(root).map_err(|e| format!("the root certificate: {e}"))?;
    let beside = beside.iter().map(|der| CertificateDer::from(der.as_slice()));
    let intermediates: Vec<CertificateDer<'_>> = intermediates.iter().cloned().chain(beside).collect();
    let leaf = CertificateDer::from(certificate);
    let leaf = EndEntityCert::try_from(&leaf).map_err(|e| explain(&e))?;
    let at = UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(at).unwrap_or_default()));
    // Authorities need not say what the certificates are for that they issue, but may.
    let usage = KeyUsage::required_if_present(usage);
    let anchors = [anchor];
    let path = leaf
        .verify_for_usage(webpki::ALL_VERIFICATION_ALGS, &anchors, &intermediates, at, usage, None, None)
        .map_err(|e| explain(&e))?;
    Ok(match path.intermediate_certificates().next() {
        Some(issuer) => issuer.subject_public_key_info().to_vec(),
        None => der::encode(der::SEQUENCE, &path.anchor().subject_public_key_info),
    })
}

/// The usual reasons in words.
fn explain(error: &webpki::Error) -> String {
    use webpki::Error::{CaUsedAsEndEntity, CertExpired, CertNotValidYet, UnknownIssuer};
    match error {
        CertExpired { .. } => "it had expired".to_owned(),
        CertNotValidYet { .. } => "it was not valid yet".to_owned(),
        UnknownIssuer => "no certificate authority of the trust root issued it".to_owned(),
        CaUsedAsEndEntity => "it is of a certificate authority, not of a signer".to_owned(),
        other => format!("its path to a certificate authority of the trust root is wrong ({other})"),
    }
}

fn must_sign_code(certificate: &X509Certificate<'_>) -> Result<(), String> {
    let usage = certificate.extended_key_usage().ok().flatten();
    match usage {
        Some(usage) if usage.value.code_signing => Ok(()),
        _ => Err("the certificate is not for code signing".to_owned()),
    }
}

fn signer(certificate: &X509Certificate<'_>) -> Signer {
    let extension = |oid: &str| {
        let found = certificate.extensions().iter().find(|extension| extension.oid.to_id_string() == oid);
        found.map(|extension| extension.value)
    };
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    let issuer = match extension(ISSUER) {
        Some(value) => der::only(value, der::UTF8_STRING).and_then(text),
        None => extension(ISSUER_OLD).and_then(text),
    };
    let mut subjects = Vec::new();
    for extension in certificate.extensions() {
        if let ParsedExtension::SubjectAlternativeName(names) = extension.parsed_extension() {
            subjects.extend(names.general_names.iter().filter_map(subject));
        }
    }
    Signer { issuer: issuer.unwrap_or_default(), subjects }
}

fn subject(name: &GeneralName<'_>) -> Option<String> {
    Some(match name {
        GeneralName::RFC822Name(text) | GeneralName::DNSName(text) | GeneralName::URI(text) => {
            (*text).to_owned()
        }
        GeneralName::IPAddress(bytes) => match <[u8; 4]>::try_from(*bytes) {
            Ok(bytes) => std::net::Ipv4Addr::from(bytes).to_string(),
            Err(_) => std::net::Ipv6Addr::from(<[u8; 16]>::try_from(*bytes).ok()?).to_string(),
        },
        GeneralName::OtherName(kind, value) if kind.to_id_string() == USER_NAME => {
            let inside = der::only(value, der::context(0))?;
            String::from_utf8(der::only(inside, der::UTF8_STRING)?.to_vec()).ok()?
        }
        _ => return None,
    })
}

/// A human-readable time.
pub(super) fn moment(at: i64) -> String {
    jiff::Timestamp::from_second(at).map_or_else(|_| format!("second {at}"), |time| time.to_string())
}

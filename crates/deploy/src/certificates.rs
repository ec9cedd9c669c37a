//! Certificates of packages: made by one authority, checked whenever they are used. Nothing here reads the clock or writes.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use sha2::{Digest, Sha256};
use std::time::Duration;
use time::OffsetDateTime;
use transom_object::time::Timestamp;

const AUTHORITY_LIFETIME: time::Duration = time::Duration::days(3650);
const LEAF_LIFETIME: time::Duration = time::Duration::days(365);
/// A certificate is replaced when less than this is left of its lifetime.
const LEAF_RENEWED_BEFORE: Duration = Duration::from_secs(120 * 24 * 3600);
const AUTHORITY_RENEWED_BEFORE: Duration = Duration::from_secs(500 * 24 * 3600);

/// Why a certificate cannot be made or used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// It cannot be made.
    #[error("cannot make a certificate")]
    Make(#[from] rcgen::Error),
    /// What is stored is not a certificate with its key.
    #[error("the stored certificate or its key is malformed: {0}")]
    Malformed(String),
}

/// What a certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// To be called.
    Server,
    /// To call others.
    Client,
}

/// A certificate that is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The names that it must be valid for.
    pub names: Vec<String>,
    /// What it is for.
    pub usage: Usage,
}

/// A certificate and its key, in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Leaf {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

impl std::fmt::Debug for Leaf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Leaf { .. }")
    }
}

impl Leaf {
    /// Whether it is a certificate with its key, and valid now.
    pub(crate) fn is_valid(&self, now: Timestamp) -> bool {
        let Ok(der) = CertificateDer::from_pem_slice(self.certificate.as_bytes()) else { return false };
        let Ok((_, parsed)) = x509_parser::parse_x509_certificate(&der) else { return false };
        let has_key =
            read_key(&self.key).is_ok_and(|pair| parsed.public_key().raw == pair.subject_public_key_info());
        has_key && parsed.validity().not_after.timestamp() > now.as_second()
    }

    /// When it is replaced because it expires.
    pub(crate) fn renewal(&self) -> Option<Timestamp> {
        renewal(&self.certificate, LEAF_RENEWED_BEFORE)
    }
}

/// Makes certificates.
pub struct Authority {
    certificate: String,
    key: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// A new one, named as Crossplane's.
    pub fn new(now: Timestamp) -> Result<Self, CertificateError> {
        let mut params = CertificateParams::new(vec!["crossplane-root-ca".to_owned()])?;
        for (field, value) in [
            (DnType::CommonName, "Crossplane"),
            (DnType::OrganizationName, "Crossplane"),
            (DnType::CountryName, "Earth"),
            (DnType::StateOrProvinceName, "Earth"),
            (DnType::LocalityName, "Earth"),
        ] {
            params.distinguished_name.push(field, value);
        }
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        lifetime(&mut params, now, AUTHORITY_LIFETIME);
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?.pem();
        let pem = key.serialize_pem();
        Ok(Self { issuer: Issuer::from_ca_cert_pem(&certificate, key)?, certificate, key: pem })
    }

    /// The one with this certificate and key, in PEM, unless it must be replaced.
    pub fn read(certificate: &str, key: &str, now: Timestamp) -> Result<Self, CertificateError> {
        let malformed = |e: &dyn std::fmt::Display| CertificateError::Malformed(e.to_string());
        let pair = read_key(key)?;
        let der = CertificateDer::from_pem_slice(certificate.as_bytes()).map_err(|e| malformed(&e))?;
        let (_, parsed) = x509_parser::parse_x509_certificate(&der).map_err(|e| malformed(&e))?;
        if parsed.public_key().raw != pair.subject_public_key_info() {
            return Err(malformed(&"the key is that of another certificate"));
        }
        if !parsed.is_ca() {
            return Err(malformed(&"it is not the certificate of an authority"));
        }
        if parsed.validity().not_after.timestamp() < later(now, AUTHORITY_RENEWED_BEFORE) {
            return Err(malformed(&"it expires soon"));
        }
        let issuer = Issuer::from_ca_cert_pem(certificate, pair)?;
        Ok(Self { issuer, certificate: certificate.to_owned(), key: key.to_owned() })
    }

    /// Its certificate, in PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Its key, in PEM.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// When it is replaced because it expires.
    pub(crate) fn renewal(&self) -> Option<Timestamp> {
        renewal(&self.certificate, AUTHORITY_RENEWED_BEFORE)
    }

    /// A new certificate.
    pub fn issue(&self, need: &Need, now: Timestamp) -> Result<Leaf, CertificateError> {
        let mut params = CertificateParams::new(need.names.clone())?;
        let name = need.names.first().map(String::as_str).unwrap_or_default();
        // The common name has a limit of 64 characters; what counts are the alternative names.
        params.distinguished_name.push(DnType::CommonName, name.chars().take(64).collect::<String>());
        params.distinguished_name.push(DnType::OrganizationName, "Crossplane");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        params.extended_key_usages = vec![match need.usage {
            Usage::Server => ExtendedKeyUsagePurpose::ServerAuth,
            Usage::Client => ExtendedKeyUsagePurpose::ClientAuth,
        }];
        params.use_authority_key_identifier_extension = true;
        lifetime(&mut params, now, LEAF_LIFETIME);
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Leaf { certificate, key: key.serialize_pem() })
    }

    /// Why a certificate must be replaced: it is malformed, of another authority, for other names, or expires soon.
    pub(crate) fn check(&self, leaf: &Leaf, need: &Need, now: Timestamp) -> Result<(), String> {
        let malformed = |e: &dyn std::fmt::Display| e.to_string();
        let der = CertificateDer::from_pem_slice(leaf.certificate.as_bytes()).map_err(|e| malformed(&e))?;
        let (_, parsed) = x509_parser::parse_x509_certificate(&der).map_err(|e| malformed(&e))?;
        let pair = read_key(&leaf.key).map_err(|e| malformed(&e))?;
        if parsed.public_key().raw != pair.subject_public_key_info() {
            return Err("the key is that of another certificate".to_owned());
        }
        if parsed.validity().not_after.timestamp() < later(now, LEAF_RENEWED_BEFORE) {
            return Err("it expires soon".to_owned());
        }
        let authority =
            CertificateDer::from_pem_slice(self.certificate.as_bytes()).map_err(|e| malformed(&e))?;
        let anchor = webpki::anchor_from_trusted_cert(&authority).map_err(|e| malformed(&e))?;
        let end = webpki::EndEntityCert::try_from(&der).map_err(|e| malformed(&e))?;
        let usage = match need.usage {
            Usage::Server => webpki::KeyUsage::server_auth(),
            Usage::Client => webpki::KeyUsage::client_auth(),
        };
        let time = UnixTime::since_unix_epoch(Duration::from_secs(
            u64::try_from(now.as_second()).unwrap_or_default(),
        ));
        let anchors = [anchor];
        let verified =
            end.verify_for_usage(webpki::ALL_VERIFICATION_ALGS, &anchors, &[], time, usage, None, None);
        verified.map_err(|e| format!("its authority did not make it: {e}"))?;
        for name in &need.names {
            let valid = ServerName::try_from(name.as_str()).map_err(|e| malformed(&e))?;
            end.verify_is_valid_for_subject_name(&valid)
                .map_err(|_| format!("it is not valid for {name}"))?;
        }
        Ok(())
    }
}

/// What distinguishes a certificate from those before it, short enough for an annotation.
pub(crate) fn fingerprint(parts: &[&str]) -> String {
    let digest = Sha256::digest(parts.join("\n"));
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The certificates in a text in PEM, each in PEM.
pub(crate) fn split(bundle: &str) -> Vec<String> {
    const END: &str = "-----END CERTIFICATE-----";
    let blocks = bundle.split_inclusive(END).filter(|block| block.ends_with(END));
    blocks.map(|block| format!("{}\n", block.trim_start())).collect()
}

/// A key in PEM. Crossplane's own are RSA keys in the form of PKCS #1, which become PKCS #8.
fn read_key(pem: &str) -> Result<KeyPair, CertificateError> {
    let der = PrivateKeyDer::from_pem_slice(pem.as_bytes());
    let der = der.map_err(|e| CertificateError::Malformed(e.to_string()))?;
    let der = match &der {
        PrivateKeyDer::Pkcs1(key) => {
            PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(wrapped(key.secret_pkcs1_der())))
        }
        _ => der,
    };
    Ok(KeyPair::try_from(&der)?)
}

/// An RSA key of PKCS #1 in the form of PKCS #8.
fn wrapped(key: &[u8]) -> Vec<u8> {
    /// Version 0, and the identifier of RSA keys.
    const PREFIX: &[u8] = &[
        0x02, 0x01, 0x00, 0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05,
        0x00,
    ];
    let tagged = |tag: u8, content: &[u8]| {
        let length = content.len().to_be_bytes();
        let length: Vec<u8> = length.into_iter().skip_while(|byte| *byte == 0).collect();
        let mut all = vec![tag];
        match (content.len(), u8::try_from(length.len())) {
            (0..=127, _) => all.push(u8::try_from(content.len()).unwrap_or_default()),
            (_, count) => {
                all.push(0x80 | count.unwrap_or_default());
                all.extend(length);
            }
        }
        all.extend(content);
        all
    };
    tagged(0x30, &[PREFIX, &tagged(0x04, key)].concat())
}

fn later(now: Timestamp, duration: Duration) -> i64 {
    now.as_second().saturating_add(i64::try_from(duration.as_secs()).unwrap_or(i64::MAX))
}

/// The first second in which less than `before` is left of the lifetime of a certificate.
fn renewal(certificate: &str, before: Duration) -> Option<Timestamp> {
    let der = CertificateDer::from_pem_slice(certificate.as_bytes()).ok()?;
    let (_, parsed) = x509_parser::parse_x509_certificate(&der).ok()?;
    let before = i64::try_from(before.as_secs()).ok()?;
    Timestamp::from_second(parsed.validity().not_after.timestamp().checked_sub(before)?.checked_add(1)?).ok()
}

/// From a little before now, for clocks that disagree.
fn lifetime(params: &mut CertificateParams, now: Timestamp, lifetime: time::Duration) {
    let now = OffsetDateTime::from_unix_timestamp(now.as_second()).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    params.not_before = now - time::Duration::hours(1);
    params.not_after = now + lifetime;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        transom_object::time::parse(text).unwrap()
    }

    fn need(names: &[&str], usage: Usage) -> Need {
        Need { names: names.iter().map(|name| (*name).to_owned()).collect(), usage }
    }

    #[test]
    fn a_certificate_is_replaced_when_it_must_be() {
        let now = at("2026-01-01T00:00:00Z");
        let authority = Authority::new(now).unwrap();
        let wanted = need(&["function-x", "function-x.ns", "function-x.ns.svc"], Usage::Server);
        let leaf = authority.issue(&wanted, now).unwrap();
        assert_eq!(authority.check(&leaf, &wanted, now), Ok(()));
        let reason = |authority: &Authority, leaf: &Leaf, need: &Need, now| {
            authority.check(leaf, need, now).unwrap_err()
        };
        let other = Authority::new(now).unwrap();
        let message = reason(&other, &leaf, &wanted, now);
        assert!(message.starts_with("its authority did not make it"), "{message}");
        let more = need(&["function-x", "function-y"], Usage::Server);
        assert_eq!(reason(&authority, &leaf, &more, now), "it is not valid for function-y");
        let message = reason(&authority, &leaf, &need(&["function-x"], Usage::Client), now);
        assert!(message.contains("its authority did not make it"), "{message}");
        assert_eq!(reason(&authority, &leaf, &wanted, at("2026-10-01T00:00:00Z")), "it expires soon");
        let due = leaf.renewal().unwrap();
        assert_eq!(reason(&authority, &leaf, &wanted, due), "it expires soon");
        let before = due.checked_sub(Duration::from_secs(1)).unwrap();
        assert_eq!(authority.check(&leaf, &wanted, before), Ok(()), "not a second earlier");
        let mixed = Leaf { key: authority.issue(&wanted, now).unwrap().key, ..leaf.clone() };
        assert_eq!(reason(&authority, &mixed, &wanted, now), "the key is that of another certificate");
        let garbage = Leaf { certificate: "x".into(), key: "y".into() };
        assert!(authority.check(&garbage, &wanted, now).is_err());
        assert_eq!(format!("{leaf:?}"), "Leaf { .. }", "keys are not printed");
    }

    #[test]
    fn an_authority_is_kept_until_it_expires_soon() {
        let now = at("2026-01-01T00:00:00Z");
        let authority = Authority::new(now).unwrap();
        let read = |now| Authority::read(authority.certificate(), authority.key(), now);
        assert_eq!(read(now).unwrap().certificate(), authority.certificate());
        assert!(read(at("2035-06-01T00:00:00Z")).is_err());
        let due = authority.renewal().unwrap();
        assert!(read(due).is_err() && read(due.checked_sub(Duration::from_secs(1)).unwrap()).is_ok());
        let other = Authority::new(now).unwrap();
        assert!(Authority::read(authority.certificate(), other.key(), now).is_err());
        let wanted = need(&["x"], Usage::Server);
        let leaf = authority.issue(&wanted, now).unwrap();
        assert!(Authority::read(&leaf.certificate, &leaf.key, now).is_err(), "not an authority");
    }

    #[test]
    fn bundles_are_split() {
        let now = at("2026-01-01T00:00:00Z");
        let all = [Authority::new(now).unwrap(), Authority::new(now).unwrap()];
        let bundle = format!("{}{}", all[0].certificate(), all[1].certificate());
        let parts = split(&bundle);
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[1].trim(), all[1].certificate().replace("\r\n", "\n").trim());
        assert!(split("").is_empty() && split("no certificate").is_empty());
    }
}

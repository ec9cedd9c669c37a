//! The certificates of webhooks: an authority of their own, and a server certificate that it signed.
//!
//! Both are renewed when a third of their lifetime is left. A new authority is trusted together with the one before, so
//! that processes that still serve the old certificate are trusted until they read the new one.

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use time::OffsetDateTime;

/// How many authorities are trusted at once: the present one and the one before.
const MAX_AUTHORITIES: usize = 2;

/// How long certificates are valid.
#[derive(Clone, Copy, Debug)]
pub struct Lifetimes {
    /// Of the authority.
    pub authority: Duration,
    /// Of the server certificate.
    pub server: Duration,
}

impl Default for Lifetimes {
    fn default() -> Self {
        let day = Duration::from_secs(24 * 60 * 60);
        Self { authority: day * 365 * 2, server: day * 90 }
    }
}

/// A certificate could not be made or read.
#[derive(Debug, thiserror::Error)]
#[error("cannot make or read a certificate")]
pub struct CertificateError(#[source] Box<dyn std::error::Error + Send + Sync>);

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> CertificateError {
    CertificateError(error.into())
}

/// An authority and a server certificate, in PEM, as a Secret keeps them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificates {
    /// The trusted authorities, the present one first.
    pub authorities: String,
    authority_key: String,
    certificate: String,
    key: String,
}

impl Certificates {
    /// From the data of a Secret; none if something is missing.
    pub fn read(data: &BTreeMap<String, Vec<u8>>) -> Option<Self> {
        let text = |key: &str| String::from_utf8(data.get(key)?.clone()).ok().filter(|text| !text.is_empty());
        let (authorities, authority_key) = (text("ca.crt")?, text("ca.key")?);
        Some(Self { authorities, authority_key, certificate: text("tls.crt")?, key: text("tls.key")? })
    }

    /// The data of a Secret.
    pub fn data(&self) -> BTreeMap<&'static str, &str> {
        let Self { authorities, authority_key, certificate, key } = self;
        BTreeMap::from([
            ("ca.crt", authorities.as_str()),
            ("ca.key", authority_key),
            ("tls.crt", certificate),
            ("tls.key", key),
        ])
    }

    /// What takes the place of these certificates at a time; none if they are good for these names. Certificates that
    /// cannot be read, have another authority or other names are replaced.
    pub fn renewed(
        current: Option<&Self>,
        names: &[String],
        lifetimes: Lifetimes,
        now: OffsetDateTime,
    ) -> Result<Option<Self>, CertificateError> {
        let usable = current.filter(|current| current.authority_is_good(lifetimes, now));
        match usable {
            Some(current) if current.server_is_good(names, lifetimes, now) => Ok(None),
            Some(current) => current.with_server(names, lifetimes, now).map(Some),
            None => {
                let (authority, authority_key) = new_authority(lifetimes, now).map_err(failed)?;
                let before = current.map(|current| current.still_valid(now)).unwrap_or_default();
                let trusted = [authority].into_iter().chain(before).take(MAX_AUTHORITIES);
                let (certificate, key) = (String::new(), String::new());
                let new = Self { authorities: trusted.collect(), authority_key, certificate, key };
                new.with_server(names, lifetimes, now).map(Some)
            }
        }
    }

    fn authority_is_good(&self, lifetimes: Lifetimes, now: OffsetDateTime) -> bool {
        let first = CertificateDer::from_pem_slice(self.authorities.as_bytes());
        first.is_ok_and(|first| has_enough_left(&first, lifetimes.authority, now)) && self.issuer().is_ok()
    }

    fn server_is_good(&self, names: &[String], lifetimes: Lifetimes, now: OffsetDateTime) -> bool {
        let Ok(server) = CertificateDer::from_pem_slice(self.certificate.as_bytes()) else { return false };
        let Ok((_, parsed)) = x509_parser::parse_x509_certificate(&server) else { return false };
        let san = parsed.subject_alternative_name().ok().flatten();
        let has = |name: &String| {
            san.as_ref().is_some_and(|san| {
                san.value.general_names.iter().any(|known| match known {
                    x509_parser::extensions::GeneralName::DNSName(known) => known == name,
                    x509_parser::extensions::GeneralName::IPAddress(bytes) => {
                        ip_address(bytes).as_ref() == Some(name)
                    }
                    _ => false,
                })
            })
        };
        names.iter().all(has) && has_enough_left(&server, lifetimes.server, now) && self.serving().is_ok()
    }

    /// The authorities that have not expired yet, each in PEM.
    fn still_valid(&self, now: OffsetDateTime) -> Vec<String> {
        let blocks = self.authorities.split_inclusive("-----END CERTIFICATE-----").map(str::trim);
        let valid = blocks.filter(|block| {
            let read = CertificateDer::from_pem_slice(block.as_bytes());
            read.is_ok_and(|certificate| {
                not_after(&certificate).is_some_and(|end| end > now.unix_timestamp())
            })
        });
        valid.map(|block| format!("{block}\n")).collect()
    }

    fn issuer(&self) -> Result<Issuer<'static, KeyPair>, CertificateError> {
        let key = KeyPair::from_pem(&self.authority_key).map_err(failed)?;
        Issuer::from_ca_cert_pem(&self.authorities, key).map_err(failed)
    }

    fn with_server(
        &self,
        names: &[String],
        lifetimes: Lifetimes,
        now: OffsetDateTime,
    ) -> Result<Self, CertificateError> {
        let mut params = CertificateParams::new(names.to_vec()).map_err(failed)?;
        params.distinguished_name = name("transom-webhooks");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        validity(&mut params, lifetimes.server, now);
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.signed_by(&key, &self.issuer()?).map_err(failed)?;
        Ok(Self { certificate: certificate.pem(), key: key.serialize_pem(), ..self.clone() })
    }

    /// What a server presents.
    pub(crate) fn serving(&self) -> Result<Arc<CertifiedKey>, CertificateError> {
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes()).map_err(failed)?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).map_err(failed)?;
        let key = rustls::crypto::ring::sign::any_supported_type(&key).map_err(failed)?;
        let certified = CertifiedKey::new(vec![certificate], key);
        certified.keys_match().map_err(failed)?;
        Ok(Arc::new(certified))
    }
}

fn ip_address(address: &[u8]) -> Option<String> {
    let four = <[u8; 4]>::try_from(address).map(|bytes| std::net::IpAddr::from(bytes).to_string());
    let sixteen = || <[u8; 16]>::try_from(address).map(|bytes| std::net::IpAddr::from(bytes).to_string());
    four.or_else(|_| sixteen()).ok()
}

fn not_after(certificate: &CertificateDer<'_>) -> Option<i64> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    Some(parsed.validity().not_after.timestamp())
}

/// Whether more than a third of the lifetime is left.
fn has_enough_left(certificate: &CertificateDer<'_>, lifetime: Duration, now: OffsetDateTime) -> bool {
    not_after(certificate).is_some_and(|end| end > (now + lifetime / 3).unix_timestamp())
}

fn new_authority(lifetimes: Lifetimes, now: OffsetDateTime) -> Result<(String, String), rcgen::Error> {
    let mut params = CertificateParams::default();
    // A name of its own for each: a chain is built by names.
    params.distinguished_name = name(&format!("transom-webhooks-ca-{}", now.unix_timestamp()));
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    validity(&mut params, lifetimes.authority, now);
    let key = KeyPair::generate()?;
    Ok((params.self_signed(&key)?.pem(), key.serialize_pem()))
}

fn name(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}

/// From a little before now, for clocks that disagree.
fn validity(params: &mut CertificateParams, lifetime: Duration, now: OffsetDateTime) {
    params.not_before = now - Duration::from_secs(3600);
    params.not_after = now + lifetime;
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn lifetimes() -> Lifetimes {
        Lifetimes { authority: HOUR * 100, server: HOUR * 9 }
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn next(current: Option<&Certificates>, hosts: &[&str], now: OffsetDateTime) -> Option<Certificates> {
        Certificates::renewed(current, &names(hosts), lifetimes(), now).unwrap()
    }

    #[test]
    fn certificates_are_renewed_when_a_third_of_their_lifetime_is_left() {
        let start = OffsetDateTime::UNIX_EPOCH + HOUR * 500_000;
        let hosts = ["svc.ns.svc", "127.0.0.1"];
        let first = next(None, &hosts, start).unwrap();
        assert_eq!(next(Some(&first), &hosts, start + HOUR * 5), None);
        let second = next(Some(&first), &hosts, start + HOUR * 7).unwrap();
        assert_eq!(first.authorities, second.authorities, "only the server's");
        assert_ne!(first.certificate, second.certificate);
        let third = next(Some(&second), &hosts, start + HOUR * 70).unwrap();
        assert!(third.authorities.ends_with(&second.authorities) && third.authorities != second.authorities);
        assert_eq!(third.authorities.matches("BEGIN").count(), 2, "the one before is still trusted");
        let fourth = next(Some(&third), &hosts, start + HOUR * 140).unwrap();
        assert_eq!(fourth.authorities.matches("BEGIN").count(), 2, "the first has expired");
        assert!(fourth.serving().is_ok());
    }

    #[test]
    fn other_names_and_damage_lead_to_new_certificates() {
        let now = OffsetDateTime::UNIX_EPOCH + HOUR * 500_000;
        let first = next(None, &["a"], now).unwrap();
        let other = next(Some(&first), &["a", "b"], now).unwrap();
        assert_eq!(first.authorities, other.authorities);
        assert_eq!(next(Some(&other), &["b"], now), None, "more names do no harm");
        let mut damaged = first.clone();
        damaged.key = other.key;
        assert!(next(Some(&damaged), &["a"], now).is_some(), "the key of another certificate");
        damaged = first.clone();
        damaged.authority_key = "?".to_owned();
        let replaced = next(Some(&damaged), &["a"], now).unwrap();
        assert!(replaced.authorities.contains(&first.authorities), "what it signed is still trusted");
    }

    #[test]
    fn a_secret_is_read_as_it_was_written() {
        let now = OffsetDateTime::UNIX_EPOCH + HOUR * 500_000;
        let made = next(None, &["a"], now).unwrap();
        let mut data: BTreeMap<String, Vec<u8>> =
            made.data().into_iter().map(|(key, text)| (key.to_owned(), text.as_bytes().to_vec())).collect();
        assert_eq!(Certificates::read(&data), Some(made));
        data.remove("tls.key");
        assert_eq!(Certificates::read(&data), None);
    }
}

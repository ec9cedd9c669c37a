//! Certificates for keys that others made: what the authority signs for CertificateSigningRequests.
//!
//! The subject is copied as it was requested, byte for byte. `rcgen` builds the rest of the certificate, with a name in place
//! of the subject, because its names have one organization and users have as many as they have groups.

use super::{Authority, LEAF_LIFETIME};
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyUsagePurpose, SanType,
    SerialNumber, SigningKey, SubjectPublicKeyInfo,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use time::{Duration, OffsetDateTime};
use transom_apiserver::{AlternativeName, CertificateOrder, CertificateSignerError};

/// Why nothing could be issued.
type Failed = Box<dyn std::error::Error + Send + Sync>;

/// For clocks that disagree.
const BACKDATED: Duration = Duration::minutes(5);
/// The time for which a certificate is issued begins in the past, unless it is shorter than this.
const BACKDATED_FROM_LIFETIME: Duration = Duration::hours(8);
/// Stands for the subject until it is in its place.
const PLACEHOLDER: &str = "the subject of the request";

impl Authority {
    /// The certificate in PEM.
    pub(super) fn issue(
        &self,
        order: &CertificateOrder,
        now: OffsetDateTime,
    ) -> Result<String, CertificateSignerError> {
        // The authority is replaced when its directory is.
        let validity = self.expiry().and_then(|authority| validity(order, now, authority));
        let validity = validity.map_err(CertificateSignerError::Unavailable)?;
        self.certify(order, validity).map_err(CertificateSignerError::Request)
    }

    fn certify(
        &self,
        order: &CertificateOrder,
        (begin, end): (OffsetDateTime, OffsetDateTime),
    ) -> Result<String, Failed> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, PLACEHOLDER);
        params.serial_number = Some(SerialNumber::from(uuid::Uuid::new_v4().as_bytes().to_vec()));
        params.is_ca = IsCa::ExplicitNoCa;
        params.use_authority_key_identifier_extension = true;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let usages = [
            (order.signs, KeyUsagePurpose::DigitalSignature),
            (order.enciphers, KeyUsagePurpose::KeyEncipherment),
        ];
        params.key_usages =
            usages.into_iter().filter_map(|(wanted, usage)| wanted.then_some(usage)).collect();
        let names = order.request.alternative_names.iter().map(alternative_name);
        params.subject_alt_names = names.collect::<Result<_, _>>()?;
        (params.not_before, params.not_after) = (begin, end);
        let key = SubjectPublicKeyInfo::from_der(&order.request.public_key)?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        let certificate = self.with_subject(certificate.der(), &order.request.subject)?;
        Ok(to_pem(&certificate))
    }

    /// When the authority's own certificate ends.
    fn expiry(&self) -> Result<OffsetDateTime, Failed> {
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes())?;
        let (_, parsed) = x509_parser::parse_x509_certificate(&certificate)?;
        Ok(OffsetDateTime::from_unix_timestamp(parsed.validity().not_after.timestamp())?)
    }

    /// The certificate with another subject, signed again.
    fn with_subject(&self, certificate: &[u8], subject: &[u8]) -> Result<Vec<u8>, Failed> {
        let (_, parsed) = x509_parser::parse_x509_certificate(certificate)?;
        let (placed, signed) = (parsed.subject().as_raw(), parsed.tbs_certificate.as_ref());
        let at =
            signed.windows(placed.len()).position(|part| part == placed).ok_or("no subject to replace")?;
        let (before, after) = (&signed[header_len(signed)?..at], &signed[at + placed.len()..]);
        let signed = element(SEQUENCE, &[before, subject, after].concat());
        let signature = self.issuer.key().sign(&signed)?;
        let signature = element(BIT_STRING, &[&[0], &*signature].concat());
        let algorithm = algorithm(certificate)?;
        Ok(element(SEQUENCE, &[&*signed, algorithm, &*signature].concat()))
    }
}

fn validity(
    order: &CertificateOrder,
    now: OffsetDateTime,
    authority: OffsetDateTime,
) -> Result<(OffsetDateTime, OffsetDateTime), Failed> {
    let wanted = order.lifetime.and_then(|lifetime| Duration::try_from(lifetime).ok());
    let lifetime = wanted.map_or(LEAF_LIFETIME, |wanted| wanted.min(LEAF_LIFETIME));
    let begin = now - BACKDATED;
    let end = if lifetime < BACKDATED_FROM_LIFETIME { now + lifetime } else { begin + lifetime };
    let end = end.min(authority);
    if end <= now {
        return Err("the certificate of the authority has expired".into());
    }
    Ok((begin, end))
}

fn alternative_name(name: &AlternativeName) -> Result<SanType, rcgen::Error> {
    Ok(match name {
        AlternativeName::Dns(name) => SanType::DnsName(name.as_str().try_into()?),
        AlternativeName::Email(name) => SanType::Rfc822Name(name.as_str().try_into()?),
        AlternativeName::Uri(name) => SanType::URI(name.as_str().try_into()?),
        AlternativeName::Ip(address) => SanType::IpAddress(*address),
    })
}

const SEQUENCE: u8 = 0x30;
const BIT_STRING: u8 = 0x03;

/// An element of DER with its content.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let length = &length[length.iter().take_while(|byte| **byte == 0).count()..];
    let mut encoded = vec![tag];
    match length {
        [] => encoded.push(0),
        [short @ 0..=0x7f] => encoded.push(*short),
        long => {
            encoded.push(0x80 | u8::try_from(long.len()).unwrap_or(u8::MAX));
            encoded.extend(long);
        }
    }
    encoded.extend(content);
    encoded
}

/// How many bytes come before the content of an element.
fn header_len(element: &[u8]) -> Result<usize, Failed> {
    let first = *element.get(1).ok_or("an element without a length")?;
    Ok(if first < 0x80 { 2 } else { 2 + usize::from(first & 0x7f) })
}

/// The algorithm of the signature, as the certificate names it behind what is signed.
fn algorithm(certificate: &[u8]) -> Result<&[u8], Failed> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate)?;
    let begin = header_len(certificate)? + parsed.tbs_certificate.as_ref().len();
    let rest = certificate.get(begin..).ok_or("a certificate without a signature")?;
    let length = header_len(rest)? + usize::from(*rest.get(1).ok_or("an element without a length")?);
    Ok(rest.get(..length).ok_or("an algorithm that is cut off")?)
}

fn to_pem(certificate: &[u8]) -> String {
    use base64::Engine;
    let text = base64::engine::general_purpose::STANDARD.encode(certificate);
    let lines: Vec<&str> =
        text.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{KeyPair, PublicKeyData};
    use std::time::Duration as StdDuration;
    use transom_apiserver::SigningRequest;

    /// A name in DER of attributes by the last number of their types: 3 for the common name, 10 for an organization.
    fn name(attributes: &[(u8, &str)]) -> Vec<u8> {
        let each = attributes.iter().map(|(kind, value)| {
            let kind = element(6, &[0x55, 4, *kind]);
            element(0x31, &element(SEQUENCE, &[kind, element(0x0c, value.as_bytes())].concat()))
        });
        element(SEQUENCE, &each.collect::<Vec<_>>().concat())
    }

    fn order(subject: Vec<u8>, key: &KeyPair, lifetime: Option<StdDuration>) -> CertificateOrder {
        let request = SigningRequest {
            subject,
            common_names: Vec::new(),
            organizations: Vec::new(),
            unread_names: 0,
            public_key: key.subject_public_key_info(),
            alternative_names: vec![AlternativeName::Dns("jane.example.org".into())],
        };
        CertificateOrder { request, signs: true, enciphers: false, lifetime }
    }

    fn issued(lifetime: Option<StdDuration>) -> (Authority, CertificateDer<'static>) {
        let authority = Authority::ephemeral().unwrap();
        let long = "x".repeat(300);
        let subject = name(&[(10, "developers"), (10, "operators"), (10, &long), (3, "jane")]);
        let key = KeyPair::generate().unwrap();
        let certificate =
            authority.issue(&order(subject, &key, lifetime), OffsetDateTime::now_utc()).unwrap();
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
        (authority, certificate)
    }

    #[test]
    fn issued_certificates_have_every_group_and_are_accepted_as_clients() {
        let (authority, certificate) = issued(None);
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.certificate.as_bytes()).unwrap()).unwrap();
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            rustls::server::WebPkiClientVerifier::builder_with_provider(std::sync::Arc::new(roots), provider)
                .build()
                .unwrap();
        let now = rustls::pki_types::UnixTime::now();
        verifier.verify_client_cert(&certificate, &[], now).unwrap();
        let (_, parsed) = x509_parser::parse_x509_certificate(&certificate).unwrap();
        let groups: Vec<&str> = parsed.subject().iter_organization().map(|o| o.as_str().unwrap()).collect();
        assert_eq!(groups[..2], ["developers", "operators"]);
        assert_eq!(parsed.subject().iter_common_name().next().unwrap().as_str(), Ok("jane"));
        assert!(!parsed.is_ca());
        assert!(parsed.key_usage().unwrap().unwrap().value.digital_signature());
        assert!(!parsed.key_usage().unwrap().unwrap().value.key_encipherment());
        assert!(parsed.subject_alternative_name().unwrap().is_some());
        let other = Authority::ephemeral().unwrap();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(other.certificate.as_bytes()).unwrap()).unwrap();
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let stranger =
            rustls::server::WebPkiClientVerifier::builder_with_provider(std::sync::Arc::new(roots), provider)
                .build()
                .unwrap();
        stranger.verify_client_cert(&certificate, &[], now).unwrap_err();
    }

    #[test]
    fn certificates_last_as_long_as_requested_but_no_more_than_a_year() {
        for (wanted, seconds) in [
            (Some(600), 600 + 300),
            (Some(7 * 3600), 7 * 3600 + 300),
            (Some(9 * 3600), 9 * 3600),
            (Some(u64::from(u32::MAX)), 365 * 86400),
            (None, 365 * 86400),
        ] {
            let (_, certificate) = issued(wanted.map(StdDuration::from_secs));
            let (_, parsed) = x509_parser::parse_x509_certificate(&certificate).unwrap();
            let validity = parsed.validity();
            assert_eq!(
                validity.not_after.timestamp() - validity.not_before.timestamp(),
                seconds,
                "{wanted:?}"
            );
        }
    }

    #[test]
    fn a_request_fails_for_what_it_is_and_waits_for_an_authority() {
        let authority = Authority::ephemeral().unwrap();
        let key = KeyPair::generate().unwrap();
        let now = OffsetDateTime::now_utc();
        let good = order(name(&[(3, "jane")]), &key, None);
        authority.issue(&good, now).unwrap();
        let late = authority.issue(&good, now + Duration::days(3651)).unwrap_err();
        assert!(matches!(late, CertificateSignerError::Unavailable(_)), "{late:?}");
        let mut odd_name = good.clone();
        odd_name.request.alternative_names = vec![AlternativeName::Dns("j\u{e4}ne.example.org".into())];
        let mut odd_key = good;
        odd_key.request.public_key = vec![SEQUENCE, 0];
        for order in [odd_name, odd_key] {
            let never = authority.issue(&order, now).unwrap_err();
            assert!(matches!(never, CertificateSignerError::Request(_)), "{never:?}");
        }
    }

    #[test]
    fn nothing_outlives_the_authority() {
        let key = KeyPair::generate().unwrap();
        let order = order(name(&[(3, "jane")]), &key, None);
        let now = OffsetDateTime::now_utc();
        let (_, end) = validity(&order, now, now + Duration::days(3)).unwrap();
        assert_eq!(end, now + Duration::days(3));
        validity(&order, now, now - Duration::seconds(1)).unwrap_err();
    }
}

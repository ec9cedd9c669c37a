//! How certificates of servers are verified where that differs from what rustls does by itself.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, SignatureScheme};
use std::sync::Arc;

/// Verifies certificates of servers. That a server has the key of its certificate is always verified.
#[derive(Debug)]
pub struct Verifier {
    accepts: Accepts,
    algorithms: WebPkiSupportedAlgorithms,
}

#[derive(Debug)]
enum Accepts {
    AnyCertificate,
    AnyName(Arc<WebPkiServerVerifier>),
    Listed { by_authority: Arc<WebPkiServerVerifier>, listed: Vec<CertificateDer<'static>> },
}

impl Verifier {
    /// Accepts any certificate, because the user asked for that.
    pub fn of_any_certificate(provider: &CryptoProvider) -> Arc<Self> {
        Self::of(Accepts::AnyCertificate, provider)
    }

    /// Accepts what the authorities issued, whatever name it is for.
    pub fn of_any_name(by_authority: Arc<WebPkiServerVerifier>, provider: &CryptoProvider) -> Arc<Self> {
        Self::of(Accepts::AnyName(by_authority), provider)
    }

    /// Verifies as rustls does, and accepts one thing more: a certificate that is itself in the list of authorities and
    /// marked as one. `openssl req -x509` makes such certificates, webhooks use them, and Go accepts them.
    pub fn of_listed(
        by_authority: Arc<WebPkiServerVerifier>,
        listed: Vec<CertificateDer<'static>>,
        provider: &CryptoProvider,
    ) -> Arc<Self> {
        Self::of(Accepts::Listed { by_authority, listed }, provider)
    }

    fn of(accepts: Accepts, provider: &CryptoProvider) -> Arc<Self> {
        Arc::new(Self { accepts, algorithms: provider.signature_verification_algorithms })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let by = |authority: &WebPkiServerVerifier| {
            authority.verify_server_cert(certificate, intermediates, name, ocsp, now)
        };
        match &self.accepts {
            Accepts::AnyCertificate => Ok(ServerCertVerified::assertion()),
            Accepts::AnyName(authority) => match by(authority) {
                Err(rustls::Error::InvalidCertificate(
                    CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
                )) => Ok(ServerCertVerified::assertion()),
                verified => verified,
            },
            Accepts::Listed { by_authority, listed } => match by(by_authority) {
                // Its validity was checked before.
                Err(rustls::Error::InvalidCertificate(CertificateError::Other(why)))
                    if format!("{why:?}").contains("CaUsedAsEndEntity")
                        && listed.iter().any(|one| one.as_ref() == certificate.as_ref()) =>
                {
                    verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                    Ok(ServerCertVerified::assertion())
                }
                verified => verified,
            },
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    use rustls::RootCertStore;

    fn named(name: &str) -> CertificateParams {
        CertificateParams::new(vec![name.to_owned()]).unwrap()
    }

    /// A certificate of an authority, for the host `h.example`.
    fn authority() -> (CertificateDer<'static>, Issuer<'static, KeyPair>) {
        let (mut params, key) = (named("h.example"), KeyPair::generate().unwrap());
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap().der().clone();
        (certificate, Issuer::new(params, key))
    }

    fn by(authority: &CertificateDer<'static>) -> Arc<WebPkiServerVerifier> {
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap()
    }

    #[test]
    fn each_accepts_one_thing_more() {
        let ((trusted, issuer), (other, other_issuer)) = (authority(), authority());
        let issue = |name: &str, issuer: &Issuer<'static, KeyPair>| {
            let key = KeyPair::generate().unwrap();
            named(name).signed_by(&key, issuer).unwrap().der().clone()
        };
        let (good, elsewhere) = (issue("h.example", &issuer), issue("elsewhere.example", &issuer));
        let foreign = issue("h.example", &other_issuer);
        let provider = rustls::crypto::ring::default_provider();
        let any = Verifier::of_any_certificate(&provider);
        let any_name = Verifier::of_any_name(by(&trusted), &provider);
        let listed = Verifier::of_listed(by(&trusted), vec![trusted.clone()], &provider);
        let host = ServerName::try_from("h.example").unwrap();
        for (what, certificate, expected) in [
            ("good", &good, [true, true, true]),
            ("for another name", &elsewhere, [true, true, false]),
            ("of another authority", &foreign, [true, false, false]),
            ("the authority itself", &trusted, [true, false, true]),
            ("another authority", &other, [true, false, false]),
        ] {
            let accepts = |verifier: &Verifier| {
                verifier.verify_server_cert(certificate, &[], &host, &[], UnixTime::now()).is_ok()
            };
            assert_eq!([&any, &any_name, &listed].map(|verifier| accepts(verifier)), expected, "{what}");
        }
        let other_host = ServerName::try_from("elsewhere.example").unwrap();
        let named = listed.verify_server_cert(&trusted, &[], &other_host, &[], UnixTime::now());
        assert!(named.is_err(), "the name is verified, also of a certificate that is in the list");
    }
}

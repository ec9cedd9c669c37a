//! Which servers are trusted: the authorities of the machine, and those of a bundle that is named.

use super::options::RemoteOptions;
use crate::failure::invalid;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use transom_https::Verifier;
use transom_packages::RegistryError;

/// The configuration of TLS for a client.
pub(super) fn config(options: &RemoteOptions) -> Result<ClientConfig, RegistryError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| invalid("TLS", error))?;
    let mut config = if options.insecure_skip_tls_verify {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Verifier::of_any_certificate(&provider))
            .with_no_client_auth()
    } else {
        builder.with_root_certificates(roots(options)?).with_no_client_auth()
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn roots(options: &RemoteOptions) -> Result<RootCertStore, RegistryError> {
    let mut roots = RootCertStore::empty();
    if options.system_roots {
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::debug!(%error, "a certificate authority of the system cannot be read");
        }
        roots.add_parsable_certificates(found.certs);
    }
    for pem in &options.extra_roots_pem {
        let wrong = |problem: String| invalid("the bundle of certificate authorities", problem);
        let mut found = 0;
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| wrong(format!("is not valid PEM: {error}")))?;
            roots
                .add(certificate)
                .map_err(|error| wrong(format!("has a certificate that is not valid: {error}")))?;
            found += 1;
        }
        if found == 0 {
            return Err(wrong("has no certificate in PEM".to_owned()));
        }
    }
    Ok(roots)
}

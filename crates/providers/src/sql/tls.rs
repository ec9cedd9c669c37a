//! TLS to PostgreSQL servers, in the modes of libpq.

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use transom_https::Verifier;
use transom_provider::{Error, Result};

/// How much of a server's certificate is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum SslMode {
    Disable,
    Require,
    VerifyCa,
    VerifyFull,
}

/// Certificates from a connection secret, in PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Certificates {
    /// Authorities that are trusted instead of those of the system.
    pub(super) authorities: Vec<u8>,
    pub(super) client: Vec<u8>,
    pub(super) client_key: Vec<u8>,
}

/// Makes TLS connections.
#[derive(Clone)]
pub(super) struct Tls(Arc<ClientConfig>);

impl Tls {
    pub(super) fn new(mode: SslMode, certificates: &Certificates) -> Result<Self> {
        let provider = Arc::new(ring::default_provider());
        let unusable =
            |what: &str, e: &dyn std::fmt::Display| Error::domain(format!("cannot use {what}: {e}"));
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|e| unusable("TLS", &e))?;
        let verifier: Arc<dyn ServerCertVerifier> = match mode {
            SslMode::Disable | SslMode::Require => Verifier::of_any_certificate(&provider),
            SslMode::VerifyCa | SslMode::VerifyFull => {
                let roots = Arc::new(roots(&certificates.authorities)?);
                let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build();
                let verifier = verifier.map_err(|e| unusable("the certificate authorities", &e))?;
                if mode == SslMode::VerifyFull {
                    verifier
                } else {
                    Verifier::of_any_name(verifier, &provider)
                }
            }
        };
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
        let config = if certificates.client.is_empty() {
            builder.with_no_client_auth()
        } else {
            let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&certificates.client).collect();
            let chain = chain.map_err(|e| unusable("clientCert", &e))?;
            let key = PrivateKeyDer::from_pem_slice(&certificates.client_key);
            let key = key.map_err(|e| unusable("clientKey", &e))?;
            builder.with_client_auth_cert(chain, key).map_err(|e| unusable("clientCert", &e))?
        };
        Ok(Self(Arc::new(config)))
    }
}

fn roots(authorities: &[u8]) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    if authorities.is_empty() {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return Ok(roots);
    }
    for certificate in CertificateDer::pem_slice_iter(authorities) {
        let added =
            certificate.map_err(|e| e.to_string()).and_then(|c| roots.add(c).map_err(|e| e.to_string()));
        added.map_err(|e| Error::domain(format!("cannot use clusterCA: {e}")))?;
    }
    Ok(roots)
}

/// Connects to one server.
pub(super) struct Connect {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Tls {
    type Stream = Stream<S>;
    type TlsConnect = Connect;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<Connect> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        Ok(Connect { config: self.0.clone(), name })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Connect {
    type Stream = Stream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        let connecting = tokio_rustls::TlsConnector::from(self.config).connect(self.name, stream);
        Box::pin(async move { connecting.await.map(Stream) })
    }
}

/// A TLS connection.
pub(super) struct Stream<S>(tokio_rustls::client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Stream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, to)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, from)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

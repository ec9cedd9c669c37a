//! Mutual TLS of a server with certificates that are replaced while it runs.
//!
//! The files are read for every new connection. They are small, connections are few, and so nothing has to watch a directory
//! that may be replaced as a whole, as a volume with a Secret is. Files that cannot be used, such as a certificate with the key
//! of another one in the middle of a replacement, leave the ones before in use. Connections that exist are not affected.

use crate::serve::ServeError;
use futures_util::{Stream, StreamExt};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How long a client may take to show its certificate.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How many clients may be doing that at a time.
const HANDSHAKES_MAX: usize = 256;

/// The certificates of a server, in a directory.
pub(crate) struct ServerTls {
    dir: PathBuf,
    current: Mutex<Current>,
}

/// The certificates that were read last and can be used.
struct Current {
    files: Files,
    config: Arc<ServerConfig>,
}

/// What is in the files, in PEM.
#[derive(PartialEq, Eq)]
struct Files {
    certificate: Vec<u8>,
    key: Vec<u8>,
    /// The authorities of clients' certificates.
    authorities: Vec<u8>,
}

impl ServerTls {
    /// Reads the certificates in a directory.
    pub(crate) async fn read(dir: &Path) -> Result<Self, ServeError> {
        let files = Files::read(dir).await?;
        let config = files.config(dir)?;
        Ok(Self { dir: dir.to_owned(), current: Mutex::new(Current { files, config }) })
    }

    /// What a new connection is served with.
    async fn config(&self) -> Arc<ServerConfig> {
        let files = Files::read(&self.dir).await;
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let renewed = match files {
            Ok(files) if files == current.files => return current.config.clone(),
            Ok(files) => files.config(&self.dir).map(|config| Current { files, config }),
            Err(error) => Err(error),
        };
        match renewed {
            Ok(renewed) => {
                *current = renewed;
                tracing::info!(dir = %self.dir.display(), "uses certificates that were replaced");
            }
            Err(error) => {
                let error = transom_object::error_chain::chain(&error);
                tracing::warn!(
                    error,
                    "certificates were replaced by some that cannot be used; keeps the ones before"
                );
            }
        }
        current.config.clone()
    }

    /// The connections whose clients have shown their certificates.
    pub(crate) fn accept<IO>(
        self: Arc<Self>,
        incoming: impl Stream<Item = io::Result<IO>> + Send + 'static,
    ) -> impl Stream<Item = io::Result<TlsStream<IO>>> + Send + 'static
    where
        IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let handshakes = incoming.map(move |stream| {
            let tls = self.clone();
            async move {
                let acceptor = TlsAcceptor::from(tls.config().await);
                tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream?)).await?
            }
        });
        handshakes.buffer_unordered(HANDSHAKES_MAX).filter_map(async |accepted| {
            let refused = |error: &io::Error| tracing::debug!(%error, "a connection was refused");
            accepted.inspect_err(refused).ok().map(Ok)
        })
    }
}

impl Files {
    async fn read(dir: &Path) -> Result<Self, ServeError> {
        let read = async |name: &str| {
            let path = dir.join(name);
            tokio::fs::read(&path).await.map_err(|source| ServeError::Certificate { path, source })
        };
        let (certificate, key) = (read("tls.crt").await?, read("tls.key").await?);
        Ok(Self { certificate, key, authorities: read("ca.crt").await? })
    }

    fn config(&self, dir: &Path) -> Result<Arc<ServerConfig>, ServeError> {
        let unusable = |problem: &dyn std::fmt::Display| ServeError::UnusableCertificates {
            dir: dir.to_owned(),
            problem: problem.to_string(),
        };
        let list = |pem: &[u8]| CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
        let mut authorities = RootCertStore::empty();
        for authority in list(&self.authorities).map_err(|e| unusable(&e))? {
            authorities.add(authority).map_err(|e| unusable(&e))?;
        }
        let chain = list(&self.certificate).map_err(|e| unusable(&e))?;
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|e| unusable(&e))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let clients = WebPkiClientVerifier::builder_with_provider(authorities.into(), provider.clone());
        let clients = clients.build().map_err(|e| unusable(&e))?;
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(|e| unusable(&e))?.with_client_cert_verifier(clients);
        let mut config = builder.with_single_cert(chain, key).map_err(|e| unusable(&e))?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Arc::new(config))
    }
}

//! The address of a function that a server runs, and how to connect to it.

use crate::balance::{self, Lookup, SystemLookup};
use hyper_util::rt::TokioIo;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tonic::ConnectError;
use tonic::transport::{self, Certificate, Channel, ClientTlsConfig, Identity};
use transom_function::async_trait;
use transom_function::error_chain::sources;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a probe waits for an answer.
const REACH_TIMEOUT: Duration = Duration::from_secs(2);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);

/// Makes connections to a function that no address leads to.
#[async_trait]
pub trait Dial: Send + Sync + 'static {
    /// A new connection.
    async fn dial(&self) -> io::Result<TcpStream>;
}

/// The address of a function, as gRPC writes it: `host:port`, `dns:///host:port` or `unix:///path`. Or what makes
/// connections to it, and what that is called.
#[derive(Clone)]
pub struct Endpoint {
    address: String,
    tls: Option<Tls>,
    dial: Option<Arc<dyn Dial>>,
    lookup: Option<Arc<dyn Lookup>>,
}

impl PartialEq for Endpoint {
    fn eq(&self, other: &Self) -> bool {
        let same_dial = match (&self.dial, &other.dial) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        self.address == other.address && self.tls == other.tls && same_dial
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("address", &self.address)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

/// Certificates for mutual TLS, in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Tls {
    /// The certificate of the authority that signs the certificates of functions.
    pub ca: Vec<u8>,
    /// The client's own certificate.
    pub certificate: Vec<u8>,
    /// The key of the client's certificate.
    pub key: Vec<u8>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls { .. }")
    }
}

/// Why the certificates for mutual TLS cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct ReadTlsError {
    /// Which file cannot be read, and what to do about it.
    pub what: String,
    /// Why, if another error says it.
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// Reads the certificates for mutual TLS as they are now.
pub type ReadTls = Arc<dyn Fn() -> Result<Tls, ReadTlsError> + Send + Sync>;

/// Why an address cannot be called.
#[derive(Debug, thiserror::Error)]
#[error("{address:?} is not an address of a function; write it like localhost:9443")]
pub struct EndpointError {
    address: String,
    source: EndpointProblem,
}

#[derive(Debug, thiserror::Error)]
enum EndpointProblem {
    #[error("it needs a host and a port")]
    HostAndPort,
    #[error(transparent)]
    Transport(#[from] transport::Error),
}

/// Why an endpoint cannot be reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnreachableError {
    /// The address or the certificates are malformed.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The connection cannot be made, or the certificates do not match.
    #[error("cannot reach {address}")]
    Connect {
        /// The address.
        address: String,
        /// Why.
        source: transport::Error,
    },
    /// Nothing answers.
    #[error("cannot reach {address}: no answer within {} s", .after.as_secs())]
    Timeout {
        /// The address.
        address: String,
        /// How long an answer was waited for.
        after: Duration,
    },
}

/// The texts of an error of a connection and of its sources, without those of tonic's wrappers: a
/// [`transport::Error`] only says that it is one, and a [`ConnectError`] repeats the text of its source.
pub(crate) fn connection_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let is_wrapper = |error: &(dyn std::error::Error + 'static)| {
        error.source().is_some() && (error.is::<transport::Error>() || error.is::<ConnectError>())
    };
    let texts = sources(error).filter(|error| !is_wrapper(*error)).map(ToString::to_string);
    texts.collect::<Vec<_>>().join(": ")
}

impl Endpoint {
    /// An endpoint without TLS, as of functions that are served with `--insecure`.
    pub fn plaintext(address: impl Into<String>) -> Self {
        Self { address: address.into(), tls: None, dial: None, lookup: None }
    }

    /// An endpoint with mutual TLS. The server's certificate must be for the host in the address.
    pub fn mutual_tls(address: impl Into<String>, tls: Tls) -> Self {
        Self { address: address.into(), tls: Some(tls), dial: None, lookup: None }
    }

    /// An endpoint without TLS whose connections are made by `dial`. The name takes the place of an address in messages.
    pub fn dialled(name: impl Into<String>, dial: Arc<dyn Dial>) -> Self {
        Self { address: name.into(), tls: None, dial: Some(dial), lookup: None }
    }

    /// Finds the addresses of the endpoint in another way than by the system's resolver. Calls are spread over them.
    #[must_use]
    pub fn found_by(self, lookup: Arc<dyn Lookup>) -> Self {
        Self { lookup: Some(lookup), ..self }
    }

    /// The address, as it was given.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// A channel that connects when it is first used, and again whenever it has to.
    pub(crate) fn channel(&self) -> Result<Channel, EndpointError> {
        let transport = self.transport()?;
        if let Some(dial) = &self.dial {
            return Ok(transport.connect_with_connector_lazy(connector(dial.clone())));
        }
        let is_name = self.address.starts_with("dns:");
        let by_system =
            || is_name.then(|| Arc::new(SystemLookup(self.target().to_owned())) as Arc<dyn Lookup>);
        Ok(match self.lookup.clone().or_else(by_system) {
            Some(lookup) => {
                let endpoint = self.clone();
                let connect = move |address| endpoint.transport_to(address).ok();
                balance::channel(Box::new(connect), lookup)
            }
            None => transport.connect_lazy(),
        })
    }

    /// The address without the scheme of a resolver.
    fn target(&self) -> &str {
        let schemes = ["dns:///", "passthrough:///", "dns:", "passthrough:"];
        schemes.iter().find_map(|scheme| self.address.strip_prefix(scheme)).unwrap_or(&self.address)
    }

    /// Checks that something listens there, with the certificates that are expected.
    pub(crate) async fn reach(&self) -> Result<(), UnreachableError> {
        let (transport, address) = (self.transport()?, self.address.clone());
        let connect = async {
            match &self.dial {
                Some(dial) => transport.connect_with_connector(connector(dial.clone())).await,
                None => transport.connect().await,
            }
        };
        match tokio::time::timeout(REACH_TIMEOUT, connect).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(source)) => Err(UnreachableError::Connect { address, source }),
            Err(_) => Err(UnreachableError::Timeout { address, after: REACH_TIMEOUT }),
        }
    }

    fn transport(&self) -> Result<transport::Endpoint, EndpointError> {
        self.transport_to(None)
    }

    /// How connections are made: to one of the addresses that the endpoint has, or to whichever its name leads to.
    fn transport_to(&self, address: Option<SocketAddr>) -> Result<transport::Endpoint, EndpointError> {
        let failed = |source: EndpointProblem| EndpointError { address: self.address.clone(), source };
        let target = self.target();
        // With connections that are made elsewhere, the address is only the authority in the requests to the function.
        let target = if self.dial.is_some() { "localhost:9443" } else { target };
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let url = match target {
            url if url.starts_with("unix:") || url.starts_with("http://") || url.starts_with("https://") => {
                url.to_owned()
            }
            port if port.starts_with(':') => format!("{scheme}://localhost{port}"),
            authority => format!("{scheme}://{authority}"),
        };
        let endpoint = transport::Endpoint::from_shared(url).map_err(|e| failed(e.into()))?;
        let host = endpoint.uri().host().unwrap_or_default().to_owned();
        if !target.starts_with("unix:") && (host.is_empty() || endpoint.uri().port().is_none()) {
            return Err(failed(EndpointProblem::HostAndPort));
        }
        let endpoint = match address {
            Some(address) => {
                let named = endpoint.uri().clone();
                let found = transport::Endpoint::from_shared(format!("{scheme}://{address}"));
                found.map_err(|e| failed(e.into()))?.origin(named)
            }
            None => endpoint,
        };
        let mut endpoint = endpoint
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL);
        if let Some(tls) = &self.tls {
            let config = ClientTlsConfig::new()
                .ca_certificate(Certificate::from_pem(&tls.ca))
                .identity(Identity::from_pem(&tls.certificate, &tls.key))
                .domain_name(host);
            endpoint = endpoint.tls_config(config).map_err(|e| failed(e.into()))?;
        }
        Ok(endpoint)
    }
}

/// Connections as the transport takes them. The address that it asks for does not matter.
fn connector(
    dial: Arc<dyn Dial>,
) -> impl tower::Service<
    http::Uri,
    Response = TokioIo<TcpStream>,
    Error = io::Error,
    Future = impl Future<Output = io::Result<TokioIo<TcpStream>>> + Send,
> + Send
+ Sync
+ 'static {
    tower::service_fn(move |_: http::Uri| {
        let dial = dial.clone();
        async move { dial.dial().await.map(TokioIo::new) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn addresses_are_written_as_for_grpc() {
        for good in [
            "localhost:9443",
            "dns:///function.crossplane-system:9443",
            "passthrough:///127.0.0.1:1",
            ":9443",
            "[::1]:9443",
            "unix:///run/function.sock",
            "http://localhost:9443",
        ] {
            assert!(Endpoint::plaintext(good).channel().is_ok(), "{good}");
        }
        for bad in ["", "localhost", "dns:///", "a b:1", "http://", "localhost:port"] {
            let error = Endpoint::plaintext(bad).channel().unwrap_err().to_string();
            assert!(error.contains("write it like localhost:9443"), "{bad}: {error}");
        }
    }
}

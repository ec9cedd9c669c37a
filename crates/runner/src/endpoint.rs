//! Where a function listens, and how to get there.

use std::time::Duration;
use tonic::transport::{self, Certificate, Channel, ClientTlsConfig, Identity};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait when all that is asked is whether somebody listens.
const REACH_TIMEOUT: Duration = Duration::from_secs(2);
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// The address of a function, as gRPC writes it: `host:port`, `dns:///host:port` or `unix:///path`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    address: String,
    tls: Option<Tls>,
}

/// Certificates for mutual TLS, in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Tls {
    /// Who signs the certificates of functions.
    pub ca: Vec<u8>,
    /// Our own certificate and its key.
    pub certificate: Vec<u8>,
    pub key: Vec<u8>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls { .. }")
    }
}

/// Why an address is none.
#[derive(Debug, thiserror::Error)]
#[error("{address:?} is no address of a function; write it like localhost:9443: {why}")]
pub struct EndpointError {
    address: String,
    why: String,
}

impl Endpoint {
    /// Without TLS, as functions listen that are started with `--insecure`.
    pub fn plaintext(address: impl Into<String>) -> Self {
        Self { address: address.into(), tls: None }
    }

    /// With mutual TLS. The server's certificate must be for the host in the address.
    pub fn mutual_tls(address: impl Into<String>, tls: Tls) -> Self {
        Self { address: address.into(), tls: Some(tls) }
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// A channel that connects when it is first used, and again whenever it has to.
    pub(crate) fn channel(&self) -> Result<Channel, EndpointError> {
        Ok(self.transport()?.connect_lazy())
    }

    /// Whether somebody listens there, with the certificates that are expected; otherwise why not.
    pub(crate) async fn reach(&self) -> Result<(), String> {
        let transport = self.transport().map_err(|e| e.to_string())?;
        let connecting = tokio::time::timeout(REACH_TIMEOUT, transport.connect());
        let problem = match connecting.await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(error)) => {
                let mut words: Vec<String> =
                    causes(&error).filter(|words| words != "transport error").collect();
                words.dedup();
                words.join(": ")
            }
            Err(_) => format!("no answer within {} s", REACH_TIMEOUT.as_secs()),
        };
        Err(format!("nobody can be reached at {}: {problem}", self.address))
    }

    fn transport(&self) -> Result<transport::Endpoint, EndpointError> {
        let failed = |why: String| EndpointError { address: self.address.clone(), why };
        let target = ["dns:///", "passthrough:///", "dns:", "passthrough:"]
            .iter()
            .find_map(|scheme| self.address.strip_prefix(scheme))
            .unwrap_or(&self.address);
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let url = match target {
            url if url.starts_with("unix:") || url.starts_with("http://") || url.starts_with("https://") => {
                url.to_owned()
            }
            port if port.starts_with(':') => format!("{scheme}://localhost{port}"),
            authority => format!("{scheme}://{authority}"),
        };
        let endpoint = transport::Endpoint::from_shared(url).map_err(|e| failed(chain(&e)))?;
        let host = endpoint.uri().host().unwrap_or_default().to_owned();
        if !target.starts_with("unix:") && (host.is_empty() || endpoint.uri().port().is_none()) {
            return Err(failed("it needs a host and a port".to_owned()));
        }
        let mut endpoint =
            endpoint.connect_timeout(CONNECT_TIMEOUT).tcp_nodelay(true).http2_keep_alive_interval(KEEP_ALIVE);
        if let Some(tls) = &self.tls {
            let config = ClientTlsConfig::new()
                .ca_certificate(Certificate::from_pem(&tls.ca))
                .identity(Identity::from_pem(&tls.certificate, &tls.key))
                .domain_name(host);
            endpoint = endpoint.tls_config(config).map_err(|e| failed(chain(&e)))?;
        }
        Ok(endpoint)
    }
}

/// What an error says, and what each of its causes does.
pub(crate) fn causes(error: &dyn std::error::Error) -> impl Iterator<Item = String> {
    std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string)
}

/// An error and all its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut said = Vec::<String>::new();
    for words in causes(error) {
        // Many errors repeat what their cause says.
        if !said.last().is_some_and(|last| last.contains(&words)) {
            said.push(words);
        }
    }
    said.join(": ")
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

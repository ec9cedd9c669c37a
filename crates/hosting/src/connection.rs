//! A client of an API server for processes in a cluster: its connections notice within half a minute that the other end is gone.
//! It never sends a request twice.

use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::ConfigExt;
use std::time::Duration;
use tower::ServiceBuilder;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A silent connection is probed after this long,
const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(15);
/// this often,
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// and this many times.
const KEEP_ALIVE_PROBES: u32 = 3;

/// A client whose connections notice within half a minute that the other end is gone: a watch may be silent for longer.
/// Requests are not sent a second time here: that is up to the callers, which know what they write.
pub fn connect(config: &kube::Config) -> kube::Result<kube::Client> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector.set_keepalive(Some(KEEP_ALIVE_AFTER));
    connector.set_keepalive_interval(Some(KEEP_ALIVE_INTERVAL));
    connector.set_keepalive_retries(Some(KEEP_ALIVE_PROBES));
    #[cfg(target_os = "linux")]
    connector.set_tcp_user_timeout(Some(KEEP_ALIVE_AFTER + KEEP_ALIVE_INTERVAL * KEEP_ALIVE_PROBES));
    let connector = config.rustls_https_connector_with_connector(connector)?;
    let client = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(tower::BoxError::from)
        .service(client);
    Ok(kube::Client::new(service, config.default_namespace.clone()))
}

//! Functions that are called over gRPC.

use crate::endpoint::{Endpoint, EndpointError, ReadTls, connection_causes};
use crate::health::Health;
use crate::instance::Instance;
use crate::router::Options;
use crate::runtime::{Problem, Reason};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tonic::{Code, Status};
use transom_function::client::FunctionClient;
use transom_function::error_chain::chain;
use transom_function::{RunFunctionRequest, RunFunctionResponse, async_trait};

const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// A function behind an endpoint, with the one connection that all its calls share.
pub struct Remote {
    connection: RwLock<Arc<Connection>>,
    /// Reads the certificates again.
    certificates: Option<ReadTls>,
    options: Options,
    /// Whether the last call or the last probe reached the function.
    reachable: AtomicBool,
    address: String,
}

/// What calls are made with: an endpoint and a channel to it.
struct Connection {
    endpoint: Endpoint,
    client: FunctionClient,
    health: Health,
}

impl Connection {
    fn new(endpoint: Endpoint, options: &Options) -> Result<Self, EndpointError> {
        let channel = endpoint.channel()?;
        let client = FunctionClient::new(channel.clone()).with_max_message_size(options.max_message_size);
        Ok(Self { endpoint, client, health: Health::new(channel) })
    }

    async fn probe(&self) -> Result<(), Problem> {
        let unreachable = |error| Problem::new(Reason::Unreachable, connection_causes(&error));
        self.endpoint.reach().await.map_err(unreachable)?;
        self.health.check(self.endpoint.address()).await
    }
}

impl Remote {
    /// A function at an endpoint. Connects when it is first called or probed.
    pub fn new(endpoint: Endpoint, options: &Options) -> Result<Self, EndpointError> {
        let address = endpoint.address().to_owned();
        let connection = RwLock::new(Arc::new(Connection::new(endpoint, options)?));
        let reachable = AtomicBool::new(true);
        Ok(Self { connection, certificates: None, options: *options, reachable, address })
    }

    /// Reads the certificates of mutual TLS again when a call or a probe has failed: they may have been replaced, together
    /// with those of the function.
    #[must_use]
    pub fn with_certificates(mut self, read: ReadTls) -> Self {
        self.certificates = Some(read);
        self
    }

    fn connection(&self) -> Arc<Connection> {
        self.connection.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A connection with the certificates that there are now, if they are not those of the connection that failed. Files
    /// that cannot be used, such as half of a pair, are left for the next time.
    fn renewed(&self, failed: &Connection) -> Option<Arc<Connection>> {
        let tls = self.certificates.as_ref()?().inspect_err(|error| {
            tracing::debug!(function = self.address, error = chain(error), "cannot read certificates again");
        });
        let endpoint = Endpoint::mutual_tls(&self.address, tls.ok()?);
        if endpoint == failed.endpoint {
            return None;
        }
        let mut connection = self.connection.write().unwrap_or_else(PoisonError::into_inner);
        if connection.endpoint != endpoint {
            let renewed = Connection::new(endpoint, &self.options).inspect_err(|error| {
                tracing::warn!(function = self.address, error = chain(error), "cannot use new certificates");
            });
            *connection = Arc::new(renewed.ok()?);
            tracing::info!(function = self.address, "uses certificates that were replaced");
        }
        Some(connection.clone())
    }
}

#[async_trait]
impl Instance for Remote {
    /// Calls again while the endpoint cannot be reached: the function may just be starting. Any other result is final.
    async fn call(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        let give_up = Instant::now() + self.options.wait_for_start;
        let mut connection = self.connection();
        loop {
            let status = match connection.client.run(&request).await {
                Err(status) => status,
                response => return response,
            };
            if let Some(renewed) = self.renewed(&connection) {
                connection = renewed;
            } else if status.code() == Code::Unavailable && Instant::now() < give_up {
                tracing::debug!(error = status.message(), "the function cannot be reached yet");
                sleep(RETRY_INTERVAL).await;
            } else {
                return Err(status);
            }
        }
    }

    async fn probe(&self) -> Result<(), Problem> {
        let connection = self.connection();
        let mut reached = connection.probe().await;
        if reached.is_err()
            && let Some(renewed) = self.renewed(&connection)
        {
            reached = renewed.probe().await;
        }
        self.reachable.store(reached.is_ok(), Ordering::Relaxed);
        reached
    }

    fn target(&self) -> &str {
        &self.address
    }

    fn location(&self) -> String {
        format!("at {}", self.address)
    }

    fn record(&self, code: Code) -> bool {
        let reachable = code != Code::Unavailable;
        self.reachable.swap(reachable, Ordering::Relaxed) != reachable
    }
}

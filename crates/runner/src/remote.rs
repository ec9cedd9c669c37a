//! Functions that are called over gRPC.

use crate::endpoint::{Endpoint, EndpointError, connection_causes};
use crate::health::Health;
use crate::instance::Instance;
use crate::router::Options;
use crate::runtime::{Problem, Reason};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tonic::{Code, Status};
use transom_function::client::FunctionClient;
use transom_function::{RunFunctionRequest, RunFunctionResponse, async_trait};

const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// A function behind an endpoint, with the one connection that all its calls share.
pub struct Remote {
    endpoint: Endpoint,
    client: FunctionClient,
    health: Health,
    wait_for_start: Duration,
    /// Whether the last call or the last probe reached the function.
    reachable: AtomicBool,
}

impl Remote {
    /// A function at an endpoint. Connects when it is first called or probed.
    pub fn new(endpoint: Endpoint, options: &Options) -> Result<Self, EndpointError> {
        let channel = endpoint.channel()?;
        let client = FunctionClient::new(channel.clone()).with_max_message_size(options.max_message_size);
        Ok(Self {
            endpoint,
            client,
            health: Health::new(channel),
            wait_for_start: options.wait_for_start,
            reachable: AtomicBool::new(true),
        })
    }
}

#[async_trait]
impl Instance for Remote {
    /// Calls again while the endpoint cannot be reached: the function may just be starting. Any other result is final.
    async fn call(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        let give_up = Instant::now() + self.wait_for_start;
        loop {
            match self.client.run(&request).await {
                Err(status) if status.code() == Code::Unavailable && Instant::now() < give_up => {
                    tracing::debug!(error = status.message(), "the function cannot be reached yet");
                    sleep(RETRY_INTERVAL).await;
                }
                result => return result,
            }
        }
    }

    async fn probe(&self) -> Result<(), Problem> {
        let unreachable = |error| Problem::new(Reason::Unreachable, connection_causes(&error));
        let reached = match self.endpoint.reach().await.map_err(unreachable) {
            Ok(()) => self.health.check(self.endpoint.address()).await,
            unreachable => unreachable,
        };
        self.reachable.store(reached.is_ok(), Ordering::Relaxed);
        reached
    }

    fn target(&self) -> &str {
        self.endpoint.address()
    }

    fn location(&self) -> String {
        format!("at {}", self.endpoint.address())
    }

    fn record(&self, code: Code) -> bool {
        let reachable = code != Code::Unavailable;
        self.reachable.swap(reachable, Ordering::Relaxed) != reachable
    }
}

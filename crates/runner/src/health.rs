//! Whether a function says that it is ready: by gRPC's health protocol, where it offers that.

use crate::runtime::{Problem, Reason};
use std::time::Duration;
use tonic::Code;
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

/// How long a function may take to say that it is ready.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// The health of a function behind a channel.
pub(crate) struct Health {
    client: HealthClient<Channel>,
}

impl Health {
    pub(crate) fn new(channel: Channel) -> Self {
        Self { client: HealthClient::new(channel) }
    }

    /// Whether the function is ready. One that does not offer the protocol is, and so is one that knows no service without
    /// a name; whether one that does not answer is, its calls show.
    pub(crate) async fn check(&self, target: &str) -> Result<(), Problem> {
        let mut client = self.client.clone();
        let request = HealthCheckRequest { service: String::new() };
        let not_ready = |why: String| {
            Err(Problem::new(Reason::NotServing, format!("the function at {target} is not ready: {why}")))
        };
        match tokio::time::timeout(ANSWER_WITHIN, client.check(request)).await {
            Ok(Ok(answer)) => match answer.into_inner().status {
                status if status == ServingStatus::NotServing as i32 => {
                    not_ready("its health is NOT_SERVING".to_owned())
                }
                _ => Ok(()),
            },
            Ok(Err(status)) if status.code() == Code::Unavailable => {
                not_ready(format!("its health check failed: {}", status.message()))
            }
            Ok(Err(_)) | Err(_) => Ok(()),
        }
    }
}

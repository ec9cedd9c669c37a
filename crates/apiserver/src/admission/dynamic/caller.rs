//! How webhooks are called: the connection is made outside of this crate.

use async_trait::async_trait;
use bytes::Bytes;
use std::time::Duration;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// One call of a webhook.
#[derive(Clone, Debug)]
pub struct WebhookCall {
    /// The URL, which also names the server in its certificate.
    pub url: String,
    /// Where to connect instead of the host of the URL: the endpoint of a Service.
    pub connect_to: Option<(String, u16)>,
    /// The authorities that may sign the server's certificate, as PEM; those of the system if empty.
    pub authorities: Vec<u8>,
    /// The JSON to send.
    pub body: Vec<u8>,
    /// How long the call may take.
    pub timeout: Duration,
}

/// Why a webhook gave no response. The text and those of the sources name neither the URL nor the webhook.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebhookCallError {
    /// The URL or the caBundle of the configuration cannot be used.
    #[error("{what}")]
    Configuration {
        /// What is wrong.
        what: String,
        /// Why.
        source: Option<BoxError>,
    },
    /// There is no connection to the server, or its certificate is not accepted.
    #[error("{what}")]
    Connection {
        /// What failed.
        what: String,
        /// Why.
        source: Option<BoxError>,
    },
    /// The request was not sent, or the response was not received.
    #[error(transparent)]
    Exchange(BoxError),
    /// The server answered with a status that does not mean success.
    #[error("the server answered {status}{}{text}", if .text.is_empty() { "" } else { ": " })]
    Refused {
        /// The status.
        status: http::StatusCode,
        /// The beginning of the body.
        text: String,
    },
}

impl WebhookCallError {
    /// The configuration cannot be used, for a reason that another error gives.
    pub fn configuration(what: impl Into<String>, source: impl Into<BoxError>) -> Self {
        Self::Configuration { what: what.into(), source: Some(source.into()) }
    }

    /// There is no connection, for a reason that another error gives.
    pub fn connection(what: impl Into<String>, source: impl Into<BoxError>) -> Self {
        Self::Connection { what: what.into(), source: Some(source.into()) }
    }
}

/// Calls webhooks over HTTPS.
#[async_trait]
pub trait WebhookCaller: Send + Sync {
    /// Posts the body and returns that of the response.
    async fn call(&self, call: WebhookCall) -> Result<Bytes, WebhookCallError>;
}

//! Spans in batches to a collector.

use crate::messages::{
    ExportTraceServiceRequest, ExportTraceServiceResponse, KeyValue, Resource, ResourceSpans, ScopeSpans,
    Span,
};
use http::uri::PathAndQuery;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

/// How many spans wait to be sent at most; more are dropped.
const WAITING_MAX: usize = 8192;
/// How many spans are sent at once.
const BATCH_MAX: usize = 512;
/// How long spans wait for others.
const BATCH_EVERY: Duration = Duration::from_secs(1);
/// How long the collector may take.
const SEND_WITHIN: Duration = Duration::from_secs(10);
const PATH: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

pub(crate) static EXPORTER: OnceLock<Exporter> = OnceLock::new();

/// Takes spans. Adding one never waits.
pub struct Exporter {
    waiting: Sender<Span>,
    has_dropped: AtomicBool,
}

impl Exporter {
    pub(crate) fn add(&self, span: Span) {
        if self.waiting.try_send(span).is_err() && !self.has_dropped.swap(true, Ordering::Relaxed) {
            tracing::warn!("spans are dropped: the collector does not keep up");
        }
    }
}

/// Why spans cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The address cannot be used.
    #[error("{0:?} is not the address of a collector; write it like http://localhost:4317")]
    Address(String),
    /// There is an exporter already.
    #[error("traces are exported already")]
    Twice,
}

/// Sends spans of this process to a collector from now on, until the runtime that it is called on ends. The service is what
/// traces are found by.
pub fn install(address: &str, service: &str) -> Result<(), InstallError> {
    let invalid = || InstallError::Address(address.to_owned());
    let endpoint = Endpoint::from_shared(address.to_owned()).map_err(|_| invalid())?;
    if endpoint.uri().scheme_str() != Some("http") {
        return Err(invalid());
    }
    let channel = endpoint.connect_timeout(SEND_WITHIN).timeout(SEND_WITHIN).connect_lazy();
    let (waiting, spans) = self::channel(WAITING_MAX);
    let exporter = Exporter { waiting, has_dropped: AtomicBool::new(false) };
    EXPORTER.set(exporter).map_err(|_| InstallError::Twice)?;
    let resource = Resource { attributes: vec![KeyValue::text("service.name", service)] };
    tokio::spawn(export(channel, resource, spans));
    Ok(())
}

async fn export(channel: Channel, resource: Resource, mut spans: Receiver<Span>) {
    let mut has_failed = false;
    loop {
        let mut batch = Vec::new();
        if spans.recv_many(&mut batch, BATCH_MAX).await == 0 {
            return;
        }
        if batch.len() < BATCH_MAX {
            tokio::time::sleep(BATCH_EVERY).await;
            while batch.len() < BATCH_MAX
                && let Ok(span) = spans.try_recv()
            {
                batch.push(span);
            }
        }
        let sent = send(&channel, &resource, batch).await;
        if let Err(status) = &sent
            && !has_failed
        {
            tracing::warn!(
                error = status.message(),
                "traces cannot be sent; they are dropped until the collector answers"
            );
        }
        has_failed = sent.is_err();
    }
}

async fn send(channel: &Channel, resource: &Resource, spans: Vec<Span>) -> Result<(), tonic::Status> {
    let resource_spans =
        ResourceSpans { resource: Some(resource.clone()), scope_spans: vec![ScopeSpans { spans }] };
    let request = ExportTraceServiceRequest { resource_spans: vec![resource_spans] };
    let mut grpc = tonic::client::Grpc::new(channel.clone());
    grpc.ready().await.map_err(|error| tonic::Status::unavailable(error.to_string()))?;
    let codec: ProstCodec<ExportTraceServiceRequest, ExportTraceServiceResponse> = ProstCodec::default();
    grpc.unary(tonic::Request::new(request), PathAndQuery::from_static(PATH), codec).await?;
    Ok(())
}

//! A collector for tests, which keeps the spans that it receives.

use crate::messages::{ExportTraceServiceRequest, ExportTraceServiceResponse, Span};
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tonic::body::Body;
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic_prost::ProstCodec;

/// A collector that keeps what it receives.
#[derive(Clone, Default)]
pub struct Collector(Arc<Mutex<Vec<ExportTraceServiceRequest>>>);

impl NamedService for Collector {
    const NAME: &'static str = "opentelemetry.proto.collector.trace.v1.TraceService";
}

impl UnaryService<ExportTraceServiceRequest> for Collector {
    type Response = ExportTraceServiceResponse;
    type Future = std::future::Ready<Result<tonic::Response<Self::Response>, tonic::Status>>;

    fn call(&mut self, request: tonic::Request<ExportTraceServiceRequest>) -> Self::Future {
        self.requests().push(request.into_inner());
        std::future::ready(Ok(tonic::Response::new(ExportTraceServiceResponse {})))
    }
}

impl tower::Service<http::Request<Body>> for Collector {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            let codec: ProstCodec<ExportTraceServiceResponse, ExportTraceServiceRequest> =
                ProstCodec::default();
            Ok(Grpc::new(codec).unary(service, request).await)
        })
    }
}

impl Collector {
    /// Listens on a free port, until the runtime ends. Returns its address.
    pub fn start(&self) -> io::Result<SocketAddr> {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let incoming = tonic::transport::server::TcpIncoming::bind(any)?;
        let address = incoming.local_addr()?;
        let server = tonic::transport::Server::builder().add_service(self.clone());
        tokio::spawn(server.serve_with_incoming(incoming));
        Ok(address)
    }

    /// What was received.
    pub fn requests(&self) -> MutexGuard<'_, Vec<ExportTraceServiceRequest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All spans that were received.
    pub fn spans(&self) -> Vec<Span> {
        let requests = self.requests();
        let all =
            requests.iter().flat_map(|request| &request.resource_spans).flat_map(|spans| &spans.scope_spans);
        all.flat_map(|scope| scope.spans.clone()).collect()
    }
}

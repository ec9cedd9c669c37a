//! The trace context that functions receive with a call.

use crate::calls::{options, request, step};
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tonic::body::Body;
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::transport::server::TcpIncoming;
use transom_compose::FunctionRunner;
use transom_function::{RunFunctionRequest, RunFunctionResponse};
use transom_runner::{Endpoint, Router};
use transom_telemetry::testing::Collector;

/// A function that keeps the header of each call.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<String>>>);

impl NamedService for Recorder {
    const NAME: &'static str = "apiextensions.fn.proto.v1.FunctionRunnerService";
}

impl UnaryService<RunFunctionRequest> for Recorder {
    type Response = RunFunctionResponse;
    type Future = std::future::Ready<Result<tonic::Response<Self::Response>, tonic::Status>>;

    fn call(&mut self, request: tonic::Request<RunFunctionRequest>) -> Self::Future {
        let response = request.into_inner().start_response();
        std::future::ready(Ok(tonic::Response::new(response)))
    }
}

impl tower::Service<http::Request<Body>> for Recorder {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let header = request.headers().get("traceparent").and_then(|value| value.to_str().ok());
        self.0.lock().unwrap().push(header.unwrap_or_default().to_owned());
        let service = self.clone();
        Box::pin(async move {
            let codec: tonic_prost::ProstCodec<RunFunctionResponse, RunFunctionRequest> = Default::default();
            Ok(Grpc::new(codec).unary(service, request).await)
        })
    }
}

#[tokio::test]
async fn functions_get_the_context_of_their_call() {
    let collector = Collector::default();
    transom_telemetry::install(&format!("http://{}", collector.start().unwrap()), "test").unwrap();
    let recorder = Recorder::default();
    let incoming = TcpIncoming::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let address = incoming.local_addr().unwrap();
    tokio::spawn(
        tonic::transport::Server::builder().add_service(recorder.clone()).serve_with_incoming(incoming),
    );
    let functions = Router::new(options());
    functions.call_at("f", Endpoint::plaintext(address.to_string())).unwrap();
    functions.run(step("f"), request("echo")).await.unwrap();
    let received = recorder.0.lock().unwrap().first().cloned().unwrap();
    let parts: Vec<&str> = received.split('-').collect();
    assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [2, 32, 16, 2], "{received}");
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    for _ in 0..1000 {
        // It is the span of the call that the collector gets.
        if collector.spans().iter().any(|span| {
            span.name == "call" && hex(&span.trace_id) == parts[1] && hex(&span.span_id) == parts[2]
        }) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the span of the call does not arrive: {:?}", collector.spans());
}

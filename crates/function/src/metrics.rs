//! The metrics of a function server, for Prometheus: the names and labels are those of functions written in Go.
//!
//! Counting is a few atomic additions. The text is rendered when a client requests it.

use crate::grpc_code::grpc_code_name;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use std::convert::Infallible;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tonic::Code;
use transom_metrics::{CONTENT_TYPE, MetricsRegistry};

/// Upper bounds of the histogram's buckets, in seconds; Prometheus' own defaults.
const BOUNDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// How many status codes gRPC has; they are numbered from zero.
const CODES: usize = 17;
/// The largest request head accepted, in bytes.
const MAX_HEAD_BYTES: usize = 8 << 10;
/// How long a request for metrics may take, from its connection to the end of the response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait after a connection could not be accepted.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ServiceLabels {
    grpc_method: &'static str,
    grpc_service: &'static str,
    grpc_type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CodeLabels {
    grpc_code: &'static str,
    #[prometheus(flatten)]
    service: ServiceLabels,
}

/// The calls of one service.
#[derive(Clone, Debug)]
pub(crate) struct Calls {
    started: Counter,
    /// By the number of the code.
    handled: [Counter; CODES],
    seconds: Histogram,
}

impl Calls {
    pub(crate) fn start(&self) {
        self.started.inc();
    }

    pub(crate) fn end(&self, code: Code, took: Duration) {
        if let Some(count) = self.handled.get(code as usize) {
            count.inc();
        }
        self.seconds.observe(took.as_secs_f64());
    }
}

/// The calls of all services.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    registry: MetricsRegistry,
    started: Family<ServiceLabels, Counter>,
    handled: Family<CodeLabels, Counter>,
    seconds: Family<ServiceLabels, Histogram>,
}

impl Default for Metrics {
    fn default() -> Self {
        let metrics = Self {
            registry: MetricsRegistry::default(),
            started: Family::default(),
            handled: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(BOUNDS)),
        };
        let Self { registry, started, handled, seconds } = metrics.clone();
        registry.register("grpc_server_started_total", "Calls started", started);
        registry.register("grpc_server_handled_total", "Calls ended, by code", handled);
        registry.register("grpc_server_handling_seconds", "How long calls took", seconds);
        metrics
    }
}

impl Metrics {
    /// Counts the calls of a service.
    pub(crate) fn of(&self, service: &'static str) -> Calls {
        let service = ServiceLabels { grpc_method: "RunFunction", grpc_service: service, grpc_type: "unary" };
        let handled = std::array::from_fn(|number| {
            let code = i32::try_from(number).map_or(Code::Unknown, Code::from_i32);
            let labels = CodeLabels { grpc_code: grpc_code_name(code), service: service.clone() };
            self.handled.get_or_create_owned(&labels)
        });
        Calls {
            started: self.started.get_or_create_owned(&service),
            handled,
            seconds: self.seconds.get_or_create_owned(&service),
        }
    }

    /// Serves `GET /metrics` until dropped.
    pub(crate) async fn serve(self, listener: TcpListener) {
        loop {
            match listener.accept().await {
                // One connection at a time is enough for scrapers, and bounds what other clients can use.
                Ok((stream, _)) => self.serve_connection(stream).await,
                Err(error) => {
                    tracing::debug!(%error, "cannot accept");
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            }
        }
    }

    /// Serves one request, then closes the connection.
    async fn serve_connection(&self, stream: TcpStream) {
        let service = service_fn(async |request| Ok::<_, Infallible>(self.respond(&request)));
        let connection = http1::Builder::new()
            .keep_alive(false)
            .max_buf_size(MAX_HEAD_BYTES)
            .timer(TokioTimer::new())
            .header_read_timeout(REQUEST_TIMEOUT)
            .serve_connection(TokioIo::new(stream), service);
        match tokio::time::timeout(REQUEST_TIMEOUT, connection).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "a request for metrics failed"),
            Err(_) => tracing::debug!("a request for metrics took too long"),
        }
    }

    fn respond(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::default());
        if request.method() == Method::GET && request.uri().path() == "/metrics" {
            *response.body_mut() = Full::from(self.registry.render());
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
        } else {
            *response.status_mut() = StatusCode::NOT_FOUND;
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[test]
    fn calls_are_counted_by_code_and_time() {
        let metrics = Metrics::default();
        let calls = metrics.of("v1");
        for (code, millis) in [(Code::Ok, 1), (Code::Ok, 7), (Code::Internal, 60_000)] {
            calls.start();
            calls.end(code, Duration::from_millis(millis));
        }
        calls.start();
        let labels = "grpc_method=\"RunFunction\",grpc_service=\"v1\",grpc_type=\"unary\"";
        let text = metrics.registry.render();
        for line in [
            format!("grpc_server_started_total{{{labels}}} 4"),
            format!("grpc_server_handled_total{{grpc_code=\"OK\",{labels}}} 2"),
            format!("grpc_server_handled_total{{grpc_code=\"Internal\",{labels}}} 1"),
            format!("grpc_server_handled_total{{grpc_code=\"Unauthenticated\",{labels}}} 0"),
            format!("grpc_server_handling_seconds_bucket{{{labels},le=\"0.005\"}} 1"),
            format!("grpc_server_handling_seconds_bucket{{{labels},le=\"10\"}} 2"),
            format!("grpc_server_handling_seconds_bucket{{{labels},le=\"+Inf\"}} 3"),
            format!("grpc_server_handling_seconds_sum{{{labels}}} 60.008"),
            format!("grpc_server_handling_seconds_count{{{labels}}} 3"),
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn every_family_is_documented() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
        let page = std::fs::read_to_string(page).unwrap();
        let section = page.split("\n## ").find(|section| section.starts_with("Function servers\n")).unwrap();
        let documented: BTreeSet<(&str, &str)> = section
            .lines()
            .filter_map(|line| {
                let mut cells = line.strip_prefix("| `")?.split('|').map(str::trim);
                Some((cells.next()?.trim_end_matches('`'), cells.next()?))
            })
            .collect();
        let families = Metrics::default().registry.families();
        assert_eq!(documented, families.into_iter().collect(), "left: docs/metrics.md; right: the registry");
    }

    async fn request(address: std::net::SocketAddr, head: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut response = Vec::new();
        // The rest of a head that is too large may be answered with a reset.
        let _ = stream.read_to_end(&mut response).await;
        String::from_utf8_lossy(&response).into_owned()
    }

    #[tokio::test(start_paused = true)]
    async fn neither_large_heads_nor_silent_clients_keep_others_waiting() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = async {
            let started = tokio::time::Instant::now();
            for unfinished in ["", "GET /metrics HTTP/1.1\r\nhost:"] {
                assert_eq!(request(address, unfinished).await, "");
            }
            assert_eq!(started.elapsed().as_secs(), 2 * REQUEST_TIMEOUT.as_secs());
            let large = format!("GET /metrics HTTP/1.1\r\nhost: {}", "x".repeat(2 * MAX_HEAD_BYTES));
            let refused = request(address, &large).await;
            assert!(refused.is_empty() || refused.starts_with("HTTP/1.1 431 "), "{refused}");
            let answered = request(address, "GET /metrics?x HTTP/1.1\r\nhost: x\r\n\r\n").await;
            assert!(answered.starts_with("HTTP/1.1 200 OK\r\n"), "{answered}");
            assert!(answered.contains(&format!("content-type: {CONTENT_TYPE}\r\n")), "{answered}");
            let refused = request(address, "POST /metrics HTTP/1.1\r\nhost: x\r\n\r\n").await;
            assert!(refused.starts_with("HTTP/1.1 404 "), "{refused}");
        };
        tokio::select! {
            () = Metrics::default().serve(listener) => {}
            () = served => {}
        }
    }
}

//! What a function server has done, for Prometheus: the names and labels are those of functions written in Go.
//!
//! Counting is a few atomic additions; the text is made when somebody asks, over HTTP, one request per connection.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tonic::Code;

/// Upper bounds of the histogram's buckets, in seconds; Prometheus' own defaults.
const BOUNDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// The codes a call can end with, in the order of their numbers.
const CODES: [&str; 17] = [
    "OK",
    "Canceled",
    "Unknown",
    "InvalidArgument",
    "DeadlineExceeded",
    "NotFound",
    "AlreadyExists",
    "PermissionDenied",
    "ResourceExhausted",
    "FailedPrecondition",
    "Aborted",
    "OutOfRange",
    "Unimplemented",
    "Internal",
    "Unavailable",
    "DataLoss",
    "Unauthenticated",
];
/// Longer than this no request for metrics is.
const LONGEST_HEAD: usize = 8 << 10;
const PATIENCE: Duration = Duration::from_secs(5);

/// The calls of one service.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    started: AtomicU64,
    handled: [AtomicU64; CODES.len()],
    /// Calls by the bucket they fall into; the last is for those beyond all bounds.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    nanoseconds: AtomicU64,
}

impl Calls {
    pub(crate) fn start(&self) {
        self.started.fetch_add(1, Relaxed);
    }

    pub(crate) fn end(&self, code: Code, took: Duration) {
        if let Some(count) = self.handled.get(code as usize) {
            count.fetch_add(1, Relaxed);
        }
        let bucket = BOUNDS.iter().position(|bound| took.as_secs_f64() <= *bound).unwrap_or(BOUNDS.len());
        self.buckets[bucket].fetch_add(1, Relaxed);
        self.nanoseconds.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }
}

/// The calls of all services, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics(Vec<(&'static str, Arc<Calls>)>);

impl Metrics {
    /// Counts the calls of a service.
    pub(crate) fn of(&mut self, service: &'static str) -> Arc<Calls> {
        let calls = Arc::<Calls>::default();
        self.0.push((service, calls.clone()));
        calls
    }

    /// In Prometheus' text format.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let mut family = |name: &str, kind: &str, help: &str, write: &dyn Fn(&mut String, &str, &Calls)| {
            _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
            for (service, calls) in &self.0 {
                let labels =
                    format!("grpc_method=\"RunFunction\",grpc_service=\"{service}\",grpc_type=\"unary\"");
                write(&mut text, &labels, calls);
            }
        };
        family("grpc_server_started_total", "counter", "Calls started.", &|text, labels, calls| {
            _ = writeln!(text, "grpc_server_started_total{{{labels}}} {}", calls.started.load(Relaxed));
        });
        family("grpc_server_handled_total", "counter", "Calls ended, by code.", &|text, labels, calls| {
            for (code, count) in CODES.iter().zip(&calls.handled) {
                let count = count.load(Relaxed);
                _ = writeln!(text, "grpc_server_handled_total{{grpc_code=\"{code}\",{labels}}} {count}");
            }
        });
        family("grpc_server_handling_seconds", "histogram", "How long calls took.", &histogram);
        text
    }

    /// Answers `GET /metrics` until dropped.
    pub(crate) async fn serve(self, listener: TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    // One at a time is enough for those who scrape, and bounds what others can take.
                    let _ = tokio::time::timeout(PATIENCE, self.answer(stream)).await;
                }
                Err(error) => {
                    tracing::debug!(%error, "cannot accept");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    async fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut head = Vec::new();
        while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < LONGEST_HEAD {
            if stream.read_buf(&mut head).await? == 0 {
                return Ok(());
            }
        }
        let found = head.starts_with(b"GET /metrics ") || head.starts_with(b"GET /metrics?");
        let (status, body) = if found { ("200 OK", self.text()) } else { ("404 Not Found", String::new()) };
        let kind = "text/plain; version=0.0.4; charset=utf-8";
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
        stream.shutdown().await
    }
}

fn histogram(text: &mut String, labels: &str, calls: &Calls) {
    let name = "grpc_server_handling_seconds";
    let mut count = 0;
    let bounds = BOUNDS.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
    for (bound, bucket) in bounds.zip(&calls.buckets) {
        count += bucket.load(Relaxed);
        _ = writeln!(text, "{name}_bucket{{{labels},le=\"{bound}\"}} {count}");
    }
    let seconds = Duration::from_nanos(calls.nanoseconds.load(Relaxed)).as_secs_f64();
    _ = write!(text, "{name}_sum{{{labels}}} {seconds}\n{name}_count{{{labels}}} {count}\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_code_and_time() {
        let mut metrics = Metrics::default();
        let calls = metrics.of("v1");
        for (code, millis) in [(Code::Ok, 1), (Code::Ok, 7), (Code::Internal, 60_000)] {
            calls.start();
            calls.end(code, Duration::from_millis(millis));
        }
        calls.start();
        let labels = "grpc_method=\"RunFunction\",grpc_service=\"v1\",grpc_type=\"unary\"";
        let text = metrics.text();
        for line in [
            format!("grpc_server_started_total{{{labels}}} 4"),
            format!("grpc_server_handled_total{{grpc_code=\"OK\",{labels}}} 2"),
            format!("grpc_server_handled_total{{grpc_code=\"Internal\",{labels}}} 1"),
            format!("grpc_server_handling_seconds_bucket{{{labels},le=\"0.005\"}} 1"),
            format!("grpc_server_handling_seconds_bucket{{{labels},le=\"10\"}} 2"),
            format!("grpc_server_handling_seconds_bucket{{{labels},le=\"+Inf\"}} 3"),
            format!("grpc_server_handling_seconds_sum{{{labels}}} 60.008"),
            format!("grpc_server_handling_seconds_count{{{labels}}} 3"),
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}

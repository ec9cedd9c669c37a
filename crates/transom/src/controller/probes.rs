//! The probes and metrics of `transom controller`, over HTTP. They respond from the start, and report what is not there yet as
//! not ready.

use super::args::ServingArgs;
use crate::plane::ClusterPlane;
use http::StatusCode;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use transom_apiserver::Check;
use transom_console::Failure;
use transom_hosting::{Answer, Endpoint, Handler, Question};
use transom_metrics::MetricsRegistry;

/// What the endpoints report. Clones share their content.
#[derive(Clone, Default)]
pub(super) struct Probes(Arc<OnceLock<Sources>>);

struct Sources {
    registry: MetricsRegistry,
    ready: Check,
}

/// The endpoints. They stop when dropped.
pub(super) struct Endpoints(Vec<Endpoint>);

impl Endpoints {
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.0.iter().map(Endpoint::address).collect()
    }
}

impl Probes {
    /// Serves both ports, which may be the same.
    pub(super) async fn serve(&self, args: &ServingArgs) -> Result<Endpoints, Failure> {
        let mut ports = vec![args.health_probe_port, args.metrics_port];
        ports.dedup();
        let mut endpoints = Vec::new();
        for port in ports {
            let address = SocketAddr::new(args.listen_address, port);
            let served = Endpoint::http(address, self.handler()).await;
            endpoints.push(served.map_err(|e| {
                Failure::new(format!("cannot listen on {address}: {e}"))
                    .remedy("pass another --listen-address, --health-probe-port or --metrics-port")
            })?);
        }
        Ok(Endpoints(endpoints))
    }

    /// The controllers run: from here on there are metrics, and readiness is theirs.
    pub(super) fn started(&self, plane: &ClusterPlane) {
        let (registry, ready) = (plane.registry(), plane.ready_check());
        // Controllers are started once.
        let _ = self.0.set(Sources { registry, ready });
    }

    fn handler(&self) -> Handler {
        let probes = self.clone();
        Arc::new(move |question: Question| {
            let answer = probes.answer(&question.path);
            Box::pin(async move { answer })
        })
    }

    fn answer(&self, path: &str) -> Answer {
        match (path, self.0.get()) {
            ("/livez" | "/healthz", _) => Answer::text(StatusCode::OK, "ok"),
            ("/readyz", Some(sources)) if (sources.ready)() => Answer::text(StatusCode::OK, "ok"),
            ("/readyz", _) => {
                let why = "[-]controllers failed: they have not seen all objects yet\nreadyz check failed\n";
                Answer::text(StatusCode::INTERNAL_SERVER_ERROR, why)
            }
            ("/metrics", sources) => Answer {
                status: StatusCode::OK,
                content_type: transom_metrics::CONTENT_TYPE,
                body: sources.map(|sources| sources.registry.render()).unwrap_or_default().into_bytes(),
            },
            _ => Answer::not_found(),
        }
    }
}

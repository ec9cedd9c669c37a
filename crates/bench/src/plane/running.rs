//! A control plane that runs: how to reach it, what its processes use, what its API server counts.
//!
//! Planes are used only through the Kubernetes API and `/proc`: any plane can be measured, of any implementation.

use crate::client::Client;
use crate::failure::Failure;
use crate::process;
use crate::target::{self, Target};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// A plane and the processes that it consists of.
#[derive(Clone)]
pub(crate) struct Plane {
    pub(crate) target: Arc<Target>,
    pids: Vec<u32>,
}

impl Plane {
    pub(crate) fn given(kubeconfig: &Path, pids: Vec<u32>) -> Result<Self, Failure> {
        Ok(Self { target: Arc::new(target::read(kubeconfig)?), pids })
    }

    pub(crate) async fn connect(&self) -> Result<Client, Failure> {
        Client::connect(&self.target).await
    }

    /// Resident memory of all processes, in MiB.
    pub(crate) fn memory(&self) -> Result<f64, Failure> {
        Ok(process::memory(&self.pids)? / process::MIB)
    }

    pub(crate) fn cpu(&self) -> Result<Duration, Failure> {
        process::cpu(&self.pids)
    }

    /// What the plane has counted since its start. Servers close idle connections, so this opens a new one.
    pub(crate) async fn counters(&self) -> Result<Counters, Failure> {
        Counters::read(&mut self.connect().await?).await
    }
}

/// Counters of a plane, since its start.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Counters {
    /// Requests to write anything but Events, whether or not they changed anything. Leases are not counted: API
    /// servers and controllers renew theirs all the time, whatever there is to do.
    pub(crate) writes: u64,
    /// Requests to write Events.
    pub(crate) events: u64,
    /// Reconciles of composite resources; always zero for planes whose controllers are other processes.
    pub(crate) reconciles: u64,
}

impl Counters {
    pub(crate) async fn read(client: &mut Client) -> Result<Self, Failure> {
        let metrics = client.get("/metrics").await?;
        Ok(Self::parse(&String::from_utf8_lossy(&metrics)))
    }

    /// From the text that Prometheus reads. Kubernetes and Transom name their verbs differently.
    fn parse(metrics: &str) -> Self {
        const VERBS: [&str; 8] =
            ["POST", "PUT", "APPLY", "CREATE", "UPDATE", "PATCH", "DELETE", "DELETECOLLECTION"];
        let mut counters = Self::default();
        for (series, value) in metrics.lines().filter_map(|line| line.rsplit_once(' ')) {
            let has = |label: &str, value: &str| series.contains(&format!("{label}=\"{value}\""));
            // Large counters are written as 1.5e+06.
            let count = || value.parse().map_or(0, |n: f64| n as u64);
            if series.starts_with("apiserver_request_total{") {
                if VERBS.iter().any(|verb| has("verb", verb)) && !has("resource", "leases") {
                    let kind =
                        if has("resource", "events") { &mut counters.events } else { &mut counters.writes };
                    *kind += count();
                }
            } else if series.starts_with("controller_runtime_reconcile_total{controller=\"composite/") {
                counters.reconciles += count();
            }
        }
        counters
    }
}

/// `transom up` on a directory of its own, which ends with this value.
pub(crate) struct OwnPlane {
    child: Child,
    plane: Plane,
}

impl Drop for OwnPlane {
    fn drop(&mut self) {
        self.kill();
    }
}

impl OwnPlane {
    /// Starts it and waits until it serves.
    pub(crate) fn start(transom: &Path, data_dir: &Path) -> Result<Self, Failure> {
        let failed = |e: std::io::Error| {
            Failure::new(format!("cannot start {}: {e}", transom.display()))
                .remedy("build it, or name another one with --transom FILE")
        };
        let mut child = Command::new(transom)
            .args(["up", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(data_dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).map_err(failed)?;
        }
        let Some(kubeconfig) = line.trim().strip_prefix("export KUBECONFIG=") else {
            let _ = child.kill();
            return Err(Failure::new("the plane does not start")
                .remedy(format!("try `transom up --data-dir {}`", data_dir.display())));
        };
        let plane = Plane::given(Path::new(kubeconfig), vec![child.id()])?;
        Ok(Self { child, plane })
    }

    pub(crate) fn plane(&self) -> &Plane {
        &self.plane
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it as a crash would. It may have ended already.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_from_kubernetes_and_from_transom() {
        let text = r#"
# TYPE apiserver_request_total counter
apiserver_request_total{code="201",group="",resource="configmaps",verb="POST"} 1.5e+06
apiserver_request_total{code="200",group="",resource="configmaps",verb="LIST"} 9
apiserver_request_total{code="200",group="coordination.k8s.io",resource="leases",verb="PUT"} 9
apiserver_request_total{code="201",group="",resource="events",verb="POST"} 3
apiserver_request_total{verb="PATCH",group="",version="v1",resource="events",subresource="",code="200"} 2
apiserver_request_total{verb="CREATE",group="",version="v1",resource="configmaps",subresource="",code="201"} 4
apiserver_request_duration_seconds_count{verb="CREATE",resource="configmaps"} 4
controller_runtime_reconcile_total{controller="composite/stacks.example.org",result="success"} 7
controller_runtime_reconcile_total{controller="defined/compositeresourcedefinition",result="success"} 1
"#;
        let expected = Counters { writes: 1_500_004, events: 5, reconciles: 7 };
        assert_eq!(Counters::parse(text), expected);
    }
}

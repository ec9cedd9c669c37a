//! A plane of its own for the measurement, in a process of its own.

use crate::client::Client;
use crate::failure::Failure;
use crate::process;
use crate::target::{self, Target};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

pub(crate) struct Running {
    child: Child,
    pub(crate) target: Arc<Target>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Running {
    /// Starts `transom up` and waits until it serves.
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
        let target = Arc::new(target::read(Path::new(kubeconfig))?);
        Ok(Self { child, target })
    }

    /// As if the machine had lost its power. It may be gone already.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn memory(&self) -> Result<f64, Failure> {
        process::memory(&[self.child.id()])
    }

    pub(crate) fn cpu(&self) -> Result<Duration, Failure> {
        process::cpu(self.child.id())
    }

    /// How often composite resources were reconciled since the start.
    pub(crate) async fn reconciles(&self, client: &mut Client) -> Result<u64, Failure> {
        sum(client, |series| series.starts_with("controller_runtime_reconcile_total{controller=\"composite/"))
            .await
    }

    /// How often anyone asked for something to be written since the start, whether or not that changed anything.
    pub(crate) async fn writes(&self, client: &mut Client) -> Result<u64, Failure> {
        const VERBS: [&str; 5] = ["CREATE", "UPDATE", "PATCH", "DELETE", "DELETECOLLECTION"];
        let writes = |series: &str| VERBS.iter().any(|verb| series.contains(&format!("verb=\"{verb}\"")));
        sum(client, |series| series.starts_with("apiserver_request_total{") && writes(series)).await
    }
}

/// The sum of the counters that are meant.
async fn sum(client: &mut Client, meant: impl Fn(&str) -> bool) -> Result<u64, Failure> {
    let metrics = client.get("/metrics").await?;
    let metrics = String::from_utf8_lossy(&metrics);
    let counters = metrics.lines().filter_map(|line| line.rsplit_once(' '));
    Ok(counters.filter(|(series, _)| meant(series)).filter_map(|(_, n)| n.parse::<u64>().ok()).sum())
}

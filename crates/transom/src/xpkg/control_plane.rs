//! The control plane that a command works with: by a kubeconfig, whether Transom or Crossplane runs there.

use crate::failure::Failure;
use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig};
use std::path::PathBuf;
use std::time::Duration;
use transom_engine::{Cluster, Error};

/// How long the control plane may take to answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Flags for the control plane.
#[derive(Args)]
pub(crate) struct ControlPlaneArgs {
    /// The kubeconfig; by default KUBECONFIG, ~/.kube/config, or the cluster that this runs in
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// The context in the kubeconfig
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl ControlPlaneArgs {
    pub(crate) async fn open(&self) -> Result<Cluster, Failure> {
        let cannot = |e: &dyn std::fmt::Display| {
            Failure::new(format!("cannot use the kubeconfig: {e}"))
                .remedy("--kubeconfig or KUBECONFIG names it; `transom up` prints where it writes its own")
        };
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let config = match (&self.kubeconfig, &self.context) {
            (Some(path), _) => {
                let file = Kubeconfig::read_from(path).map_err(|e| cannot(&e))?;
                kube::Config::from_custom_kubeconfig(file, &options).await.map_err(|e| cannot(&e))?
            }
            (None, Some(_)) => kube::Config::from_kubeconfig(&options).await.map_err(|e| cannot(&e))?,
            (None, None) => kube::Config::infer().await.map_err(|e| cannot(&e))?,
        };
        kube::Client::try_from(config).map(Cluster::new).map_err(|e| cannot(&e))
    }
}

/// The answer of the control plane about a subject, unless it takes too long.
pub(crate) async fn within<T>(
    subject: &str,
    request: impl Future<Output = Result<T, Error>>,
) -> Result<Result<T, Error>, Failure> {
    tokio::time::timeout(REQUEST_TIMEOUT, request).await.map_err(|_| {
        Failure::new(format!("{subject}: no answer from the control plane"))
            .remedy("check that the server of the kubeconfig runs")
    })
}

/// What an error of the control plane about a subject means to the user.
pub(crate) fn explain(subject: &str, error: &Error) -> Failure {
    let failure = Failure::new(format!("{subject}: {}", error.chain()));
    if error.is_unknown_kind() {
        return failure.remedy("the cluster of the kubeconfig runs neither Transom nor Crossplane");
    }
    match error.refusal() {
        Some(_) => failure,
        None => failure.remedy("check that the server of the kubeconfig runs"),
    }
}

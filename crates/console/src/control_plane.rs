//! The control plane that a command works with: by a kubeconfig, whether Transom or Crossplane runs there.

use crate::Failure;
use clap::Args;
use http::{HeaderName, HeaderValue};
use kube::config::{KubeConfigOptions, Kubeconfig};
use std::path::PathBuf;
use std::time::Duration;
use transom_engine::{Cluster, Error};

/// How long the control plane may take to answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Flags for the control plane.
#[derive(Args)]
pub struct ControlPlaneArgs {
    /// The kubeconfig; by default KUBECONFIG, ~/.kube/config, or the cluster that this runs in
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// The context in the kubeconfig
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    /// The user to act as
    #[arg(long = "as", value_name = "USER")]
    as_user: Option<String>,

    /// A group to act as; may be repeated
    #[arg(long, value_name = "GROUP", requires = "as_user")]
    as_group: Vec<String>,

    /// The uid to act as
    #[arg(long, value_name = "UID", requires = "as_user")]
    as_uid: Option<String>,
}

impl ControlPlaneArgs {
    /// The control plane of the kubeconfig.
    pub async fn open(&self) -> Result<Cluster, Failure> {
        self.client().await.map(Cluster::new)
    }

    /// A client of the server of the kubeconfig.
    pub async fn client(&self) -> Result<kube::Client, Failure> {
        connect(&self.config().await?)
    }

    /// What the kubeconfig says about the server and the user.
    pub async fn config(&self) -> Result<kube::Config, Failure> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let mut config = match (&self.kubeconfig, &self.context) {
            (Some(path), _) => {
                let file = Kubeconfig::read_from(path).map_err(|e| cannot_use(&e))?;
                kube::Config::from_custom_kubeconfig(file, &options).await.map_err(|e| cannot_use(&e))?
            }
            (None, Some(_)) => kube::Config::from_kubeconfig(&options).await.map_err(|e| cannot_use(&e))?,
            (None, None) => kube::Config::infer().await.map_err(|e| cannot_use(&e))?,
        };
        config.headers.extend(self.impersonation()?);
        Ok(config)
    }

    /// The headers of requests on behalf of another user.
    fn impersonation(&self) -> Result<Vec<(HeaderName, HeaderValue)>, Failure> {
        let user = self.as_user.iter().map(|user| ("--as", "impersonate-user", user));
        let groups = self.as_group.iter().map(|group| ("--as-group", "impersonate-group", group));
        let uid = self.as_uid.iter().map(|uid| ("--as-uid", "impersonate-uid", uid));
        let header = |(flag, name, value): (&str, &'static str, &String)| {
            let invalid = |_| Failure::new(format!("{flag}: {value:?} cannot be sent in a header"));
            Ok((HeaderName::from_static(name), HeaderValue::from_str(value).map_err(invalid)?))
        };
        user.chain(groups).chain(uid).map(header).collect()
    }
}

/// A client of the server that a kubeconfig names.
pub fn connect(config: &kube::Config) -> Result<kube::Client, Failure> {
    transom_hosting::connect(config).map_err(|e| cannot_use(&e))
}

fn cannot_use(e: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("cannot use the kubeconfig: {e}"))
        .remedy("--kubeconfig or KUBECONFIG names it; `transom up` prints where it writes its own")
}

/// The answer of the control plane about a subject, unless it takes too long.
pub async fn within<T>(
    subject: &str,
    request: impl Future<Output = Result<T, Error>>,
) -> Result<Result<T, Error>, Failure> {
    tokio::time::timeout(REQUEST_TIMEOUT, request).await.map_err(|_| {
        Failure::new(format!("{subject}: no answer from the control plane"))
            .remedy("check that the server of the kubeconfig runs")
    })
}

/// What an error of the control plane about a subject means to the user.
pub fn explain(subject: &str, error: &Error) -> Failure {
    let failure = Failure::new(format!("{subject}: {}", error.chain()));
    if error.is_unknown_kind() {
        return failure.remedy("the cluster of the kubeconfig runs neither Transom nor Crossplane");
    }
    match error.refusal() {
        Some(_) => failure,
        None => failure.remedy("check that the server of the kubeconfig runs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubeconfig_that_cannot_be_used_is_named_with_a_remedy() {
        let mut config = kube::Config::new("https://127.0.0.1:6443".parse().unwrap());
        config.root_cert = Some(vec![b"not a certificate".to_vec()]);
        let failure = connect(&config).err().unwrap().to_string();
        assert!(failure.starts_with("error: cannot use the kubeconfig: "), "{failure}");
        assert!(failure.ends_with("`transom up` prints where it writes its own"), "{failure}");
    }
}

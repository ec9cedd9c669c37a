//! The flags of `transom controller`.

use crate::plane::{ControllerArgs, ElectionArgs, PackageArgs, WebhookArgs};
use clap::{ArgAction, Args};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use transom_console::LogArgs;
use transom_console::control_plane::ControlPlaneArgs;
use transom_engine::ElectionOptions;
use transom_hosting::Reached;
use transom_xapi::constants::LEADER_LEASE;

/// Run the controllers and functions against a Kubernetes cluster.
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom controller                                    in a pod, or on the cluster of the kubeconfig
  transom controller --kubeconfig ./admin --cache-dir /var/cache/transom
  transom controller --listen-address 127.0.0.1         probes and metrics on loopback only
  transom controller --leader-election=false            one process, no Leases")]
pub(crate) struct Controller {
    #[command(flatten)]
    pub(super) cluster: ControlPlaneArgs,

    #[command(flatten)]
    pub(super) serving: ServingArgs,

    #[command(flatten)]
    pub(super) sharing: SharingArgs,

    #[command(flatten)]
    pub(super) webhooks: WebhookFlags,

    #[command(flatten)]
    pub(super) controllers: ControllerArgs,

    #[command(flatten)]
    pub(super) packages: PackageArgs,

    #[command(flatten)]
    pub(super) log: LogArgs,
}

/// Admission webhooks and roles.
#[derive(Args)]
#[command(next_help_heading = "Webhooks and roles")]
pub(super) struct WebhookFlags {
    /// Serve the webhooks that protect used objects and validate definitions, Compositions and packages [default: in a
    /// cluster, and with --webhook-url]
    #[arg(long, env = "ENABLE_WEBHOOKS", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    enable_webhooks: Option<bool>,

    /// The port of the webhooks; 0 picks a free one
    #[arg(long, env = "WEBHOOK_PORT", default_value_t = 9443, value_name = "PORT")]
    webhook_port: u16,

    /// The Service through which the API server reaches the webhooks
    #[arg(long, env = "WEBHOOK_SERVICE_NAME", default_value = "crossplane-webhooks", value_name = "NAME")]
    webhook_service: String,

    /// Where the API server reaches the webhooks of a process outside of the cluster; empty for the address itself
    #[arg(long, value_name = "URL")]
    webhook_url: Option<String>,

    /// How long the certificate of the webhooks is valid; it is renewed when a third of that is left. For tests
    #[arg(long, hide = true, value_parser = transom_console::duration, value_name = "DURATION")]
    webhook_certificate_lifetime: Option<Duration>,

    /// Create and update ClusterRoles for definitions and providers, as Crossplane's RBAC manager does
    #[arg(long, env = "ENABLE_RBAC_MANAGER", num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = ArgAction::Set, value_name = "BOOL")]
    pub(super) enable_rbac_manager: bool,

    /// Set in every pod.
    #[arg(long, hide = true, env = "KUBERNETES_SERVICE_HOST", value_name = "HOST")]
    kubernetes_service_host: Option<String>,
}

impl WebhookFlags {
    pub(super) fn webhooks(&self, address: IpAddr) -> Option<WebhookArgs> {
        let by_default = self.kubernetes_service_host.is_some() || self.webhook_url.is_some();
        if !self.enable_webhooks.unwrap_or(by_default) {
            return None;
        }
        let reached = match &self.webhook_url {
            Some(url) => Reached::Url(url.clone()),
            None => Reached::Service { name: self.webhook_service.clone(), port: 9443 },
        };
        let address = SocketAddr::new(address, self.webhook_port);
        Some(WebhookArgs { address, reached, certificate_lifetime: self.webhook_certificate_lifetime })
    }
}

/// Several processes on one cluster.
#[derive(Args)]
#[command(next_help_heading = "Sharing the work")]
pub(super) struct SharingArgs {
    /// Work only while holding Leases, which the processes of a cluster share; =false if there is only one process
    #[arg(long, env = "LEADER_ELECTION", num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true", action = ArgAction::Set, value_name = "BOOL")]
    pub(super) leader_election: bool,

    /// Number of shards that composite resources and claims are divided into; with 1, one process is active and the others
    /// are on standby
    #[arg(long, env = "SHARDS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64), value_name = "N")]
    pub(super) shards: u32,

    /// How long other processes wait for a renewal of a Lease before they take it
    #[arg(long, env = "LEADER_ELECTION_LEASE_DURATION", default_value = "15s", value_parser = lease_duration, value_name = "DURATION")]
    pub(super) leader_election_lease_duration: Duration,

    /// The name of this process in Leases, with a random part appended at every start [default: the host name]
    #[arg(long, env = "POD_NAME", value_name = "NAME")]
    pub(super) identity: Option<String>,
}

/// Leases have a resolution of seconds, and a round of renewals takes some requests.
fn lease_duration(text: &str) -> Result<Duration, String> {
    let duration = transom_console::duration(text).map_err(|e| e.to_string())?;
    let enough = duration >= Duration::from_secs(3);
    enough.then_some(duration).ok_or_else(|| "a Lease cannot be shorter than 3s".to_owned())
}

impl SharingArgs {
    /// The part of this process in the election, if there is one.
    pub(super) fn election(&self, namespace: &str) -> Option<ElectionArgs> {
        let lease_duration = self.leader_election_lease_duration;
        let options = ElectionOptions {
            namespace: namespace.to_owned(),
            leader_lease: LEADER_LEASE.to_owned(),
            identity: self.identity(),
            lease_duration,
            // As in Kubernetes' own components: 15, 10 and 2 seconds.
            renew_deadline: lease_duration * 2 / 3,
            retry_period: lease_duration / 7,
        };
        self.leader_election.then_some(ElectionArgs { options, shards: self.shards })
    }

    /// A name that was never used before: a process that is started again is another one.
    fn identity(&self) -> String {
        let host = || std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let name = self.identity.clone().unwrap_or_else(host).trim().to_lowercase();
        let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' };
        let name: String = name.chars().map(allowed).take(48).collect();
        let unique = uuid::Uuid::new_v4().simple().to_string();
        format!("{}-{}", name.trim_matches('-'), &unique[..8])
    }
}

/// Probes, metrics and files.
#[derive(Args)]
#[command(next_help_heading = "Serving")]
pub(super) struct ServingArgs {
    /// Directory for packages and images that were pulled [default: a temporary one, removed at the end]
    #[arg(long, env = "CACHE_DIR", value_name = "DIR")]
    pub(super) cache_dir: Option<PathBuf>,

    /// The address that probes, metrics and webhooks are served on
    #[arg(long, default_value = "0.0.0.0", value_name = "ADDRESS")]
    pub(super) listen_address: IpAddr,

    /// The port of /livez, /healthz and /readyz
    #[arg(long, env = "HEALTH_PROBE_PORT", default_value_t = 8081, value_name = "PORT")]
    pub(super) health_probe_port: u16,

    /// The port of /metrics
    #[arg(long, env = "METRICS_PORT", default_value_t = 8080, value_name = "PORT")]
    pub(super) metrics_port: u16,
}

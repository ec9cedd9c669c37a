//! The flags of the stages, in groups. A command takes the groups of the stages that it starts.

use super::listen::Listen;
use crate::containers::ContainerArgs;
use crate::xpkg::origin::PlainHttp;
use clap::{ArgAction, Args};
use std::path::PathBuf;
use std::time::Duration;
use transom_console::duration;
use transom_packages::Reference;
use transom_runner::CacheOptions;

/// Where data is kept.
#[derive(Args)]
#[command(next_help_heading = "Data")]
pub(crate) struct DataArgs {
    /// Directory for objects, certificates and the kubeconfig [default: $XDG_DATA_HOME/transom or ~/.local/share/transom]
    #[arg(long, env = "TRANSOM_DATA_DIR", value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,

    /// Keep everything in memory: only the kubeconfig is written, and no data survives
    #[arg(long)]
    pub(crate) in_memory: bool,

    /// File to write the admin kubeconfig to [default: DIR/kubeconfig]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// How long past changes are kept for watches to resume from
    #[arg(long, default_value = "5m", value_parser = duration, value_name = "DURATION")]
    pub(crate) history_window: Duration,
}

/// The HTTPS endpoint.
#[derive(Args)]
#[command(next_help_heading = "Serving")]
pub(crate) struct ListenerArgs {
    /// Address or name, and port, to serve HTTPS on; port 0 picks a free one, :PORT is on the loopback address
    #[arg(long, default_value = "127.0.0.1:6443", value_parser = Listen::parse, value_name = "HOST:PORT")]
    pub(crate) listen: Listen,

    /// Another DNS name or IP address for the server's certificate; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) tls_san: Vec<String>,

    /// Deadline for the headers of a request. For tests
    #[arg(long, hide = true, default_value = "15s", value_parser = duration, value_name = "DURATION")]
    pub(crate) header_timeout: Duration,
}

/// Controllers and functions.
#[derive(Args)]
#[command(next_help_heading = "Controllers and functions")]
pub(crate) struct ControllerArgs {
    /// Watch the resources that composite resources compose and require; =false polls instead
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true", action = ArgAction::Set, value_name = "BOOL")]
    pub(crate) enable_realtime_compositions: bool,

    /// Without realtime compositions: how often a composite resource that is ready is reconciled
    #[arg(long, default_value = "1m", value_parser = duration, value_name = "DURATION")]
    pub(crate) poll_interval: Duration,

    /// The shortest interval that the annotation crossplane.io/poll-interval or the TTL of a response can set
    #[arg(long, default_value = "1s", value_parser = duration, value_name = "DURATION")]
    pub(crate) min_poll_interval: Duration,

    /// Do not give functions the resources that they require in their responses; requirements of Compositions still work
    #[arg(long)]
    pub(crate) disable_extra_resources: bool,

    /// The trust root that keyless signatures of packages are verified with, in the format of Sigstore's trusted_root.json [default: DIR/sigstore/trusted_root.json]
    #[arg(long, value_name = "FILE")]
    pub(crate) sigstore_trusted_root: Option<PathBuf>,

    /// Accepted because Crossplane needs it: the verification that an ImageConfig configures is always done
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = always_verified, value_name = "BOOL")]
    pub(crate) enable_signature_verification: Option<bool>,

    /// Namespace of the Secrets that packages are pulled and verified with, and of the service account crossplane
    #[arg(
        long,
        short = 'n',
        env = "POD_NAMESPACE",
        default_value = "crossplane-system",
        value_name = "NAMESPACE"
    )]
    pub(crate) namespace: String,

    /// The service account, in that namespace, whose image pull secrets are used for all packages
    #[arg(long, env = "POD_SERVICE_ACCOUNT", default_value = "crossplane", value_name = "NAME")]
    pub(crate) service_account: String,

    /// Upgrade dependencies to the lowest version that all dependents accept
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = ArgAction::Set, value_name = "BOOL")]
    pub(crate) enable_dependency_version_upgrades: bool,

    /// Also allow downgrades, if no later version is accepted by all dependents
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = ArgAction::Set, value_name = "BOOL")]
    pub(crate) enable_dependency_version_downgrades: bool,

    /// Pattern of managed resources that the ManagedResourceActivationPolicy default activates, which is created if it does
    /// not exist; may be repeated; an empty value creates no policy
    #[arg(long = "activation", default_value = "*", value_name = "PATTERN")]
    pub(crate) activations: Vec<String>,

    /// Certificates (tls.crt, tls.key, ca.crt) for mutual TLS to functions; without them, functions are called without TLS
    #[arg(long, env = "TLS_CLIENT_CERTS_DIR", value_name = "DIR")]
    pub(crate) tls_client_certs_dir: Option<PathBuf>,

    /// Timeout of one function call [default: none; all calls of one reconcile share 2 minutes]
    #[arg(long, value_parser = duration, value_name = "DURATION")]
    pub(crate) function_call_timeout: Option<Duration>,

    /// Cache the responses of functions for as long as they allow (their TTL)
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", action = ArgAction::Set, value_name = "BOOL")]
    pub(crate) enable_function_response_cache: bool,

    /// The longest time that a response is cached, even if its TTL is longer; 0 for no limit
    #[arg(long, default_value = "24h", value_parser = duration, value_name = "DURATION")]
    pub(crate) xfn_cache_max_ttl: Duration,

    /// Memory limit of cached responses, in MiB
    #[arg(long, default_value_t = 64, value_name = "MIB")]
    pub(crate) xfn_cache_max_size: usize,

    /// Send traces of reconciles, steps, calls of functions and writes to this collector, by OTLP over gRPC, such as
    /// http://localhost:4317
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_name = "URL")]
    pub(crate) otlp_endpoint: Option<String>,

    #[command(flatten)]
    pub(crate) containers: ContainerArgs,

    /// How long a registry may take to connect, to begin a response, and to pause within one. For tests
    #[arg(long, hide = true, value_parser = duration, value_name = "DURATION")]
    pub(crate) registry_timeout: Option<Duration>,

    /// How often watches that no composite resource needs any longer are ended. For tests
    #[arg(long, hide = true, default_value = "1m", value_parser = duration, value_name = "DURATION")]
    pub(crate) sweep_interval: Duration,
}

/// Verification cannot be turned off for all packages at once.
fn always_verified(text: &str) -> Result<bool, String> {
    match text {
        "true" => Ok(true),
        _ => {
            Err("the verification that an ImageConfig configures is always done; remove its spec.verification instead"
                .to_owned())
        }
    }
}

/// Packages that are installed at the start, and folders and files that replace registries.
#[derive(Args, Default)]
#[command(next_help_heading = "Packages")]
pub(crate) struct PackageArgs {
    /// Install a package of any kind at the start; may be repeated
    #[arg(long, value_name = "REF", value_delimiter = ',', value_parser = reference)]
    pub(crate) package: Vec<Reference>,

    /// Install a Provider at the start; may be repeated
    #[arg(long, value_name = "REF", value_delimiter = ',', value_parser = reference)]
    pub(crate) provider: Vec<Reference>,

    /// Install a Configuration at the start; may be repeated
    #[arg(long, value_name = "REF", value_delimiter = ',', value_parser = reference)]
    pub(crate) configuration: Vec<Reference>,

    /// Install a Function at the start; may be repeated
    #[arg(long, value_name = "REF", value_delimiter = ',', value_parser = reference)]
    pub(crate) function: Vec<Reference>,

    /// Install the packages of a bundle, an OCI layout or a folder of *.xpkg files. It replaces all registries: no network is used
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) packages: Vec<PathBuf>,

    /// Read packages from a bundle, an OCI layout or a folder, which replaces all registries, or those below PREFIX, without installing them
    #[arg(long, value_name = "[PREFIX=]FILE|DIR", value_parser = StandIn::parse)]
    pub(crate) package_source: Vec<StandIn>,

    #[command(flatten)]
    pub(crate) plain: PlainHttp,
}

/// A folder or file that replaces registries.
#[derive(Clone)]
pub(crate) struct StandIn {
    /// Only references below the prefix are read from it; without a prefix, all.
    pub(crate) prefix: Option<String>,
    pub(crate) path: PathBuf,
}

impl StandIn {
    /// What is before `=` is a prefix if a reference can begin with it; else it is part of the path.
    fn parse(text: &str) -> Result<Self, String> {
        let prefix = text.split_once('=').filter(|(prefix, path)| {
            let below = format!("{}/x", prefix.trim_end_matches('/'));
            !path.is_empty() && Reference::parse_source(&below).is_ok()
        });
        Ok(match prefix {
            Some((prefix, path)) => {
                Self { prefix: Some(prefix.trim_end_matches('/').to_owned()), path: path.into() }
            }
            None => Self { prefix: None, path: text.into() },
        })
    }
}

fn reference(text: &str) -> Result<Reference, String> {
    Reference::parse(text).map_err(|error| error.problem)
}

impl ControllerArgs {
    /// The cache of function responses, if there is to be one.
    pub(super) fn cache(&self) -> Option<CacheOptions> {
        let max_bytes = self.xfn_cache_max_size.saturating_mul(1 << 20);
        self.enable_function_response_cache
            .then_some(CacheOptions { max_ttl: self.xfn_cache_max_ttl, max_bytes })
    }

    pub(super) fn options(&self) -> transom_controllers::Options {
        transom_controllers::Options {
            realtime: self.enable_realtime_compositions,
            poll_interval: self.poll_interval,
            min_poll_interval: self.min_poll_interval,
            extra_resources: !self.disable_extra_resources,
            sweep_interval: self.sweep_interval,
            namespace: self.namespace.clone(),
            service_account: self.service_account.clone(),
            dependency_upgrades: self.enable_dependency_version_upgrades,
            dependency_downgrades: self.enable_dependency_version_downgrades,
            activations: self.activations.iter().filter(|pattern| !pattern.is_empty()).cloned().collect(),
            ..transom_controllers::Options::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::StandIn;

    #[test]
    fn a_stand_in_may_have_a_prefix() {
        for (text, prefix, path) in [
            ("all.tar", None, "all.tar"),
            ("mirror.example.org=all.tar", Some("mirror.example.org"), "all.tar"),
            ("mirror.example.org/x/=/srv/a=b", Some("mirror.example.org/x"), "/srv/a=b"),
            ("localhost:5000=dir", Some("localhost:5000"), "dir"),
            ("./a=b.tar", None, "./a=b.tar"),
            ("/srv/a=b.tar", None, "/srv/a=b.tar"),
            ("mirror.example.org=", None, "mirror.example.org="),
        ] {
            let parsed = StandIn::parse(text).unwrap();
            assert_eq!((parsed.prefix.as_deref(), parsed.path.to_str().unwrap()), (prefix, path), "{text}");
        }
    }
}

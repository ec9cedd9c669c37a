//! The flags of `transom up`. Those that other commands have, too, are beside what they configure.

use crate::plane::{AuditArgs, AuthenticationArgs, ControllerArgs, DataArgs, ListenerArgs, PackageArgs};
use clap::Args;
use transom_console::LogArgs;

/// Run the control plane: an embedded Kubernetes API server on a durable store, controllers and functions.
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom up                                   keep data in the default directory
  transom up --data-dir ./plane                keep data and certificates in ./plane
  transom up --in-memory --listen 127.0.0.1:0  a throw-away plane on a free port
  transom up --packages platform.tar           install the packages of a bundle, without a network")]
pub(crate) struct Up {
    /// Serve only the API: no controllers, and none of Crossplane's kinds
    #[arg(long, conflicts_with_all = ["package", "provider", "configuration", "function", "packages", "package_source"])]
    pub(super) api_server_only: bool,

    #[command(flatten)]
    pub(super) data: DataArgs,

    #[command(flatten)]
    pub(super) listener: ListenerArgs,

    #[command(flatten)]
    pub(super) authentication: AuthenticationArgs,

    #[command(flatten)]
    pub(super) audit: AuditArgs,

    #[command(flatten)]
    pub(super) controllers: ControllerArgs,

    #[command(flatten)]
    pub(super) packages: PackageArgs,

    #[command(flatten)]
    pub(super) log: LogArgs,
}

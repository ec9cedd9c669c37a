//! `transom uninstall`: removes the controllers from a cluster, and nothing that users made.

use clap::Args;
use std::fmt::Write as _;
use std::process::ExitCode;
use transom_chart::installation;
use transom_console::control_plane::{ControlPlaneArgs, explain, within};
use transom_console::{Failure, block_on, print};
use transom_engine::DeleteOptions;
use transom_object::meta;

/// Remove the controllers from a cluster. Definitions, packages, composite resources and their parts stay.
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom uninstall --dry-run
  transom uninstall --namespace crossplane-system")]
pub(crate) struct Uninstall {
    /// The namespace of the controllers
    #[arg(long, short, default_value = "crossplane-system", value_name = "NAMESPACE")]
    namespace: String,

    /// Print what would be removed
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    cluster: ControlPlaneArgs,
}

pub(crate) fn uninstall(options: &Uninstall) -> Result<ExitCode, Failure> {
    block_on(run(options))
}

async fn run(options: &Uninstall) -> Result<ExitCode, Failure> {
    let cluster = options.cluster.open().await?;
    let mut lines = String::new();
    let removed = installation::removed(&options.namespace).map_err(|e| Failure::new(e.to_string()))?;
    for object in removed {
        let (gvk, namespace, name) =
            (meta::gvk(&object).unwrap_or_default(), meta::namespace(&object), meta::name(&object));
        let subject = format!("{} {name}", gvk.kind);
        let found = within(&subject, cluster.get(&gvk, namespace, name)).await?;
        let found = found.map_err(|e| explain(&subject, &e))?;
        // What is being deleted was removed before.
        if found.is_none_or(|object| meta::is_deleting(&object)) {
            continue;
        }
        if !options.dry_run {
            let deleting = cluster.delete(&gvk, namespace, name, DeleteOptions::default());
            within(&subject, deleting).await?.map_err(|e| explain(&subject, &e))?;
        }
        let _ = writeln!(lines, "removed   {subject}{}", if options.dry_run { " (dry run)" } else { "" });
    }
    print(lines.as_bytes())
}

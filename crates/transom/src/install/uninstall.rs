//! `transom uninstall`: removes the controllers from a cluster, and nothing that users made.

use clap::Args;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use transom_chart::installation;
use transom_console::control_plane::{ControlPlaneArgs, explain, within};
use transom_console::{Failure, block_on, print};
use transom_engine::{Cluster, DeleteOptions, OWN_LEASE_PREFIXES};
use transom_object::{GroupVersionKind, meta};

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
    let values = super::values_on(&cluster, &options.namespace).await?.unwrap_or_else(|| json!({}));
    let removed = installation::removed(&options.namespace, &values);
    let mut removed = removed.map_err(|e| Failure::new(e.to_string()))?;
    removed.extend(leases(&cluster, &options.namespace).await?);
    for object in removed {
        let (gvk, namespace, name) =
            (meta::gvk(&object).unwrap_or_default(), meta::namespace(&object), meta::name(&object));
        let subject = format!("{} {name}", gvk.kind);
        let found = within(&subject, cluster.get(&gvk, namespace, name)).await?;
        let found = match found {
            // Nothing of a kind exists that the cluster no longer has.
            Err(error) if error.is_unknown_kind() => continue,
            found => found.map_err(|e| explain(&subject, &e))?,
        };
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

/// The Leases of the controllers. Without rights, which are removed before, their processes cannot give them up. That of
/// the leader stays, because Crossplane uses it, too.
async fn leases(cluster: &Cluster, namespace: &str) -> Result<Vec<Value>, Failure> {
    let gvk = GroupVersionKind::new("coordination.k8s.io", "v1", "Lease");
    let subject = format!("Leases in namespace {namespace}");
    let found = within(&subject, cluster.list(&gvk, namespace, &BTreeMap::new())).await?;
    let mut found = found.map_err(|e| explain(&subject, &e))?;
    found.retain(|lease| OWN_LEASE_PREFIXES.iter().any(|prefix| meta::name(lease).starts_with(prefix)));
    for lease in &mut found {
        // Items of lists may have neither.
        lease["apiVersion"] = gvk.api_version().into();
        lease["kind"] = gvk.kind.clone().into();
    }
    Ok(found)
}

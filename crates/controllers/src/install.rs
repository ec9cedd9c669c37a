//! The CRDs of the control plane's own kinds: they are installed and upgraded at start.

use crate::catalog::kinds;
use futures_util::future::try_join_all;
use serde_json::Value;
use std::time::Duration;
use transom_engine::{Cluster, Error, ErrorContext, Result, is_settled};
use transom_object::meta;
use transom_xapi::constants::owner;
use transom_xapi::definition::is_established;

/// How long the server may take until it serves a new kind.
const SERVED_WITHIN: Duration = Duration::from_secs(30);
/// How often it is checked whether the server serves a new kind.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Makes the server serve these kinds.
pub(crate) async fn install(cluster: &Cluster, crds: &[Value]) -> Result<()> {
    // Concurrently, so that they share a sync of the disk.
    try_join_all(crds.iter().map(|crd| install_one(cluster, crd))).await?;
    Ok(())
}

async fn install_one(cluster: &Cluster, crd: &Value) -> Result<()> {
    let name = meta::name(crd);
    let context = || format!("cannot install CustomResourceDefinition {name}");
    let live = cluster.get(&kinds::crd(), "", name).await.context(context())?;
    let mut current = match live {
        Some(live) if is_settled(&live, crd, owner::DEFAULT, "") => live,
        _ => cluster.apply(crd, owner::DEFAULT).await.context(context())?,
    };
    let deadline = tokio::time::Instant::now() + SERVED_WITHIN;
    while !is_established(&current) {
        if tokio::time::Instant::now() > deadline {
            return Err(Error::unfit(format!("CustomResourceDefinition {name} is not served")));
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
        current = cluster.get(&kinds::crd(), "", name).await.context(context())?.unwrap_or_default();
    }
    cluster.forget_group(crd["spec"]["group"].as_str().unwrap_or_default());
    Ok(())
}

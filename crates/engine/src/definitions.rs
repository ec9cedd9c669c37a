//! The definitions of a program's own kinds: they are installed and upgraded when it starts.

use crate::cluster::Cluster;
use crate::error::{Error, ErrorContext, Result};
use crate::noop::apply_is_noop;
use futures_util::future::try_join_all;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use transom_object::{GroupVersionKind, meta};

/// How long the server may take until it serves a new kind.
const SERVED_WITHIN: Duration = Duration::from_secs(30);
/// How often it is checked whether the server serves a new kind.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

fn kind() -> GroupVersionKind {
    GroupVersionKind::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
}

/// Applies these CustomResourceDefinitions with a field manager, and waits until the server serves their kinds.
pub async fn install_definitions(cluster: &Cluster, crds: &[Value], manager: &str) -> Result<()> {
    // Concurrently, so that they share a sync of the disk.
    try_join_all(crds.iter().map(|crd| install_one(cluster, crd, manager))).await?;
    Ok(())
}

fn is_established(crd: &Value) -> bool {
    let list = crd.pointer("/status/conditions").and_then(Value::as_array);
    list.is_some_and(|list| transom_object::conditions::has_status(list, "Established", "True"))
}

async fn install_one(cluster: &Cluster, crd: &Value, manager: &str) -> Result<()> {
    let name = meta::name(crd);
    let context = || format!("cannot install CustomResourceDefinition {name}");
    let live = cluster.get(&kind(), "", name).await.context(context())?;
    let current = match live {
        Some(live) if apply_is_noop(&live, crd, manager, "") => live,
        live => {
            if let Some(live) = &live {
                store_anew(cluster, live, crd, manager).await.context(context())?;
            }
            cluster.apply(crd, manager).await.context(context())?
        }
    };
    served(cluster, current).await
}

/// Waits until a CRD is served.
async fn served(cluster: &Cluster, mut crd: Value) -> Result<()> {
    let name = meta::name(&crd).to_owned();
    let deadline = tokio::time::Instant::now() + SERVED_WITHIN;
    while !is_established(&crd) {
        if tokio::time::Instant::now() > deadline {
            return Err(Error::permanent(format!("CustomResourceDefinition {name} is not served")));
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
        let context = || format!("cannot install CustomResourceDefinition {name}");
        crd = cluster.get(&kind(), "", &name).await.context(context())?.unwrap_or_default();
    }
    cluster.forget_group(crd["spec"]["group"].as_str().unwrap_or_default());
    Ok(())
}

/// Writes the objects again that another release may have stored in versions which this one does not have. The server
/// refuses to lose a version before that is done.
async fn store_anew(cluster: &Cluster, live: &Value, crd: &Value, manager: &str) -> Result<()> {
    let is_known = |name: &Value| versions(crd).any(|version| version["name"] == *name);
    let stored = live["status"]["storedVersions"].as_array().into_iter().flatten();
    let (known, unknown): (Vec<&Value>, Vec<&Value>) = stored.partition(|name| is_known(name));
    let Some(storage) = versions(crd).find(|version| version["storage"] == true) else { return Ok(()) };
    if unknown.is_empty() {
        return Ok(());
    }
    let name = meta::name(crd);
    tracing::info!(crd = name, versions = ?unknown, "objects are stored in another version");
    let mut both = crd.clone();
    let former = versions(live).filter(|version| unknown.contains(&&version["name"])).cloned();
    if let Some(all) = both.pointer_mut("/spec/versions").and_then(Value::as_array_mut) {
        all.extend(former.map(|mut version| {
            version["storage"] = false.into();
            version
        }));
    }
    served(cluster, cluster.apply(&both, manager).await?).await?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, kind) = (text(&crd["spec"]["group"]), text(&crd["spec"]["names"]["kind"]));
    let gvk = GroupVersionKind::new(&*group, &*text(&storage["name"]), &*kind);
    for object in cluster.list(&gvk, "", &BTreeMap::new()).await? {
        match cluster.update(&object, manager).await {
            // What was written since is stored in the new version already, and what is gone is not stored.
            Err(error) if error.is_conflict() || error.is_not_found() => {}
            written => drop(written?),
        }
    }
    let mut now: Vec<&Value> = known;
    if !now.contains(&&storage["name"]) {
        now.push(&storage["name"]);
    }
    cluster.merge_patch_status(&both, &json!({"status": {"storedVersions": now}}), manager).await?;
    Ok(())
}

fn versions(crd: &Value) -> impl Iterator<Item = &Value> {
    crd["spec"]["versions"].as_array().into_iter().flatten()
}

//! Connection secrets: connection details of a managed resource are added to a Secret that it controls.

use crate::kind::Layout;
use serde_json::Value;
use transom_engine::{Engine, Error, ErrorContext, Result, RunLog};
use transom_object::{GroupVersionKind, meta};
use transom_xapi::connection::{self, Details, Publication};

/// Where a managed resource wants its connection details, if it does.
pub(crate) fn place(object: &Value, layout: Layout) -> Option<(String, String)> {
    let reference = object.pointer("/spec/writeConnectionSecretToRef")?;
    let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
    let namespace = match layout {
        Layout::Legacy => text("namespace"),
        Layout::Modern => meta::namespace(object),
    };
    (!text("name").is_empty()).then(|| (namespace.to_owned(), text("name").to_owned()))
}

/// Adds details to the Secret of a managed resource. Keys are never removed. Nothing is written if the Secret has them, and
/// it is not made before there are any.
pub(crate) async fn publish(
    engine: &Engine,
    log: &RunLog,
    object: &Value,
    layout: Layout,
    details: &Details,
    manager: &str,
) -> Result<()> {
    let Some((namespace, name)) = place(object, layout).filter(|_| !details.is_empty()) else {
        return Ok(());
    };
    let attempted = "cannot create or update connection secret";
    let secret = GroupVersionKind::new("", "v1", "Secret");
    let live = engine.cluster.get(&secret, &namespace, &name).await.context(attempted)?;
    let mut wanted = connection::secret(object, &namespace, &name);
    wanted["data"] = connection::encoded(details).into();
    let decided = connection::publication(&wanted, live.as_ref(), meta::uid(object));
    let written = match decided.map_err(Error::permanent).context(attempted)? {
        Publication::Create => engine.cluster.create(&wanted, manager).await,
        Publication::Patch(patch) => engine.cluster.merge_patch(&wanted, &patch, manager).await,
        Publication::Unchanged => return Ok(()),
    };
    log.wrote(&written.context(attempted)?);
    Ok(())
}

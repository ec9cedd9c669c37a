//! Connection secrets: connection details of a managed resource are added to a Secret that it controls.

use crate::kind::Layout;
use serde_json::Value;
use transom_engine::{Engine, Publication, Result, RunLog};
use transom_object::meta;
use transom_xapi::connection::{self, Details};

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
) -> Result<()> {
    let Some((namespace, name)) = place(object, layout).filter(|_| !details.is_empty()) else {
        return Ok(());
    };
    let attempted = "cannot create or update connection secret";
    let mut wanted = connection::secret(object, &namespace, &name);
    wanted["data"] = connection::encoded(details).into();
    let decide = |live: Option<&Value>| {
        connection::publication(&wanted, live, meta::uid(object)).map(|decided| match decided {
            connection::Publication::Create => Publication::Create,
            connection::Publication::Patch(patch) => Publication::Patch(patch),
            connection::Publication::Unchanged => Publication::Unchanged,
        })
    };
    engine.publish(log, attempted, &wanted, decide).await?;
    Ok(())
}

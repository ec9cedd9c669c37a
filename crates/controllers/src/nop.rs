//! The provider of NopResources, which manage nothing: they get the conditions that their spec lists, at the times that
//! it lists, and publish connection details. For trying out and testing Compositions.

use crate::catalog::kinds;
use crate::connection_secret::{ConnectionSecret, Update};
use crate::plane::Plane;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use transom_engine::{Controller, Depth, ErrorContext, Key, Next, Pace, Reconciler, Result, RunLog};
use transom_object::time::{self, Timestamp};
use transom_object::{GroupVersionKind, meta};
use transom_xapi::constants::{annotation, group};
use transom_xapi::{Condition, conditions, connection, metadata};

const NAME: &str = "managed/nopresource.nop.crossplane.io";
const FINALIZER: &str = "finalizer.managedresource.crossplane.io";

struct Nops {
    plane: Arc<Plane>,
}

fn kind() -> GroupVersionKind {
    GroupVersionKind::new(group::NOP, "v1alpha1", "NopResource")
}

/// Starts the controller of NopResources.
pub(crate) fn start(plane: &Arc<Plane>) -> Controller {
    let mut controller = plane.controller(NAME, Pace::default());
    controller.watch_own(&kind(), Depth::Header);
    controller.start(Nops { plane: plane.clone() })
}

impl Reconciler for Nops {
    async fn reconcile(&self, key: &Key, log: &RunLog) -> Result<Next> {
        let Some(mut object) = self.plane.read(log, &kind(), &key.namespace, &key.name).await? else {
            return Ok(Next::Gone);
        };
        let before = object.get("status").cloned().unwrap_or_default();
        if metadata::is_paused(&object) {
            conditions::mark_observed(&mut object, [Condition::reconcile_paused()], self.plane.clock.now());
            self.write_status(log, &mut object, &before).await?;
            return Ok(Next::Wait);
        }
        if meta::is_deleting(&object) {
            if metadata::remove_finalizer(&mut object, FINALIZER) {
                self.plane.update(log, &mut object).await.context("cannot remove finalizer")?;
            }
            return Ok(Next::Wait);
        }
        let mut changed = metadata::add_finalizer(&mut object, FINALIZER);
        if meta::annotation(&object, annotation::EXTERNAL_NAME).is_none() {
            let name = meta::name(&object).to_owned();
            meta::set_annotation(&mut object, annotation::EXTERNAL_NAME, &name);
            changed = true;
        }
        if changed {
            self.plane.update(log, &mut object).await.context("cannot initialize managed resource")?;
        }
        self.publish(log, &object).await.context("cannot publish connection details")?;
        let (due, next) = due(&object, self.plane.clock.now());
        let now = self.plane.clock.now();
        conditions::mark_observed(&mut object, [Condition::reconcile_success()], now);
        conditions::mark_observed(&mut object, due, now);
        if let Some(fields) = object.pointer("/spec/forProvider/fields").cloned() {
            object["status"]["atProvider"]["fields"] = fields;
        }
        self.write_status(log, &mut object, &before).await?;
        Ok(next.map_or(Next::Wait, Next::After))
    }
}

impl Nops {
    async fn write_status(&self, log: &RunLog, object: &mut Value, before: &Value) -> Result<()> {
        let written = self.plane.write_status(log, object, before).await;
        written.map(drop).context("cannot update managed resource status")
    }

    async fn publish(&self, log: &RunLog, object: &Value) -> Result<()> {
        let reference = object.pointer("/spec/writeConnectionSecretToRef");
        let text =
            |field: &str| reference.and_then(|r| r.get(field)).and_then(Value::as_str).unwrap_or_default();
        let (namespace, name) = (text("namespace"), text("name"));
        if name.is_empty() {
            return Ok(());
        }
        let mut wanted = connection::secret(object, namespace, name);
        wanted["data"] = Value::Object(details(object));
        let live = self.plane.cluster.get(&kinds::secret(), namespace, name).await?;
        let secret = ConnectionSecret {
            wanted,
            live: live.as_ref(),
            owner: meta::uid(object),
            update: Update::AddKeys,
            attempt: "cannot apply connection secret",
        };
        secret.publish(&self.plane, log).await.map(drop)
    }
}

fn details(object: &Value) -> Map<String, Value> {
    let list = object.pointer("/spec/forProvider/connectionDetails").and_then(Value::as_array);
    let detail = |d: &Value| {
        let (name, value) = (d.get("name")?.as_str()?, d.get("value")?.as_str()?);
        Some((name.to_owned(), Value::String(STANDARD.encode(value))))
    };
    list.into_iter().flatten().filter_map(detail).collect()
}

/// The latest condition of each type that is due, and how long until the next condition is due.
fn due(object: &Value, now: Timestamp) -> (Vec<Condition>, Option<Duration>) {
    let created = object.pointer("/metadata/creationTimestamp").and_then(Value::as_str);
    let created = created.and_then(|text| time::parse(text).ok()).unwrap_or(now);
    let age = i64::try_from(now.duration_since(created).as_nanos()).unwrap_or(i64::MAX);
    let mut latest: BTreeMap<String, (i64, Condition)> = BTreeMap::new();
    let mut next: Option<i64> = None;
    let list = object.pointer("/spec/forProvider/conditionAfter").and_then(Value::as_array);
    for entry in list.into_iter().flatten() {
        let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
        let Ok(after) = time::parse_duration(text("time")) else { continue };
        if after > age {
            next = Some(next.map_or(after - age, |n| n.min(after - age)));
            continue;
        }
        let kind = text("conditionType");
        if latest.get(kind).is_none_or(|(before, _)| *before <= after) {
            let reason = text("conditionReason");
            let condition = Condition::new(kind, text("conditionStatus"), reason);
            latest.insert(kind.to_owned(), (after, condition));
        }
    }
    let next = next.and_then(|nanos| u64::try_from(nanos).ok()).map(Duration::from_nanos);
    (latest.into_values().map(|(_, condition)| condition).collect(), next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_latest_condition_of_each_type_counts() {
        let object = json!({
            "metadata": {"creationTimestamp": "2024-01-01T00:00:00Z"},
            "spec": {"forProvider": {"conditionAfter": [
                {"time": "0s", "conditionType": "Ready", "conditionStatus": "False"},
                {"time": "5s", "conditionType": "Ready", "conditionStatus": "True", "conditionReason": "Available"},
                {"time": "20s", "conditionType": "Ready", "conditionStatus": "Unknown"},
                {"time": "2s", "conditionType": "Green", "conditionStatus": "True"},
            ]}},
        });
        let at = |text: &str| due(&object, time::parse(text).unwrap());
        let (conditions, next) = at("2024-01-01T00:00:00Z");
        assert_eq!((conditions.len(), next), (1, Some(Duration::from_secs(2))));
        let (conditions, next) = at("2024-01-01T00:00:10Z");
        let ready = conditions.iter().find(|c| c.kind == "Ready").unwrap();
        assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("True", "Available"));
        assert_eq!((conditions.len(), next), (2, Some(Duration::from_secs(10))));
        assert_eq!(at("2024-01-01T00:01:00Z").1, None);
    }
}

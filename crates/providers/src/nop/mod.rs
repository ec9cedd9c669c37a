//! `provider-nop`: managed resources that manage nothing. They get the conditions that their spec lists, at the times that
//! it lists, and publish connection details. For trying out and testing Compositions.
//!
//! | kind | scope |
//! |---|---|
//! | `nop.crossplane.io/v1alpha1` NopResource | cluster, as of provider-nop up to v0.4 |
//! | `nop.crossplane.io/v1alpha1` ClusterNopResource | cluster |
//! | `nop.m.crossplane.io/v1alpha1` NopResource | namespaced |

mod crd;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use transom_object::time::{self, Timestamp};
use transom_provider::{
    Condition, Creation, Error, External, Layout, ManagedKind, Observation, Provider, Resource, Result,
    Scope, Settings, Update,
};

/// The provider.
pub fn provider() -> Provider {
    // There are no external resources, so nothing is polled: a managed resource is reconciled when its next condition is due.
    let settings = Settings {
        poll_interval: None,
        management_policies: false,
        max_reconcile_rate: 10_000,
        ..Settings::default()
    };
    let provider = Provider::new("provider-nop", settings);
    provider
        .manages_as(kind("nop.crossplane.io", "NopResource", Scope::Cluster), crd::nop_resource(), Nop)
        .manages(kind("nop.crossplane.io", "ClusterNopResource", Scope::Cluster), Nop)
        .manages(kind("nop.m.crossplane.io", "NopResource", Scope::Namespaced), Nop)
}

fn kind(group: &'static str, kind: &'static str, scope: Scope) -> ManagedKind {
    ManagedKind {
        group,
        version: "v1alpha1",
        kind,
        plural: if kind == "NopResource" { "nopresources" } else { "clusternopresources" },
        scope,
        layout: Layout::Legacy,
        categories: &["crossplane", "managed", "nop"],
        description: "Manages nothing. It gets the conditions that its spec lists, at the times listed.",
        parameters: crd::parameters(),
        more_spec: json!({}),
        at_provider: Some(crd::at_provider()),
        references: Vec::new(),
        configs: None,
        deterministic_names: true,
    }
}

#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Parameters {
    condition_after: Vec<ConditionAfter>,
    connection_details: Vec<Detail>,
    fields: Option<Value>,
    delete_after: Option<String>,
    delete_error: Option<String>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct ConditionAfter {
    time: String,
    condition_type: String,
    condition_status: String,
    condition_reason: String,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct Detail {
    name: String,
    value: String,
}

struct Nop;

impl External for Nop {
    type Parameters = Parameters;
    type Session = ();

    async fn connect(&self, _: &Resource<'_, Parameters>) -> Result<()> {
        Ok(())
    }

    async fn observe(&self, (): &(), resource: &Resource<'_, Parameters>) -> Result<Observation<Parameters>> {
        if resource.is_deleting() {
            return Ok(deleting(resource));
        }
        let created = resource.object.pointer("/metadata/creationTimestamp").and_then(Value::as_str);
        let created = created.and_then(|text| time::parse(text).ok()).unwrap_or(resource.now);
        let (conditions, again_after) = due(&resource.parameters.condition_after, created, resource.now);
        let details = &resource.parameters.connection_details;
        let connection = details.iter().map(|d| (d.name.clone(), d.value.clone().into_bytes())).collect();
        let fields = resource.parameters.fields.clone();
        Ok(Observation {
            conditions,
            connection,
            again_after,
            at_provider: fields.map(|fields| json!({"fields": fields})),
            ..Observation::up_to_date()
        })
    }

    async fn create(&self, (): &(), _: &Resource<'_, Parameters>) -> Result<Creation> {
        Ok(Creation::default())
    }

    async fn update(&self, (): &(), _: &Resource<'_, Parameters>) -> Result<Update> {
        Ok(Update::default())
    }

    async fn delete(&self, (): &(), resource: &Resource<'_, Parameters>) -> Result<()> {
        match &resource.parameters.delete_error {
            Some(error) => Err(Error::domain(error.clone())),
            None => Ok(()),
        }
    }
}

/// What a managed resource that is being deleted shows: it is gone at once, unless its spec says otherwise.
fn deleting(resource: &Resource<'_, Parameters>) -> Observation<Parameters> {
    let exists = |condition| Observation { conditions: vec![condition], ..Observation::up_to_date() };
    if let Some(error) = &resource.parameters.delete_error {
        return exists(Condition::new("Deletion", "False", "DeletionFailed").with_message(error.clone()));
    }
    let deleted = resource.object.pointer("/metadata/deletionTimestamp").and_then(Value::as_str);
    let deleted = deleted.and_then(|text| time::parse(text).ok());
    let after = resource.parameters.delete_after.as_deref();
    let wait = after.and_then(|text| Some((text, u64::try_from(time::parse_duration(text).ok()?).ok()?)));
    if let (Some(deleted), Some((text, nanos))) = (deleted, wait)
        && let Ok(end) = deleted.checked_add(Duration::from_nanos(nanos))
        && end > resource.now
    {
        let left = Duration::try_from(end.duration_since(resource.now)).unwrap_or_default();
        let words = format!(
            "External resource will not be deleted before {} (deleteAfter: {text})",
            time::format(end)
        );
        let pending = Condition::new("Deletion", "False", "DeletionPending").with_message(words);
        return Observation { again_after: Some(left), ..exists(pending) };
    }
    Observation::missing()
}

/// The latest condition of each type that is due, and how long until the next condition is due.
fn due(list: &[ConditionAfter], created: Timestamp, now: Timestamp) -> (Vec<Condition>, Option<Duration>) {
    let age = i64::try_from(now.duration_since(created).as_nanos()).unwrap_or(i64::MAX);
    let mut latest: BTreeMap<&str, (i64, Condition)> = BTreeMap::new();
    let mut next: Option<i64> = None;
    for entry in list {
        let Ok(after) = time::parse_duration(&entry.time) else { continue };
        if after > age {
            next = Some(next.map_or(after - age, |n| n.min(after - age)));
            continue;
        }
        // Of several for one time, the first one listed counts.
        if latest.get(entry.condition_type.as_str()).is_none_or(|(before, _)| *before < after) {
            let condition =
                Condition::new(&entry.condition_type, &entry.condition_status, &entry.condition_reason);
            latest.insert(&entry.condition_type, (after, condition));
        }
    }
    let next = next.and_then(|nanos| u64::try_from(nanos).ok()).map(Duration::from_nanos);
    (latest.into_values().map(|(_, condition)| condition).collect(), next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    /// Takes descriptions away. No property of the kind is called `description`.
    fn without_descriptions(value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.remove("description");
                map.values_mut().for_each(without_descriptions);
            }
            Value::Array(list) => list.iter_mut().for_each(without_descriptions),
            _ => {}
        }
    }

    /// The start of the SHA-256 of the spec of the CRD as provider-nop v0.4 ships it, without descriptions, in compact JSON with
    /// sorted keys.
    #[test]
    fn the_definition_is_that_of_the_original() {
        let mut spec = crd::nop_resource()["spec"].take();
        without_descriptions(&mut spec);
        let digest: String =
            Sha256::digest(spec.to_string()).iter().take(8).map(|b| format!("{b:02x}")).collect();
        assert_eq!(digest, "b044ac0ca8a8a128");
    }

    #[test]
    fn the_latest_condition_of_each_type_counts() {
        let list: Vec<ConditionAfter> = serde_json::from_value(json!([
            {"time": "0s", "conditionType": "Ready", "conditionStatus": "False"},
            {"time": "5s", "conditionType": "Ready", "conditionStatus": "True", "conditionReason": "Available"},
            {"time": "20s", "conditionType": "Ready", "conditionStatus": "Unknown"},
            {"time": "2s", "conditionType": "Green", "conditionStatus": "True"},
        ]))
        .unwrap();
        let created = time::parse("2024-01-01T00:00:00Z").unwrap();
        let at = |text: &str| due(&list, created, time::parse(text).unwrap());
        let (conditions, next) = at("2024-01-01T00:00:00Z");
        assert_eq!((conditions.len(), next), (1, Some(Duration::from_secs(2))));
        let (conditions, next) = at("2024-01-01T00:00:10Z");
        let ready = conditions.iter().find(|c| c.kind == "Ready").unwrap();
        assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("True", "Available"));
        assert_eq!((conditions.len(), next), (2, Some(Duration::from_secs(10))));
        assert_eq!(at("2024-01-01T00:01:00Z").1, None);
    }
}

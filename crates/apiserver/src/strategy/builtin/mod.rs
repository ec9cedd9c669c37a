//! The built-in kinds of Kubernetes, as strategies: `table` lists the kinds that the server acts on, `stored` those that it only
//! stores, `unserved` what the status of workloads says where nothing runs them.
//!
//! Their fields, defaults and validation are data of `transom_kinds`; only what needs the server, such as addresses of Services,
//! is written here.

mod autoscaler;
mod stored;
mod table;
mod unserved;

use super::custom::copy_field;
use super::{Column, Strategy, events, generation};
use crate::certificates;
use crate::pods::keep_part;
use crate::resource::{Access, Names, Resource, ScalePaths};
use crate::services;
use crate::subresource::Subresource;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use table::{ADMISSION, Facts, KINDS};
use transom_admission::policy;
use transom_kinds::validate::pod;
use transom_object::field;
use transom_object::{GroupVersionKind, meta};
use transom_schema::{Schema, own};
use transom_store::Durability;

/// Every built-in resource.
pub(crate) fn resources() -> Vec<Resource> {
    KINDS.iter().chain(stored::STORED).map(resource).collect()
}

fn resource(facts: &Facts) -> Resource {
    let gvk = GroupVersionKind::new(facts.group, facts.version, facts.kind);
    let type_name = transom_kinds::type_of(&gvk);
    let schema = transom_kinds::schema(type_name).unwrap_or_default();
    let api_version = gvk.api_version();
    let store_key = match (facts.group, facts.plural) {
        // Two APIs, one set of events.
        ("events.k8s.io", "events") | ("", "events") => "events".to_owned(),
        ("", plural) => plural.to_owned(),
        (group, plural) => format!("{plural}.{group}"),
    };
    let owned = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect();
    Resource {
        group: facts.group.to_owned(),
        version: facts.version.to_owned(),
        names: Names {
            plural: facts.plural.to_owned(),
            singular: facts.kind.to_lowercase(),
            kind: facts.kind.to_owned(),
            list_kind: format!("{}List", facts.kind),
            short_names: owned(facts.short),
            categories: owned(facts.categories),
        },
        namespaced: facts.namespaced,
        access: if facts.review { Access::CreateOnly } else { Access::Full },
        subresources: facts.subresources.to_vec(),
        scale: facts.subresources.contains(&Subresource::Scale).then(|| ScalePaths {
            spec_replicas: owned(&["spec", "replicas"]),
            status_replicas: owned(&["status", "replicas"]),
            label_selector: Some(owned(&["spec", "selector"])),
        }),
        store_key: store_key.into(),
        verbatim_after: if facts.group == "events.k8s.io" || autoscaler::is_old(facts) {
            u64::MAX
        } else {
            0
        },
        definition: None,
        definition_since: 0,
        schemas: Arc::new(match facts.kind {
            autoscaler::KIND => autoscaler::schemas(),
            _ => BTreeMap::from([(api_version, schema.clone())]),
        }),
        strategy: Box::new(Builtin {
            blank: blank(&gvk, type_name),
            facts: *facts,
            type_name,
            gvk,
            schema,
            selectable: owned(facts.selectable),
        }),
        durability: if facts.relaxed { Durability::Relaxed } else { Durability::Strict },
        terminating: false,
        conversion: None,
        deprecation: (facts.kind == "Endpoints").then(|| {
            "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice".to_owned()
        }),
    }
}

fn blank(gvk: &GroupVersionKind, type_name: &str) -> Value {
    let mut blank = json!({"apiVersion": gvk.api_version(), "kind": gvk.kind, "metadata": {}});
    // An object without fields of its own is of the right type.
    let _ = transom_kinds::normalize(&mut blank, type_name);
    blank
}

/// `stringData` is written for convenience and never read back: it overrides `data`.
fn merge_string_data(secret: &mut Value) {
    let Some(Value::Object(plain)) = secret.as_object_mut().and_then(|s| s.remove("stringData")) else {
        return;
    };
    if !secret["data"].is_object() {
        secret["data"] = json!({});
    }
    for (key, text) in plain {
        secret["data"][key] = STANDARD.encode(text.as_str().unwrap_or_default()).into();
    }
}

struct Builtin {
    facts: Facts,
    gvk: GroupVersionKind,
    type_name: &'static str,
    schema: Arc<Schema>,
    blank: Value,
    selectable: Vec<String>,
}

impl Builtin {
    fn has_status(&self) -> bool {
        self.facts.subresources.contains(&Subresource::Status)
    }

    fn is_signing_request(&self) -> bool {
        self.facts.kind == "CertificateSigningRequest"
    }

    fn is_new_event(&self) -> bool {
        self.facts.group == "events.k8s.io"
    }
}

impl Strategy for Builtin {
    fn normalize(&self, value: &mut Value) -> Result<Vec<String>, String> {
        let unknown = transom_kinds::normalize(value, self.type_name).map_err(|e| e.to_string())?;
        if self.facts.kind == "Secret" {
            merge_string_data(value);
        }
        let families = self.facts.kind == "Service" && value["spec"].get("ipFamilies").is_none();
        transom_kinds::default(value, &self.gvk);
        if families && let Some(spec) = value["spec"].as_object_mut() {
            // Chosen by the server with the addresses, after field ownership is recorded.
            spec.remove("ipFamilies");
            spec.remove("ipFamilyPolicy");
        }
        Ok(unknown)
    }

    fn blank(&self) -> Option<&Value> {
        Some(&self.blank)
    }

    fn is_typed(&self) -> bool {
        true
    }

    fn read(&self, value: &mut Value) -> Result<(), String> {
        if self.is_new_event() {
            events::from_core(value);
        }
        if autoscaler::is_old(&self.facts) {
            *value = transom_kinds::autoscaler::to_v1(value);
        }
        self.normalize(value).map(drop)
    }

    fn in_version(&self, value: &Value, api_version: &str) -> Value {
        if self.facts.kind == autoscaler::KIND {
            return autoscaler::in_version(value, api_version);
        }
        value.clone()
    }

    fn storage_version(&self) -> &str {
        if autoscaler::is_old(&self.facts) { "v2" } else { self.facts.version }
    }

    fn convert_to_storage<'v>(&self, value: &'v Value) -> Cow<'v, Value> {
        let mut stored = Cow::Borrowed(value);
        if self.is_new_event() {
            events::to_core(stored.to_mut());
        }
        if autoscaler::is_old(&self.facts) {
            stored = Cow::Owned(autoscaler::to_stored(value));
        }
        stored
    }

    fn prepare_create(&self, new: &mut Value) {
        // Kinds that do not count generations keep what the client sent.
        if self.facts.counts_generation {
            generation::begin(new);
        }
        match self.facts.kind {
            "Namespace" => {
                new["spec"]["finalizers"] = json!(["kubernetes"]);
                new["status"] = json!({"phase": "Active"});
                let name = new["metadata"]["name"].clone();
                new["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
            }
            autoscaler::KIND => autoscaler::keep_status(new, &self.blank),
            "Pod" => new["status"] = json!({"phase": "Pending", "qosClass": "BestEffort"}),
            "Role" | "ClusterRole" => forget_empty_rules(new),
            "Job" => {
                new["status"] = self.blank["status"].clone();
                select_own_pods(new);
            }
            _ if self.has_status() => {
                new["status"] = self.blank["status"].clone();
                if matches!(self.facts.kind, "PersistentVolume" | "PersistentVolumeClaim") {
                    new["status"]["phase"] = "Pending".into();
                }
            }
            _ => {}
        }
        if unserved::begin(self.facts.kind, new) {
            // As it is served: conditions have fields that are always there.
            let _ = transom_kinds::normalize(new, self.type_name);
        }
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: Subresource) {
        if autoscaler::is_old(&self.facts) {
            return autoscaler::prepare_update(new, old, subresource);
        }
        match subresource {
            Subresource::Main | Subresource::Scale | Subresource::Token => {
                if self.has_status() {
                    copy_field(new, old, "status");
                }
                if matches!(self.facts.kind, "Role" | "ClusterRole") {
                    forget_empty_rules(new);
                }
                if self.is_signing_request() {
                    copy_field(new, old, "spec");
                }
                if self.facts.kind == "Namespace" {
                    copy_field(new, old, "spec");
                    let name = new["metadata"]["name"].clone();
                    new["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
                }
            }
            Subresource::Binding | Subresource::Eviction => {}
            Subresource::EphemeralContainers | Subresource::Resize => keep_part(new, old, subresource),
            Subresource::Status => {
                copy_field(new, old, "spec");
                if self.facts.kind == "Deployment" {
                    let labels = old["metadata"].get("labels").cloned();
                    set_or_remove(&mut new["metadata"], "labels", labels);
                }
            }
            Subresource::Approval => {
                let conditions = new["status"].get("conditions").cloned();
                copy_field(new, old, "spec");
                copy_field(new, old, "status");
                set_or_remove(&mut new["status"], "conditions", conditions);
            }
            Subresource::Finalize => {
                let finalizers = new["spec"].get("finalizers").cloned();
                let (metadata, mut kept) = (new["metadata"].take(), old.clone());
                kept["metadata"] = metadata;
                set_or_remove(&mut kept["spec"], "finalizers", finalizers);
                *new = kept;
            }
        }
        // The annotations of a Deployment are copied to its ReplicaSets.
        let annotated = self.facts.kind == "Deployment"
            && new["metadata"].get("annotations") != old["metadata"].get("annotations");
        let counts = self.facts.counts_generation
            && !matches!(subresource, Subresource::Status | Subresource::Binding | Subresource::Eviction);
        if counts && (annotated || generation::differs(new, old, &["status"])) {
            generation::advance(new, old);
            unserved::observe(self.facts.kind, new);
        }
    }

    fn validate(
        &self,
        new: &Value,
        old: Option<&Value>,
        subresource: Subresource,
        _found: &[field::Error],
    ) -> Vec<field::Error> {
        if self.facts.kind == "CustomResourceDefinition" {
            return match subresource {
                Subresource::Status => transom_crd::validate_status(new),
                _ => transom_crd::validate(new, old),
            };
        }
        match self.facts.kind {
            "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy" => return policy::validate_policy(new),
            "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => {
                return policy::validate_binding(new);
            }
            _ => {}
        }
        let mut errors = match subresource {
            _ if autoscaler::is_old(&self.facts) => autoscaler::validate(new, old, subresource),
            _ if self.is_signing_request() => certificates::validate(new, old, subresource),
            Subresource::Status => transom_kinds::validate_status(new, &self.gvk),
            _ => transom_kinds::validate(new, old, &self.gvk),
        };
        if let Some(old) = old {
            match subresource {
                Subresource::EphemeralContainers => errors.extend(pod::ephemeral_containers(new, old)),
                Subresource::Resize => errors.extend(pod::resize(new, old)),
                _ => {}
            }
        }
        if self.facts.group != ADMISSION.group && self.facts.kind != "Lease" {
            errors.extend(check_finalizers(new));
        }
        errors
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        match self.facts.kind {
            "CustomResourceDefinition" => transom_crd::warnings(new, old),
            "Service" => services::warnings(new),
            kind => {
                // Repeated when the part changes that something would have to act on, and not with each label or status.
                let is_changed = old.is_none_or(|old| generation::differs(new, old, &["status"]));
                let stored = |why| format!("this {kind} is stored but has no effect: {why}");
                self.facts.without_effect.filter(|_| is_changed).map(stored).into_iter().collect()
            }
        }
    }

    fn name_rule(&self) -> meta::NameRule {
        transom_kinds::validate::name_rule(&self.gvk)
    }

    fn reset_fields(&self, subresource: Subresource) -> Option<Arc<own::Set>> {
        if !self.has_status() {
            return None;
        }
        let mut set = own::Set::new();
        if self.is_signing_request() {
            certificates::reset_fields(subresource)
                .iter()
                .for_each(|path| set.insert(&own::Path::of(path).0));
            return Some(Arc::new(set));
        }
        match subresource {
            Subresource::Status => {
                set.insert(&own::Path::of(&["spec"]).0);
                if matches!(self.facts.kind, "Deployment" | "CustomResourceDefinition") {
                    set.insert(&own::Path::of(&["metadata"]).0);
                }
            }
            _ => set.insert(&own::Path::of(&["status"]).0),
        }
        Some(Arc::new(set))
    }

    fn patch_schema(&self) -> Option<Arc<Schema>> {
        Some(self.schema.clone())
    }

    fn allow_create_on_update(&self) -> bool {
        self.facts.create_on_update
    }

    fn allow_unconditional_update(&self) -> bool {
        self.facts.unconditional_update
    }

    fn returns_deleted_object(&self) -> bool {
        self.facts.returns_deleted
    }

    fn selectable_fields(&self) -> &[String] {
        &self.selectable
    }

    fn selectable_value(&self, value: &Value, label: &str) -> String {
        let path: Vec<&str> = match (self.facts.kind, label) {
            (_, "name") => vec!["metadata", "name"],
            ("Job", "status.successful") => vec!["status", "succeeded"],
            ("Event", "source") => vec!["source", "component"],
            _ => label.split('.').collect(),
        };
        match path.iter().try_fold(value, |v, key| v.get(key)) {
            Some(Value::String(s)) => s.clone(),
            Some(Value::Null) | None if matches!(label, "spec.hostNetwork" | "spec.unschedulable") => {
                "false".into()
            }
            Some(Value::Null) | None if matches!(label, "status.replicas" | "status.successful") => {
                "0".into()
            }
            Some(Value::Null) | None => String::new(),
            Some(v) => v.to_string(),
        }
    }

    fn columns(&self) -> Vec<Column> {
        transom_kinds::printer::columns(&self.gvk)
            .iter()
            .map(|c| Column {
                name: c.name.into(),
                ty: c.ty.into(),
                format: c.format.into(),
                description: c.description.into(),
                priority: c.priority.into(),
            })
            .collect()
    }

    fn cells(&self, value: &Value, now: i64) -> Vec<Value> {
        if autoscaler::is_old(&self.facts) {
            return autoscaler::cells(value, now);
        }
        transom_kinds::printer::cells(&self.gvk, value, now)
    }
}

/// A Job selects the pods that carry its uid, unless its selector is its author's business.
fn select_own_pods(job: &mut Value) {
    if job["spec"]["manualSelector"] == true {
        return;
    }
    let (uid, name) = (job["metadata"]["uid"].clone(), job["metadata"]["name"].clone());
    job["spec"]["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"] = uid.clone();
    for (label, value) in [
        ("controller-uid", &uid),
        ("batch.kubernetes.io/controller-uid", &uid),
        ("job-name", &name),
        ("batch.kubernetes.io/job-name", &name),
    ] {
        job["spec"]["template"]["metadata"]["labels"][label] = value.clone();
    }
}

/// An empty list and no list are stored alike.
fn forget_empty_rules(role: &mut Value) {
    if role["rules"].as_array().is_some_and(Vec::is_empty) {
        role["rules"] = Value::Null;
    }
}

/// Most built-in kinds have a stricter rule for finalizers than the API machinery.
fn check_finalizers(value: &Value) -> Vec<field::Error> {
    let path = field::Path::new("metadata").child("finalizers");
    let names = value["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str);
    names
        .enumerate()
        .filter_map(|(i, name)| {
            let why = transom_kinds::validate::finalizer_problem(name)?;
            Some(field::Error::invalid(&path.index(i), name, why))
        })
        .collect()
}

fn set_or_remove(value: &mut Value, key: &str, to: Option<Value>) {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    if let Some(map) = value.as_object_mut() {
        match to {
            Some(v) => map.insert(key.into(), v),
            None => map.remove(key),
        };
    }
}

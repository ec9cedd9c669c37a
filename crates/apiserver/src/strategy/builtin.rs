//! Kinds compiled in: one table says what each of them is, `kinds` knows their types.

use super::custom::copy_field;
use super::{Column, Face, Strategy, events, generation};
use crate::resource::{Access, Names, Resource, ScalePaths};
use crate::{crd, kinds, services};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use transom_object::field;
use transom_object::{GroupVersionKind, meta};
use transom_schema::{Schema, own};
use transom_store::Durability;

/// What sets a built-in kind apart from the others.
#[derive(Clone, Copy)]
struct Facts {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    short: &'static [&'static str],
    categories: &'static [&'static str],
    namespaced: bool,
    review: bool,
    status: bool,
    scale: bool,
    extra: &'static [&'static str],
    /// `metadata.generation` counts changes of the spec.
    counts_generation: bool,
    create_on_update: bool,
    unconditional_update: bool,
    returns_deleted: bool,
    relaxed: bool,
    selectable: &'static [&'static str],
    /// Why objects of the kind have no effect here; told to whoever writes one.
    without_effect: Option<&'static str>,
}

const KIND: Facts = Facts {
    group: "",
    version: "v1",
    kind: "",
    plural: "",
    short: &[],
    categories: &[],
    namespaced: true,
    review: false,
    status: false,
    scale: false,
    extra: &[],
    counts_generation: false,
    create_on_update: false,
    unconditional_update: true,
    returns_deleted: false,
    relaxed: false,
    selectable: &[],
    without_effect: None,
};

const RBAC: Facts = Facts {
    group: "rbac.authorization.k8s.io",
    create_on_update: true,
    without_effect: Some("RBAC is not evaluated yet, only members of the group system:masters may act"),
    ..KIND
};
const ADMISSION: Facts = Facts {
    group: "admissionregistration.k8s.io",
    namespaced: false,
    categories: &["api-extensions"],
    counts_generation: true,
    unconditional_update: false,
    without_effect: Some("admission webhooks are not called yet"),
    ..KIND
};
const ACCESS: Facts = Facts { group: "authorization.k8s.io", namespaced: false, review: true, ..KIND };
const AUTHENTICATION: Facts = Facts { group: "authentication.k8s.io", ..ACCESS };
const EVENT_FIELDS: &[&str] = &[
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
];
const EVENTS_V1_FIELDS: &[&str] = &[
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reason",
    "reportingController",
    "type",
];
const POD_FIELDS: &[&str] = &[
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
];

const KINDS: &[Facts] = &[
    Facts { kind: "ConfigMap", plural: "configmaps", short: &["cm"], ..KIND },
    Facts {
        kind: "Event",
        plural: "events",
        short: &["ev"],
        create_on_update: true,
        relaxed: true,
        selectable: EVENT_FIELDS,
        ..KIND
    },
    Facts { kind: "Endpoints", plural: "endpoints", short: &["ep"], ..KIND },
    Facts {
        kind: "Namespace",
        plural: "namespaces",
        short: &["ns"],
        namespaced: false,
        status: true,
        extra: &["finalize"],
        selectable: &["status.phase", "name"],
        returns_deleted: true,
        ..KIND
    },
    Facts {
        kind: "Pod",
        plural: "pods",
        short: &["po"],
        categories: &["all"],
        status: true,
        counts_generation: true,
        returns_deleted: true,
        selectable: POD_FIELDS,
        ..KIND
    },
    Facts {
        kind: "PodTemplate",
        plural: "podtemplates",
        counts_generation: true,
        returns_deleted: true,
        ..KIND
    },
    Facts { kind: "Secret", plural: "secrets", selectable: &["type"], ..KIND },
    Facts {
        kind: "ServiceAccount",
        plural: "serviceaccounts",
        short: &["sa"],
        extra: &["token"],
        returns_deleted: true,
        ..KIND
    },
    Facts {
        kind: "Service",
        plural: "services",
        short: &["svc"],
        categories: &["all"],
        status: true,
        create_on_update: true,
        returns_deleted: true,
        selectable: &["spec.clusterIP", "spec.type"],
        ..KIND
    },
    Facts {
        group: "apps",
        kind: "Deployment",
        plural: "deployments",
        short: &["deploy"],
        categories: &["all"],
        status: true,
        scale: true,
        counts_generation: true,
        ..KIND
    },
    Facts {
        group: "apiextensions.k8s.io",
        kind: "CustomResourceDefinition",
        plural: "customresourcedefinitions",
        short: &["crd", "crds"],
        categories: &["api-extensions"],
        namespaced: false,
        status: true,
        counts_generation: true,
        unconditional_update: false,
        ..KIND
    },
    Facts {
        group: "coordination.k8s.io",
        kind: "Lease",
        plural: "leases",
        create_on_update: true,
        unconditional_update: false,
        relaxed: true,
        ..KIND
    },
    Facts {
        group: "events.k8s.io",
        kind: "Event",
        plural: "events",
        short: &["ev"],
        create_on_update: true,
        relaxed: true,
        selectable: EVENTS_V1_FIELDS,
        ..KIND
    },
    Facts { kind: "Role", plural: "roles", ..RBAC },
    Facts { kind: "RoleBinding", plural: "rolebindings", ..RBAC },
    Facts { kind: "ClusterRole", plural: "clusterroles", namespaced: false, ..RBAC },
    Facts { kind: "ClusterRoleBinding", plural: "clusterrolebindings", namespaced: false, ..RBAC },
    Facts { kind: "ValidatingWebhookConfiguration", plural: "validatingwebhookconfigurations", ..ADMISSION },
    Facts { kind: "MutatingWebhookConfiguration", plural: "mutatingwebhookconfigurations", ..ADMISSION },
    Facts { kind: "SubjectAccessReview", plural: "subjectaccessreviews", ..ACCESS },
    Facts { kind: "SelfSubjectAccessReview", plural: "selfsubjectaccessreviews", ..ACCESS },
    Facts { kind: "SelfSubjectRulesReview", plural: "selfsubjectrulesreviews", ..ACCESS },
    Facts {
        kind: "LocalSubjectAccessReview",
        plural: "localsubjectaccessreviews",
        namespaced: true,
        ..ACCESS
    },
    Facts { kind: "TokenReview", plural: "tokenreviews", ..AUTHENTICATION },
    Facts { kind: "SelfSubjectReview", plural: "selfsubjectreviews", ..AUTHENTICATION },
];

/// Every built-in resource.
pub(crate) fn resources() -> Vec<Resource> {
    KINDS.iter().map(resource).collect()
}

fn resource(facts: &Facts) -> Resource {
    let gvk = GroupVersionKind::new(facts.group, facts.version, facts.kind);
    let type_name = kinds::type_of(&gvk);
    let schema = kinds::schema(type_name).unwrap_or_default();
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
        status: facts.status,
        scale: facts.scale.then(|| ScalePaths {
            spec_replicas: owned(&["spec", "replicas"]),
            status_replicas: owned(&["status", "replicas"]),
            label_selector: Some(owned(&["spec", "selector"])),
        }),
        extra: facts.extra,
        store_key: store_key.into(),
        verbatim_after: if facts.group == "events.k8s.io" { u64::MAX } else { 0 },
        definition: None,
        definition_since: 0,
        schemas: Arc::new(BTreeMap::from([(api_version, schema.clone())])),
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
        deprecation: (facts.kind == "Endpoints").then(|| {
            "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice".to_owned()
        }),
    }
}

fn blank(gvk: &GroupVersionKind, type_name: &str) -> Value {
    let mut blank = json!({"apiVersion": gvk.api_version(), "kind": gvk.kind, "metadata": {}});
    // An object without fields of its own is of the right type.
    let _ = kinds::normalize(&mut blank, type_name);
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
    fn is_new_event(&self) -> bool {
        self.facts.group == "events.k8s.io"
    }
}

impl Strategy for Builtin {
    fn normalize(&self, value: &mut Value) -> Result<Vec<String>, String> {
        let unknown = kinds::normalize(value, self.type_name).map_err(|e| e.to_string())?;
        if self.facts.kind == "Secret" {
            merge_string_data(value);
        }
        let families = self.facts.kind == "Service" && value["spec"].get("ipFamilies").is_none();
        kinds::default(value, &self.gvk);
        if families && let Some(spec) = value["spec"].as_object_mut() {
            // Chosen by the server with the addresses, after it is settled who owns what.
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
        self.normalize(value).map(drop)
    }

    fn storage_version(&self) -> &str {
        self.facts.version
    }

    fn convert_to_storage<'v>(&self, value: &'v Value) -> Cow<'v, Value> {
        let mut stored = Cow::Borrowed(value);
        if self.is_new_event() {
            events::to_core(stored.to_mut());
        }
        stored
    }

    fn prepare_create(&self, new: &mut Value) {
        // What does not count its generations keeps what it is told.
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
            "Pod" => new["status"] = json!({"phase": "Pending", "qosClass": "BestEffort"}),
            "Role" | "ClusterRole" => forget_empty_rules(new),
            _ if self.facts.status => new["status"] = self.blank["status"].clone(),
            _ => {}
        }
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, face: Face) {
        match face {
            Face::Main | Face::Scale => {
                if self.facts.status {
                    copy_field(new, old, "status");
                }
                if matches!(self.facts.kind, "Role" | "ClusterRole") {
                    forget_empty_rules(new);
                }
                if self.facts.kind == "Namespace" {
                    copy_field(new, old, "spec");
                    let name = new["metadata"]["name"].clone();
                    new["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
                }
            }
            Face::Status => {
                copy_field(new, old, "spec");
                if self.facts.kind == "Deployment" {
                    let labels = old["metadata"].get("labels").cloned();
                    set_or_remove(&mut new["metadata"], "labels", labels);
                }
            }
            Face::Finalize => {
                let finalizers = new["spec"].get("finalizers").cloned();
                let (metadata, mut kept) = (new["metadata"].take(), old.clone());
                kept["metadata"] = metadata;
                set_or_remove(&mut kept["spec"], "finalizers", finalizers);
                *new = kept;
            }
        }
        // Annotations of a Deployment are handed on to what it makes.
        let annotated = self.facts.kind == "Deployment"
            && new["metadata"].get("annotations") != old["metadata"].get("annotations");
        let counts = self.facts.counts_generation && face != Face::Status;
        if counts && (annotated || generation::differs(new, old, &["status"])) {
            generation::advance(new, old);
        }
    }

    fn validate(
        &self,
        new: &Value,
        old: Option<&Value>,
        face: Face,
        _found: &[field::Error],
    ) -> Vec<field::Error> {
        if self.facts.kind == "CustomResourceDefinition" {
            return crd::validate(new, old, face);
        }
        let mut errors = match face {
            Face::Status => kinds::validate_status(new, &self.gvk),
            _ => kinds::validate(new, old, &self.gvk),
        };
        if self.facts.group != ADMISSION.group && self.facts.kind != "Lease" {
            errors.extend(check_finalizers(new));
        }
        errors
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        match self.facts.kind {
            "CustomResourceDefinition" => crd::warnings(new, old),
            "Service" => services::warnings(new),
            kind => {
                let stored = |why| format!("this {kind} is stored but has no effect: {why}");
                self.facts.without_effect.map(stored).into_iter().collect()
            }
        }
    }

    fn name_rule(&self) -> meta::NameRule {
        kinds::validate::name_rule(&self.gvk)
    }

    fn reset_fields(&self, face: Face) -> Option<Arc<own::Set>> {
        if !self.facts.status {
            return None;
        }
        let mut set = own::Set::new();
        match face {
            Face::Status => {
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
            ("Namespace", "name") => vec!["metadata", "name"],
            ("Event", "source") => vec!["source", "component"],
            _ => label.split('.').collect(),
        };
        match path.iter().try_fold(value, |v, key| v.get(key)) {
            Some(Value::String(s)) => s.clone(),
            Some(Value::Null) | None if self.facts.kind == "Pod" && label == "spec.hostNetwork" => {
                "false".into()
            }
            Some(Value::Null) | None => String::new(),
            Some(v) => v.to_string(),
        }
    }

    fn columns(&self) -> Vec<Column> {
        kinds::printer::columns(&self.gvk)
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
        kinds::printer::cells(&self.gvk, value, now)
    }
}

/// An empty list and no list are stored alike.
fn forget_empty_rules(role: &mut Value) {
    if role["rules"].as_array().is_some_and(Vec::is_empty) {
        role["rules"] = Value::Null;
    }
}

/// Most built-in kinds ask more of finalizers than the API machinery does.
fn check_finalizers(value: &Value) -> Vec<field::Error> {
    let path = field::Path::new("metadata").child("finalizers");
    let names = value["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str);
    names
        .enumerate()
        .filter_map(|(i, name)| {
            let why = kinds::validate::finalizer_problem(name)?;
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

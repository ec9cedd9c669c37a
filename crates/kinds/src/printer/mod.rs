//! The columns and cells that `kubectl get` prints for built-in kinds, wide ones included: from an object to the row of a Table.
//!
//! Cells are those of Kubernetes' own printers; descriptions of columns are our own. The caller passes the time for ages.

mod cells;
mod cluster;
mod networking;
mod pod;
mod storage;
mod workloads;

use serde_json::{Value, json};
use transom_object::{GroupVersionKind, time};

/// A column of a Table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The header that `kubectl get` prints, in capitals.
    pub name: &'static str,
    /// The type of the cells as in OpenAPI: `string`, `integer`.
    pub ty: &'static str,
    /// `name` for the column with the name of the object, otherwise empty.
    pub format: &'static str,
    /// What the column contains.
    pub description: &'static str,
    /// Columns above 0 are shown only by `-o wide`.
    pub priority: i32,
}

const fn column(name: &'static str, description: &'static str) -> Column {
    Column { name, ty: "string", format: "", description, priority: 0 }
}

const fn wide(name: &'static str, description: &'static str) -> Column {
    Column { priority: 1, ..column(name, description) }
}

const fn integer(name: &'static str, description: &'static str) -> Column {
    Column { ty: "integer", ..column(name, description) }
}

const NAME: Column =
    Column { format: "name", ..column("Name", "The name of the object, unique within its namespace.") };
const AGE: Column = column("Age", "How long ago the object was created.");
const CONTAINERS: Column = wide("Containers", "Names of each container in the template.");
const IMAGES: Column = wide("Images", "Images referenced by each container in the template.");
const SELECTOR: Column = wide("Selector", "The label selector of the pods.");

const DEFAULT: &[Column] =
    &[NAME, Column { ty: "date", ..column("Created At", "When the object was created.") }];

const EVENT: &[Column] = &[
    column("Last Seen", "Time when this event was last observed."),
    column("Type", "Normal or Warning; new types may be added."),
    column("Reason", "A short, machine understandable reason for the event."),
    column("Object", "The object this event is about."),
    wide("Subobject", "The part of the object this event is about."),
    wide("Source", "The component that reports the event."),
    column("Message", "A human-readable description."),
    wide("First Seen", "Time when this event was first observed."),
    wide("Count", "The number of times this event was observed."),
    Column { priority: 1, ..NAME },
];

const BINDING: &[Column] = &[
    NAME,
    column("Role", "The role that is granted."),
    AGE,
    wide("Users", "Users in the binding."),
    wide("Groups", "Groups in the binding."),
    wide("ServiceAccounts", "Service accounts in the binding."),
];

const POD: &[Column] = &[
    NAME,
    column("Ready", "How many containers accept traffic."),
    column("Status", "The aggregate status of the containers in this pod."),
    column("Restarts", "How often containers were restarted, and when last."),
    AGE,
    wide("IP", "The address of the pod."),
    wide("Node", "The node the pod runs on."),
    wide("Nominated Node", "The node the pod waits for."),
    wide("Readiness Gates", "How many additional readiness conditions hold."),
];

const SERVICE: &[Column] = &[
    NAME,
    column("Type", "How the service is exposed."),
    column("Cluster-IP", "The address within the cluster."),
    column("External-IP", "The addresses outside of the cluster."),
    column("Port(s)", "The ports of the service."),
    AGE,
    SELECTOR,
];

const DEPLOYMENT: &[Column] = &[
    NAME,
    column("Ready", "Number of pods that are ready, of those wanted."),
    column("Up-to-date", "Number of pods that have the current template."),
    column("Available", "Number of pods that have been ready long enough."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const REPLICA_SET: &[Column] = &[
    NAME,
    integer("Desired", "Number of pods that are wanted."),
    integer("Current", "Number of pods that exist."),
    integer("Ready", "Number of pods that are ready."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

/// The columns of a kind. Kinds without columns of their own have a name and a creation time.
pub fn columns(gvk: &GroupVersionKind) -> &'static [Column] {
    match (&*gvk.group, &*gvk.kind) {
        ("", "Namespace") => const { &[NAME, column("Status", "The status of the namespace."), AGE] },
        ("", "Secret") => {
            const {
                &[
                    NAME,
                    column("Type", "What the data is for."),
                    column("Data", "The number of entries."),
                    AGE,
                ]
            }
        }
        ("", "ConfigMap") => const { &[NAME, column("Data", "The number of entries."), AGE] },
        ("", "ServiceAccount") => const { &[NAME, AGE] },
        ("" | "events.k8s.io", "Event") => EVENT,
        ("", "Service") => SERVICE,
        ("apps", "Deployment") => DEPLOYMENT,
        ("apps", "ReplicaSet") => REPLICA_SET,
        ("", "Pod") => POD,
        ("", "PodTemplate") => {
            const {
                &[
                    NAME,
                    Column { priority: 0, ..CONTAINERS },
                    Column { priority: 0, ..IMAGES },
                    column("Pod Labels", "The labels for the pod template."),
                ]
            }
        }
        ("", "Endpoints") => const { &[NAME, column("Endpoints", "The addresses and ports."), AGE] },
        ("coordination.k8s.io", "Lease") => const { &[NAME, column("Holder", "Who holds the lease."), AGE] },
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => BINDING,
        (
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration",
        ) => const { &[NAME, integer("Webhooks", "The number of webhooks."), AGE] },
        (_, kind) => None
            .or_else(|| workloads::columns(kind))
            .or_else(|| networking::columns(kind))
            .or_else(|| storage::columns(kind))
            .or_else(|| cluster::columns(kind))
            .unwrap_or(DEFAULT),
    }
}

/// The cells of one object, one for each of [`columns`].
pub fn cells(gvk: &GroupVersionKind, object: &Value, now_unix: i64) -> Vec<Value> {
    let o = Printed { object, now: now_unix };
    let name = json!(o.text("/metadata/name"));
    let age = json!(o.since("/metadata/creationTimestamp"));
    match (&*gvk.group, &*gvk.kind) {
        ("", "Namespace") => vec![name, json!(o.text("/status/phase")), age],
        ("", "Secret") => vec![name, json!(o.text("/type")), json!(o.count("/data")), age],
        ("", "ConfigMap") => vec![name, json!(o.count("/data") + o.count("/binaryData")), age],
        ("", "ServiceAccount") => vec![name, age],
        ("", "Event") => cells::event(&o, &cells::CORE_EVENT),
        ("events.k8s.io", "Event") => cells::event(&o, &cells::NEW_EVENT),
        ("", "Service") => cells::service(&o, name, age),
        ("apps", "Deployment") => cells::deployment(&o, name, age),
        ("apps", "ReplicaSet") => cells::replica_set(&o, name, age),
        ("", "Pod") => pod::cells(&o, name, age),
        ("", "PodTemplate") => cells::pod_template(&o, name),
        ("", "Endpoints") => vec![name, json!(cells::endpoints(&o)), age],
        ("coordination.k8s.io", "Lease") => vec![name, json!(o.text("/spec/holderIdentity")), age],
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => cells::binding(&o, name, age),
        (
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration",
        ) => {
            vec![name, json!(o.count("/webhooks")), age]
        }
        (_, kind) => {
            let own = || (name.clone(), age.clone());
            let by = |cells: Cells| cells(kind, &o, own().0, own().1);
            let found = [workloads::cells as Cells, networking::cells, storage::cells, cluster::cells];
            found.into_iter().find_map(by).unwrap_or_else(|| vec![name.clone(), json!(o.created())])
        }
    }
}

/// The cells of a group of kinds: kind, object, cell of the name, cell of the age.
type Cells = fn(&str, &Printed<'_>, Value, Value) -> Option<Vec<Value>>;

/// An object seen by a printer.
struct Printed<'a> {
    object: &'a Value,
    now: i64,
}

impl<'a> Printed<'a> {
    fn text(&self, pointer: &str) -> &'a str {
        self.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    fn number(&self, pointer: &str) -> i64 {
        self.object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
    }

    fn list(&self, pointer: &str) -> &'a [Value] {
        self.object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// The entries of a map or a list.
    fn count(&self, pointer: &str) -> usize {
        match self.object.pointer(pointer) {
            Some(Value::Object(map)) => map.len(),
            Some(Value::Array(items)) => items.len(),
            _ => 0,
        }
    }

    fn since(&self, pointer: &str) -> String {
        age(self.text(pointer), self.now)
    }

    fn created(&self) -> &'a str {
        match self.text("/metadata/creationTimestamp") {
            "" => "0001-01-01T00:00:00Z",
            at => at,
        }
    }
}

/// How long ago a timestamp was, `<unknown>` for none.
fn age(timestamp: &str, now: i64) -> String {
    let at = time::parse(timestamp).ok();
    at.map_or_else(|| "<unknown>".to_owned(), |at| time::human_duration(now - at.as_second()))
}

/// The time between two timestamps.
fn age_between(start: &str, end: &str) -> String {
    time::parse(end).map_or_else(|_| "<unknown>".to_owned(), |end| age(start, end.as_second()))
}

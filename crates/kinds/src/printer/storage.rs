//! Columns and cells of volumes and the classes they come from.

use super::{AGE, Column, NAME, Printed, column, integer, wide};
use serde_json::{Value, json};

const MODE: Column = wide("VolumeMode", "Whether the volume is a file system or a block device.");
const ATTRIBUTES: Column = column("VolumeAttributesClass", "The class of attributes.");
const CLASS: Column = column("StorageClass", "The class of storage.");

const fn boolean(name: &'static str, description: &'static str) -> Column {
    Column { ty: "boolean", ..column(name, description) }
}

/// The columns of a kind, if it is one of these.
pub(super) fn columns(kind: &str) -> Option<&'static [Column]> {
    Some(match kind {
        "PersistentVolume" => PERSISTENT_VOLUME_COLUMNS,
        "PersistentVolumeClaim" => PERSISTENT_VOLUME_CLAIM_COLUMNS,
        "StorageClass" => STORAGE_CLASS_COLUMNS,
        "VolumeAttributesClass" => VOLUME_ATTRIBUTES_CLASS_COLUMNS,
        "VolumeAttachment" => VOLUME_ATTACHMENT_COLUMNS,
        "CSINode" => CSI_NODE_COLUMNS,
        "CSIDriver" => CSI_DRIVER_COLUMNS,
        "CSIStorageCapacity" => CSI_STORAGE_CAPACITY_COLUMNS,
        _ => return None,
    })
}

const PERSISTENT_VOLUME_COLUMNS: &[Column] = &[
    NAME,
    column("Capacity", "The size."),
    column("Access Modes", "How it can be mounted."),
    column("Reclaim Policy", "What happens to it when it is released."),
    column("Status", "The phase of the volume."),
    column("Claim", "The claim that has it."),
    CLASS,
    ATTRIBUTES,
    column("Reason", "Why it is in its phase."),
    AGE,
    MODE,
];

const PERSISTENT_VOLUME_CLAIM_COLUMNS: &[Column] = &[
    NAME,
    column("Status", "The phase of the claim."),
    column("Volume", "The volume that it has."),
    column("Capacity", "The size of the volume."),
    column("Access Modes", "How it can be mounted."),
    CLASS,
    ATTRIBUTES,
    AGE,
    MODE,
];

const STORAGE_CLASS_COLUMNS: &[Column] = &[
    NAME,
    column("Provisioner", "What makes the volumes."),
    column("ReclaimPolicy", "What happens to volumes that are released."),
    column("VolumeBindingMode", "When volumes are created and bound."),
    column("AllowVolumeExpansion", "Whether volumes can grow."),
    AGE,
];

const VOLUME_ATTRIBUTES_CLASS_COLUMNS: &[Column] = &[NAME, column("DriverName", "The CSI driver."), AGE];

const VOLUME_ATTACHMENT_COLUMNS: &[Column] = &[
    NAME,
    Column { format: "name", ..column("Attacher", "What attaches the volume.") },
    column("PV", "The volume."),
    column("Node", "The node."),
    boolean("Attached", "Whether it is attached."),
    AGE,
];

const CSI_NODE_COLUMNS: &[Column] = &[NAME, integer("Drivers", "The number of drivers on the node."), AGE];

const CSI_DRIVER_COLUMNS: &[Column] = &[
    NAME,
    boolean("AttachRequired", "Whether volumes must be attached first."),
    boolean("PodInfoOnMount", "Whether mounting needs information about the pod."),
    boolean("StorageCapacity", "Whether its capacity is considered by schedulers."),
    column("TokenRequests", "The audiences of tokens that it needs."),
    boolean("RequiresRepublish", "Whether volumes are published again from time to time."),
    column("Modes", "The kinds of volumes that it supports."),
    AGE,
];

const CSI_STORAGE_CAPACITY_COLUMNS: &[Column] =
    &[NAME, column("StorageClassName", "The class of storage."), column("Capacity", "What is left.")];

/// The cells of an object of one of these kinds.
pub(super) fn cells(kind: &str, o: &Printed<'_>, name: Value, age: Value) -> Option<Vec<Value>> {
    let flag =
        |at: &str, otherwise: bool| json!(o.object.pointer(at).and_then(Value::as_bool).unwrap_or(otherwise));
    Some(match kind {
        "PersistentVolume" => volume(o, name, age),
        "PersistentVolumeClaim" => claim(o, name, age),
        "StorageClass" => {
            let default = |a: &str| o.text(&format!("/metadata/annotations/{a}")) == "true";
            let is_default = default("storageclass.kubernetes.io~1is-default-class")
                || default("storageclass.beta.kubernetes.io~1is-default-class");
            let mark = if is_default { " (default)" } else { "" };
            vec![
                json!(format!("{}{mark}", o.text("/metadata/name"))),
                json!(o.text("/provisioner")),
                json!(or(o.text("/reclaimPolicy"), "Delete")),
                json!(or(o.text("/volumeBindingMode"), "Immediate")),
                flag("/allowVolumeExpansion", false),
                age,
            ]
        }
        "VolumeAttributesClass" => vec![name, json!(o.text("/driverName")), age],
        "VolumeAttachment" => vec![
            name,
            json!(o.text("/spec/attacher")),
            json!(o.text("/spec/source/persistentVolumeName")),
            json!(o.text("/spec/nodeName")),
            flag("/status/attached", false),
            age,
        ],
        "CSINode" => vec![name, json!(o.count("/spec/drivers")), age],
        "CSIDriver" => {
            let texts = |at: &str, key: &str| {
                let of = |v: &'_ Value| {
                    if key.is_empty() { v.as_str() } else { v[key].as_str() }.unwrap_or_default().to_owned()
                };
                o.list(at).iter().map(of).collect::<Vec<_>>().join(",")
            };
            let tokens = match o.object.pointer("/spec/tokenRequests") {
                Some(Value::Array(_)) => texts("/spec/tokenRequests", "audience"),
                _ => "<unset>".to_owned(),
            };
            let modes = texts("/spec/volumeLifecycleModes", "");
            vec![
                name,
                flag("/spec/attachRequired", true),
                flag("/spec/podInfoOnMount", false),
                flag("/spec/storageCapacity", false),
                json!(tokens),
                flag("/spec/requiresRepublish", false),
                json!(or(&modes, "<none>")),
                age,
            ]
        }
        "CSIStorageCapacity" => {
            vec![name, json!(o.text("/storageClassName")), json!(or(o.text("/capacity"), "<unset>"))]
        }
        _ => return None,
    })
}

fn or<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}

fn phase<'a>(o: &Printed<'a>) -> &'a str {
    if o.text("/metadata/deletionTimestamp").is_empty() { o.text("/status/phase") } else { "Terminating" }
}

/// The class in the annotation of old, or in the spec.
fn class<'a>(o: &Printed<'a>) -> &'a str {
    match o.text("/metadata/annotations/volume.beta.kubernetes.io~1storage-class") {
        "" => o.text("/spec/storageClassName"),
        annotated => annotated,
    }
}

fn access_modes(o: &Printed<'_>, at: &str) -> String {
    let known = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let has = |mode: &str| o.list(at).iter().any(|m| *m == mode);
    known.iter().filter(|(mode, _)| has(mode)).map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}

fn volume(o: &Printed<'_>, name: Value, age: Value) -> Vec<Value> {
    let claim = match o.object.pointer("/spec/claimRef") {
        Some(Value::Object(_)) => {
            format!("{}/{}", o.text("/spec/claimRef/namespace"), o.text("/spec/claimRef/name"))
        }
        _ => String::new(),
    };
    vec![
        name,
        json!(or(o.text("/spec/capacity/storage"), "0")),
        json!(access_modes(o, "/spec/accessModes")),
        json!(o.text("/spec/persistentVolumeReclaimPolicy")),
        json!(phase(o)),
        json!(claim),
        json!(class(o)),
        json!(or(o.text("/spec/volumeAttributesClassName"), "<unset>")),
        json!(o.text("/status/reason")),
        age,
        json!(or(o.text("/spec/volumeMode"), "<unset>")),
    ]
}

fn claim(o: &Printed<'_>, name: Value, age: Value) -> Vec<Value> {
    let bound = !o.text("/spec/volumeName").is_empty();
    let (capacity, modes) = if bound {
        (or(o.text("/status/capacity/storage"), "0"), access_modes(o, "/status/accessModes"))
    } else {
        ("", String::new())
    };
    vec![
        name,
        json!(phase(o)),
        json!(o.text("/spec/volumeName")),
        json!(capacity),
        json!(modes),
        json!(class(o)),
        json!(or(o.text("/spec/volumeAttributesClassName"), "<unset>")),
        age,
        json!(or(o.text("/spec/volumeMode"), "<unset>")),
    ]
}

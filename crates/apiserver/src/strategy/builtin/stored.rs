//! Kinds of Kubernetes that are stored, defaulted, validated and printed, and that nothing here acts on: programs written
//! for Kubernetes find them, and compositions can make them.

use super::table::{Facts, KIND, STATUS};
use crate::subresource::Subresource;

const SCALE: &[Subresource] = &[Subresource::Scale, Subresource::Status];
const NO_PODS: Option<&str> = Some("nothing runs pods here");
const NO_VOLUMES: Option<&str> = Some("nothing provides volumes here");
const NO_TRAFFIC: Option<&str> = Some("nothing serves or filters traffic here");
const NO_DEVICES: Option<&str> = Some("there are no nodes and devices here");
const NO_FLOWS: Option<&str> = Some("priority and fairness of requests is not configurable here");

/// Counts changes of its spec, as kinds do whose controllers report an observed generation.
const COUNTED: Facts = Facts { counts_generation: true, ..KIND };
const CLUSTER: Facts = Facts { namespaced: false, ..KIND };

const WORKLOAD: Facts = Facts { group: "apps", categories: &["all"], without_effect: NO_PODS, ..COUNTED };
const BATCH: Facts = Facts { group: "batch", subresources: STATUS, ..WORKLOAD };
const NETWORKING: Facts = Facts { group: "networking.k8s.io", without_effect: NO_TRAFFIC, ..COUNTED };
const STORAGE: Facts = Facts {
    group: "storage.k8s.io",
    without_effect: NO_VOLUMES,
    returns_deleted: true,
    unconditional_update: false,
    ..CLUSTER
};
const RESOURCE: Facts =
    Facts { group: "resource.k8s.io", without_effect: NO_DEVICES, returns_deleted: true, ..KIND };
const FLOW: Facts = Facts {
    group: "flowcontrol.apiserver.k8s.io",
    namespaced: false,
    subresources: STATUS,
    without_effect: NO_FLOWS,
    ..COUNTED
};

/// As it is stored; v1 shows the same objects.
pub(super) const AUTOSCALER: Facts = Facts {
    group: "autoscaling",
    version: "v2",
    kind: "HorizontalPodAutoscaler",
    plural: "horizontalpodautoscalers",
    short: &["hpa"],
    categories: &["all"],
    subresources: STATUS,
    without_effect: NO_PODS,
    ..KIND
};

pub(super) const STORED: &[Facts] = &[
    Facts { kind: "LimitRange", plural: "limitranges", short: &["limits"], create_on_update: true, ..KIND },
    Facts {
        kind: "Node",
        plural: "nodes",
        short: &["no"],
        subresources: STATUS,
        selectable: &["spec.unschedulable"],
        without_effect: NO_PODS,
        ..CLUSTER
    },
    Facts {
        kind: "PersistentVolume",
        plural: "persistentvolumes",
        short: &["pv"],
        subresources: STATUS,
        returns_deleted: true,
        selectable: &["name"],
        without_effect: NO_VOLUMES,
        ..CLUSTER
    },
    Facts {
        kind: "PersistentVolumeClaim",
        plural: "persistentvolumeclaims",
        short: &["pvc"],
        subresources: STATUS,
        returns_deleted: true,
        selectable: &["name"],
        without_effect: NO_VOLUMES,
        ..KIND
    },
    Facts {
        kind: "ReplicationController",
        plural: "replicationcontrollers",
        short: &["rc"],
        categories: &["all"],
        subresources: SCALE,
        selectable: &["status.replicas"],
        without_effect: NO_PODS,
        ..COUNTED
    },
    Facts {
        kind: "ResourceQuota",
        plural: "resourcequotas",
        short: &["quota"],
        subresources: STATUS,
        returns_deleted: true,
        ..KIND
    },
    Facts { group: "apps", kind: "ControllerRevision", plural: "controllerrevisions", ..KIND },
    Facts { kind: "DaemonSet", plural: "daemonsets", short: &["ds"], subresources: STATUS, ..WORKLOAD },
    Facts {
        kind: "ReplicaSet",
        plural: "replicasets",
        short: &["rs"],
        subresources: SCALE,
        selectable: &["status.replicas"],
        ..WORKLOAD
    },
    Facts { kind: "StatefulSet", plural: "statefulsets", short: &["sts"], subresources: SCALE, ..WORKLOAD },
    Facts { kind: "CronJob", plural: "cronjobs", short: &["cj"], ..BATCH },
    Facts { kind: "Job", plural: "jobs", selectable: &["status.successful"], ..BATCH },
    Facts { kind: "Ingress", plural: "ingresses", short: &["ing"], subresources: STATUS, ..NETWORKING },
    Facts { kind: "IngressClass", plural: "ingressclasses", namespaced: false, ..NETWORKING },
    Facts {
        kind: "IPAddress",
        plural: "ipaddresses",
        short: &["ip"],
        namespaced: false,
        counts_generation: false,
        ..NETWORKING
    },
    Facts { kind: "NetworkPolicy", plural: "networkpolicies", short: &["netpol"], ..NETWORKING },
    Facts {
        kind: "ServiceCIDR",
        plural: "servicecidrs",
        namespaced: false,
        subresources: STATUS,
        counts_generation: false,
        ..NETWORKING
    },
    Facts {
        group: "policy",
        kind: "PodDisruptionBudget",
        plural: "poddisruptionbudgets",
        short: &["pdb"],
        subresources: STATUS,
        unconditional_update: false,
        without_effect: NO_PODS,
        ..COUNTED
    },
    Facts { version: "v1", ..AUTOSCALER },
    AUTOSCALER,
    Facts { kind: "CSIDriver", plural: "csidrivers", ..STORAGE },
    Facts { kind: "CSINode", plural: "csinodes", ..STORAGE },
    Facts {
        kind: "CSIStorageCapacity",
        plural: "csistoragecapacities",
        namespaced: true,
        returns_deleted: false,
        ..STORAGE
    },
    Facts {
        kind: "StorageClass",
        plural: "storageclasses",
        short: &["sc"],
        unconditional_update: true,
        ..STORAGE
    },
    Facts { kind: "VolumeAttachment", plural: "volumeattachments", subresources: STATUS, ..STORAGE },
    Facts {
        kind: "VolumeAttributesClass",
        plural: "volumeattributesclasses",
        short: &["vac"],
        unconditional_update: true,
        ..STORAGE
    },
    Facts {
        group: "scheduling.k8s.io",
        kind: "PriorityClass",
        plural: "priorityclasses",
        short: &["pc"],
        namespaced: false,
        without_effect: NO_PODS,
        ..COUNTED
    },
    Facts {
        group: "node.k8s.io",
        kind: "RuntimeClass",
        plural: "runtimeclasses",
        create_on_update: true,
        unconditional_update: false,
        without_effect: NO_PODS,
        ..CLUSTER
    },
    Facts { group: "discovery.k8s.io", kind: "EndpointSlice", plural: "endpointslices", ..COUNTED },
    Facts {
        kind: "DeviceClass",
        plural: "deviceclasses",
        namespaced: false,
        counts_generation: true,
        ..RESOURCE
    },
    Facts { kind: "ResourceClaim", plural: "resourceclaims", subresources: STATUS, ..RESOURCE },
    Facts { kind: "ResourceClaimTemplate", plural: "resourceclaimtemplates", ..RESOURCE },
    Facts {
        kind: "ResourceSlice",
        plural: "resourceslices",
        namespaced: false,
        counts_generation: true,
        selectable: &["spec.nodeName", "spec.driver"],
        ..RESOURCE
    },
    Facts { kind: "FlowSchema", plural: "flowschemas", ..FLOW },
    Facts { kind: "PriorityLevelConfiguration", plural: "prioritylevelconfigurations", ..FLOW },
];

//! The built-in kinds as one table: what sets each of them apart from the others.

use crate::subresource::Subresource;

/// What sets a built-in kind apart from the others.
#[derive(Clone, Copy)]
pub(super) struct Facts {
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    pub(super) kind: &'static str,
    pub(super) plural: &'static str,
    pub(super) short: &'static [&'static str],
    pub(super) categories: &'static [&'static str],
    pub(super) namespaced: bool,
    pub(super) review: bool,
    /// In the order in which discovery lists them: by name.
    pub(super) subresources: &'static [Subresource],
    /// `metadata.generation` counts changes of the spec.
    pub(super) counts_generation: bool,
    pub(super) create_on_update: bool,
    pub(super) unconditional_update: bool,
    pub(super) returns_deleted: bool,
    pub(super) relaxed: bool,
    pub(super) selectable: &'static [&'static str],
    /// Why objects of the kind have no effect here: a warning for writes that create one, or change more than metadata and status.
    pub(super) without_effect: Option<&'static str>,
}

pub(super) const STATUS: &[Subresource] = &[Subresource::Status];

pub(super) const KIND: Facts = Facts {
    group: "",
    version: "v1",
    kind: "",
    plural: "",
    short: &[],
    categories: &[],
    namespaced: true,
    review: false,
    subresources: &[],
    counts_generation: false,
    create_on_update: false,
    unconditional_update: true,
    returns_deleted: false,
    relaxed: false,
    selectable: &[],
    without_effect: None,
};

pub(super) const RBAC: Facts = Facts { group: "rbac.authorization.k8s.io", create_on_update: true, ..KIND };
pub(super) const ADMISSION: Facts = Facts {
    group: "admissionregistration.k8s.io",
    namespaced: false,
    categories: &["api-extensions"],
    counts_generation: true,
    unconditional_update: false,
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

pub(super) const KINDS: &[Facts] = &[
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
        subresources: &[Subresource::Finalize, Subresource::Status],
        selectable: &["status.phase", "name"],
        returns_deleted: true,
        ..KIND
    },
    Facts {
        kind: "Pod",
        plural: "pods",
        short: &["po"],
        categories: &["all"],
        subresources: &[
            Subresource::Binding,
            Subresource::EphemeralContainers,
            Subresource::Eviction,
            Subresource::Resize,
            Subresource::Status,
        ],
        counts_generation: true,
        returns_deleted: true,
        selectable: POD_FIELDS,
        without_effect: Some("nothing runs pods here"),
        ..KIND
    },
    Facts { kind: "Binding", plural: "bindings", review: true, ..KIND },
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
        subresources: &[Subresource::Token],
        returns_deleted: true,
        ..KIND
    },
    Facts {
        kind: "Service",
        plural: "services",
        short: &["svc"],
        categories: &["all"],
        subresources: STATUS,
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
        subresources: &[Subresource::Scale, Subresource::Status],
        counts_generation: true,
        without_effect: Some("nothing runs pods here"),
        ..KIND
    },
    Facts {
        group: "apiextensions.k8s.io",
        kind: "CustomResourceDefinition",
        plural: "customresourcedefinitions",
        short: &["crd", "crds"],
        categories: &["api-extensions"],
        namespaced: false,
        subresources: STATUS,
        counts_generation: true,
        unconditional_update: false,
        ..KIND
    },
    Facts {
        group: "certificates.k8s.io",
        kind: "CertificateSigningRequest",
        plural: "certificatesigningrequests",
        short: &["csr"],
        namespaced: false,
        subresources: &[Subresource::Approval, Subresource::Status],
        selectable: &["spec.signerName"],
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
    Facts {
        kind: "ValidatingAdmissionPolicy",
        plural: "validatingadmissionpolicies",
        subresources: STATUS,
        ..ADMISSION
    },
    Facts {
        kind: "ValidatingAdmissionPolicyBinding",
        plural: "validatingadmissionpolicybindings",
        ..ADMISSION
    },
    Facts { kind: "MutatingAdmissionPolicy", plural: "mutatingadmissionpolicies", ..ADMISSION },
    Facts { kind: "MutatingAdmissionPolicyBinding", plural: "mutatingadmissionpolicybindings", ..ADMISSION },
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

//! Constant defaults by type.

use super::Fill::{self, Int, Object, Text};

type Fills = &'static [(&'static str, Fill)];

const CONTAINER: Fills =
    &[("terminationMessagePath", Text("/dev/termination-log")), ("terminationMessagePolicy", Text("File"))];

const MODE: Fills = &[("defaultMode", Int(0o644))];

const HTTPS: Fills = &[("port", Int(443))];

const VALIDATING: Fills = &[
    ("failurePolicy", Text("Fail")),
    ("matchPolicy", Text("Equivalent")),
    ("namespaceSelector", Object),
    ("objectSelector", Object),
    ("timeoutSeconds", Int(10)),
];

const MUTATING: Fills = &[
    ("failurePolicy", Text("Fail")),
    ("matchPolicy", Text("Equivalent")),
    ("namespaceSelector", Object),
    ("objectSelector", Object),
    ("timeoutSeconds", Int(10)),
    ("reinvocationPolicy", Text("Never")),
];

/// Type names without `io.k8s.api.`.
pub(super) const FILLS: &[(&str, Fills)] = &[
    ("core.v1.Container", CONTAINER),
    ("core.v1.EphemeralContainer", CONTAINER),
    (
        "core.v1.PodSpec",
        &[
            ("dnsPolicy", Text("ClusterFirst")),
            ("restartPolicy", Text("Always")),
            ("securityContext", Object),
            ("terminationGracePeriodSeconds", Int(30)),
            ("schedulerName", Text("default-scheduler")),
        ],
    ),
    (
        "core.v1.Probe",
        &[
            ("timeoutSeconds", Int(1)),
            ("periodSeconds", Int(10)),
            ("successThreshold", Int(1)),
            ("failureThreshold", Int(3)),
        ],
    ),
    ("core.v1.HTTPGetAction", &[("path", Text("/")), ("scheme", Text("HTTP"))]),
    ("core.v1.ObjectFieldSelector", &[("apiVersion", Text("v1"))]),
    ("core.v1.SecretVolumeSource", MODE),
    ("core.v1.ConfigMapVolumeSource", MODE),
    ("core.v1.DownwardAPIVolumeSource", MODE),
    ("core.v1.ProjectedVolumeSource", MODE),
    ("core.v1.ServiceAccountTokenProjection", &[("expirationSeconds", Int(3600))]),
    ("core.v1.HostPathVolumeSource", &[("type", Text(""))]),
    ("core.v1.PersistentVolumeClaimSpec", &[("volumeMode", Text("Filesystem"))]),
    ("core.v1.EndpointPort", &[("protocol", Text("TCP"))]),
    ("core.v1.Secret", &[("type", Text("Opaque"))]),
    ("core.v1.NamespaceStatus", &[("phase", Text("Active"))]),
    ("core.v1.ServiceSpec", &[("sessionAffinity", Text("None")), ("type", Text("ClusterIP"))]),
    (
        "apps.v1.DeploymentSpec",
        &[("replicas", Int(1)), ("revisionHistoryLimit", Int(10)), ("progressDeadlineSeconds", Int(600))],
    ),
    ("apps.v1.DeploymentStrategy", &[("type", Text("RollingUpdate"))]),
    ("apps.v1.ReplicaSetSpec", &[("replicas", Int(1))]),
    ("rbac.v1.RoleRef", &[("apiGroup", Text("rbac.authorization.k8s.io"))]),
    ("authentication.v1.TokenRequestSpec", &[("expirationSeconds", Int(3600))]),
    ("admissionregistration.v1.ValidatingWebhook", VALIDATING),
    ("admissionregistration.v1.MutatingWebhook", MUTATING),
    ("admissionregistration.v1.RuleWithOperations", &[("scope", Text("*"))]),
    ("admissionregistration.v1.ServiceReference", HTTPS),
    ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.ServiceReference", HTTPS),
];

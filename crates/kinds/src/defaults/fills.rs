//! Constant defaults of built-in kinds, by the type of the struct that they are filled into.

use super::Fill::{self, Flag, Int, List, Object, Text};

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

const EXACT_COUNT: Fills = &[("allocationMode", Text("ExactCount"))];

const PENDING: Fills = &[("phase", Text("Pending"))];

const FAIL: Fills = &[("failurePolicy", Text("Fail"))];

const AZURE_DISK: Fills = &[
    ("cachingMode", Text("ReadWrite")),
    ("kind", Text("Shared")),
    ("fsType", Text("ext4")),
    ("readOnly", Flag(false)),
];

const ISCSI: Fills = &[("iscsiInterface", Text("default"))];

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
    ("apps.v1.DaemonSetSpec", &[("revisionHistoryLimit", Int(10))]),
    ("apps.v1.DaemonSetUpdateStrategy", &[("type", Text("RollingUpdate"))]),
    (
        "apps.v1.StatefulSetSpec",
        &[
            ("podManagementPolicy", Text("OrderedReady")),
            ("persistentVolumeClaimRetentionPolicy", Object),
            ("replicas", Int(1)),
            ("revisionHistoryLimit", Int(10)),
        ],
    ),
    (
        "apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy",
        &[("whenDeleted", Text("Retain")), ("whenScaled", Text("Retain"))],
    ),
    (
        "batch.v1.CronJobSpec",
        &[
            ("concurrencyPolicy", Text("Allow")),
            ("suspend", Flag(false)),
            ("successfulJobsHistoryLimit", Int(3)),
            ("failedJobsHistoryLimit", Int(1)),
        ],
    ),
    ("batch.v1.PodFailurePolicyOnPodConditionsPattern", &[("status", Text("True"))]),
    ("networking.v1.NetworkPolicyPort", &[("protocol", Text("TCP"))]),
    ("networking.v1.IngressClassParametersReference", &[("scope", Text("Cluster"))]),
    ("autoscaling.v2.HorizontalPodAutoscalerSpec", &[("minReplicas", Int(1))]),
    ("autoscaling.v1.HorizontalPodAutoscalerSpec", &[("minReplicas", Int(1))]),
    (
        "storage.v1.StorageClass",
        &[("reclaimPolicy", Text("Delete")), ("volumeBindingMode", Text("Immediate"))],
    ),
    (
        "storage.v1.CSIDriverSpec",
        &[
            ("attachRequired", Flag(true)),
            ("podInfoOnMount", Flag(false)),
            ("storageCapacity", Flag(false)),
            ("fsGroupPolicy", Text("ReadWriteOnceWithFSType")),
            ("volumeLifecycleModes", List("Persistent")),
            ("requiresRepublish", Flag(false)),
            ("seLinuxMount", Flag(false)),
        ],
    ),
    ("scheduling.v1.PriorityClass", &[("preemptionPolicy", Text("PreemptLowerPriority"))]),
    ("discovery.v1.EndpointPort", &[("name", Text("")), ("protocol", Text("TCP"))]),
    ("flowcontrol.v1.FlowSchemaSpec", &[("matchingPrecedence", Int(1000))]),
    (
        "flowcontrol.v1.ExemptPriorityLevelConfiguration",
        &[("nominalConcurrencyShares", Int(0)), ("lendablePercent", Int(0))],
    ),
    (
        "flowcontrol.v1.LimitedPriorityLevelConfiguration",
        &[("nominalConcurrencyShares", Int(30)), ("lendablePercent", Int(0))],
    ),
    (
        "flowcontrol.v1.QueuingConfiguration",
        &[("handSize", Int(8)), ("queues", Int(64)), ("queueLengthLimit", Int(50))],
    ),
    ("resource.v1.ExactDeviceRequest", EXACT_COUNT),
    ("resource.v1.DeviceSubRequest", EXACT_COUNT),
    ("core.v1.PersistentVolumeStatus", PENDING),
    ("core.v1.PersistentVolumeClaimStatus", PENDING),
    (
        "core.v1.PersistentVolumeSpec",
        &[("persistentVolumeReclaimPolicy", Text("Retain")), ("volumeMode", Text("Filesystem"))],
    ),
    ("core.v1.ReplicationControllerSpec", &[("replicas", Int(1))]),
    ("core.v1.AzureDiskVolumeSource", AZURE_DISK),
    ("core.v1.ISCSIVolumeSource", ISCSI),
    ("core.v1.ISCSIPersistentVolumeSource", ISCSI),
    ("admissionregistration.v1.ValidatingAdmissionPolicySpec", FAIL),
    ("admissionregistration.v1.MutatingAdmissionPolicySpec", FAIL),
    (
        "admissionregistration.v1.MatchResources",
        &[("matchPolicy", Text("Equivalent")), ("namespaceSelector", Object), ("objectSelector", Object)],
    ),
    ("admissionregistration.v1.NamedRuleWithOperations", &[("scope", Text("*"))]),
    ("rbac.v1.RoleRef", &[("apiGroup", Text("rbac.authorization.k8s.io"))]),
    ("authentication.v1.TokenRequestSpec", &[("expirationSeconds", Int(3600))]),
    ("admissionregistration.v1.ValidatingWebhook", VALIDATING),
    ("admissionregistration.v1.MutatingWebhook", MUTATING),
    ("admissionregistration.v1.RuleWithOperations", &[("scope", Text("*"))]),
    ("admissionregistration.v1.ServiceReference", HTTPS),
    ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.ServiceReference", HTTPS),
];

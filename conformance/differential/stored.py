"""The kinds of Kubernetes that Transom stores and nothing acts on: how to make and change them."""

from kinds import Kind, simple


def _template(rng, restart=None):
    app = simple(rng)
    spec = {"containers": [{"name": "main", "image": f"registry.example.org/{app}:1"}], **({"restartPolicy": restart} if restart else {})}
    return app, {"metadata": {"labels": {"app": app}}, "spec": spec}


def _workload(**more):
    def make(rng):
        app, template = _template(rng)
        return {"spec": {"selector": {"matchLabels": {"app": app}}, "template": template, **more}}
    return make


def _changes(*choices):
    return lambda rng: rng.choice(choices)


def _constant(**fields):
    return lambda rng: fields


def replication_controller(rng):
    app, template = _template(rng)
    return {"spec": {"template": template, **rng.choice(({}, {"replicas": 2}, {"selector": {"app": app}}))}}


def cron_job(rng):
    return {"spec": {"schedule": rng.choice(("*/5 * * * *", "@daily", "0 3 * * 1")), "jobTemplate": {"spec": {"template": _template(rng, "Never")[1]}},
                     **rng.choice(({}, {"suspend": True}, {"concurrencyPolicy": "Forbid"}))}}


_BACKEND = {"service": {"name": "s", "port": {"number": 80}}}


def ingress(rng):
    rule = {"host": f"{simple(rng)}.example.org", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": _BACKEND}]}}
    return {"spec": rng.choice(({"rules": [rule]}, {"defaultBackend": _BACKEND}, {"rules": [rule], "tls": [{"hosts": ["a.example.org"]}]}))}


_SCALED = {"spec": {"replicas": 3}}
_NEGATIVE = {"spec": {"replicas": -1}}
_LABELLED = {"metadata": {"labels": {"team": "x"}}}

STATEFUL_SET = Kind("apps", "v1", "statefulsets", "StatefulSet", make=_workload(serviceName="s"), status=True, scale=True,
                    change=_changes(_SCALED, _NEGATIVE, _LABELLED, {"spec": {"serviceName": "t"}}, {"spec": {"minReadySeconds": 3}}))
DAEMON_SET = Kind("apps", "v1", "daemonsets", "DaemonSet", make=_workload(), status=True,
                  change=_changes(_LABELLED, {"spec": {"minReadySeconds": 3}}, {"spec": {"minReadySeconds": -3}}, {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}}))
REPLICA_SET = Kind("apps", "v1", "replicasets", "ReplicaSet", make=_workload(), status=True, scale=True, change=_changes(_SCALED, _NEGATIVE, _LABELLED))
CONTROLLER = Kind("", "v1", "replicationcontrollers", "ReplicationController", make=replication_controller, status=True, scale=True,
                  change=_changes(_SCALED, _NEGATIVE, _LABELLED))
CRON_JOB = Kind("batch", "v1", "cronjobs", "CronJob", make=cron_job, status=True,
                change=_changes(_LABELLED, {"spec": {"suspend": True}}, {"spec": {"concurrencyPolicy": "Odd"}}, {"spec": {"schedule": ""}}, {"spec": {"failedJobsHistoryLimit": -1}}))
INGRESS = Kind("networking.k8s.io", "v1", "ingresses", "Ingress", make=ingress, status=True,
               change=_changes(_LABELLED, {"spec": {"ingressClassName": "c"}}, {"spec": {"defaultBackend": {"service": {"name": "s"}}}}))
NETWORK_POLICY = Kind("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", make=_constant(spec={"podSelector": {"matchLabels": {"a": "b"}}}),
                      change=_changes(_LABELLED, {"spec": {"policyTypes": ["Egress"]}}, {"spec": {"policyTypes": ["Sideways"]}}, {"spec": {"egress": [{"ports": [{"port": 53}]}]}}))
BUDGET = Kind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", make=_constant(spec={"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}), status=True,
              change=_changes(_LABELLED, {"spec": {"minAvailable": "50%"}}, {"spec": {"minAvailable": -1}}, {"spec": {"maxUnavailable": 1}}))
AUTOSCALER = Kind("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", status=True,
                  make=_constant(spec={"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 5}),
                  change=_changes(_LABELLED, {"spec": {"minReplicas": 2}}, {"spec": {"minReplicas": 9}}, {"spec": {"maxReplicas": 0}}))
STORAGE_CLASS = Kind("storage.k8s.io", "v1", "storageclasses", "StorageClass", False, make=_constant(provisioner="example.org/p"),
                     change=_changes(_LABELLED, {"allowVolumeExpansion": True}, {"provisioner": "example.org/q"}, {"parameters": {"a": "b"}}))
PRIORITY_CLASS = Kind("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False, make=_constant(value=10),
                      change=_changes(_LABELLED, {"value": 11}, {"description": "d"}))
RUNTIME_CLASS = Kind("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", False, make=_constant(handler="runc"), change=_changes(_LABELLED))
ENDPOINT_SLICE = Kind("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice",
                      make=_constant(addressType="IPv4", endpoints=[{"addresses": ["10.0.0.1"]}], ports=[{"port": 80}]),
                      change=_changes(_LABELLED, {"ports": [{"name": "x", "port": 81}]}, {"addressType": "IPv6"}, {"endpoints": [{"addresses": []}]}))
LIMIT_RANGE = Kind("", "v1", "limitranges", "LimitRange", make=_constant(spec={"limits": [{"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Mi"}}]}),
                   change=_changes(_LABELLED, {"spec": {"limits": [{"type": "Pod", "max": {"cpu": "1"}, "min": {"cpu": "2"}}]}}, {"spec": {"limits": [{"type": "Pod", "max": {"cpu": "1"}}]}}))
POD_TEMPLATE = Kind("", "v1", "podtemplates", "PodTemplate", make=lambda rng: {"template": _template(rng)[1]}, change=_changes(_LABELLED))
REVISION = Kind("apps", "v1", "controllerrevisions", "ControllerRevision", make=_constant(revision=1, data={"spec": {"a": "b"}}), change=_changes(_LABELLED, {"revision": 2}))

STORED = [STATEFUL_SET, DAEMON_SET, REPLICA_SET, CONTROLLER, CRON_JOB, INGRESS, NETWORK_POLICY, BUDGET, AUTOSCALER, STORAGE_CLASS, PRIORITY_CLASS,
          RUNTIME_CLASS, ENDPOINT_SLICE, LIMIT_RANGE, POD_TEMPLATE, REVISION]

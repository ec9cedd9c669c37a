"""What programs do with the official Python client: typed and dynamic CRUD, watches, informer-like loops,
server-side apply, custom resources, paging and errors. Every check has a namespace of its own."""

import base64
import json
import sys
import threading
import time
import traceback

from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.rest import ApiException
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError

GROUP = "py.example.org"
CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def refused(status, action, reason=None):
    """Runs `action`, which must fail with this HTTP status; gives the decoded Status object."""
    try:
        action()
    except ApiException as error:
        assert error.status == status, f"status {error.status} instead of {status}: {error.body}"
        body = json.loads(error.body)
        assert reason is None or body["reason"] == reason, body
        return body
    raise AssertionError(f"no refusal with {status}")


def configmap(name, data=None, **meta):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, **meta), data=data)


@check
def typed_crud(space):
    api = client.CoreV1Api()
    made = api.create_namespaced_config_map(space, configmap("a", {"x": "1"}))
    assert made.metadata.uid and made.metadata.resource_version
    made.data["x"] = "2"
    changed = api.replace_namespaced_config_map("a", space, made)
    assert changed.data == {"x": "2"} and changed.metadata.resource_version != made.metadata.resource_version
    refused(409, lambda: api.replace_namespaced_config_map("a", space, made), "Conflict")
    patched = api.patch_namespaced_config_map("a", space, {"data": {"y": "3"}})
    assert patched.data == {"x": "2", "y": "3"}
    api.delete_namespaced_config_map("a", space)
    refused(404, lambda: api.read_namespaced_config_map("a", space), "NotFound")


@check
def patch_types(space):
    api = client.AppsV1Api()
    labels = {"app": "web"}
    container = client.V1Container(name="web", image="registry.example.org/web:1")
    spec = client.V1DeploymentSpec(selector=client.V1LabelSelector(match_labels=labels), template=client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels=labels), spec=client.V1PodSpec(containers=[container])))
    made = api.create_namespaced_deployment(space, client.V1Deployment(metadata=client.V1ObjectMeta(name="web"), spec=spec))
    assert made.spec.replicas == 1 and made.spec.strategy.rolling_update.max_surge == "25%"
    side = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "registry.example.org/side:1"}]}}}}
    strategic = api.patch_namespaced_deployment("web", space, side)
    assert [each.name for each in strategic.spec.template.spec.containers] == ["side", "web"]
    jsonpatch = api.patch_namespaced_deployment("web", space, [{"op": "replace", "path": "/spec/replicas", "value": 3}])
    assert jsonpatch.spec.replicas == 3
    scale = api.read_namespaced_deployment_scale("web", space)
    assert scale.spec.replicas == 3
    scale.spec.replicas = 5
    assert api.replace_namespaced_deployment_scale("web", space, scale).spec.replicas == 5
    status = api.patch_namespaced_deployment_status("web", space, {"status": {"replicas": 5, "readyReplicas": 2}})
    assert status.status.ready_replicas == 2 and status.spec.replicas == 5


@check
def secrets(space):
    api = client.CoreV1Api()
    body = client.V1Secret(metadata=client.V1ObjectMeta(name="s"), string_data={"user": "jane"})
    made = api.create_namespaced_secret(space, body)
    assert base64.b64decode(made.data["user"]) == b"jane" and made.string_data is None and made.type == "Opaque"
    body = refused(422, lambda: api.patch_namespaced_secret("s", space, {"type": "other"}), "Invalid")
    assert body["details"]["causes"][0]["field"] == "type"


@check
def errors(space):
    api = client.CoreV1Api()
    refused(404, lambda: api.create_namespaced_config_map("absent-" + space, configmap("a")), "NotFound")
    body = refused(422, lambda: api.create_namespaced_config_map(space, configmap("Bad_Name")), "Invalid")
    assert body["details"]["causes"][0]["field"] == "metadata.name"
    api.create_namespaced_config_map(space, configmap("dup"))
    refused(409, lambda: api.create_namespaced_config_map(space, configmap("dup")), "AlreadyExists")
    refused(400, lambda: api.create_namespaced_config_map(space, {"metadata": {"name": "x"}, "data": {"a": 1}}), "BadRequest")
    refused(400, lambda: api.list_namespaced_config_map(space, label_selector="a b"), "BadRequest")
    refused(400, lambda: api.create_namespaced_config_map(space, {"metadata": {"name": "x"}, "odd": 1}, field_validation="Strict"), "BadRequest")
    body = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid="00000000-0000-0000-0000-000000000000"))
    refused(409, lambda: api.delete_namespaced_config_map("dup", space, body=body), "Conflict")


@check
def dry_run(space):
    api = client.CoreV1Api()
    made = api.create_namespaced_config_map(space, configmap("never", {"a": "1"}), dry_run="All")
    assert made.metadata.uid and made.metadata.resource_version is None
    refused(404, lambda: api.read_namespaced_config_map("never", space))


@check
def paging(space):
    api = client.CoreV1Api()
    for index in range(7):
        api.create_namespaced_config_map(space, configmap(f"p{index}", labels={"kind": "page"}))
    names, token, versions = [], None, set()
    while True:
        page = api.list_namespaced_config_map(space, limit=3, _continue=token, label_selector="kind=page")
        names += [item.metadata.name for item in page.items]
        versions.add(page.metadata.resource_version)
        token = page.metadata._continue
        if not token:
            break
        api.create_namespaced_config_map(space, configmap(f"p{len(names)}-late", labels={"kind": "page"}))
    assert names == [f"p{index}" for index in range(7)], names
    assert len(versions) == 1, versions
    api.delete_collection_namespaced_config_map(space, label_selector="kind=page")
    assert not api.list_namespaced_config_map(space, label_selector="kind=page").items


@check
def watching(space):
    api = client.CoreV1Api()
    start = api.list_namespaced_config_map(space).metadata.resource_version
    seen = []

    def follow():
        for event in watch.Watch().stream(api.list_namespaced_config_map, space, resource_version=start, timeout_seconds=20,
                                          field_selector="metadata.name=w"):
            seen.append((event["type"], (event["object"].data or {}).get("n")))
            if event["type"] == "DELETED":
                return

    follower = threading.Thread(target=follow)
    follower.start()
    api.create_namespaced_config_map(space, configmap("w", {"n": "1"}))
    api.create_namespaced_config_map(space, configmap("other"))
    api.patch_namespaced_config_map("w", space, {"data": {"n": "2"}})
    api.delete_namespaced_config_map("w", space)
    follower.join(30)
    assert seen == [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")], seen


@check
def watch_resumes(space):
    """The client reconnects with the last version it saw when the server ends the stream."""
    api = client.CoreV1Api()
    first = api.create_namespaced_config_map(space, configmap("r", {"n": "0"}))
    watcher = watch.Watch()
    seen = []
    threading.Thread(target=lambda: [(time.sleep(1.2), api.patch_namespaced_config_map("r", space, {"data": {"n": str(n)}})) for n in (1, 2)]).start()
    for event in watcher.stream(api.list_namespaced_config_map, space, resource_version=first.metadata.resource_version, timeout_seconds=5):
        seen.append(event["object"].data["n"])
        if len(seen) == 2:
            watcher.stop()
    assert seen == ["1", "2"], seen


@check
def initial_events(space):
    api = client.CoreV1Api()
    api.create_namespaced_config_map(space, configmap("i"))
    answer = api.list_namespaced_config_map(space, watch=True, send_initial_events=True, resource_version_match="NotOlderThan",
                                            allow_watch_bookmarks=True, timeout_seconds=2, _preload_content=False)
    events = [json.loads(line) for line in answer.data.decode().splitlines() if line]
    kinds = [event["type"] for event in events]
    assert kinds[:2] == ["ADDED", "ADDED"] and "BOOKMARK" in kinds, kinds
    mark = events[kinds.index("BOOKMARK")]["object"]["metadata"]
    assert mark["annotations"]["k8s.io/initial-events-end"] == "true" and int(mark["resourceVersion"]) > 0


def definition(plural, kind, **version):
    schema = {"type": "object", "properties": {
        "spec": {"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "minimum": 1}, "mode": {"type": "string", "default": "auto"},
            "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}},
            "x-kubernetes-validations": [{"rule": "self.size < 100", "message": "too big"}]},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
    first = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}, **version}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{GROUP}"},
            "spec": {"group": GROUP, "scope": "Namespaced", "names": {"plural": plural, "kind": kind}, "versions": [first]}}


def define(plural, kind):
    api = client.ApiextensionsV1Api()
    api.create_custom_resource_definition(definition(plural, kind))
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        conditions = api.read_custom_resource_definition(f"{plural}.{GROUP}").status.conditions or []
        if any(each.type == "Established" and each.status == "True" for each in conditions):
            break
        time.sleep(0.1)
    custom = client.CustomObjectsApi()
    while True:
        try:
            return custom.list_cluster_custom_object(GROUP, "v1", plural)
        except ApiException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


@check
def custom_objects(space):
    define("gears", "Gear")
    api = client.CustomObjectsApi()
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Gear", "metadata": {"name": "g"}, "spec": {"size": 3, "odd": 1}}
    made = api.create_namespaced_custom_object(GROUP, "v1", space, "gears", body)
    assert made["spec"] == {"size": 3, "mode": "auto"}, made["spec"]
    assert made["metadata"]["generation"] == 1
    patched = api.patch_namespaced_custom_object(GROUP, "v1", space, "gears", "g", {"spec": {"size": 4}})
    assert patched["metadata"]["generation"] == 2
    status = api.patch_namespaced_custom_object_status(GROUP, "v1", space, "gears", "g", {"status": {"phase": "Up"}, "spec": {"size": 9}})
    assert status["spec"]["size"] == 4 and status["status"]["phase"] == "Up" and status["metadata"]["generation"] == 2
    body = refused(422, lambda: api.patch_namespaced_custom_object(GROUP, "v1", space, "gears", "g", {"spec": {"size": 0}}), "Invalid")
    assert body["details"]["causes"][0]["field"] == "spec.size"
    body = refused(422, lambda: api.patch_namespaced_custom_object(GROUP, "v1", space, "gears", "g", {"spec": {"size": 100}}), "Invalid")
    assert "too big" in body["message"]
    assert len(api.list_cluster_custom_object(GROUP, "v1", "gears")["items"]) == 1
    api.delete_namespaced_custom_object(GROUP, "v1", space, "gears", "g")


@check
def dynamic_client(space):
    define("pumps", "Pump")
    reach = dynamic.DynamicClient(client.ApiClient())
    pumps = reach.resources.get(api_version=f"{GROUP}/v1", kind="Pump")
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Pump", "metadata": {"name": "p"}, "spec": {"size": 1}}
    made = pumps.create(body=body, namespace=space)
    assert made.spec.mode == "auto"
    changed = made.to_dict()
    changed["spec"]["size"] = 2
    assert pumps.replace(body=changed, namespace=space).spec.size == 2
    try:
        pumps.replace(body=changed, namespace=space)
        raise AssertionError("a stale replace went through")
    except ConflictError:
        pass
    assert pumps.patch(body={"spec": {"size": 5}}, name="p", namespace=space, content_type="application/merge-patch+json").spec.size == 5
    assert [each.metadata.name for each in pumps.get(namespace=space).items] == ["p"]
    pumps.delete(name="p", namespace=space)
    try:
        pumps.get(name="p", namespace=space)
        raise AssertionError("deleted, yet there")
    except NotFoundError:
        pass


@check
def server_side_apply(space):
    reach = dynamic.DynamicClient(client.ApiClient())
    maps = reach.resources.get(api_version="v1", kind="ConfigMap")

    def apply(manager, data, **options):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ssa"}, "data": data}
        return maps.server_side_apply(body=body, namespace=space, field_manager=manager, **options)

    apply("one", {"a": "1", "b": "1"})
    try:
        apply("two", {"a": "2"})
        raise AssertionError("no conflict")
    except ConflictError as conflict:
        causes = json.loads(conflict.body)["details"]["causes"]
        assert causes == [{"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.a"}], causes
    assert apply("two", {"a": "2"}, force_conflicts=True).data.a == "2"
    last = apply("one", {})
    assert last.to_dict()["data"] == {"a": "2"}, last.data
    assert {entry.manager for entry in last.metadata.managedFields} == {"one", "two"} or len(last.metadata.managedFields) == 1


@check
def discovery(space):
    groups = {group.name for group in client.ApisApi().get_api_versions().groups}
    assert {"apps", "rbac.authorization.k8s.io", "coordination.k8s.io", "apiextensions.k8s.io"} <= groups, groups
    resources = client.CoreV1Api().get_api_resources().resources
    assert {"configmaps", "namespaces", "namespaces/finalize", "secrets"} <= {each.name for each in resources}
    assert client.VersionApi().get_code().major == "1"


@check
def create_from_documents(space):
    reach = client.ApiClient()
    documents = [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}},
                 {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"},
                  "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]},
                 {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}}]
    for document in documents:
        utils.create_from_dict(reach, document, namespace=space)
    try:
        utils.create_from_dict(reach, documents[0], namespace=space)
        raise AssertionError("created twice")
    except utils.FailToCreateError as failure:
        assert failure.api_exceptions[0].status == 409
    lease = client.CoordinationV1Api().read_namespaced_lease("l", space)
    lease.spec.lease_duration_seconds = 15
    assert client.CoordinationV1Api().replace_namespaced_lease("l", space, lease).spec.lease_duration_seconds == 15


@check
def reviews(space):
    review = client.V1SelfSubjectAccessReview(spec=client.V1SelfSubjectAccessReviewSpec(
        resource_attributes=client.V1ResourceAttributes(verb="create", resource="configmaps", namespace=space)))
    assert client.AuthorizationV1Api().create_self_subject_access_review(review).status.allowed
    me = client.AuthenticationV1Api().create_self_subject_review(client.V1SelfSubjectReview())
    assert "system:masters" in me.status.user_info.groups
    token = client.CoreV1Api().create_namespaced_service_account_token("default", space, client.AuthenticationV1TokenRequest(
        spec=client.V1TokenRequestSpec(audiences=None, expiration_seconds=600))).status.token
    seen = client.AuthenticationV1Api().create_token_review(client.V1TokenReview(spec=client.V1TokenReviewSpec(token=token)))
    assert seen.status.authenticated and seen.status.user.username == f"system:serviceaccount:{space}:default"


@check
def finalizers_and_owners(space):
    api = client.CoreV1Api()
    owner = api.create_namespaced_config_map(space, configmap("owner", finalizers=["example.org/hold"]))
    reference = client.V1OwnerReference(api_version="v1", kind="ConfigMap", name="owner", uid=owner.metadata.uid)
    api.create_namespaced_secret(space, client.V1Secret(metadata=client.V1ObjectMeta(name="child", owner_references=[reference])))
    api.delete_namespaced_config_map("owner", space)
    assert api.read_namespaced_config_map("owner", space).metadata.deletion_timestamp
    assert api.read_namespaced_secret("child", space)
    api.patch_namespaced_config_map("owner", space, {"metadata": {"finalizers": None}})
    refused(404, lambda: api.read_namespaced_config_map("owner", space))
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            api.read_namespaced_secret("child", space)
        except ApiException as error:
            assert error.status == 404
            return
        time.sleep(0.1)
    raise AssertionError("the dependent outlived its owner")


@check
def namespace_life(space):
    api = client.CoreV1Api()
    name = space + "-gone"
    made = api.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=name)))
    assert made.status.phase == "Active" and made.spec.finalizers == ["kubernetes"]
    api.create_namespaced_config_map(name, configmap("inside"))
    assert "Terminating" in str(api.delete_namespace(name).status)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            api.read_namespace(name)
        except ApiException as error:
            assert error.status == 404
            return
        time.sleep(0.1)
    raise AssertionError("the namespace does not end")


def main():
    config.load_kube_config(sys.argv[1])
    api = client.CoreV1Api()
    failed = 0
    for function in CHECKS:
        space = "py-" + function.__name__.replace("_", "-")
        try:
            api.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=space)))
            deadline = time.monotonic() + 30
            while not api.list_namespaced_service_account(space, field_selector="metadata.name=default").items and time.monotonic() < deadline:
                time.sleep(0.05)
            function(space)
        except Exception:  # a check may fail in any way; the others still run
            failed += 1
            print(f"FAILED {function.__name__}\n{traceback.format_exc()}")
    print(f"python: {len(CHECKS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Streams of requests that are wrong at the level of HTTP, paths and options; and of reviews of access."""

import customs
import kinds
from operations import Handle, Operation

REVIEW = "/apis/authorization.k8s.io/v1"


def protocol(rng, scope):
    """Methods, media types, names and query parameters that do not fit."""
    for kind in (kinds.CONFIGMAP, customs.WIDGET):
        target = Handle(kind, f"{scope.name}-p", scope.namespace)
        yield target.create(kind.make(rng, target.name))
        good = kind.object(target.name)
        cases = [
            ("POST", target.path, {}, good, {}), ("PUT", target.collection, {}, good, {}), ("PATCH", target.collection, {}, {}, {}),
            ("PATCH", target.path, {}, {}, {"Content-Type": "application/json"}), ("PATCH", target.path, {}, "not json", {"Content-Type": "application/merge-patch+json"}),
            ("PATCH", target.path, {}, [], {"Content-Type": "application/merge-patch+json"}), ("PATCH", target.path, {}, "7", {"Content-Type": "application/merge-patch+json"}),
            ("PATCH", target.path, {}, {}, {"Content-Type": "application/strategic-merge-patch+json"}), ("GET", target.path + "/nothing", {}, None, {}),
            ("GET", target.path, {"timeout": "x"}, None, {}), ("DELETE", target.path, {"propagationPolicy": "Odd"}, None, {}),
            ("DELETE", target.path, {"dryRun": "Some"}, None, {}), ("POST", target.collection, {"dryRun": "Some"}, good, {}),
            ("POST", target.collection, {"fieldValidation": "Odd"}, good, {}), ("POST", target.collection, {"fieldManager": "x" * 200}, good, {}),
            ("POST", target.collection, {"fieldManager": "tab\there"}, good, {}), ("GET", target.collection, {"limit": "x"}, None, {}),
            ("GET", target.path, {}, None, {"Accept": "application/nonsense"}),
            ("POST", target.collection, {}, {**good, "metadata": {}}, {}), ("POST", target.collection, {}, {**good, "metadata": {"name": "UPPER"}}, {}),
            ("POST", target.collection, {}, {**good, "metadata": {"name": "x" * 300}}, {}), ("POST", target.collection, {}, {**good, "metadata": {"name": "a/b"}}, {}),
            ("POST", target.collection, {}, {**good, "metadata": {"name": ".."}}, {}), ("POST", target.collection, {}, {**good, "metadata": {"name": "ok", "namespace": "other"}}, {}),
            ("POST", target.collection, {}, {**good, "metadata": {"name": "ok", "resourceVersion": "7"}}, {}),
            ("POST", target.collection, {}, {**good, "metadata": {"name": 7}}, {}), ("POST", target.collection, {}, {**good, "metadata": "x"}, {}),
            ("POST", target.collection.replace(scope.namespace, "absent"), {}, good, {}), ("GET", target.collection.replace(scope.namespace, "absent"), {}, None, {}),
            ("GET", target.path.replace(scope.namespace, "absent"), {}, None, {}), ("DELETE", target.path + "-absent", {}, None, {}),
            ("DELETE", target.path, {}, {"preconditions": {"uid": "wrong"}}, {}), ("DELETE", target.path, {}, {"kind": "Nonsense"}, {}), ("DELETE", target.path, {}, "{", {}),
            ("PUT", target.path + "-absent", {}, {**good, "metadata": {"name": target.name + "-absent"}}, {}), ("HEAD", target.path, {}, None, {}),
            ("OPTIONS", target.path, {}, None, {}), ("GET", target.collection, {"fieldSelector": "a=b=c"}, None, {}),
        ]
        for method, path, query, body, headers in rng.sample(cases, 28):
            yield Operation(f"protocol.{method.lower()} {kind.plural}", method, path, query, body, headers)


def access(rng, scope):
    """Rules, bindings and the reviews and impersonated requests they decide."""
    user = f"user-{scope.name}"
    group = "rbac.authorization.k8s.io"
    role = Handle(kinds.ROLE, "reader", scope.namespace)
    binding = Handle(kinds.ROLE_BINDING, "reader", scope.namespace)
    yield role.create(kinds.ROLE.object("reader", rules=[{"apiGroups": ["", customs.GROUP], "resources": ["configmaps", "widgets", "widgets/status"],
                                                          "verbs": rng.sample(("get", "list", "create", "patch", "update"), 3)},
                                                         {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"], "verbs": ["get"]}]))
    yield binding.create(kinds.ROLE_BINDING.object("reader", subjects=[{"kind": "User", "name": user, "apiGroup": group}],
                                                   roleRef={"apiGroup": group, "kind": "Role", "name": "reader"}))

    def decided(answer):
        return answer.body.get("status", {}).get("allowed") is True

    yield Operation("review.settled", "POST", f"{REVIEW}/subjectaccessreviews", body=subject(user, scope.namespace, "get", "", "secrets", name="mine"),
                    mode="await", until=decided, compare=False)
    for _ in range(14):
        verb = rng.choice(("get", "list", "create", "delete", "patch", "*"))
        resource, api = rng.choice((("configmaps", ""), ("widgets", customs.GROUP), ("secrets", ""), ("deployments", "apps"), ("*", "*")))
        space = rng.choice((scope.namespace, scope.namespace, "default", ""))
        name = rng.choice(("", "mine", "yours"))
        yield Operation("review.subject", "POST", f"{REVIEW}/subjectaccessreviews", body=subject(user, space, verb, api, resource, name=name))
    as_user = {"Impersonate-User": user}
    one = Handle(kinds.CONFIGMAP, "c", scope.namespace)
    for kind in (kinds.CONFIGMAP, customs.WIDGET, kinds.SECRET):
        target = Handle(kind, "c", scope.namespace)
        yield target.create(kind.object("c", **({"spec": {"color": "red"}} if kind.custom else {})), "impersonated.create", headers=as_user)
        yield target.get("impersonated.get", headers=as_user)
        yield target.patch("application/merge-patch+json", {"metadata": {"labels": {"a": "b"}}}, "impersonated", headers=as_user)
        yield target.delete(what="impersonated.delete", headers=as_user)
        yield Operation(f"impersonated.list {kind.plural}", "GET", target.collection, headers=as_user)
        yield Operation(f"impersonated.list {kind.plural}", "GET", kind.collection(), headers=as_user)
    yield one.get("anonymous.get", headers={"Impersonate-User": "system:anonymous", "Impersonate-Group": "system:unauthenticated"})
    for body in ({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}, {"spec": {}}, {"spec": {"nonResourceAttributes": {"path": "/x", "verb": "get"}}}):
        yield Operation("review.self", "POST", f"{REVIEW}/selfsubjectaccessreviews",
                        body={"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", **body}, headers=as_user)
    yield role.update(kinds.ROLE.object("reader", rules=[{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]), "impersonated.escalate", headers=as_user)


def subject(user, namespace, verb, group, resource, **more):
    attributes = {"namespace": namespace, "verb": verb, "group": group, "resource": resource, **more}
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {"user": user, "resourceAttributes": attributes}}


def tokens(rng, scope):
    """Service account tokens: asked for, reviewed and used."""
    account = Handle(kinds.SERVICE_ACCOUNT, "robot", scope.namespace)
    yield account.create(kinds.SERVICE_ACCOUNT.object("robot"))
    for spec in ({"expirationSeconds": 600}, {"expirationSeconds": 5}, {"audiences": ["other"]}, {},
                 {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "absent"}}, {"boundObjectRef": {"kind": "ConfigMap", "name": "x"}}):
        yield Operation("token.request", "POST", f"{account.path}/token", body={"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec},
                        pick=lambda body: {**body, "status": sorted(body["status"])})
    yield Operation("token.remember", "POST", f"{account.path}/token", body={"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
                    remember="token", compare=False)
    for token in ("${token.status.token}", "garbage", ""):
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        yield Operation("token.review", "POST", "/apis/authentication.k8s.io/v1/tokenreviews", body=review, pick=reviewed)
    bearer = {"Authorization": "Bearer ${token.status.token}"}
    yield Operation("token.whoami", "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", headers=bearer,
                    body={"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}, pick=lambda body: identity(body["status"]["userInfo"]))
    yield Operation("token.forbidden", "GET", f"/api/v1/namespaces/{scope.namespace}/secrets", headers=bearer)
    yield Operation("token.garbage", "GET", "/api/v1/namespaces", headers={"Authorization": "Bearer garbage"})
    yield Operation("token.basic", "GET", "/version", headers={"Authorization": "Basic eDp5"}, pick=lambda body: body["major"])


def identity(user):
    """Who it is, without what only this one token has."""
    extra = {key: value for key, value in user.get("extra", {}).items() if "credential-id" not in key}
    return {**user, "extra": extra}


def reviewed(body):
    status = dict(body["status"])
    if "user" in status:
        status["user"] = identity(status["user"])
    return status

"""Certificate signing requests: who decides and signs, and what each endpoint may change.

Nothing signs on the reference, which has no controllers, so that requests are for signers that Transom does not have either.
"""

import kinds
from kinds import Kind
from operations import Handle, Operation

MERGE = "application/merge-patch+json"
REQUEST = Kind("certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest", False)
SIGNERS = ("example.org/one", "example.org/two", "example.com/one")

# The user jane, in two groups, with a name in DNS.
JANE = (
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlJQklEQ0J5QUlCQURBNE1STXdFUVlEVlFRS0RBcGtaWFpsYkc5d1pYSnpNUkl3RUFZRFZR"
    "UUtEQWx2Y0dWeQpZWFJ2Y25NeERUQUxCZ05WQkFNTUJHcGhibVV3V1RBVEJnY3Foa2pPUFFJQkJnZ3Foa2pPUFFNQkJ3TkNBQVRSCklmL1NyOEhJa1VUZGIy"
    "OG0zM0x1c25Hd29YbGdESUxyQmJ1YlpFdWVpQ094S1VhT0liVWVkVzNTR1BibFpZUzEKSlBiKzJoU0NLTER5TW9tWDlFN3FvQzR3TEFZSktvWklodmNOQVFr"
    "T01SOHdIVEFiQmdOVkhSRUVGREFTZ2hCcQpZVzVsTG1WNFlXMXdiR1V1YjNKbk1Bb0dDQ3FHU000OUJBTUNBMGNBTUVRQ0lBMFB2UVVjZ2xNcHhXd0VtbTFz"
    "CnJUV1laOHJTaURDS1kvaVVKRjhaVTBBc0FpQnN5b2RWSUMxN0Rsd3hwTmFpZXBVM3RsTVJwU3p3SS9mcUFLMTkKaVpEcEFnPT0KLS0tLS1FTkQgQ0VSVElG"
    "SUNBVEUgUkVRVUVTVC0tLS0tCg==")
# A member of system:masters.
MASTERS = (
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIak1JR0tBZ0VBTUNneEZ6QVZCZ05WQkFvTURuTjVjM1JsYlRwdFlYTjBaWEp6TVEwd0N3"
    "WURWUVFEREFScQpZVzVsTUZrd0V3WUhLb1pJemowQ0FRWUlLb1pJemowREFRY0RRZ0FFeVJaOXV0THRyK08wWGFENzVBVE5aLy9PCmUwZTcyemJtT1QzaHFl"
    "dXRZT2w4VUpwdWY4NERsMjFyMHp6TGNuVHd1MXh3bTJ0Ulh0SHViYzJqUWZlc3JhQUEKTUFvR0NDcUdTTTQ5QkFNQ0EwZ0FNRVVDSUVlOVFwa1o0TldkVU9V"
    "bDRzdzZEY09NM1poelNVVEZkUnJCRVJVOAp4MmRiQWlFQXNOTkwwUEhCSWgwTGtBNVFJdURrTFh5RTJuYXloTGtlOVRLRjI2cWsxRU09Ci0tLS0tRU5EIENF"
    "UlRJRklDQVRFIFJFUVVFU1QtLS0tLQo=")
# As JANE, for another user than the one that signed it.
FORGED = (
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlJQklEQ0J5QUlCQURBNE1STXdFUVlEVlFRS0RBcGtaWFpsYkc5d1pYSnpNUkl3RUFZRFZR"
    "UUtEQWx2Y0dWeQpZWFJ2Y25NeERUQUxCZ05WQkFNTUJHcHZibVV3V1RBVEJnY3Foa2pPUFFJQkJnZ3Foa2pPUFFNQkJ3TkNBQVRSCklmL1NyOEhJa1VUZGIy"
    "OG0zM0x1c25Hd29YbGdESUxyQmJ1YlpFdWVpQ094S1VhT0liVWVkVzNTR1BibFpZUzEKSlBiKzJoU0NLTER5TW9tWDlFN3FvQzR3TEFZSktvWklodmNOQVFr"
    "T01SOHdIVEFiQmdOVkhSRUVGREFTZ2hCcQpZVzVsTG1WNFlXMXdiR1V1YjNKbk1Bb0dDQ3FHU000OUJBTUNBMGNBTUVRQ0lBMFB2UVVjZ2xNcHhXd0VtbTFz"
    "CnJUV1laOHJTaURDS1kvaVVKRjhaVTBBc0FpQnN5b2RWSUMxN0Rsd3hwTmFpZXBVM3RsTVJwU3p3SS9mcUFLMTkKaVpEcEFnPT0KLS0tLS1FTkQgQ0VSVElG"
    "SUNBVEUgUkVRVUVTVC0tLS0tCg==")
# A certificate.
CERTIFICATE = (
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJmakNDQVNPZ0F3SUJBZ0lVYzZuUmNtcHlTU01LZDIvTnovRmxuMHBQM1hrd0NnWUlLb1pJemowRUF3"
    "SXcKRXpFUk1BOEdBMVVFQXd3SWMyOXRaV0p2Wkhrd0lCY05Nall4TVRFNE1qQXpNelUwV2hnUE1qRXlOakV3TWpVeQpNRE16TlRSYU1CTXhFVEFQQmdOVkJB"
    "TU1DSE52YldWaWIyUjVNRmt3RXdZSEtvWkl6ajBDQVFZSUtvWkl6ajBECkFRY0RRZ0FFYkEzb3JRbzlkVGpOSW1QOHdLRnZwanRLcEx4VUd5SGpRakxlTlhs"
    "aHhHbStsaFF2WW1wYS8xaUIKV0hYb3gwWWVWUnBVVzhOS0MraVlJRy9ZSExEYWRLTlRNRkV3SFFZRFZSME9CQllFRkI0ZTV5KzBpbklHQTVicQoxbWlGQndw"
    "ZGllemJNQjhHQTFVZEl3UVlNQmFBRkI0ZTV5KzBpbklHQTVicTFtaUZCd3BkaWV6Yk1BOEdBMVVkCkV3RUIvd1FGTUFNQkFmOHdDZ1lJS29aSXpqMEVBd0lE"
    "U1FBd1JnSWhBTFdFdWwvU3FPa0dMSmJqMFpVbkdXakYKelUxMHVCNVJ5ZDVYTzllbGlCLzBBaUVBK1loQ2w2SkFwS1FoRXc5M1cxSHBKL2dXMkh0VTlJRnVi"
    "TFhOeEhYSgpGaVU9Ci0tLS0tRU5EIENFUlRJRklDQVRFLS0tLS0K")


def request(name, signer, **more):
    return REQUEST.object(name, spec={"request": JANE, "signerName": signer, "usages": ["client auth"], **more})


def condition(kind, status="True", **more):
    return {"type": kind, "status": status, "reason": "Test", "message": "by a test", **more}


def _timeless(body):
    """An object without the times that the server sets, and without the names of the two administrators, which differ."""
    conditions = body.get("status", {}).get("conditions", [])
    return {**body, "status": {**body.get("status", {}), "conditions": [{**one, "lastUpdateTime": bool(one.get("lastUpdateTime")),
                                                                         "lastTransitionTime": bool(one.get("lastTransitionTime"))} for one in conditions]},
            "spec": {key: value for key, value in body["spec"].items() if key not in ("username", "uid", "extra")},
            "metadata": {key: value for key, value in body["metadata"].items() if key != "managedFields"}}


def requests(rng, scope):
    """Bodies that are refused, changes by each endpoint, and rights on signers."""
    for index, (field, value) in enumerate(_wrong(rng)):
        wrong = request(f"{scope.name}-wrong-{index}", SIGNERS[0])
        wrong["spec"][field] = value
        yield Handle(REQUEST, wrong["metadata"]["name"]).create(wrong, "refused", pick=_timeless)
    user = f"user-{scope.name}"
    yield from _rights(rng, scope, user)
    as_user = {"Impersonate-User": user}
    for signer in SIGNERS:
        target = Handle(REQUEST, f"{scope.name}-{signer.replace('/', '-')}")
        yield target.create(request(target.name, signer), pick=_timeless)
        yield Operation("discover csr", "GET", REQUEST.collection(), {"fieldSelector": f"metadata.name={target.name},spec.signerName={signer}"},
                        pick=lambda body: len(body["items"]))
        for _ in range(10):
            sub, body, headers = _change(rng), _body(rng), rng.choice(({}, as_user))
            yield target.patch(MERGE, body, "change", sub=sub, headers=headers, pick=_timeless)
        yield target.get(pick=_timeless)
        yield target.delete()


def _wrong(rng):
    cases = [("request", ""), ("request", "eA=="), ("request", CERTIFICATE), ("usages", []), ("usages", ["flying"]), ("usages", ["any", "any"]),
             ("signerName", ""), ("signerName", "one"), ("signerName", "a/b/c"), ("signerName", "local/one"), ("signerName", "Example.org/one"),
             ("signerName", "example.org/One"), ("signerName", "kubernetes.io/legacy-unknown"), ("expirationSeconds", 599), ("expirationSeconds", -1),
             ("expirationSeconds", 600), ("expirationSeconds", "600"), ("username", "root"), ("groups", ["system:masters"]), ("request", FORGED)]
    return rng.sample(cases, 12)


def _rights(rng, scope, user):
    group = kinds.RBAC
    rules = [{"apiGroups": [REQUEST.group], "resources": [f"{REQUEST.plural}{sub}" for sub in ("", "/status", "/approval")], "verbs": ["*"]},
             {"apiGroups": [REQUEST.group], "resources": ["signers"], "verbs": rng.sample(("approve", "sign", "attest"), 2),
              "resourceNames": [rng.choice(("example.org/*", "example.org/one", "example.com/one", "example.com/*", "example.org", "*"))]}]
    role = Handle(kinds.CLUSTER_ROLE, f"{scope.name}-signers")
    yield role.create(kinds.CLUSTER_ROLE.object(role.name, rules=rules))
    binding = Handle(kinds.CLUSTER_ROLE_BINDING, f"{scope.name}-signers")
    subjects = [{"kind": "User", "name": user, "apiGroup": group}]
    yield binding.create(kinds.CLUSTER_ROLE_BINDING.object(binding.name, subjects=subjects, roleRef={"apiGroup": group, "kind": "ClusterRole", "name": role.name}))
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
              "spec": {"user": user, "resourceAttributes": {"group": REQUEST.group, "resource": REQUEST.plural, "verb": "patch"}}}
    yield Operation("review.settled", "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body=review, mode="await", compare=False,
                    until=lambda answer: answer.body.get("status", {}).get("allowed") is True)


def _change(rng):
    return rng.choice(("", "/status", "/status", "/approval", "/approval"))


def _body(rng):
    kinds_of = rng.sample(("Approved", "Denied", "Failed", "Other", "Approved"), rng.randrange(1, 3))
    conditions = [condition(kind, rng.choice(("True", "True", "True", "False", ""))) for kind in kinds_of]
    return rng.choice((
        {"status": {"conditions": conditions}}, {"status": {"conditions": conditions}}, {"status": {"conditions": conditions}},
        {"status": {"certificate": rng.choice((CERTIFICATE, CERTIFICATE, "eA==", JANE, None))}},
        {"status": {"certificate": CERTIFICATE, "conditions": conditions}},
        {"spec": {"signerName": "example.com/one", "username": "root", "groups": ["system:masters"]}}, {"metadata": {"labels": {"a": "b"}}},
        {"status": None}, {"status": {"conditions": []}},
    ))

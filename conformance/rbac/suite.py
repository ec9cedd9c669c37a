#!/usr/bin/env python3
"""Asks a real kube-apiserver and Transom the same generated questions about who may do what.

Every round writes the same generated roles and bindings to both servers, changes and deletes some of them, and then asks by
SubjectAccessReview, by SelfSubjectRulesReview, and by dry runs of roles and bindings that might escalate. The answers must be
equal. What Transom allows and Kubernetes does not is shown first, because nothing excuses that. Before the rounds the
policies that both servers made at their start are compared.
"""

import argparse
import concurrent.futures
import json
import pathlib
import random
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

import api  # noqa: E402
import record  # noqa: E402
import servers  # noqa: E402

GROUP = "rbac.authorization.k8s.io"
PATH = f"/apis/{GROUP}/v1"
REVIEWS = "/apis/authorization.k8s.io/v1"
NAMESPACES = ("red", "green", "blue")
USERS = ("ann", "bob", "cyd", "system:serviceaccount:red:bot", "system:serviceaccount:green:bot", "system:anonymous")
GROUPS = ("devs", "ops", "system:authenticated", "system:unauthenticated", "system:serviceaccounts", "system:serviceaccounts:red", "system:masters")
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "impersonate", "escalate", "bind", "*", "")
API_GROUPS = ("", "apps", "example.org", GROUP, "*")
RESOURCES = ("pods", "pods/log", "configmaps", "secrets", "deployments/scale", "*/scale", "*/status", "*", "roles", "clusterroles", "users", "widgets")
NAMES = ("one", "two", "mine")
URLS = ("/healthz", "/metrics", "/apis", "/apis/*", "/logs/*", "*", "/version/")
SETTLE_WITHIN = 60  # seconds until the real server's caches must have what was written


def some(rng, choices, most=3):
    return rng.sample(choices, rng.randint(1, most))


def rule(rng, cluster):
    if cluster and rng.random() < 0.2:
        return {"verbs": some(rng, ("get", "post", "*"), 2), "nonResourceURLs": some(rng, URLS)}
    made = {"verbs": some(rng, VERBS[:-1]), "apiGroups": some(rng, API_GROUPS, 2), "resources": some(rng, RESOURCES)}
    if rng.random() < 0.3:
        made["resourceNames"] = some(rng, NAMES, 2)
    return made


def subject(rng):
    kind = rng.choice(("User", "Group", "ServiceAccount"))
    if kind == "User":
        return {"kind": kind, "apiGroup": GROUP, "name": rng.choice(USERS)}
    if kind == "Group":
        return {"kind": kind, "apiGroup": GROUP, "name": rng.choice(GROUPS[:-1])}
    return {"kind": kind, "name": "bot", "namespace": rng.choice(NAMESPACES)}


class Policy:
    """The objects of one round, by path."""

    def __init__(self, rng, number):
        self.rng, self.number, self.objects = rng, number, {}

    def place(self, plural, namespace, name):
        scope = f"/namespaces/{namespace}" if namespace else ""
        return f"{PATH}{scope}/{plural}/{name}"

    def generate(self):
        for i in range(24):
            namespace = self.rng.choice(("", *NAMESPACES))
            self.role(namespace, f"r{self.number}-{i}")
        for i in range(30):
            self.binding(self.rng.choice(("", *NAMESPACES)), f"b{self.number}-{i}")

    def role(self, namespace, name):
        rules = [rule(self.rng, not namespace) for _ in range(self.rng.randint(0, 3))]
        plural, kind = ("roles", "Role") if namespace else ("clusterroles", "ClusterRole")
        self.objects[self.place(plural, namespace, name)] = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name}, "rules": rules}

    def binding(self, namespace, name):
        kind = self.rng.choice(("Role", "ClusterRole")) if namespace else "ClusterRole"
        role = self.rng.choice((f"r{self.number}-{self.rng.randrange(24)}", f"r{self.number}-{self.rng.randrange(24)}", "view", "system:discovery"))
        plural, own = ("rolebindings", "RoleBinding") if namespace else ("clusterrolebindings", "ClusterRoleBinding")
        self.objects[self.place(plural, namespace, name)] = {
            "apiVersion": f"{GROUP}/v1", "kind": own, "metadata": {"name": name}, "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role},
            "subjects": [subject(self.rng) for _ in range(self.rng.randint(1, 3))]}


def put(client, path, body):
    answer = client.request("PUT", path, body=json.dumps(body))
    if answer.rejected:
        raise SystemExit(f"{client.server.name} refuses {path}: {answer.body}")


def settle(clients, number):
    """Writes one more object of each kind, last, and waits until both servers decide by them."""
    user = f"settled-{number}"
    rules = [{"verbs": ["get"], "apiGroups": [""], "resources": ["settled"]}]
    subjects = [{"kind": "User", "apiGroup": GROUP, "name": user}]
    for client in clients:
        for plural, space, kind in (("clusterroles", "", "ClusterRole"), ("roles", "/namespaces/red", "Role")):
            put(client, f"{PATH}{space}/{plural}/{user}", {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": user}, "rules": rules})
        for plural, space, kind, role in (("clusterrolebindings", "", "ClusterRoleBinding", "ClusterRole"), ("rolebindings", "/namespaces/red", "RoleBinding", "Role")):
            put(client, f"{PATH}{space}/{plural}/{user}",
                {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": user}, "subjects": subjects, "roleRef": {"apiGroup": GROUP, "kind": role, "name": user}})
        both = lambda: all(asked(client, {"user": user, "resourceAttributes": {"verb": "get", "resource": "settled", "namespace": space}})["allowed"]
                           for space in ("", "red"))
        deadline = time.monotonic() + SETTLE_WITHIN
        while not both():
            if time.monotonic() > deadline:
                raise SystemExit(f"{client.server.name} does not decide by what was written {SETTLE_WITHIN} s ago")
            time.sleep(0.02)
        # The role alone would be enough for the second question once the ClusterRoleBinding counts: ask for each kind.
        client.request("DELETE", f"{PATH}/clusterrolebindings/{user}")
        while asked(client, {"user": user, "resourceAttributes": {"verb": "get", "resource": "settled", "namespace": ""}})["allowed"]:
            time.sleep(0.02)
        while not asked(client, {"user": user, "resourceAttributes": {"verb": "get", "resource": "settled", "namespace": "red"}})["allowed"]:
            time.sleep(0.02)


def asked(client, spec):
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    answer = client.request("POST", f"{REVIEWS}/subjectaccessreviews", body=json.dumps(body))
    return {"allowed": False, "refused": answer.body["message"]} if answer.rejected else answer.body["status"]


def aimed(rng, policy):
    """A question that a rule and a binding of the policy are about, though not necessarily together."""
    rules = [rule for body in policy.objects.values() for rule in body.get("rules", [])]
    subjects = [subject for body in policy.objects.values() for subject in body.get("subjects", [])]
    rule, subject = rng.choice(rules), rng.choice(subjects)
    spec = {"user": rng.choice(USERS), "groups": []}
    if subject["kind"] == "Group":
        spec["groups"] = [subject["name"]]
    else:
        spec["user"] = subject["name"] if subject["kind"] == "User" else f"system:serviceaccount:{subject['namespace']}:{subject['name']}"
    if "nonResourceURLs" in rule:
        path = rng.choice(rule["nonResourceURLs"])
        spec["nonResourceAttributes"] = {"path": path.replace("*", rng.choice(("", "x", "/y"))), "verb": rng.choice(rule["verbs"])}
        return spec
    resource, _, subresource = rng.choice(rule["resources"]).replace("*/", "pods/").partition("/")
    spec["resourceAttributes"] = {
        "verb": rng.choice(rule["verbs"]), "group": rng.choice(rule["apiGroups"]), "resource": resource, "subresource": subresource,
        "namespace": rng.choice(("", *NAMESPACES)), "name": rng.choice(("", *rule.get("resourceNames", NAMES)))}
    return spec


def question(rng, policy):
    if rng.random() < 0.6:
        return aimed(rng, policy)
    spec = {"user": rng.choice((*USERS, "")), "groups": rng.sample(GROUPS[:-1], rng.randint(0, 3))}
    if rng.random() < 0.01:
        spec["groups"].append("system:masters")
    if rng.random() < 0.2:
        path = rng.choice(("/healthz", "/metrics", "/apis", "/apis/apps", "/apis/", "/logs/x/y", "/version", "/version/", "/", "", "/HEALTHZ"))
        spec["nonResourceAttributes"] = {"path": path, "verb": rng.choice(("get", "post", "head", "*", ""))}
        return spec
    resource, _, subresource = rng.choice((*RESOURCES, "pods/exec", "deployments/status", "", "nodes")).partition("/")
    spec["resourceAttributes"] = {
        "verb": rng.choice(VERBS), "group": rng.choice((*API_GROUPS, "other.org")), "resource": resource, "subresource": subresource,
        "namespace": rng.choice(("", *NAMESPACES, "absent")), "name": rng.choice(("", *NAMES))}
    return spec


def escalation(rng, number):
    """A dry run, as another user, of a role or binding that may give more than its author has: path, body, headers."""
    namespace = rng.choice(("", *NAMESPACES))
    policy = Policy(rng, number)
    if rng.random() < 0.5:
        policy.role(namespace, "attempt")
    else:
        policy.binding(namespace, "attempt")
    ((path, body),) = policy.objects.items()
    headers = {"Impersonate-User": rng.choice(USERS[:-1])}
    group = rng.choice(("devs", "ops", "power", "power"))
    return path.rpartition("/")[0] + "?dryRun=All", body, {**headers, "Impersonate-Group": group}


class Report:
    def __init__(self):
        self.passed, self.allowed, self.failed, self.worse = 0, 0, [], []

    def record(self, what, left, right, more):
        if left == right:
            self.passed += 1
        elif more:
            self.worse.append((what, left, right))
        else:
            self.failed.append((what, left, right))


def ask_all(clients, rng, policy, count, report, pool):
    specs = [question(rng, policy) for _ in range(count)]
    for spec, pair in zip(specs, pool.map(lambda spec: [asked(client, spec) for client in clients], specs)):
        left, right = ({"allowed": each["allowed"], "refused": each.get("refused")} for each in pair)
        report.allowed += left["allowed"]
        report.record(spec, left, right, right["allowed"] and not left["allowed"])


def worded(answer):
    """Code and message without what is worded otherwise: which kind a missing role is said to be, and the order and place in
    which roles that do not exist are listed."""
    message = answer.body.get("message", "").split("; resolution errors")[0].split(": RBAC: ")[0]
    return (answer.code, message.partition(" ")[2] if answer.code == 404 else message)


def try_all(clients, rng, number, count, report, pool):
    attempts = [escalation(rng, number) for _ in range(count)]

    def attempt(one):
        path, body, headers = one
        answers = [client.request("POST", path, body=json.dumps(body), headers=headers) for client in clients]
        return [worded(answer) for answer in answers]

    for one, (left, right) in zip(attempts, pool.map(attempt, attempts)):
        report.record(one, left, right, right[0] < 300 <= left[0])


def list_all(clients, report):
    for user in USERS[:-1]:
        for namespace in ("red", "absent"):
            body = json.dumps({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": namespace}})
            found = []
            for client in clients:
                answer = client.request("POST", f"{REVIEWS}/selfsubjectrulesreviews", body=body, headers={"Impersonate-User": user})
                status = answer.body["status"]
                found.append({key: sorted(map(lambda rule: json.dumps(rule, sort_keys=True), status[key])) for key in ("resourceRules", "nonResourceRules")})
            # Kubernetes lists a rule again for every binding to it.
            left, right = ({key: sorted(set(rules)) for key, rules in each.items()} for each in found)
            report.record(f"rules of {user} in {namespace}", left, right, False)


def compare_policies(clients, report):
    """What both servers made at their start, once aggregated roles have their rules."""
    deadline = time.monotonic() + SETTLE_WITHIN
    while True:
        found = [stored(client) for client in clients]
        if found[0] == found[1] or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    for path in sorted({*found[0], *found[1]}):
        report.record(f"policy {path}", found[0].get(path), found[1].get(path), path not in found[0])


def stored(client):
    objects = {}
    for plural in record.KINDS:
        for item in client.request("GET", f"{PATH}/{plural}").body["items"]:
            metadata = item["metadata"]
            kept = {key: value for key, value in item.items() if key in ("rules", "aggregationRule", "roleRef", "subjects")}
            kept["metadata"] = {key: metadata.get(key) for key in ("labels", "annotations")}
            objects[f"{plural}/{metadata.get('namespace', '')}/{metadata['name']}"] = kept
    return objects


def prepare(client):
    for namespace in NAMESPACES:
        client.request("POST", "/api/v1/namespaces", body=json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}))
    power = [{"verbs": ["create", "update", "get"], "apiGroups": [GROUP], "resources": ["roles", "rolebindings", "clusterroles", "clusterrolebindings"]}]
    put(client, f"{PATH}/clusterroles/power", {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": {"name": "power"}, "rules": power})
    put(client, f"{PATH}/clusterrolebindings/power", {
        "apiVersion": f"{GROUP}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "power"}, "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "power"},
        "subjects": [{"kind": "Group", "apiGroup": GROUP, "name": "power"}]})


def round_of(clients, rng, number, questions, report, pool):
    policy = Policy(rng, number)
    policy.generate()
    before = dict(policy.objects)
    # The second time: roles change, and some objects go.
    for path in rng.sample(sorted(before), 8):
        if "roles/r" in path and "bindings" not in path:
            parts = path.split("/")
            policy.role(parts[5] if "/namespaces/" in path else "", parts[-1])
    gone = rng.sample(sorted(before), 6)
    for client in clients:
        for path, body in before.items():
            put(client, path, body)
        for path, body in policy.objects.items():
            if before[path] != body:
                put(client, path, body)
        for path in gone:
            client.request("DELETE", path)
    settle(clients, number)
    ask_all(clients, rng, policy, questions, report, pool)
    try_all(clients, rng, number, max(20, questions // 25), report, pool)
    list_all(clients, report)
    for client in clients:
        for path in before:
            client.request("DELETE", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", default="transom", choices=("transom", "real"))
    parser.add_argument("--seed", default="1")
    parser.add_argument("--questions", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=0, help="how many policies; by default one for each 1,000 questions")
    options = parser.parse_args()
    rounds = options.rounds or max(1, options.questions // 1_000)
    report, rng, began = Report(), random.Random(f"rbac/{options.seed}"), time.monotonic()
    with servers.real() as real, servers.start(options.against) as other, concurrent.futures.ThreadPoolExecutor(6) as pool:
        clients = [api.Client(real), api.Client(other)]
        compare_policies(clients, report)
        for client in clients:
            prepare(client)
        for number in range(rounds):
            round_of(clients, rng, number, options.questions // rounds, report, pool)
    for title, cases in (("allowed by Transom alone", report.worse), ("different", report.failed)):
        # Each kind of difference once.
        kinds = {str(type(what)) + str(left)[:60]: (what, left, right) for what, left, right in reversed(cases)}
        for what, left, right in list(kinds.values())[:12]:
            print(f"--- {title}: {what}\n  A {json.dumps(left)[:800]}\n  B {json.dumps(right)[:800]}")
    print(f"{rounds} policies, {report.allowed} questions answered with yes, {len(report.worse)} allowed by Transom alone, {time.monotonic() - began:.0f} s", file=sys.stderr)
    print(f"rbac: {report.passed} passed, {len(report.failed) + len(report.worse)} failed")
    return 1 if report.failed or report.worse else 0


if __name__ == "__main__":
    sys.exit(main())

"""What `transom install` makes, with its rights and no more; and moving planes."""

import json
import subprocess
import sys

import cargo
import install
import platforms
import servers
import sharing
from running import NAMESPACE, ROOT, Cluster, expect, wait

ALLOWED = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
           "metadata": {"name": "compose-config-maps", "labels": {"rbac.crossplane.io/aggregate-to-crossplane": "true"}},
           "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"]}]}


def rights(cluster, _):
    manifests = subprocess.run([cargo.binary(), "install", "--replicas", "2"], check=True, capture_output=True, text=True, cwd=ROOT).stdout
    cluster.kubectl("apply", "--server-side", "--field-manager=transom-install", "-f", "-", stdin=manifests)
    token = cluster.kubectl("create", "token", "transom", "-n", NAMESPACE).strip()
    kubeconfig = cluster.server.folder / "kubeconfig-pod"
    servers.write_kubeconfig(kubeconfig, cluster.server.port, cluster.server.authority, token)
    # The aggregated role is filled by a controller of Kubernetes.
    wait("the role is aggregated", lambda: cluster.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/transom")["rules"])
    controller = cluster.start("pod", "--enable-rbac-manager", kubeconfig=kubeconfig)
    sharing.install(cluster)
    roles = [f"crossplane:composite:things.example.org:aggregate-to-{to}" for to in ("crossplane", "edit", "view", "browse")]
    wait("roles of the definition", lambda: all(cluster.get(f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{role}") for role in roles))
    wait("people may use it", lambda: "yes" in cluster.kubectl("auth", "can-i", "create", "things", "--as", "jo", "--as-group", "crossplane:masters", fails=None))
    cluster.apply(sharing.thing("one", "1"))
    synced = wait("the missing right is named", lambda: (found := cluster.condition(f"{sharing.KIND}/one", "Synced")).get("status") == "False" and found)
    for word in ("configmaps", "create", "aggregate-to-crossplane", f"system:serviceaccount:{NAMESPACE}:transom"):
        expect(word in synced["message"], f"{word} is not in {synced['message']}")
    cluster.apply(ALLOWED)
    wait("it is composed with the right", lambda: sharing.composed(cluster, "one", "1"))
    denied = [e for e in cluster.requests(f"system:serviceaccount:{NAMESPACE}:transom") if e.get("responseStatus", {}).get("code") == 403]
    unexpected = {e["requestURI"].split("?")[0] for e in denied if "configmaps" not in e["requestURI"] and "/things" not in e["requestURI"]}
    expect(not unexpected, f"requests without a right: {unexpected}")
    bindings(cluster)
    # The same again changes nothing; an upgrade keeps the values.
    shown = cluster.transom("install", "--replicas", "2", "--dry-run")
    expect(all(line.startswith("unchanged") for line in shown.splitlines()), shown)
    upgraded = cluster.transom("install", "--upgrade", "--image", "example.org/transom:v2")
    expect("replicas: 2" in upgraded and "example.org/transom:v2" in upgraded, upgraded)
    expect(controller.stop() == 0, "a stop by SIGTERM ends with 0")
    removed = cluster.transom("uninstall")
    expect("Deployment transom" in removed.splitlines()[0] and "crossplane-no-usages" in removed, removed)
    expect(sharing.composed(cluster, "one", "1"), "what was composed stays")
    again = cluster.transom("uninstall")
    expect("removed" not in again, f"nothing is left to remove: {again}")
    return None


def bindings(cluster):
    """The role of a provider's revision is bound to the service accounts of its Deployments."""
    revision = {"apiVersion": "pkg.crossplane.io/v1", "kind": "ProviderRevision", "metadata": {"name": "provider-1"},
                "spec": {"desiredState": "Inactive", "image": "example.org/provider:v1", "revision": 1}}
    cluster.apply(revision)
    uid = cluster.get("/apis/pkg.crossplane.io/v1/providerrevisions/provider-1")["metadata"]["uid"]
    owner = {"apiVersion": "pkg.crossplane.io/v1", "kind": "ProviderRevision", "name": "provider-1", "uid": uid}

    def deploy(account):
        labels = {"app": "provider"}
        pod = {"serviceAccountName": account, "containers": [{"name": "provider", "image": "example.org/provider:v1"}]}
        cluster.apply({"apiVersion": "apps/v1", "kind": "Deployment",
                       "metadata": {"name": "provider", "namespace": NAMESPACE, "ownerReferences": [owner]},
                       "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}})

    path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/crossplane:provider:provider-1:system"

    def bound(account):
        found = (cluster.get(path) or {}).get("subjects")
        return found == [{"kind": "ServiceAccount", "namespace": NAMESPACE, "name": account}]

    for account in ("first", "second"):
        deploy(account)
        wait(f"the role is bound to {account}", lambda: bound(account))
    cluster.kubectl("delete", "clusterrolebinding", "crossplane:provider:provider-1:system")
    wait("a binding that was deleted is back", lambda: bound("second"))
    cluster.kubectl("delete", "deployment", "-n", NAMESPACE, "provider")
    wait("nothing is bound without a Deployment", lambda: not (cluster.get(path) or {}).get("subjects"))
    cluster.kubectl("delete", "providerrevision", "provider-1")


def identities(cluster):
    """The uids of everything that was composed or claimed."""
    kinds = "platforms,apps,xplatforms,xnetworks,nopresources"
    items = json.loads(cluster.kubectl("get", kinds, "-A", "-o", "json"))["items"]
    return {(i["kind"], i["metadata"].get("namespace"), i["metadata"]["name"]): i["metadata"]["uid"] for i in items}


def transfer(cluster, _):
    with servers.transom(controllers=True) as plane:
        laptop = Cluster(plane, cluster.processes)
        platforms.install(laptop)
        platforms.use(laptop)
        folder = cluster.server.folder
        cluster.transom("export", folder / "plane.yaml", kubeconfig=plane.kubeconfig)
        expect((folder / "plane.yaml").stat().st_mode & 0o077 == 0, "only its owner can read the file")
        controller = cluster.start("a")
        first = cluster.transom("import", folder / "plane.yaml")
        made = identities(cluster)
        expect(made.keys() == identities(laptop).keys(), f"{made.keys()} and {identities(laptop).keys()}")
        again = cluster.transom("import", folder / "plane.yaml")
        expect(again.startswith("0 objects made"), again)
        cluster.transom("import", folder / "plane.yaml", "--verify")
        released = cluster.transom("import", folder / "plane.yaml", "--release")
        cluster.kubectl("wait", "--for=condition=Ready", "--timeout=120s", "platform/team-a", "app/shop")
        platforms.settled(cluster, "a", quiet=3)
        expect(identities(cluster) == made, f"made again: {identities(cluster)} instead of {made}")
        cluster.transom("export", folder / "back.yaml")
        expect(controller.stop() == 0, "a stop by SIGTERM ends with 0")
    with servers.transom(controllers=True) as plane:
        back = Cluster(plane, cluster.processes)
        back.transom("import", folder / "back.yaml")
        back.transom("import", folder / "back.yaml", "--release")
        back.kubectl("wait", "--for=condition=Ready", "--timeout=120s", "platform/team-a", "app/shop")
        expect(identities(back).keys() == made.keys(), "the way back")
    return f"{first.strip()}; {released.strip().splitlines()[-1]}"


def image(cluster, _):
    folder = cluster.server.folder
    made = []
    for name in ("one.tar", "two.tar"):
        command = [sys.executable, ROOT / "deploy/image", cargo.binary(), folder / name, "--tag", "example.org/transom:v1", "--with-libraries"]
        made.append(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split(" in ")[0])
    expect((folder / "one.tar").read_bytes() == (folder / "two.tar").read_bytes(), "the same binary makes another image")
    crane = install.registry() / "crane"
    checked = subprocess.run([crane, "validate", "--tarball", folder / "one.tar"], capture_output=True, text=True)
    expect(checked.returncode == 0, checked.stdout + checked.stderr)
    unpacked = folder / "rootfs"
    unpacked.mkdir()
    subprocess.run(f"{crane} export - - < {folder}/one.tar | tar -x -C {unpacked}", shell=True, check=True)
    ran = subprocess.run(["chroot", unpacked, "/transom", "version"], capture_output=True, text=True)
    expect(ran.returncode == 0 and ran.stdout.startswith("transom "), ran.stdout + ran.stderr)
    return made[0]

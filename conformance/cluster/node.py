"""A Kubernetes cluster of one node, of real programs: to be started inside of the namespaces that namespaces.py makes.

Every program is a process on the node, with its log in the folder; pods come from containerd and runc. All but pods reach the API server on
loopback, each with a user of its own. Two settings are for machines whose root is not almighty: containerd leaves `oom_score_adj` as it
is where it may not be lowered, and kubelet takes control groups of version 1.
"""

import contextlib
import json
import os
import pathlib
import secrets
import shutil
import ssl
import subprocess
import urllib.request

import api
import install
import servers
from namespaces import ADDRESS, SERVICES

NAME = "node1"
API_PORT, REGISTRY = 6443, f"{ADDRESS}:5000"
PODS = "10.244.0.0/24"
FIRST_SERVICE = "10.96.0.1"  # of the API server
SOCKET = "/run/containerd/containerd.sock"
# Each program's user, with its groups.
USERS = {
    "admin": ("kubernetes-admin", "system:masters"), "node": (f"system:node:{NAME}", "system:nodes"),
    "kube-controller-manager": ("system:kube-controller-manager", ""), "kube-scheduler": ("system:kube-scheduler", ""),
    "kube-proxy": ("system:kube-proxy", ""), "coredns": ("coredns", "system:masters"),
}
EXTENSIONS = {
    "api": f"subjectAltName=IP:127.0.0.1,IP:{ADDRESS},IP:{FIRST_SERVICE},DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local",
    "registry": f"subjectAltName=IP:{ADDRESS}",
    "kubelet-client": "extendedKeyUsage=clientAuth",
}
SUBJECTS = {"kubelet-client": "/O=system:masters/CN=kube-apiserver"}


def debian():
    """Installs what comes from Debian, unless it is there."""
    programs = {"containerd": "containerd", "runc": "runc", "nft": "nftables", "ip": "iproute2", "/usr/lib/cni/ptp": "containernetworking-plugins"}
    missing = [package for program, package in programs.items() if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin")]
    if missing:
        install.debian(*missing)


class Node:
    """The running cluster: its folder, its processes, and a `server` for administrators."""

    def __init__(self, folder):
        self.folder, self.processes = folder, servers.Processes(folder / "log")
        self.authority = folder / "pki/authority.crt"
        self.kubernetes, self.programs = install.kubernetes(), install.cluster_node()
        self.server = None

    def kubeconfig(self, user):
        return self.folder / f"kubeconfig-{user}"

    def start(self, name, program, *flags, **environment):
        return self.processes.start(name, program, *flags, **environment)


@contextlib.contextmanager
def start(folder):
    """Starts everything, and gives the Node when it takes pods. What ends the processes is the end of their namespace."""
    for name in ("log", "pki", "cni", f"registries/{REGISTRY}"):
        (folder / name).mkdir(parents=True)
    node = Node(folder)
    certify(folder / "pki")
    control_plane(node)
    registry(node)
    containerd(node)
    node.processes.await_ready("kube-apiserver", lambda: api.Client(node.server).request("GET", "/readyz").code == 200)
    node.processes.await_ready("containerd", lambda: pathlib.Path(SOCKET).is_socket())
    others(node)
    node.processes.await_ready("the node", lambda: is_ready(node))
    node.processes.await_ready("kube-proxy", lambda: urllib.request.urlopen("http://127.0.0.1:10256/healthz", timeout=5).status == 200)
    yield node


def certify(folder):
    """An authority, and certificates by it."""
    def openssl(*arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, cwd=folder)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *key, "-days", "2", "-subj", "/CN=cluster", "-keyout", "authority.key", "-out", "authority.crt")
    openssl("genrsa", "-out", "service-accounts.key", "2048")
    for name, extension in EXTENSIONS.items():
        (folder / f"{name}.extension").write_text(extension + "\n")
        openssl("req", *key, "-subj", SUBJECTS.get(name, f"/CN={name}"), "-keyout", f"{name}.key", "-out", f"{name}.request")
        openssl("x509", "-req", "-in", f"{name}.request", "-CA", "authority.crt", "-CAkey", "authority.key", "-CAcreateserial", "-days", "2",
                "-extfile", f"{name}.extension", "-out", f"{name}.crt")


def control_plane(node):
    """etcd and kube-apiserver, with a token for each user, and an audit log."""
    folder, pki = node.folder, node.folder / "pki"
    tokens = {user: secrets.token_hex(16) for user in USERS}
    (folder / "tokens.csv").write_text("".join(f'{tokens[user]},{name},{name},"{groups}"\n' for user, (name, groups) in USERS.items()))
    for user, token in tokens.items():
        servers.write_kubeconfig(node.kubeconfig(user), API_PORT, node.authority.read_bytes(), token)
    (folder / "audit.json").write_text(json.dumps(servers.AUDIT_POLICY))
    node.start("etcd", node.kubernetes / "etcd", "--data-dir", folder / "etcd", "--unsafe-no-fsync", "--log-level=error")
    node.start(
        "kube-apiserver", node.kubernetes / "kube-apiserver", "--etcd-servers=http://127.0.0.1:2379", f"--advertise-address={ADDRESS}",
        f"--secure-port={API_PORT}", f"--tls-cert-file={pki}/api.crt", f"--tls-private-key-file={pki}/api.key", f"--cert-dir={pki}",
        f"--service-cluster-ip-range={SERVICES}", "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
        f"--token-auth-file={folder}/tokens.csv", "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={pki}/service-accounts.key", f"--service-account-signing-key-file={pki}/service-accounts.key",
        f"--kubelet-client-certificate={pki}/kubelet-client.crt", f"--kubelet-client-key={pki}/kubelet-client.key",
        "--kubelet-preferred-address-types=InternalIP", f"--audit-policy-file={folder}/audit.json", f"--audit-log-path={folder}/audit.log")
    node.server = servers.Server("cluster", node.kubeconfig("admin"))
    node.server.folder, node.server.audit = folder, folder / "audit.log"


def registry(node):
    """distribution's registry, with a certificate of the cluster's authority."""
    pki = node.folder / "pki"
    config = {"version": 0.1, "log": {"level": "error"}, "storage": {"filesystem": {"rootdirectory": str(node.folder / "images")}},
              "http": {"addr": REGISTRY, "secret": "conformance", "tls": {"certificate": str(pki / "registry.crt"), "key": str(pki / "registry.key")}}}
    file = node.folder / "registry.json"
    file.write_text(json.dumps(config))
    node.start("registry", install.registry() / "registry", "serve", file, OTEL_TRACES_EXPORTER="none")
    trusted = ssl.create_default_context(cafile=node.authority)
    node.processes.await_ready("the registry", lambda: urllib.request.urlopen(f"https://{REGISTRY}/v2/", timeout=5, context=trusted).status == 200)


def containerd(node):
    folder = node.folder
    # A pair of interfaces for each pod: no bridge is needed where all are on one node.
    (folder / "cni/pods.conflist").write_text(json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": [
        {"type": "ptp", "ipMasq": False, "ipam": {"type": "host-local", "dataDir": "/var/lib/cni/pods", "ranges": [[{"subnet": PODS}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}))
    (folder / f"registries/{REGISTRY}/hosts.toml").write_text(f'server = "https://{REGISTRY}"\n[host."https://{REGISTRY}"]\n  ca = "{node.authority}"\n')
    unused = ["snapshotter.v1.btrfs", "snapshotter.v1.zfs", "snapshotter.v1.devmapper", "snapshotter.v1.aufs", "internal.v1.opt"]
    cri = '[plugins."io.containerd.grpc.v1.cri"'
    (folder / "containerd.toml").write_text(f"""version = 2
root = "{folder}/containerd"
state = "/run/containerd/state"
disabled_plugins = {json.dumps([f"io.containerd.{name}" for name in unused])}
[grpc]
address = "{SOCKET}"
{cri}]
sandbox_image = "{REGISTRY}/pause:v1"
restrict_oom_score_adj = true
{cri}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
{cri}.containerd.runtimes.runc.options]
SystemdCgroup = false
{cri}.cni]
bin_dir = "/usr/lib/cni"
conf_dir = "{folder}/cni"
{cri}.registry]
config_path = "{folder}/registries"
""")
    node.start("containerd", "containerd", "--config", folder / "containerd.toml", PATH=f"{os.environ['PATH']}:/usr/sbin:/sbin")


def others(node):
    """What needs the API server: the controllers, the scheduler, kubelet, kube-proxy and the name server."""
    folder, pki, programs = node.folder, node.folder / "pki", node.programs

    def run(name, *flags, program=None):
        node.start(name, program or programs / name, *flags, PATH=f"{os.environ['PATH']}:/usr/sbin:/sbin")

    for name, more in (("kube-controller-manager", ("--use-service-account-credentials", f"--service-account-private-key-file={pki}/service-accounts.key",
                                                    f"--root-ca-file={node.authority}", f"--flex-volume-plugin-dir={folder}/plugins")), ("kube-scheduler", ())):
        run(name, f"--kubeconfig={node.kubeconfig(name)}", "--leader-elect=false", "--bind-address=127.0.0.1", *more)
    (folder / "kubelet.json").write_text(json.dumps(kubelet(node)))
    run("kubelet", f"--config={folder}/kubelet.json", f"--kubeconfig={node.kubeconfig('node')}", f"--hostname-override={NAME}", f"--node-ip={ADDRESS}",
        f"--root-dir={folder}/kubelet", f"--cert-dir={pki}")
    (folder / "kube-proxy.json").write_text(json.dumps({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "nftables", "clusterCIDR": PODS, "hostnameOverride": NAME,
        "clientConnection": {"kubeconfig": str(node.kubeconfig("kube-proxy"))}, "healthzBindAddress": "127.0.0.1:10256", "metricsBindAddress": "127.0.0.1:10249",
        # These settings of the kernel are not this namespace's to write.
        "conntrack": {"maxPerCore": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}}))
    run("kube-proxy", f"--config={folder}/kube-proxy.json")
    (folder / "Corefile").write_text(
        f"cluster.local in-addr.arpa {{\n bind {ADDRESS}\n errors\n kubernetes cluster.local in-addr.arpa {{\n  kubeconfig {node.kubeconfig('coredns')}\n  ttl 1\n }}\n}}\n")
    run("coredns", "-conf", folder / "Corefile", program=install.name_server())


def kubelet(node):
    """Its configuration. Nothing is evicted because the disk of this machine is full."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "address": ADDRESS,
        "containerRuntimeEndpoint": f"unix://{SOCKET}", "cgroupDriver": "cgroupfs", "failCgroupV1": False, "oomScoreAdj": 0,
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True}, "x509": {"clientCAFile": str(node.authority)}},
        "authorization": {"mode": "Webhook"}, "clusterDomain": "cluster.local", "clusterDNS": [ADDRESS],
        "podLogsDir": str(node.folder / "pods"), "volumePluginDir": str(node.folder / "plugins"), "nodeStatusUpdateFrequency": "5s",
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%", "imagefs.inodesFree": "0%"},
        "imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,
    }


def is_ready(node):
    done = subprocess.run([node.kubernetes / "kubectl", "--kubeconfig", node.kubeconfig("admin"), "get", "node", NAME, "-o",
                           'jsonpath={.status.conditions[?(@.type=="Ready")].status}'], capture_output=True, text=True)
    return done.stdout == "True"

"""Transom in pods of a real cluster: `conformance/run cluster [-- --only PART]`. Run only when it is named; needs root, as it makes namespaces.

A Kubernetes cluster of one node runs in network, mount and process namespaces of its own: etcd, kube-apiserver, kube-controller-manager,
kube-scheduler, kubelet, kube-proxy, CoreDNS, Debian's containerd and runc, and a registry with TLS. Transom is installed from its chart and
its image. The parts come one after the other on the same cluster; the first and the last are in every run.

| part | what is shown |
|---|---|
| `installs` | `transom install \| kubectl apply` makes a Deployment that becomes available; composite resources become ready by a built-in function; the API server calls the webhook, which protects what is used |
| `function` | a genuine function from its package: ServiceAccount, Service, Secret and Deployment; it is called by name with mutual TLS and refuses who has no certificate; composite resources change while it is upgraded, and no call fails |
| `deaths` | the pod of Transom is deleted, and its process is killed, while composite resources change: nothing is lost. The pod of the function goes, which conditions say, and comes back |
| `provider` | the genuine provider-kubernetes from its package makes an object, with the rights that its role gives it |
| `removal` | packages take with them what ran them; `transom uninstall` removes what was installed; composed resources stay |
"""

import argparse
import os
import pathlib
import signal
import sys
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "controller"), str(HERE.parent / "runtimes")]

import cargo  # noqa: E402
import deaths  # noqa: E402
import functions  # noqa: E402
import images  # noqa: E402
import install  # noqa: E402
import installed  # noqa: E402
import namespaces  # noqa: E402
import node as nodes  # noqa: E402
import oci  # noqa: E402
import provided  # noqa: E402
import running  # noqa: E402
import servers  # noqa: E402

PARTS = {
    "installs": installed.installs,
    "function": functions.function,
    "deaths": deaths.deaths,
    "provider": provided.provider,
    "removal": installed.removal,
}
ALWAYS = ("installs", "removal")
LOG_TAIL = 3000


class Cluster(running.Cluster):
    """The cluster, with what is pushed to its registry."""

    def __init__(self, node, binary):
        super().__init__(node.server, node.processes)
        self.folder, self.images = node.folder, images.Images(node, binary)

    def shown(self):
        """What helps to understand a failure."""
        ended = [f"{name} ended with {child.returncode}" for name, child, _ in self.processes.children if child.poll() is not None]
        pods = "\n".join([*ended, *(self.kubectl("get", kinds, "-A", "-o", "wide", fails=None) for kinds in ("pods", "events"))])
        logs = self.kubectl("logs", "-n", running.NAMESPACE, "deployment/transom", "--tail=40", fails=None)
        return f"{pods[-LOG_TAIL:]}\n{logs[-LOG_TAIL:]}"


def outside(options):
    """Installs what is needed, and runs this file again inside of new namespaces."""
    if os.geteuid():
        raise SystemExit("conformance/run cluster makes namespaces and control groups: run it as root")
    nodes.debian()
    oci.programs("umoci", "skopeo")
    for peer in (install.kubernetes, install.cluster_node, install.name_server, install.registry):
        peer()
    for version in functions.versions():
        install.function(functions.NAME, version)
    if "provider" in chosen(options):
        install.provider(provided.NAME)
    binary = cargo.binary()
    # A signal ends the suite as an error does, so that nothing of the cluster is left.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with servers.workspace("cluster") as (folder, _):
        # Other users than root run in pods, and in folders below.
        folder.chmod(0o755)
        return namespaces.run(folder, [sys.executable, pathlib.Path(__file__).resolve(), *sys.argv[1:], "--binary", binary, "--inside", folder])


def chosen(options):
    return [name for name in PARTS if not options.only or name in options.only or name in ALWAYS]


def inside(options):
    # What the helpers of other suites run.
    os.environ["TRANSOM_BIN"] = str(options.binary)
    began = time.monotonic()
    passed = failed = 0
    with nodes.start(options.inside) as node:
        print(f"  a node is ready after {time.monotonic() - began:.0f} s", flush=True)
        cluster = Cluster(node, options.binary)
        for name in chosen(options):
            began = time.monotonic()
            try:
                notes = PARTS[name](cluster)
                passed += 1
                print(f"  {name}: {notes or 'ok'} ({time.monotonic() - began:.0f} s)", flush=True)
            except (Exception, SystemExit):
                failed += 1
                print(f"  {name}: FAILED\n{traceback.format_exc()}\n{cluster.shown()}", flush=True)
                if name == "installs":
                    break
    print(f"cluster: {passed} passed, {failed} failed", flush=True)
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", default="transom", help=argparse.SUPPRESS)
    parser.add_argument("--only", action="append", choices=[*PARTS])
    parser.add_argument("--inside", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--binary", type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    return inside(options) if options.inside else outside(options)


if __name__ == "__main__":
    sys.exit(main())

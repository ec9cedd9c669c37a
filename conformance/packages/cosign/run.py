#!/usr/bin/env python3
"""Has Transom install packages that cosign's own libraries signed, and refuse those that they refuse.

The Go program beside this file serves a registry with packages that are signed by keys of every algorithm, keyless by a
Sigstore instance of its own (sigstore-go's virtual one, with certificates that are listed in a log), with attestations, and
in Sigstore bundles; and with ones that are not. It asks cosign about each of them. For every package there is an ImageConfig
that wants it verified: it must be installed exactly if cosign accepts it, and a refusal must give the reason. The real command
signs some, too, in a real registry (`command.py`). `--only TEXT` picks packages by their name.
"""

import argparse
import base64
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE.parent.parent)]

import api  # noqa: E402
import cargo  # noqa: E402
import command  # noqa: E402
import install  # noqa: E402
import servers  # noqa: E402

NAMESPACE = "crossplane-system"
PACKAGES = "/apis/pkg.crossplane.io/v1/configurations"
CONFIGS = "/apis/pkg.crossplane.io/v1beta1/imageconfigs"
WITHIN = 60  # seconds


def signer():
    """The Go program, built once."""
    key = install._fingerprint(HERE / "go.mod", HERE / "go.sum", *sorted(HERE.glob("*.go")))

    def build(folder):
        install._run("nice", "go", "build", "-p", os.environ.get("TRANSOM_GO_JOBS", "2"), "-o", folder / "signer", ".", cwd=HERE,
                     log=folder / "build.log", env={**os.environ, "GOFLAGS": "-mod=readonly -buildvcs=false"})

    return install._once(f"cosign-{key}", build) / "signer"


def create(client, path, value):
    answer = client.request("POST", path, body=json.dumps(value))
    if answer.rejected:
        raise SystemExit(f"{path}: {answer.code} {answer.body}")


def prepare(client, scenario):
    """The ImageConfig of a package, the Secret that it names, and the package."""
    name, authority = scenario["name"], scenario["authority"]
    if scenario.get("key"):
        authority["key"]["secretRef"]["name"] = f"key-{name}"
        data = {"cosign.pub": base64.b64encode(scenario["key"].encode()).decode()}
        create(client, f"/api/v1/namespaces/{NAMESPACE}/secrets", {
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"key-{name}"}, "data": data})
    prefix = scenario["package"].rsplit(":", 1)[0] + ":"
    create(client, CONFIGS, {
        "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "ImageConfig", "metadata": {"name": f"verify-{name}"},
        "spec": {"matchImages": [{"type": "Prefix", "prefix": prefix}],
                 "verification": {"provider": "Cosign", "cosign": {"authorities": [authority]}}}})
    create(client, PACKAGES, {
        "apiVersion": "pkg.crossplane.io/v1", "kind": "Configuration", "metadata": {"name": name},
        "spec": {"package": scenario["package"]}})


def outcome(client, name):
    """Whether a package was installed, and the message of the condition."""
    deadline = time.monotonic() + WITHIN
    while time.monotonic() < deadline:
        package = client.request("GET", f"{PACKAGES}/{name}").body
        conditions = {c["type"]: c for c in package.get("status", {}).get("conditions", [])}
        installed, healthy = conditions.get("Installed", {}), conditions.get("Healthy", {})
        if installed.get("status") == "True" and healthy.get("status") == "True":
            return True, ""
        if installed.get("reason") == "UnpackingPackage":
            return False, installed.get("message", "")
        time.sleep(0.05)
    return None, f"neither installed nor refused within {WITHIN} s: {conditions}"


def judge(client, scenario):
    """What is wrong with the outcome of a package; nothing if all is right."""
    name, wanted = scenario["name"], scenario["installs"]
    if wanted != (scenario["cosign"] == ""):
        return f"cosign {'refuses: ' + scenario['cosign'] if scenario['cosign'] else 'accepts'}; expected the opposite"
    installed, message = outcome(client, name)
    if installed != wanted:
        return message or "installed; must be refused"
    if wanted:
        return None
    for part in (scenario["reason"], f'ImageConfig "verify-{name}"'):
        if part not in message:
            return f"{part!r} is not in the message: {message}"
    revisions = client.request("GET", "/apis/pkg.crossplane.io/v1/configurationrevisions").body["items"]
    made = [r for r in revisions if r["metadata"]["labels"]["pkg.crossplane.io/package"] == name]
    brought = client.request("GET", f"/apis/apiextensions.crossplane.io/v1/compositeresourcedefinitions/things.{name}.example.org")
    return "it has a revision" if made else None if brought.code == 404 else "its definition was established"


def end(program):
    program.stdin.close()
    program.wait(10)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", default="")
    options.add_argument("--against", choices=("transom", "real"), default="transom", help="cosign is asked in any case")
    options = options.parse_args()
    program = subprocess.Popen([signer()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with contextlib.ExitStack() as stack:
        stack.callback(end, program)
        made = json.loads(program.stdout.readline() or "null")
        if made is None:
            raise SystemExit("the program that signs failed")
        every = [*made["scenarios"], *stack.enter_context(command.scenarios())]
        scenarios = [scenario for scenario in every if options.only in scenario["name"]]
        with servers.workspace("cosign") as (folder, processes):
            root, kubeconfig = folder / "trusted_root.json", folder / "kubeconfig"
            root.write_text(json.dumps(made["trustedRoot"]))
            processes.start("transom", cargo.binary(), "up", "--in-memory", "--listen", "127.0.0.1:0", "--kubeconfig", kubeconfig,
                            "--sigstore-trusted-root", root)
            processes.await_ready("the kubeconfig", lambda: kubeconfig.exists() and b"server:" in kubeconfig.read_bytes())
            server = servers.Server("transom", kubeconfig)
            processes.await_ready("transom", lambda: servers._answers(server, "/readyz"))
            client = api.Client(server)
            client.request("POST", "/api/v1/namespaces", body=json.dumps({
                "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}))
            for scenario in scenarios:
                prepare(client, scenario)
            wrong = [(s["name"], problem) for s in scenarios if (problem := judge(client, s))]
    for name, problem in wrong:
        print(f"{name}: {problem}")
    print(f"signatures: {len(scenarios) - len(wrong)} passed, {len(wrong)} failed", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""Brings the real peers onto this machine, each once, into `.cache/` at the root of the repository.

Everything comes through a package registry: kube-apiserver, etcd, kubectl and the controllers are
compiled from the Go modules named in `peers/go.mod`, Crossplane from those in `crossplane/go.mod`, functions each from its own module; the Python client is installed in a virtual
environment; the JavaScript client is installed by npm. A folder is keyed by what it was made from and
carries a `complete` file written last, so an interrupted install is redone and a finished one reused.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
CACHE = pathlib.Path(os.environ.get("TRANSOM_CACHE") or HERE.parent / ".cache")
VERSIONS = json.loads((HERE / "versions.json").read_text())


def _fingerprint(*files):
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


@contextlib.contextmanager
def _lock(name):
    """Only one process at a time is in here with a name."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _once(name, build):
    """The folder `name` in the cache, built by `build(folder)` unless it is already complete. Suites that run side by side and
    need the same folder wait for each other."""
    folder = CACHE / name
    done = folder / "complete"
    if done.exists():
        return folder
    with _lock(name):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            print(f"installing {name} …", file=sys.stderr, flush=True)
            build(folder)
            done.write_text("")
    return folder


def _run(*command, **options):
    log = options.pop("log")
    with open(log, "ab") as sink:
        failed = subprocess.run(command, stdout=sink, stderr=sink, **options).returncode
    if failed:
        tail = pathlib.Path(log).read_text(errors="replace")[-3000:]
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{tail}")


def debian(*packages):
    """Installs packages of Debian. Suites that run side by side wait for each other."""
    with _lock("debian"):
        for command in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
            subprocess.run(["apt-get", *command], check=True, capture_output=True,
                           env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})


def _module_of_kubernetes():
    """The module that Kubernetes is built from."""
    version, source = VERSIONS["kubernetes"], HERE / "peers"
    if f"k8s.io/kubernetes v{version}\n" not in (source / "go.mod").read_text():
        raise SystemExit(f"versions.json says Kubernetes {version}, peers/go.mod does not")
    return source


def _built_from_kubernetes(name, mains):
    """The folder with the programs whose main.go files these are, which call themselves by the version of Kubernetes."""
    source, version = _module_of_kubernetes(), VERSIONS["kubernetes"]

    def build(folder):
        # Without these the programs call themselves v0.0.0-master and kubectl refuses to compare versions.
        major, minor, _ = version.split(".")
        stamps = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
        names = [f"-X {package}.{key}={value}" for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
                 for key, value in stamps.items()]
        _run("nice", "go", "build", "-p", os.environ.get("TRANSOM_GO_JOBS", "2"), "-ldflags", "-s -w " + " ".join(names),
             "-o", str(folder) + "/", *(f"./{main.parent.relative_to(source)}" for main in mains), cwd=source, log=folder / "build.log",
             env={**os.environ, "GOFLAGS": "-mod=readonly -buildvcs=false"})

    return _once(f"{name}-{version}-{_fingerprint(source / 'go.mod', source / 'go.sum', *mains)}", build)


def kubernetes():
    """The folder with the binaries kube-apiserver, etcd, kubectl and controllers."""
    return _built_from_kubernetes("kubernetes", sorted(_module_of_kubernetes().glob("*/main.go")))


def cluster_node():
    """The folder with what a node and its cluster run beside these: kubelet, kube-proxy, kube-scheduler, kube-controller-manager, and pause."""
    return _built_from_kubernetes("node", sorted(_module_of_kubernetes().glob("node/*/main.go")))


def name_server():
    """The cluster's `coredns`."""
    source = HERE / "cluster/dns"
    key = _fingerprint(*(source / name for name in ("go.mod", "go.sum", "main.go")))

    def build(folder):
        _run("nice", "go", "build", "-p", os.environ.get("TRANSOM_GO_JOBS", "2"), "-ldflags", "-s -w", "-o", folder / "coredns", ".", cwd=source,
             log=folder / "build.log", env={**os.environ, "GOFLAGS": "-mod=readonly -buildvcs=false"})

    return _once(f"coredns-{key}", build) / "coredns"


def openapi():
    """The program of the suite `openapi`, which reads documents as client-go does."""
    source = HERE / "openapi"
    key = _fingerprint(*(source / name for name in ("go.mod", "go.sum", "main.go")))

    def build(folder):
        _run("nice", "go", "build", "-p", os.environ.get("TRANSOM_GO_JOBS", "2"), "-o", folder / "openapi", ".", cwd=source,
             log=folder / "build.log", env={**os.environ, "GOFLAGS": "-mod=readonly -buildvcs=false"})

    return _once(f"openapi-{key}", build) / "openapi"


def golang():
    """The program of the suite `golang`, which answers with the Go libraries of Kubernetes and Crossplane."""
    source = HERE / "golang"
    key = _fingerprint(source / "go.mod", source / "go.sum", *sorted(source.glob("*.go")))

    def build(folder):
        _run("nice", "go", "build", "-p", os.environ.get("TRANSOM_GO_JOBS", "2"), "-o", folder / "golang", ".", cwd=source,
             log=folder / "build.log", env={**os.environ, "GOFLAGS": "-mod=readonly -buildvcs=false"})

    return _once(f"golang-{key}", build) / "golang"


def crank():
    """The real `crossplane` command line, of the version that `render/go.mod` pins."""
    source = HERE / "render"
    key = _fingerprint(source / "go.mod", source / "go.sum")

    def build(folder):
        _run("nice", "go", "build", "-p", os.environ.get("TRANSOM_GO_JOBS", "2"), "-tags", "peers", "-ldflags", "-s -w",
             "-o", folder / "crank", "github.com/crossplane/crossplane/v2/cmd/crank", cwd=source,
             log=folder / "build.log", env={**os.environ, "GOFLAGS": "-mod=readonly -buildvcs=false"})

    return _once(f"crank-{key}", build) / "crank"


def crossplane():
    """The folder with the real `crossplane`, which runs its controllers, and `crds`, the definitions that it installs."""
    version = VERSIONS["crossplane"]
    source, module = HERE / "crossplane", "github.com/crossplane/crossplane/v2"
    if f"{module} v{version}\n" not in (source / "go.mod").read_text():
        raise SystemExit(f"versions.json says Crossplane {version}, crossplane/go.mod does not")
    key = _fingerprint(source / "go.mod", source / "go.sum")

    def build(folder):
        log, env = folder / "build.log", {**os.environ, "GOFLAGS": "-mod=readonly -buildvcs=false"}
        stamp = f"-X github.com/crossplane/crossplane-runtime/v2/pkg/version.version=v{version}"
        _run("nice", "go", "build", "-p", os.environ.get("TRANSOM_GO_JOBS", "2"), "-tags", "peers", "-ldflags", f"-s -w {stamp}",
             "-o", folder / "crossplane", f"{module}/cmd/crossplane", cwd=source, log=log, env=env)
        found = subprocess.run(["go", "list", "-m", "-f", "{{.Dir}}", module], cwd=source, env=env, check=True, capture_output=True, text=True)
        shutil.copytree(pathlib.Path(found.stdout.strip()) / "cluster/crds", folder / "crds", copy_function=shutil.copyfile)
        _run("chmod", "-R", "u+w", folder / "crds", log=log)

    return _once(f"crossplane-{version}-{key}", build)


def xfn():
    """The runner of container functions of the last Crossplane that had it, with the versions that its own module pins."""
    version = VERSIONS["crossplane-xfn"]

    def build(folder):
        log, env = folder / "build.log", {**os.environ, "GOFLAGS": "-mod=mod -buildvcs=false"}
        found = subprocess.run(["go", "mod", "download", "-json", f"github.com/crossplane/crossplane@v{version}"], cwd=folder, check=True, capture_output=True, text=True)
        work = folder / "work"
        shutil.copytree(json.loads(found.stdout)["Dir"], work, copy_function=shutil.copyfile)
        _run("chmod", "-R", "u+w", work, log=log)
        _run("nice", "go", "build", "-p", os.environ.get("TRANSOM_GO_JOBS", "2"), "-ldflags", "-s -w", "-o", folder / "xfn", "./cmd/xfn", cwd=work, log=log, env=env)
        shutil.rmtree(work)

    return _once(f"xfn-{version}", build) / "xfn"


def original():
    """The program that answers questions about packages with Crossplane's own code, some of which is internal to its module:
    it is compiled in a copy of the module, with the versions that `crossplane/go.mod` pins."""
    pinned, source, module = HERE / "crossplane", HERE / "packages/original", "github.com/crossplane/crossplane/v2"
    programs = sorted(source.glob("*.go"))
    key = _fingerprint(pinned / "go.mod", pinned / "go.sum", *programs)

    def build(folder):
        log, env = folder / "build.log", {**os.environ, "GOFLAGS": "-mod=mod -buildvcs=false"}
        work = folder / "work"
        work.mkdir()
        for name in ("go.mod", "go.sum"):
            shutil.copyfile(pinned / name, work / name)
        found = subprocess.run(["go", "mod", "download", "-json", f"{module}@v{VERSIONS['crossplane']}"], cwd=work, check=True, capture_output=True, text=True)
        shutil.copytree(json.loads(found.stdout)["Dir"], work / "copy", copy_function=shutil.copyfile)
        _run("chmod", "-R", "u+w", work, log=log)
        (work / "copy/cmd/original").mkdir()
        for program in programs:
            shutil.copyfile(program, work / "copy/cmd/original" / program.name)
        _run("go", "mod", "edit", f"-replace={module}=./copy", cwd=work, log=log, env=env)
        _run("nice", "go", "build", "-p", os.environ.get("TRANSOM_GO_JOBS", "2"), "-o", folder / "original", f"{module}/cmd/original",
             cwd=work, log=log, env=env)
        shutil.rmtree(work)

    return _once(f"original-{VERSIONS['crossplane']}-{key}", build) / "original"


def registry():
    """The folder with `registry`, which is distribution's, and `crane`."""
    source = HERE / "packages/peers"
    key = _fingerprint(source / "go.mod", source / "go.sum", source / "registry/main.go")

    def build(folder):
        for program in ("./registry", "github.com/google/go-containerregistry/cmd/crane"):
            _run("nice", "go", "build", "-p", os.environ.get("TRANSOM_GO_JOBS", "2"), "-tags", "peers", "-ldflags", "-s -w", "-o", str(folder) + "/",
                 program, cwd=source, log=folder / "build.log", env={**os.environ, "GOFLAGS": "-mod=readonly -buildvcs=false"})

    return _once(f"registry-{key}", build)


def python_function():
    """The Python interpreter of a virtual environment that has the SDK for functions."""
    version = VERSIONS["python-function-sdk"]

    def build(folder):
        log = folder / "install.log"
        _run(sys.executable, "-m", "venv", folder / "venv", log=log)
        _run(folder / "venv/bin/pip", "install", "--quiet", f"crossplane-function-sdk-python=={version}", log=log)

    return _once(f"python-function-sdk-{version}", build) / "venv/bin/python"


def python():
    """The Python interpreter of a virtual environment that has the `kubernetes` client."""
    version = VERSIONS["python-kubernetes"]

    def build(folder):
        log = folder / "install.log"
        _run(sys.executable, "-m", "venv", folder / "venv", log=log)
        _run(folder / "venv/bin/pip", "install", "--quiet", f"kubernetes=={version}", log=log)

    return _once(f"python-kubernetes-{version}", build) / "venv/bin/python"


def node():
    """The folder whose node_modules has @kubernetes/client-node."""
    version = VERSIONS["node-client"]

    def build(folder):
        package = {"private": True, "dependencies": {"@kubernetes/client-node": version}}
        (folder / "package.json").write_text(json.dumps(package))
        _run("npm", "install", "--no-audit", "--no-fund", "--silent", cwd=folder, log=folder / "install.log")

    return _once(f"node-client-{version}", build)


class Unavailable(Exception):
    """A peer cannot be had here."""


_REFUSED = {}


def function(name, version=None):
    """The server of a genuine composition function, such as function-auto-ready, in the version that others are compared with or another one."""
    version = version or VERSIONS["functions"][name]
    if (name, version) in _REFUSED:
        raise Unavailable(_REFUSED[name, version])
    module = f"github.com/crossplane-contrib/{name}"

    def build(folder):
        source = folder / "source"
        got = subprocess.run(["go", "mod", "download", "-json", f"{module}@{version}"], cwd=folder, capture_output=True, text=True)
        if got.returncode:
            _REFUSED[name, version] = f"the registry does not hand out {module} {version}"
            raise Unavailable(_REFUSED[name, version])
        # The module cache is read-only; a build may want to write beside its sources.
        shutil.copytree(json.loads(got.stdout)["Dir"], source, copy_function=shutil.copyfile)
        _run("chmod", "-R", "u+w", source, log=folder / "build.log")
        _run("nice", "go", "build", "-p", os.environ.get("TRANSOM_GO_JOBS", "2"), "-ldflags", "-s -w", "-o", folder / name, ".",
             cwd=source, log=folder / "build.log", env={**os.environ, "GOFLAGS": "-mod=mod -buildvcs=false"})
        shutil.rmtree(source)

    return _once(f"{name}-{version}", build) / name


def provider(name, purpose="providers"):
    """The program of a genuine provider, and the folder of its package: `crossplane.yaml` and CRDs."""
    version = VERSIONS[purpose][name]
    module = f"github.com/crossplane-contrib/{name}"

    def build(folder):
        source = folder / "source"
        got = subprocess.run(["go", "mod", "download", "-json", f"{module}@{version}"], cwd=folder, check=True, capture_output=True, text=True)
        shutil.copytree(json.loads(got.stdout)["Dir"], source, copy_function=shutil.copyfile)
        _run("chmod", "-R", "u+w", source, log=folder / "build.log")
        _run("nice", "go", "build", "-p", os.environ.get("TRANSOM_GO_JOBS", "2"), "-ldflags", "-s -w", "-o", folder / name, "./cmd/provider",
             cwd=source, log=folder / "build.log", env={**os.environ, "GOFLAGS": "-mod=mod -buildvcs=false", "CGO_ENABLED": "0"})
        shutil.copytree(source / "package", folder / "package")
        shutil.rmtree(source)

    folder = _once(f"{name}-{version}", build)
    return folder / name, folder / "package"

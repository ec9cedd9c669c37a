"""From `transom function init` to an installed function, in every language, with its own toolchain and the registries of its packages.

For each language: a new project, its unit tests, its requests and expected responses (against the project and against its
package), a package that is built twice and is the same, pushed to a real registry (distribution's), installed on `transom up`,
rendered, changed, pushed again and upgraded to. `--only WORD` picks languages whose name has the word. Needs root, Go, Python 3.11+,
Node 20+ and cargo; what they download stays in their own caches, and in `.cache/authoring`.
"""

import argparse
import http.client
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "packages")]

import cargo  # noqa: E402
import install  # noqa: E402
import registry as registries  # noqa: E402
import servers  # noqa: E402

specification = importlib.util.spec_from_file_location("runtimes", HERE.parent / "runtimes/suite.py")
runtimes = importlib.util.module_from_spec(specification)
specification.loader.exec_module(runtimes)

NAME = "function-hello"


def run(*command, cwd, **env):
    """The output of a command that succeeds."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


class Failed(Exception):
    pass


def add_libraries(root, *programs):
    """Copies the libraries that programs are linked with into a root file system, under their own paths."""
    for program in programs:
        for word in subprocess.run(["ldd", program], capture_output=True, text=True).stdout.split():
            target = root / word.lstrip("/")
            if word.startswith("/") and os.path.exists(word) and not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(word, target)


class Go:
    name, changed = "go", ("fn.go", 'in.Message+", "', 'in.Message+" again, "')

    def prepare(self, project):
        run("go", "mod", "tidy", cwd=project)

    def test(self, project):
        run("go", "test", "./...", cwd=project)

    def layout(self, project, folder):
        run("go", "build", "-trimpath", "-ldflags=-s -w", "-o", "function", ".", cwd=project, CGO_ENABLED="0")
        return ["--binary", project / "function"]


class Rust:
    name, changed = "rust", ("src/function.rs", '"{}, {name}"', '"{} again, {name}"')

    def prepare(self, project):
        # Crates that are compiled once are there for the next run.
        self.builds_in(install.CACHE / "authoring/rust-target")

    def builds_in(self, target):
        self.target = target
        os.environ["CARGO_TARGET_DIR"] = str(target)

    def test(self, project):
        run("cargo", "test", "--quiet", cwd=project)

    def layout(self, project, folder):
        run("cargo", "build", "--quiet", cwd=project)
        program, root = self.target / "debug" / NAME, folder / "rust-root"
        add_libraries(root, program)
        return ["--root", root, "--binary", program]


class RustOfTransom(Rust):
    """In Rust with the SDK of this repository."""
    name, language, changed = "rust-of-transom", "rust", ("src/function.rs", '"{}, {}"', '"{} again, {}"')
    options = ("--sdk", ROOT)

    def prepare(self, project):
        # The versions and the compiled crates of the repository, which saves minutes.
        shutil.copy(ROOT / "Cargo.lock", project / "Cargo.lock")
        self.builds_in(cargo.binary().parent.parent)


class Python:
    name, changed = "python", ("function/fn.py", "{step.message}, ", "{step.message} again, ")

    def prepare(self, project):
        run(sys.executable, "-m", "venv", ".venv", cwd=project)
        run(".venv/bin/pip", "install", "--quiet", "--disable-pip-version-check", "-e", ".", cwd=project)

    def test(self, project):
        run(".venv/bin/python", "-m", "unittest", cwd=project)

    def layout(self, project, folder):
        root, app = folder / "python-root", folder / "python-app"
        executable = pathlib.Path(run(project / ".venv/bin/python", "-c", "import sys, os; print(os.path.realpath(sys.executable))", cwd=project).strip())
        if not root.exists():
            version = f"python{sys.version_info.major}.{sys.version_info.minor}"
            library = executable.parent.parent / "lib" / version
            ignored = shutil.ignore_patterns("site-packages", "dist-packages", "test", "tests", "__pycache__", "idlelib", "ensurepip", "config-*")
            shutil.copytree(library, root / library.relative_to("/"), ignore=ignored)
            (root / executable.parent.relative_to("/")).mkdir(parents=True, exist_ok=True)
            shutil.copy(executable, root / executable.relative_to("/"))
            packages = next((project / ".venv/lib").glob("python*")) / "site-packages"
            ignored = shutil.ignore_patterns("pip*", "setuptools*", "__pycache__", "*.pth", "__editable__*", "function_hello*")
            shutil.copytree(packages, app / "app", ignore=ignored)
            add_libraries(root, executable, *root.rglob("*.so"), *app.rglob("*.so"))
        shutil.copytree(project / "function", app / "app/function", ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        return ["--root", root, "--root", app, "--env", "PYTHONPATH=/app", "--env", "PYTHONDONTWRITEBYTECODE=1",
                "--entrypoint", executable, "--entrypoint", "-m", "--entrypoint", "function"]


class TypeScript:
    name, changed = "typescript", ("src/fn.ts", "${input.message}, ", "${input.message} again, ")

    def prepare(self, project):
        run("npm", "install", "--no-audit", "--no-fund", "--prefer-offline", cwd=project)

    def test(self, project):
        run("npm", "test", cwd=project)

    def layout(self, project, folder):
        run("npm", "run", "build", "--silent", cwd=project)
        node, root, app = pathlib.Path(os.path.realpath(shutil.which("node"))), folder / "node-root", folder / "node-app"
        if not root.exists():
            (root / "bin").mkdir(parents=True)
            shutil.copy(node, root / "bin/node")
            add_libraries(root, node)
            app.mkdir()
        shutil.copy(project / "bundle/main.cjs", app / "main.cjs")
        return ["--root", root, "--root", app, "--entrypoint", "/bin/node", "--entrypoint", "/main.cjs"]


LANGUAGES = [Go, Python, TypeScript, Rust, RustOfTransom]


def create(plane, path, manifest):
    """Applies a manifest in YAML, as soon as its kind is served."""
    def is_applied():
        connection = http.client.HTTPSConnection(plane.server.host, timeout=30, context=plane.server.tls)
        headers = {**plane.server.headers(), "Content-Type": "application/apply-patch+yaml"}
        connection.request("PATCH", f"{path}?fieldManager=conformance&force=true", manifest, headers)
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status in (200, 201)
    runtimes.until(f"{path} is applied", is_applied)


def composed(plane):
    maps = plane.request("GET", "/api/v1/namespaces/default/configmaps")[1].get("items", [])
    return [item["data"]["message"] for item in maps if item.get("data", {}).get("message")]


def example(project, name):
    """A manifest of the project's examples, as it is: the API takes YAML."""
    return (project / f"example/{name}.yaml").read_text()


def is_active(plane, reference):
    """Whether the revision with this package is active and can be called."""
    for revision in plane.request("GET", "/apis/pkg.crossplane.io/v1/functionrevisions")[1].get("items", []):
        conditions = {condition["type"]: condition["status"] for condition in revision.get("status", {}).get("conditions", [])}
        if revision["spec"]["image"] == reference and revision["spec"]["desiredState"] == "Active" and conditions.get("RuntimeHealthy") == "True":
            return True
    return False


def served(language, binary, project, plane):
    """`function run` has the plane call the project itself, starts it again when a file changes, and leaves the Function as it was."""
    path = f"/apis/pkg.crossplane.io/v1/functions/{NAME}"
    source, _, after = language.changed
    text = (project / source).read_text()

    def greets(words):
        # Composite resources are composed anew when they change, or once in a while.
        number = time.monotonic_ns()
        xr = example(project, "xr").replace("metadata:", f"metadata:\n  labels: {{a: 'n{number}'}}")
        create(plane, "/apis/example.org/v1/namespaces/default/greetings/world", xr)
        return composed(plane) == [words]
    process = subprocess.Popen([binary, "function", "run", project, "--kubeconfig", plane.folder / "data/kubeconfig"], stderr=subprocess.DEVNULL)
    try:
        runtimes.until("the project is called", lambda: "transom.io/endpoint" in plane.request("GET", path)[1]["metadata"].get("annotations", {}))
        for words in ("from here", "once more"):
            (project / source).write_text(text.replace(after, after.replace("again", words)))
            runtimes.until(f"the greeting {words} is composed", lambda: greets(f"Hello {words}, world"))
    finally:
        process.terminate()
        process.wait()
    if process.returncode or "transom.io/endpoint" in plane.request("GET", path)[1]["metadata"].get("annotations", {}):
        raise Failed("the Function is not as it was before")
    runtimes.until("the package is called again", lambda: greets("Hello again, world"))


def of_images(binary, folder, project, caches):
    """A whole image, and one that a folder is added to, as `docker save` writes them, make packages that answer as the program does."""
    image, more = folder / "go-image.tar", folder / "go-more"
    runtimes.image(image, project / "function")
    (more / "etc").mkdir(parents=True)
    (more / "etc/more").write_text("more")
    for number, layout in enumerate((["--embed-runtime-image-tarball", image], ["--base", image, "--root", more])):
        file = folder / f"go-image-{number}.xpkg"
        run(binary, "function", "build", project, *layout, "-o", file, cwd=folder)
        if run(binary, "function", "test", file, "cases", cwd=project, **caches) != "ok exists\nok first-call\n":
            raise Failed("the package of an image does not answer as its cases say")


def check(language, binary, folder, registry):
    project, steps = folder / language.name, []

    def step(name, began):
        steps.append(f"{name} {time.monotonic() - began:.0f} s")

    began = time.monotonic()
    run(binary, "function", "init", NAME, "--language", getattr(language, "language", language.name), "--directory", project, *getattr(language, "options", ()), cwd=folder)
    language.prepare(project)
    step("init", began)
    began = time.monotonic()
    language.test(project)
    step("unit tests", began)
    began = time.monotonic()
    if run(binary, "function", "test", ".", "cases", cwd=project) != "ok exists\nok first-call\n":
        raise Failed("the project does not answer as its cases say")
    step("project", began)

    def package(version):
        layout = language.layout(project, folder)
        files = [folder / f"{language.name}-{version}-{number}.xpkg" for number in (1, 2)]
        for file in files:
            run(binary, "function", "build", project, *layout, "-o", file, cwd=folder)
        if files[0].read_bytes() != files[1].read_bytes():
            raise Failed("the same files made two different packages")
        if f"inputs.{NAME}.fn.example.org" not in run(binary, "xpkg", "inspect", files[0], cwd=folder):
            raise Failed("the package has no CRD of its input")
        reference = registry.reference(f"authoring-{language.name}/{NAME}:{version}")
        run(binary, "function", "push", reference, "-f", files[0], cwd=folder)
        return files[0], reference

    began = time.monotonic()
    file, first = package("v0.1.0")
    step("build and push", began)
    began = time.monotonic()
    caches = {"XDG_CACHE_HOME": str(folder / f"{language.name}-caches")}
    run(binary, "function", "test", file, "cases", cwd=project, **caches)
    step("package", began)

    if language.name == "go":
        of_images(binary, folder, project, caches)
    began = time.monotonic()
    rendered = folder / f"{language.name}-functions.yaml"
    rendered.write_text(f"apiVersion: pkg.crossplane.io/v1\nkind: Function\nmetadata: {{name: {NAME}}}\nspec: {{package: '{first}'}}\n")
    if "Hello, world" not in run(binary, "render", "example/xr.yaml", "example/composition.yaml", rendered, cwd=project, **caches):
        raise Failed("rendered without a greeting")
    step("render", began)

    began = time.monotonic()
    plane = runtimes.Plane(binary, folder / f"{language.name}-plane", "root", "auto").start()
    try:
        create(plane, "/apis/apiextensions.crossplane.io/v2/compositeresourcedefinitions/greetings.example.org", example(project, "definition"))
        create(plane, "/apis/apiextensions.crossplane.io/v1/compositions/greetings", example(project, "composition"))
        function = {"apiVersion": "pkg.crossplane.io/v1", "kind": "Function", "metadata": {"name": NAME}, "spec": {"package": first}}
        create(plane, f"/apis/pkg.crossplane.io/v1/functions/{NAME}", json.dumps(function))
        create(plane, "/apis/example.org/v1/namespaces/default/greetings/world", example(project, "xr"))
        runtimes.until("the greeting is composed", lambda: composed(plane) == ["Hello, world"])
        step("install", began)
        began = time.monotonic()
        source, before, after = language.changed
        text = (project / source).read_text()
        if before not in text:
            raise Failed(f"{source} has no {before}")
        (project / source).write_text(text.replace(before, after))
        _, second = package("v0.2.0")
        create(plane, f"/apis/pkg.crossplane.io/v1/functions/{NAME}", json.dumps({**function, "spec": {"package": second}}))
        runtimes.until("the new revision runs", lambda: is_active(plane, second))
        # Composite resources are composed anew when they change, or once in a while.
        create(plane, "/apis/example.org/v1/namespaces/default/greetings/world", example(project, "xr").replace("metadata:", "metadata:\n  labels: {a: b}"))
        runtimes.until("the changed greeting is composed", lambda: composed(plane) == ["Hello again, world"])
        step("upgrade", began)
        began = time.monotonic()
        served(language, binary, project, plane)
        step("run", began)
    finally:
        plane.end()
    return ", ".join(steps)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", default="transom")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    binary = cargo.binary()
    passed = failed = 0
    with servers.workspace("authoring") as (folder, _), registries.start() as registry:
        for language in LANGUAGES:
            if options.only not in language.name:
                continue
            try:
                print(f"{language.name}: {check(language(), binary, folder, registry)}", flush=True)
                passed += 1
            except (Failed, AssertionError) as problem:
                print(f"{language.name}: FAILED: {problem}", flush=True)
                failed += 1
    print(f"authoring: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

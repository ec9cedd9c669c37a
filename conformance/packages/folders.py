"""Folders that packages are built from: what users write, what is odd, and what must be refused.

`all_folders()` gives `Folder`s: files, and flags for `xpkg build`. Where the corpus of published Compositions is beside the
repository, each of its repositories becomes a Configuration as well, and Crossplane's own definitions become a Provider.
"""

import dataclasses
import hashlib
import io
import json
import pathlib
import tarfile

import install

CORPUS = pathlib.Path(__file__).resolve().parents[3] / "shared/conformance/corpus"


@dataclasses.dataclass
class Folder:
    name: str
    files: dict
    flags: tuple = ()
    # The image that a package runs, in a tarball of its own.
    runtime: bytes = b""


def meta(kind, name, spec="", more=""):
    spec = spec or "  crossplane: {version: \">=v1.14.0-0\"}"
    return f"apiVersion: meta.pkg.crossplane.io/v1\nkind: {kind}\nmetadata:\n  name: {name}\n{more}spec:\n{spec}\n"


def definition(kind, plural, group="example.org", scope="Namespaced"):
    return f"""apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata:
  name: {plural}.{group}
spec:
  group: {group}
  scope: {scope}
  names: {{kind: {kind}, plural: {plural}}}
  versions:
  - name: v1
    served: true
    referenceable: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {{type: integer, default: 3, minimum: 0, maximum: 10}}
              ratio: {{type: number, default: 1.50}}
              note: {{type: string, pattern: '^[a-z]*$', enum: ["a", "yes", "null", "1.0"]}}
              free: {{type: object, x-kubernetes-preserve-unknown-fields: true}}
            x-kubernetes-validations:
            - {{rule: "self.size > 0", message: "must be > 0"}}
"""


def composition(name, kind, group="example.org", note="none"):
    return f"""apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata:
  name: {name}
  annotations: {{note: "{note}"}}
spec:
  compositeTypeRef: {{apiVersion: {group}/v1, kind: {kind}}}
  mode: Pipeline
  pipeline:
  - step: ready
    functionRef: {{name: function-auto-ready}}
"""


def crd(plural, kind, group="things.example.org", more=""):
    return f"""apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: {plural}.{group}
{more}spec:
  group: {group}
  names: {{kind: {kind}, plural: {plural}, singular: {kind.lower()}, listKind: {kind}List}}
  scope: Cluster
  versions:
  - name: v1
    served: true
    storage: true
    schema: {{openAPIV3Schema: {{type: object, properties: {{spec: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}}}}}
    subresources: {{status: {{}}}}
    additionalPrinterColumns: [{{name: AGE, type: date, jsonPath: .metadata.creationTimestamp}}]
"""


def with_input(name, text):
    """A Composition with a step whose input is this text, indented."""
    inner = "".join(f"      {line}\n" for line in text.splitlines())
    return composition(name, "XOne") + "    input:\n      apiVersion: v1\n      kind: Input\n" + inner


NUMBERS = "numbers: [1, 1.0, 1e3, 0x1F, 0o17, 017, .5, -0, +1, 1_000, 9007199254740993, 1.7976931348623157e308, 5e-324, 0.1, 100000000000000000000]"
WORDS = "words: [yes, no, on, off, y, n, true, True, TRUE, ~, null, Null, 'null', 2001-01-01, 12:30:45, 1:30, <<, .5.5, '1.0', '0x1', '~', 'yes', '', ' a', 'a: b', '#', '- x', '*', '&', '!', '%', '@', '`']"
TEXTS = """folded: >
  one
  two

  three
literal: |+
  one
    two

stripped: |-
  end
long: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb cccccccccccccccccccccccccccccccccccccccc
'quoted': 'it''s'
"escaped": "line\\nbreak \\x41 \\u00e9 \\t tab"
wide: "é → 😀"
? complex
: key
empty:
nothing: {}
none: []
list:
- - nested
  - [a, b]
-
  x: 1
"""
ALIASES = """one: &one {a: "yes", b: no}
two: {<<: *one, c: 1}
three: *one
"""
UNKNOWN = """apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: unknown, unknownMeta: 1, creationTimestamp: null}
spec:
  unknownSpec: {a: 1}
  compositeTypeRef: {apiVersion: example.org/v1, kind: XOne, extra: true}
  mode: Pipeline
  pipeline: []
status: {unknown: true}
"""


def handmade():
    one = {"crossplane.yaml": meta("Configuration", "one"), "definition.yaml": definition("XOne", "xones"),
           "composition.yaml": composition("one", "XOne")}
    dependencies = """  crossplane: {version: "^v2.0.0"}
  dependsOn:
  - apiVersion: pkg.crossplane.io/v1
    kind: Function
    package: xpkg.example.org/acme/function-auto-ready
    version: ">=v0.4.0"
  - provider: xpkg.example.org/acme/provider-nop
    version: v0.4.0
  - {configuration: xpkg.example.org/acme/base, version: "*"}
  - {function: xpkg.example.org/acme/function-x, version: sha256:1111111111111111111111111111111111111111111111111111111111111111}"""
    annotated = """  labels: {tier: "1"}
  annotations:
    meta.crossplane.io/maintainer: Acme <acme@example.org>
    meta.crossplane.io/description: |
      Several
      lines
    friendly-name.meta.crossplane.io: "One: \\"quoted\\""
"""
    yield Folder("configuration", one)
    yield Folder("dependencies", {**one, "crossplane.yaml": meta("Configuration", "dependencies", dependencies, annotated)})
    yield Folder("no objects", {"crossplane.yaml": meta("Configuration", "bare")})
    yield Folder("one file", {"all.yml": "---\n".join(one.values())})
    yield Folder("deep", {"crossplane.yaml": one["crossplane.yaml"], "b/c/definition.yaml": one["definition.yaml"], "a/composition.yml": one["composition.yaml"],
                          "a/notes.txt": "not YAML: [", "z.json": "{", ".hidden/two.yaml": composition("two", "XOne"), "B.yaml": composition("three", "XOne")})
    yield Folder("examples", {**one, "examples/one.yaml": "# an example\napiVersion: example.org/v1\nkind: XOne\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n"})
    yield Folder("examples of several files", {**one, "examples/b/two.yml": "apiVersion: v1\nkind: A\n", "examples/a.yaml": "apiVersion: v1\nkind: B\n---\napiVersion: v1\nkind: C"})
    yield Folder("examples that end in a break", {**one, "examples/two.yml": "apiVersion: v1\nkind: A\n", "examples/a.yaml": "apiVersion: v1\nkind: B\n---\n"})
    yield Folder("ignored", {**one, "ci/pipeline.yaml": "not: [an object", "ci/more.yaml": "x", "notes.yaml": "plain text"}, ("--ignore", "ci/*.yaml,notes.yaml"))
    yield Folder("ignored folder", {**one, "ci/pipeline.yaml": "kind: [",}, ("--ignore", "ci"))
    for name, text in (("numbers", NUMBERS), ("words", WORDS), ("texts", TEXTS), ("aliases", ALIASES)):
        yield Folder(name, {**one, "odd.yaml": with_input("odd", text)})
    yield Folder("unknown fields", {**one, "odd.yaml": UNKNOWN})
    yield Folder("directives", {**one, "odd.yaml": "# a comment\n%YAML 1.1\n---\n# only a comment\n---\n" + composition("odd", "XOne") + "...\n"})
    yield Folder("comments", {**one, "odd.yaml": "# a comment\n---\n# only a comment\n---\n\n---\n" + composition("odd", "XOne").replace("spec:", "spec: # here\n  # there") + "# end\n"})
    yield Folder("carriage returns", {name: text.replace("\n", "\r\n") for name, text in one.items()})
    yield Folder("byte order mark", {**one, "composition.yaml": "\ufeff" + one["composition.yaml"]})
    yield Folder("empty files", {**one, "empty.yaml": "", "blank.yaml": "\n\n", "comment.yaml": "# nothing\n", "breaks.yaml": "---\n---\n"})
    yield Folder("no final newline", {name: text.rstrip("\n") for name, text in one.items()})
    yield Folder("operations", {**one, "operations.yaml": """apiVersion: ops.crossplane.io/v1alpha1
kind: Operation
metadata: {name: once}
spec: {mode: Pipeline, retryLimit: 3, pipeline: [{step: a, functionRef: {name: f}, input: {apiVersion: v1, kind: I, deep: {n: 1.0}}}]}
---
apiVersion: ops.crossplane.io/v1alpha1
kind: CronOperation
metadata: {name: daily}
spec: {schedule: "@daily", operationTemplate: {metadata: {labels: {a: b}}, spec: {mode: Pipeline, pipeline: [{step: a, functionRef: {name: f}}]}}}
---
apiVersion: ops.crossplane.io/v1alpha1
kind: WatchOperation
metadata: {name: watching}
spec: {watch: {apiVersion: v1, kind: ConfigMap, matchLabels: {a: b}}, operationTemplate: {spec: {mode: Pipeline, pipeline: [{step: a, functionRef: {name: f}}]}}}
---
apiVersion: apiextensions.crossplane.io/v1alpha1
kind: ManagedResourceActivationPolicy
metadata: {name: all}
spec: {activate: ["*.example.org"]}
"""})
    yield Folder("legacy definition", {**one, "legacy.yaml": """apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: xls.example.org}
spec:
  group: example.org
  names: {kind: XL, plural: xls, shortNames: [x], categories: [all]}
  claimNames: {kind: L, plural: ls}
  connectionSecretKeys: [username, password]
  defaultCompositionRef: {name: one}
  conversion: {strategy: None}
  metadata: {labels: {a: b}}
  versions:
  - {name: v1alpha1, served: false, referenceable: false, deprecated: true, deprecationWarning: old}
  - name: v1
    served: true
    referenceable: true
    schema: {openAPIV3Schema: {type: object}}
    additionalPrinterColumns: [{name: A, type: string, jsonPath: .spec.a, priority: 1}]
"""})
    yield Folder("old meta", {"crossplane.yaml": "apiVersion: meta.pkg.crossplane.io/v1alpha1\nkind: Configuration\nmetadata: {name: old}\nspec: {dependsOn: [{provider: r.example.org/p, version: '*'}]}\n", "composition.yaml": one["composition.yaml"]})
    yield Folder("provider", {"crossplane.yaml": meta("Provider", "provider-things", "  capabilities: [safe-start, SafeStart]"), "crds/things.yaml": crd("things", "Thing"), "crds/others.yaml": crd("others", "Other"),
                              "webhooks.yaml": """apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: validate}
webhooks:
- name: v.example.org
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: s, namespace: one, path: /v}}
  rules: [{apiGroups: [things.example.org], apiVersions: [v1], operations: [CREATE], resources: [things]}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: mutate}
webhooks: [{name: m.example.org, admissionReviewVersions: [v1], sideEffects: None, failurePolicy: Ignore, clientConfig: {url: "https://example.org/m", caBundle: aGVsbG8=}}]
"""})
    yield Folder("provider with a runtime", {"crossplane.yaml": meta("Provider", "provider-runs"), "crd.yaml": crd("things", "Thing")}, runtime=runtime_image())
    yield Folder("function", {"crossplane.yaml": meta("Function", "function-things", "  capabilities: [composition, operation]"), "input.yaml": crd("inputs", "Input", "fn.example.org")}, runtime=runtime_image())
    yield Folder("old function", {"crossplane.yaml": meta("Function", "function-old").replace("/v1\n", "/v1beta1\n")})
    yield Folder("a word that is not a text", {"crossplane.yaml": meta("Provider", "provider-things"), "webhook.yaml": "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: validate}\nwebhooks: [{name: v.example.org, admissionReviewVersions: [v1], sideEffects: None, clientConfig: {service: {name: s, namespace: n}}}]\n"})
    # What must be refused.
    yield Folder("two meta objects", {**one, "again.yaml": meta("Configuration", "again")})
    yield Folder("no meta object", {"definition.yaml": one["definition.yaml"]})
    yield Folder("foreign object", {**one, "map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"})
    yield Folder("crd in a configuration", {**one, "crd.yaml": crd("things", "Thing")})
    yield Folder("definition in a provider", {"crossplane.yaml": meta("Provider", "p"), "definition.yaml": one["definition.yaml"]})
    yield Folder("broken YAML", {**one, "broken.yaml": "a: [\n"})
    yield Folder("wrong type", {**one, "composition.yaml": one["composition.yaml"].replace("pipeline:", "pipeline: text\n  x:")})


def runtime_image(program=b"#!/bin/sh\n" * 100):
    """An image as `docker save` writes it: one layer with one file."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as archive:
        add(archive, "runtime", program)
    digest = hashlib.sha256(layer.getvalue()).hexdigest()
    config = json.dumps({"architecture": "amd64", "os": "linux", "created": "2024-01-01T00:00:00Z", "author": "acme",
                         "config": {"Entrypoint": ["/runtime"], "Env": ["PATH=/bin"], "User": "2000", "Labels": {"a": "b"}, "ExposedPorts": {"9443/tcp": {}}},
                         "history": [{"created": "2024-01-01T00:00:00Z", "created_by": "acme"}],
                         "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]}}).encode()
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        add(archive, name, config)
        add(archive, f"{digest}/layer.tar", layer.getvalue())
        add(archive, "manifest.json", json.dumps([{"Config": name, "RepoTags": ["runtime:latest"], "Layers": [f"{digest}/layer.tar"]}]).encode())
    return whole.getvalue()


def add(archive, name, data):
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), 0o755
    archive.addfile(entry, io.BytesIO(data))


def published():
    """A Configuration of each repository of the corpus, with its Compositions and definitions as they were written."""
    if not (CORPUS / "index.json").exists():
        return
    repositories, mixed = {}, set()
    for entry in json.loads((CORPUS / "index.json").read_text()):
        if entry["kind"] in ("Composition", "CompositeResourceDefinition"):
            repositories.setdefault(entry["repo"], set()).add(entry["file"])
        else:
            mixed.add(entry["file"])
    for number, (repository, files) in enumerate(sorted(repositories.items())):
        texts = {}
        for file in sorted(files - mixed):
            texts[file.replace("/", "-")] = (CORPUS.parent / file).read_text()
        yield Folder(f"corpus {repository}", {"crossplane.yaml": meta("Configuration", f"corpus-{number}"), **texts})


def own_definitions():
    """Crossplane's definitions, as a Provider."""
    crds = sorted((install.crossplane() / "crds").glob("*.yaml"))
    yield Folder("definitions of Crossplane", {"crossplane.yaml": meta("Provider", "crossplane"), **{file.name: file.read_text() for file in crds}})


def all_folders():
    yield from handmade()
    yield from published()
    yield from own_definitions()

"""What is rendered: the inputs of recorded reconciles, the examples of functions, and the compositions of a corpus of
public repositories, each with the composite resources that stand beside it or one made from its definition's schema.

A document is given to the programs as it was found, comments and all. What cannot be rendered by both sides is
`Unusable`, for a reason that is a rule."""

import collections
import json
import pathlib
import re

import yaml

DATA = pathlib.Path(__file__).resolve().parents[3] / "shared/conformance"
GOLDEN = DATA / "render/golden"
MODE_RESOURCES = "its mode is Resources, which crank does not render"
# Functions of templates whose results are others each time.
BY_CHANCE = re.compile(r"\b(uuidv4|rand(Alpha|AlphaNum|Ascii|Numeric|Bytes|Int)\w*|gen(PrivateKey|CA|SelfSigned|Signed)\w*|now|shuffle|htpasswd|bcrypt)\b")


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """Reads times as text."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class Unusable(Exception):
    """A case that cannot be compared."""


class Case:
    """What is rendered: a name, the functions by the name they are called by, and objects or texts for files."""

    def __init__(self, name, functions, xr, composition, **more):
        self.name, self.functions, self.xr, self.composition, self.more = name, functions, xr, composition, more

    def write(self, folder, function_at):
        """Writes all files, and returns the arguments. `function_at` makes the Function that is called by a name."""
        def put(name, documents):
            text = (document if isinstance(document, str) else json.dumps(document) for document in documents)
            (folder / name).write_text("".join(f"---\n{document}\n" for document in text))
            return name

        functions = [function_at(name, package) for name, package in self.functions.items()]
        command = [put("xr.yaml", [self.xr]), put("composition.yaml", [self.composition]), put("functions.yaml", functions),
                   "-r", "-c", "--timeout", "2m"]
        flags = {"observed": "--observed-resources", "required": "--required-resources", "credentials": "--function-credentials"}
        for kind, flag in flags.items():
            if self.more.get(kind):
                command += [flag, put(f"{kind}.yaml", self.more[kind])]
        return command


class Document:
    """One of the documents of a file."""

    def __init__(self, file, text):
        self.file, self.text = file, text
        self.object = yaml.load(text, Loader) or {}

    @property
    def type(self):
        return self.object.get("apiVersion"), self.object.get("kind")

    @property
    def name(self):
        return (self.object.get("metadata") or {}).get("name")


def documents(path):
    """The documents of a file; none if it is no YAML."""
    try:
        texts = [text for text in re.split(r"(?m)^---.*$", path.read_text()) if text.strip()]
        found = [Document(str(path.relative_to(DATA)), text) for text in texts]
    except (yaml.YAMLError, UnicodeDecodeError):
        return []
    return [document for document in found if isinstance(document.object, dict)]


def cases(built_in):
    """Every case, or what is raised for those that are not usable, by name."""
    for name, make in [*golden(), *beside_each_other(built_in)]:
        try:
            yield name, make()
        except Unusable as why:
            yield name, why


def golden():
    seen = set()
    for path in sorted(GOLDEN.rglob("*.json")):
        recorded = json.loads(path.read_text())
        key = json.dumps(recorded["input"], sort_keys=True)
        if key not in seen:
            seen.add(key)
            yield str(path.relative_to(DATA)), lambda path=path, recorded=recorded: from_golden(path, recorded)


def from_golden(path, recorded):
    given = recorded["input"]
    if given["composition"]["spec"].get("mode", "Pipeline") != "Pipeline":
        raise Unusable(MODE_RESOURCES)
    secrets = [{"apiVersion": "v1", "kind": "Secret", **secret} for secret in given.get("credentials", [])]
    return Case(str(path.relative_to(DATA)), recorded["functions"], given["compositeResource"], given["composition"],
                observed=given.get("observedResources"), required=given.get("requiredResources"), credentials=secrets)


def beside_each_other(built_in):
    """The compositions of the corpus, among the documents of their repository, and of each folder of examples."""
    repositories = collections.defaultdict(list)
    for path in sorted((DATA / "corpus").rglob("*.yaml")):
        repositories[path.relative_to(DATA / "corpus").parts[0]] += documents(path)
    folders = sorted(path.parent for path in (DATA / "render").rglob("case.json"))
    examples = [[document for path in sorted(folder.glob("*.y*ml")) for document in documents(path)] for folder in folders]
    for together in [*repositories.values(), *examples]:
        for composition in together:
            if composition.type == ("apiextensions.crossplane.io/v1", "Composition"):
                yield from of_composition(composition, together, built_in)


def of_composition(composition, together, built_in):
    """A case for each composite resource that there is for a composition, up to two, or for one that is made."""
    kind = composition.object.get("spec", {}).get("compositeTypeRef", {})
    of_kind = [document for document in together if document.type == (kind.get("apiVersion"), kind.get("kind"))]
    label = f"{composition.file}#{composition.name}"
    for xr in of_kind[:2]:
        yield f"{label} {'/'.join(pathlib.Path(xr.file).parts[-3:])}#{xr.name}", lambda xr=xr: put_together(composition, xr.text, together, built_in)
    if not of_kind:
        yield f"{label} generated", lambda: put_together(composition, generated(kind, together), together, built_in)


def put_together(composition, xr, together, built_in):
    spec = composition.object["spec"]
    if spec.get("mode", "Resources" if "resources" in spec else "Pipeline") != "Pipeline":
        raise Unusable(MODE_RESOURCES)
    called = [step["functionRef"]["name"] for step in spec.get("pipeline", [])]
    functions = {name: package(name, together, built_in) for name in called}
    if BY_CHANCE.search(composition.text) and "function-go-templating" in functions.values():
        raise Unusable("its templates use chance or the time")
    environments = [document.text for document in together if document.type[1] == "EnvironmentConfig"]
    found = {"observed": "observed", "required": "extra|required|existing"}
    beside = {key: [document.text for document in together if "/render/" in f"/{document.file}"
                    and re.search(pattern, pathlib.Path(document.file).name) and document.text != xr]
              for key, pattern in found.items()}
    secrets = credentials(spec)
    return Case(composition.file, functions, xr, composition.text, observed=beside["observed"],
                required=[*environments, *beside["required"]], credentials=secrets)


def credentials(spec):
    """A Secret for each that a step asks for."""
    wanted = [one["secretRef"] for step in spec.get("pipeline", []) for one in step.get("credentials", []) if one.get("secretRef")]
    return [{"apiVersion": "v1", "kind": "Secret", "metadata": dict(reference), "data": {"key": "dmFsdWU="}} for reference in wanted]


def package(name, together, built_in):
    """The built-in that a functionRef means: by the package of a Function of that name, or else by the name itself."""
    functions = (document.object for document in together if document.type[1] == "Function" and document.name == name)
    packages = [function.get("spec", {}).get("package", "") for function in functions]
    last = re.split(r"[:@]", packages[0].rsplit("/", 1)[-1])[0] if packages else name
    for known in built_in:
        if last == known or last.endswith(f"-{known}"):
            return known
    raise Unusable(f"{last} is not built in")


def generated(kind, together):
    """A composite resource of a kind, as its definition describes it."""
    for document in together:
        spec = document.object.get("spec") or {}
        if document.type[1] == "CompositeResourceDefinition" and (spec.get("names") or {}).get("kind") == kind.get("kind"):
            for version in spec.get("versions") or []:
                if f"{spec.get('group')}/{version['name']}" == kind.get("apiVersion"):
                    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
                    made = value(schema.get("properties", {}).get("spec", {}), 8)
                    metadata = {"name": "generated", "labels": {"crossplane.io/claim-name": "a", "crossplane.io/claim-namespace": "b"}}
                    return {**kind, "metadata": metadata, "spec": made if isinstance(made, dict) else {}}
    raise Unusable("there is no composite resource for it, and no definition to make one from")


def value(schema, depth):
    """A value that a schema allows, as a rule: defaults and first choices, else something short of the right type."""
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object" or "properties" in schema:
        fields = {name: value(field, depth - 1) for name, field in sorted((schema.get("properties") or {}).items()) if depth}
        entries = schema.get("additionalProperties")
        return {**fields, "key": value(entries, depth - 1)} if isinstance(entries, dict) and depth else fields
    if kind == "array":
        return [value(schema.get("items", {}), depth - 1)] if depth else []
    if kind in ("integer", "number"):
        return schema.get("minimum", 3)
    return True if kind == "boolean" else "text"

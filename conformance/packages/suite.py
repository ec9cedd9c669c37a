"""Packages, beside the real thing: `conformance/run packages [-- --only PART]`.

| part | what is compared |
|---|---|
| the areas of `questions.py` | constraints, names, references, ImageConfigs, dependency resolution and the objects that run packages, by Crossplane's own code and by ours |
| `build` | packages built from the same folders by the real command line and by ours |
| `registries` | packages pushed by one side and installed by the other, through a real registry of each kind |
| `lifecycle` | the life of packages on the real Crossplane and on ours, step by step |

`known.txt` has the differences that are meant, `pattern<TAB>reason`, matched against `part: …: theirs -> ours`; one that a
default run does not meet fails it.
"""

import argparse
import contextlib
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent)]

import api  # noqa: E402
import both_ways  # noqa: E402
import building  # noqa: E402
import lifecycle  # noqa: E402
import planes  # noqa: E402
import questions  # noqa: E402
import registry  # noqa: E402
from known import Known  # noqa: E402

PARTS = (*questions.AREAS, "build", "registries", "lifecycle")


@contextlib.contextmanager
def both_planes(**environment):
    """The real Crossplane and ours, as the steps of `lifecycle` use them."""
    with planes.crossplane(function=False, controllers=True, **environment) as real, planes.transom(**environment) as transom:
        sides = [lifecycle.Plane(server.name, api.Client(server)) for server in (real, transom)]
        # There is one already where Crossplane was initialised.
        sides[1].client.request("POST", "/api/v1/namespaces", body=f'{{"metadata": {{"name": "{planes.NAMESPACE}"}}}}')
        yield sides


def on_planes(parts, options, known):
    """The parts that need control planes share them, and the registries: starting takes most of the time."""
    with contextlib.ExitStack() as stack:
        kinds = registry.KINDS if "registries" in parts else ("anonymous",)
        by_kind = {kind: stack.enter_context(registry.start(kind)) for kind in kinds}
        trusted = by_kind.get("tls")
        environment = {"CA_BUNDLE_PATH": str(trusted.authority)} if trusted else {}
        sides = stack.enter_context(both_planes(**environment))
        for part in parts:
            if part == "lifecycle":
                yield part, lifecycle.run(sides, by_kind["anonymous"], options, known)
            else:
                yield part, both_ways.run(sides, by_kind, options, known)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", default="transom", help=argparse.SUPPRESS)
    parser.add_argument("--only", action="append", choices=PARTS)
    parser.add_argument("--cases", type=int, help="of each area, instead of its own number")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=10, help="how many differences of an area are printed")
    parser.add_argument("--folder", help="builds the folders with this in their names only")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    known, results = Known(), {}
    wanted = options.only or PARTS
    for part in wanted:
        if part in questions.AREAS:
            results[part] = questions.compare(part, options, known)
        elif part == "build":
            results[part] = building.run(options, known)
    # The registries come last: their packages stay installed.
    together = [part for part in ("lifecycle", "registries") if part in wanted]
    if together:
        results.update(on_planes(together, options, known))
    is_default = options.seed == 1 and not options.cases and not options.folder
    unmet = [pattern for part in results for pattern in known.unmet(part)] if is_default else []
    for pattern in unmet:
        print(f"nothing differs as known.txt says: {pattern}")
    passed, failed = (sum(column) for column in zip(*results.values()))
    print(f"packages: {passed} passed, {failed + len(unmet)} failed", flush=True)
    return 1 if failed or unmet else 0


if __name__ == "__main__":
    sys.exit(main())

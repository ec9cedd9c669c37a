"""Compares our code with the Go libraries that Kubernetes and Crossplane are made of, on generated inputs.

The example program `golang` of the crate `builtins` makes questions from a seed and answers them with our code; the Go
program beside this file answers them with the libraries. Where Go goes through a map and answers in several ways, ours
must be one of them. `--only AREA` picks areas, `--cases` and `--seed` say what is asked, `--show` how many differences
are printed. `known.txt` has the differences that are meant, `pattern<TAB>reason`, matched against
`area: question: go -> ours`; one that a default run does not meet fails it.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE.parent)]

import cargo  # noqa: E402
import install  # noqa: E402

AREAS = (
    "patch", "quantity", "bytes", "cel", "cel-zero", "cel-string", "cel-optmap", "cel-ip",
    "schema", "formats", "fieldpath", "template", "options",
)


class Known:
    def __init__(self, file):
        rows = [row for row in file.read_text().splitlines() if row and not row.startswith("#")]
        self.patterns = [re.compile(row.split("\t")[0], re.DOTALL) for row in rows]
        self.met = set()

    def explains(self, difference):
        found = [pattern for pattern in self.patterns if pattern.search(difference)]
        self.met.update(found)
        return bool(found)

    def unmet(self, area):
        return [p.pattern for p in self.patterns if p.pattern.startswith(f"^{area}:") and p not in self.met]


def number(digits):
    return int(digits) if -(1 << 63) <= int(digits) < 1 << 63 else float(digits)


def meaning(answer):
    """What an answer says, however its JSON is written. Why an expression does not compile is not compared."""
    # Go names the types of rules by chance.
    answer = re.sub(r"selfType[\w.@]*", "selfType", answer)
    if answer.startswith("{"):
        return json.loads(answer, parse_int=number)
    # A panic is an error, too: it has no better wording.
    return re.sub(r"(?s)^(does not compile).*|^panic: .*", lambda m: m[1] or "error: inapplicable", answer)


def same(theirs, ours):
    return ours in theirs or meaning(ours) in [meaning(answer) for answer in theirs]


def compare(area, ours, theirs, options, known):
    made = subprocess.run([ours, area, str(options.cases), str(options.seed)], stdout=subprocess.PIPE, check=True).stdout
    cases = [json.loads(line) for line in made.splitlines()]
    asked = "".join(json.dumps(case["question"]) + "\n" for case in cases).encode()
    answered = subprocess.run([theirs], input=asked, stdout=subprocess.PIPE, check=True).stdout
    failed, explained = [], 0
    for case, line in zip(cases, answered.splitlines(), strict=True):
        answers, ours = json.loads(line)["answers"], case["answer"]
        if same(answers, ours):
            continue
        question = {key: value for key, value in case["question"].items() if key != "area"}
        if known.explains(f"{area}: {json.dumps(question, ensure_ascii=False)}: {' | '.join(answers)} -> {ours}"):
            explained += 1
        else:
            failed.append((question, answers, ours))
    for question, answers, ours in failed[: options.show]:
        print(f"{area}: {json.dumps(question, ensure_ascii=False)}")
        for answer in answers:
            print(f"  go   {answer}")
        print(f"  ours {ours}", flush=True)
    unmet = known.unmet(area) if options.seed == 1 and options.cases == 20_000 else []
    for pattern in unmet:
        print(f"{area}: nothing differs as known.txt says: {pattern}")
    print(f"{area}: {len(cases) - len(failed) - explained} alike, {explained} differ as known, {len(failed)} differ", flush=True)
    return len(cases) - len(failed), len(failed) + len(unmet)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", default="transom", help=argparse.SUPPRESS)
    parser.add_argument("--only", action="append", choices=AREAS)
    parser.add_argument("--cases", type=int, default=20_000, help="of each area")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=10)
    options = parser.parse_args()
    theirs, ours = install.golang(), cargo.example("golang")
    known = Known(HERE / "known.txt")
    results = [compare(area, ours, theirs, options, known) for area in options.only or AREAS]
    passed, failed = (sum(column) for column in zip(*results))
    print(f"golang: {passed} passed, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

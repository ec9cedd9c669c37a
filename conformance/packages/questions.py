"""What Crossplane's own code answers to generated questions, and what ours does.

The example `packages` of the crate `packages` makes questions from a seed and answers them with our code; `original`, compiled in
a copy of Crossplane's module, answers them with what is internal there: the resolver, the dependency manager, the store of
ImageConfigs, what runs packages on a cluster, and the libraries for versions, names and references that it uses.
"""

import collections
import json
import re
import subprocess

import cargo
import install

# Area → how many cases a default run has.
AREAS = {
    "constraints": 30_000, "names": 10_000, "references": 10_000, "images": 10_000,
    "solver": 6_000, "install": 3_000, "resolution": 4_000, "runtime": 4_000,
}
# The example that asks, where it is not the one called `packages`.
ASKED_BY = {"runtime": "deploy"}


def alike(area, question, theirs, ours):
    """Whether one of our answers is one of theirs, in the form in which they are compared."""
    if set(theirs) & set(ours):
        return True
    if area == "constraints":
        # The library writes its errors with small letters since its last version; templates have the one before.
        return theirs[0].lower() == ours[0].lower()
    if area == "runtime":
        return json.loads(theirs[0]) == json.loads(ours[0])
    if area == "resolution" and theirs[0].startswith("{"):
        return comparable(json.loads(theirs[0])) == comparable(json.loads(ours[0]))
    if area == "solver":
        if "invalid constraint" in theirs:
            return any(answer.startswith("none ") for answer in ours)
        # To keep what is installed is to do nothing about it.
        kept = [answer.split(" ")[1] for answer in theirs if answer.startswith("keep ")]
        return any(not any(f" {source}:" in answer or f" {source}@" in answer for answer in ours) for source in kept)
    if area == "install":
        return any(same_installation(question, json.loads(one), json.loads(ours[0])) for one in theirs if one.startswith("{"))
    return False


def circumstance(question, theirs, ours):
    """What is special about the package that is answered about: an object without an entry in the Lock, or another version
    than the Lock has because of a rewrite."""
    def named(*texts):
        return {name for text in texts for name in re.findall(r"package-[a-z]", text)}

    locked = named(*(package["source"] for package in question["lock"]))
    objects = named(*(installed["package"] for installed in question["objects"]))
    rewritten = named(*(installed["package"] for installed in question["objects"] if installed["resolved"]))
    if named(*theirs) & (objects - locked):
        return " (installed, not in the Lock)"
    return " (rewritten to another version)" if named(*theirs, *ours) & rewritten else ""


def comparable(resolution):
    """While something is missing, the original does not count what is not accepted, and names the constraint of any parent."""
    if resolution["problem"].startswith("missing dependencies"):
        return {**resolution, "invalid": 0, "problem": re.sub(r" \([^)]*\)", "", resolution["problem"])}
    return resolution


def same_installation(question, theirs, ours):
    """The original stops at the first package that it cannot install, we go on with the others. So what it installed before
    must be among what we installed, and we must have met the same failure. Where installed versions are changed, we
    may have changed them since."""
    def packages(answer):
        return {package if question["mode"] == "default" else package.rsplit(" ", 1)[0] for package in answer["packages"]}

    failures = {failure for failure in theirs["failures"] if failure != "invalid constraint"}
    return bool(theirs["failures"]) and bool(ours["failures"]) and failures <= set(ours["failures"]) and packages(theirs) <= packages(ours)


def compare(area, options, known):
    cases = options.cases or AREAS[area]
    made = subprocess.run([cargo.example(ASKED_BY.get(area, "packages")), area, str(cases), str(options.seed)], stdout=subprocess.PIPE, check=True).stdout
    ours = [json.loads(line) for line in made.splitlines()]
    asked = "".join(json.dumps(case["question"]) + "\n" for case in ours).encode()
    theirs = subprocess.run([install.original()], input=asked, stdout=subprocess.PIPE, check=True).stdout
    failed, explained, seen = [], 0, collections.Counter()
    for case, line in zip(ours, theirs.splitlines(), strict=True):
        answers = json.loads(line)["answers"]
        seen.update(answer.split(" ")[0][:20] for answer in answers)
        if alike(area, case["question"], answers, case["answers"]):
            continue
        question = {key: value for key, value in case["question"].items() if key != "area"}
        shown = json.dumps(question, ensure_ascii=False)
        note = circumstance(question, answers, case["answers"]) if area == "solver" else ""
        if known.explains(f"{area}: {shown}: {' | '.join(answers)} -> {' | '.join(case['answers'])}{note}"):
            explained += 1
        else:
            failed.append((shown, answers, case["answers"]))
    for shown, answers, mine in failed[: options.show]:
        print(f"{area}: {shown}\n  original {' | '.join(answers)}\n  ours     {' | '.join(mine)}", flush=True)
    if options.verbose:
        print(f"{area}: {seen.most_common(12)}")
    print(f"{area}: {cases - len(failed) - explained} alike, {explained} differ as known, {len(failed)} differ", flush=True)
    return cases - len(failed), len(failed)

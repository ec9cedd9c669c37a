"""Replays kubectl transcripts and compares what kubectl shows.

A transcript is a list of blocks: `## comment` lines, one `$ command` (with its here-documents), then the
expected output: standard output as it is, standard error with `2> ` before each line, and `[exit N]` when
N is not 0. A line that begins with `transom ` is shown by Transom alone, and not expected of the real server. What varies by nature (ages, uids, versions, times, column widths) is normalised on both sides.
Each transcript starts on a fresh server. `--update` writes down what was seen instead of comparing.
"""

import argparse
import concurrent.futures
import contextlib
import difflib
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

import install  # noqa: E402
import servers  # noqa: E402

COMMAND_WITHIN = 120  # seconds

VARYING = [
    (re.compile(r"https://127\.0\.0\.1:\d+"), "https://<server>"),
    (re.compile(r"\b127\.0\.0\.1:\d+"), "<server>"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<uid>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
    (re.compile(r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w+ \d{4} \d\d:\d\d:\d\d [+-]\d{4}"), "<time>"),
    (re.compile(r"(resourceVersion\\?\"?: ?\\?\")\d+"), r"\1<rv>"),
    (re.compile(r"(Resource Version: +)\d+"), r"\1<rv>"),
    (re.compile(r"\b\d+y(\d+d)?\b"), "<age>"),
    (re.compile(r"^[EWI]\d{4} [\d:.]+ +\d+ (\S+?):\d+\]"), r"\1]"),
    (re.compile(r"(/tmp/(LIVE|MERGED)-)\d+"), r"\1<n>"),
    (re.compile(r"^((---|\+\+\+) \S+)\s.*"), r"\1"),
    (re.compile(r"(Server Version: v\d+\.\d+)\S*"), r"\1"),
    (re.compile(r"(?<=\s)(\d+[smhd]){1,2}(?=\s|$)"), "<age>"),
    (re.compile(r"\b10\.\d+\.\d+\.\d+\b"), "<ip>"),
    (re.compile(r"(?<=\S)(  +)(?=\S)"), "   "),
]


def normalise(line):
    for pattern, token in VARYING:
        line = pattern.sub(token, line)
    return line.rstrip()


OURS = "transom "


class Block:
    """One command with its comment and the output expected of it."""

    def __init__(self, comment, command, output):
        self.comment, self.command, self.output = comment, command, output

    def expected(self, against):
        """The output that a server should show."""
        if against == "transom":
            return [line.removeprefix(OURS) for line in self.output]
        return [line for line in self.output if not line.startswith(OURS)]

    def recorded(self, output):
        """What the real server showed, with the lines of Transom alone after as many lines as before."""
        for at, line in enumerate(self.output):
            if line.startswith(OURS):
                output = [*output[:at], line, *output[at:]]
        return output

    def text(self, output):
        lines = [*self.comment, "$ " + self.command, *output]
        return "\n".join(lines)


def parse(text):
    """The blocks of a transcript."""
    lines, blocks, comment, at = text.splitlines(), [], [], 0
    while at < len(lines):
        if not lines[at].startswith("$ "):
            if lines[at].startswith("## "):
                comment.append(lines[at])
            at += 1
            continue
        command, at = [lines[at][2:]], at + 1
        for marker in re.findall(r"<<'?(\w+)'?", command[0]):
            while at < len(lines):
                command.append(lines[at])
                at += 1
                if command[-1] == marker:
                    break
        output = []
        while at < len(lines) and not lines[at].startswith(("$ ", "## ")):
            output.append(lines[at])
            at += 1
        while output and not output[-1]:
            output.pop()
        blocks.append(Block(comment, "\n".join(command), output))
        comment = []
    return blocks


def perform(command, env, folder):
    """What the command shows, normalised, as the lines of a transcript."""
    try:
        done = subprocess.run(["bash", "-c", command], env=env, cwd=folder, capture_output=True, text=True, timeout=COMMAND_WITHIN,
                              stdin=subprocess.DEVNULL)
        out, err, code = done.stdout, done.stderr, done.returncode
    except subprocess.TimeoutExpired as late:
        out, err, code = (late.stdout or b"").decode(), f"no end after {COMMAND_WITHIN} s", 124
    lines = [normalise(line) for line in out.splitlines()] + [f"2> {normalise(line)}" for line in err.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    return sort_managers(sort_bullets(lines)) + ([f"[exit {code}]"] if code else [])


def sort_bullets(lines):
    """Errors of one object are found by walking Go maps: their order is not defined."""
    runs = itertools.groupby(lines, key=lambda line: line.startswith("2> * "))
    return [line for bullets, run in runs for line in (sorted(run) if bullets else run)]


def sort_managers(lines):
    """The entries of managedFields (in YAML) are ordered by second, then by name: whether two commands fall into the same
    second decides. They are shown by manager, operation and subresource instead."""
    found, at = [], 0
    while at < len(lines):
        found.append(lines[at])
        at += 1
        if lines[at - 1].strip() != "managedFields:":
            continue
        margin = lines[at - 1].partition("managedFields:")[0]
        entries = []
        while at < len(lines) and lines[at].startswith((f"{margin}- ", f"{margin}  ")):
            if lines[at].startswith(f"{margin}- "):
                entries.append([])
            entries[-1].append(lines[at])
            at += 1
        found += [line for entry in sorted(entries, key=lambda entry: manager_of(entry, margin)) for line in entry]
    return found


def manager_of(entry, margin):
    """What identifies an entry of managedFields."""
    keys = ("manager", "operation", "subresource")
    return [[line for line in entry if line.startswith(f"{margin}  {key}: ")] for key in keys]


@contextlib.contextmanager
def environment(against):
    with servers.start(against) as server, tempfile.TemporaryDirectory(prefix="kubectl-") as folder:
        path = f"{install.kubernetes()}:{os.environ['PATH']}"
        yield {"PATH": path, "KUBECONFIG": str(server.kubeconfig), "HOME": folder, "TERM": "dumb", "LC_ALL": "C.UTF-8"}, folder


def replay(file, options):
    """Runs one transcript; gives (name, passed, reports of failures)."""
    blocks = parse(file.read_text())
    passed, reports, seen = 0, [], []
    with environment(options.against) as (env, folder):
        for block in blocks:
            output = perform(block.command, env, folder)
            seen.append(block.text(block.recorded(output)))
            expected = block.expected(options.against)
            if options.update or output == expected:
                passed += 1
            else:
                change = difflib.unified_diff(expected, output, "expected", "seen", lineterm="", n=3)
                reports.append(f"{file.name}: $ {block.command}\n" + "\n".join(change))
    if options.update:
        file.write_text("\n\n".join(seen) + "\n")
    return file.name, passed, reports


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", default="transom", choices=("transom", "real"))
    parser.add_argument("--update", action="store_true", help="record what is seen; only meaningful against the real server")
    parser.add_argument("--only", default="", help="regular expression on the names of transcripts")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    files = [file for file in sorted(HERE.glob("*.txt")) if re.search(options.only, file.name)]
    passed = failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for name, good, reports in pool.map(lambda file: replay(file, options), files):
            passed, failed = passed + good, failed + len(reports)
            print(f"{name}: {good} of {good + len(reports)}", flush=True)
            for report in reports:
                print(report + "\n")
    print(f"kubectl: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

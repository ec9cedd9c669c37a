"""Differences that are meant: lines `pattern<TAB>reason` in `known.txt`. A reason that begins with `sometimes` is one for what the
original does by chance; all others must be met."""

import pathlib
import re


class Known:
    def __init__(self, file=pathlib.Path(__file__).with_name("known.txt")):
        rows = [row for row in file.read_text().splitlines() if row and not row.startswith("#")]
        self.patterns = [re.compile(row.split("\t")[0], re.DOTALL) for row in rows]
        self.met = {pattern for pattern, row in zip(self.patterns, rows) if row.split("\t")[1].startswith("sometimes")}

    def explains(self, difference):
        found = [pattern for pattern in self.patterns if pattern.search(difference)]
        self.met.update(found)
        return bool(found)

    def unmet(self, part):
        """Patterns of a part (`^part: …`) that nothing matched."""
        return [p.pattern for p in self.patterns if p.pattern.startswith(f"^{part}:") and p not in self.met]

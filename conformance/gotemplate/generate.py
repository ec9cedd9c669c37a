"""Generates templates: a grammar over the language and sprig, and mutations of what the grammar made and of real ones."""

import copy
import random
import re

DATA = {
    "name": "web", "title": "Hello, World", "empty": "", "uni": "héllo wörld ☃ 😀", "multi": "a: 1\nb:\n  - x\n",
    "count": 3, "neg": -7, "zero": 0, "big": 123456789012, "ratio": 0.5, "whole": 3.0, "huge": 1e21, "tiny": 1e-9,
    "yes": True, "no": False, "null": None, "none": [], "void": {},
    "tags": ["x", "y", "z"], "nums": [3, 1, 2], "mixed": [1, "a", None, 2.5, True, ["n"], {"k": "v"}],
    "labels": {"b": "2", "a": "1", "c.d/e": "x"},
    "ports": [{"name": "http", "port": 80}, {"name": "https", "port": 443}],
    "spec": {"replicas": 2, "image": "nginx:1.25", "env": {"A": "1"}, "nothing": None, "list": [1, 2]},
    "version": "1.2.3-beta.1+meta", "url": "https://u:p@host.example:8443/a/b?q=1&r=%20#frag",
    "path": "/var/log/../lib/x.tar.gz", "json": '{"a":[1,2,{"b":null}],"c":"<&>"}', "date": "2024-02-29T13:04:05Z",
    "number": "42", "float": "3.75", "hex": "0x1F", "octal": "0644", "snake": "some_long-NameHTTPServer2",
}

STRINGS = [".name", ".title", ".empty", ".uni", ".multi", ".version", ".url", ".path", ".json", ".date", ".number",
           ".float", ".hex", ".octal", ".snake", '"foo"', '"a,b,c"', '""', '"Foo Bar baz"', '"10"', '"yes"', '"1.0"',
           '"é"', '"a\\tb\\n"', "`raw \"x\"`", '"  pad  "', '"null"', '"2024-01-01"', '"-"', '"<b>&\'"', '".5"', '"1e3"']
INTS = ["0", "1", "2", "3", "5", "7", "10", "-1", "-3", "0x10", "'a'", "1_000", "0b11", "0o17", "100"]
FIELDS_INT = [".count", ".neg", ".zero", ".big", ".spec.replicas"]
FLOATS = ["1.5", ".ratio", ".whole", ".huge", ".tiny", "1e6", "-2.5", "0.1", "1e3", "3.0", "123456.789", "1e-7", "0x1p4"]
BOOLS = ["true", "false", ".yes", ".no"]
LISTS = [".tags", ".nums", ".mixed", ".none", ".ports", '(list 1 2 3)', '(list "b" "a" "c" "a")', "(until 4)",
         '(splitList "," "q,w,e")', '(list)', '(list nil "" 0 "x")', "(untilStep 10 0 -3)", ".spec.list"]
MAPS = [".labels", ".spec", ".void", ".spec.env", '(dict "a" 1 "b" "x")', '(dict)', '(dict "k" (dict "n" 1))',
        "(index .ports 0)", '(dict "a" nil)']
NILS = [".null", ".missing", ".spec.nothing", ".missing.deep", "nil"]
VERBS = "vvvvdddsssqqxXtTfegGobcUE%w"
CONSTRAINTS = ['">=1.0.0"', '"^1.2"', '"~1.2.3"', '"1.x"', '"<2 || >3"', '">1.2.3-alpha"', '"1.0 - 2.0"', '"!=1.2"', '"bad?"',
               '"~0.0.1"', '"^0.2.3"', '"*"', '"=1.2.3"', '">1.1, <2"', '"<=1.x"', '"^0"', '"~1-0"']
VERSIONS = ['"1.2.3"', '"v1.2"', '"1.2.3-beta.1"', '"0.2.5"', '"2.0.0"', '"3"', '"x"', '"1.2.3+b"', '"1.3.0-alpha"', '"0.0.1"']
PATTERNS = ['"[a-z]+"', '"(a)(b)?"', '"\\\\d+"', '"^x*"', '"[^a-c]"', '"(?i)HELLO"', '"a|b"', '"\\\\w+@"', '"("', '"[[:alpha:]]+"',
            '"x{2,3}"', '"l+?"', '"(?P<n>o)"', '"\\\\bw"', '"a{,2}"', '"[]a]"', '"."', '""', '"\\\\pL"', '"a**"', '"[a-]"', '"\\\\."', '"<b>"', '"[<>&]"']
LAYOUTS = ['"2006-01-02"', '"15:04:05"', '"Jan _2 2006"', '"Mon, 02 Jan 2006 15:04:05 MST"', '"2006-01-02T15:04:05Z07:00"',
           '"3:04PM"', '"02/01/06"', '"January 2, 2006"', '"2006-002"', '"15h04.000"', '"-0700"', '"x"']
DURATIONS = ['"1h"', '"90m"', '"1h30m10s"', '"-5m"', '"100ms"', '"bad"', '"0"', '"36h"', '"1.5h"', '"800h"', '"9000h"', '"2us"']

# name, argument kinds: s string, i int constant, f float, n any number, b bool, l list, m map, a anything,
# p pattern, c constraint, V version, L layout, D duration, T time, * repeats the kind before it.
FUNCTIONS = """
abbrev is|abbrevboth iis|trunc is|trim s|upper s|lower s|title s|untitle s|substr iis|repeat is|trimAll ss|trimSuffix ss
trimPrefix ss|nospace s|initials s|swapcase s|snakecase s|camelcase s|kebabcase s|wrap is|wrapWith iss|contains ss
hasPrefix ss|hasSuffix ss|quote a*|squote a*|cat a*|indent is|nindent is|replace sss|plural ssi|sha1sum s|sha256sum s
sha512sum s|adler32sum s|toString a|atoi s|int64 a|int a|float64 a|seq i*|toDecimal a|split ss|splitList ss|splitn sis
toStrings a|until i|untilStep iii|add1 n|add n*|sub nn|div nn|mod nn|mul n*|addf n*|add1f n|subf n*|divf nn|mulf n*
max n*|min n*|biggest n*|maxf n*|minf n*|ceil n|floor n|round ni|join sl|join sa|sortAlpha l|default aa|empty a|coalesce a*
all a*|any a*|compact l|fromJson s|toJson a|toPrettyJson a|toRawJson a|mustToJson a|mustFromJson s|ternary aab|deepCopy a
typeOf a|typeIs sa|typeIsLike sa|kindOf a|kindIs sa|deepEqual aa|base s|dir s|clean s|ext s|isAbs s|osBase s|b64enc s
b64dec s|b32enc s|b32dec s|list a*|tuple a*|dict sasa|dict a*|get ms|set msa|unset ms|hasKey ms|pluck smm|pick mss|omit mss
merge mm|mergeOverwrite mm|mustMerge mm|mustMergeOverwrite mmm|append la|prepend la|first l|rest l|last l|initial l
reverse l|uniq l|without laa|has al|slice li|slice lii|concat ll|dig ssam|dig sam|chunk il|mustAppend aa|mustFirst a
semver V|semverCompare cV|regexMatch ps|regexFindAll psi|regexFind ps|regexReplaceAll pss|regexReplaceAllLiteral pss
regexSplit psi|mustRegexMatch ps|mustRegexReplaceAll pss|regexQuoteMeta s|urlParse s|urlJoin m|urlJoin (urlParse_s)
date LT|dateInZone LTs|htmlDate T|dateModify DT|mustDateModify DT|duration n|duration s|durationRound D|toDate Ls|mustToDate Ls
unixEpoch T|toYaml a|toYaml a|toYaml m|fromYaml s|len a|index la|index ma|index aa|eq aa|ne aa|lt nn|le nn|gt nn|ge nn
eq nn|eq ss|lt ss|not a|and aa|or aa|print a*|println a*|html s|js s|urlquery s|printf F|printf F|printf F|printf F
derivePassword_ s|hello |mustToDate Ls|mustRegexFindAll psi|mustUniq l|mustHas al|mustSlice lii|mustChunk il|call a|html a*
"""


# One deterministic use of each function the grammar does not reach.
EVERY_FUNCTION = [
    '{{keys (dict "a" 1) | join ","}}', '{{values (dict "a" 1)}}', '{{trimall "$" "$5$"}}', '{{randAlpha 5 | len}}',
    '{{randAlphaNum 5 | len}}', "{{randAscii 5 | len}}", "{{randNumeric 5 | len}}", "{{randBytes 6 | len}}", "{{randInt 3 4}}",
    "{{uuidv4 | len}}", '{{shuffle "aaa"}}', '{{bcrypt "x" | len}}', '{{htpasswd "u" "p" | len}}', '{{htpasswd "a:b" "p"}}',
    '{{derivePassword 1 "long" "password" "user" "example.com"}}', '{{derivePassword 1 "none" "p" "u" "s"}}',
    '{{encryptAES "key" "plain" | decryptAES "key"}}', '{{fail "boom"}}', '{{osClean "a//b/../c"}}', '{{osDir "/a/b"}}',
    '{{osExt "x.y"}}', '{{osIsAbs "/x"}}', '{{push (list 1) 2}}', "{{mustPush (list 1) 2}}", "{{mustPrepend (list 1) 2}}",
    "{{mustRest (list 1 2)}}", "{{mustLast (list 1 2)}}", "{{mustInitial (list 1 2)}}", "{{mustReverse (list 1 2)}}",
    "{{mustWithout (list 1 2) 1}}", '{{mustCompact (list 1 "")}}', '{{mustDeepCopy (dict "a" 1)}}', '{{mustToPrettyJson (dict "a" 1)}}',
    '{{mustToRawJson "<"}}', '{{mustRegexFind "a+" "baa"}}', '{{mustRegexReplaceAllLiteral "a" "ba" "$1"}}',
    '{{mustRegexSplit "a" "bac" -1}}', '{{now | kindOf}}', '{{ago now}}', '{{date_in_zone "2006" 0 "UTC"}}',
    '{{dateInZone "15:04 MST" 1700000000 "America/New_York"}}', '{{htmlDateInZone 1700000000 "Asia/Tokyo"}}',
    '{{(toDate "2006-01-02" "2024-01-01") | date_modify "24h" | date "2006-01-02"}}',
    '{{(toDate "2006-01-02" "2024-01-01") | must_date_modify "24h" | unixEpoch}}', '{{getHostByName "localhost" | len | lt 3}}',
    '{{genPrivateKey "ecdsa" | trunc 30}}', '{{genPrivateKey "ed25519" | trunc 27}}', '{{genPrivateKey "what"}}',
    '{{(genCA "ca" 1).Cert | trunc 27}}', '{{(genSelfSignedCert "cn" (list "10.0.0.1") (list "a.b") 1).Key | trunc 31}}',
    '{{$ca := genCA "ca" 1}}{{(genSignedCert "cn" nil (list "a.b") 1 $ca).Cert | trunc 27}}',
    '{{$k := genPrivateKey "ecdsa"}}{{(genCAWithKey "ca" 1 $k).Key | eq $k}}',
    '{{$k := genPrivateKey "ed25519"}}{{(genSelfSignedCertWithKey "ca" nil nil 1 $k).Key | eq $k}}',
    '{{$k := genPrivateKey "ecdsa"}}{{(genSignedCertWithKey "c" nil nil 1 (genCAWithKey "ca" 1 $k) $k).Key | eq $k}}',
    '{{$c := genCAWithKey "ca" 1 (genPrivateKey "ecdsa")}}{{eq $c.Cert (buildCustomCert (b64enc $c.Cert) (b64enc $c.Key)).Cert}}',
    '{{buildCustomCert "" ""}}', '{{define "r"}}{{if gt . 0}}{{.}}{{template "r" (int (sub . 1))}}{{end}}{{end}}{{template "r" 5}}',
    '{{define "r"}}{{include "r" .}}{{end}}{{template "none"}}', '{{include "absent" .}}', "{{slice (list 1 2 3) 1}}",
]

MUTATING = ("set", "unset", "merge", "mergeOverwrite", "mustMerge", "mustMergeOverwrite")


class Generator:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.vars = []
        self.signatures = []
        for entry in FUNCTIONS.replace("\n", "|").split("|"):
            name, _, kinds = entry.strip().partition(" ")
            if name and "_" not in entry:
                self.signatures.append((name, kinds))

    def pick(self, options):
        return self.random.choice(options)

    def chance(self, probability):
        return self.random.random() < probability

    def atom(self, kind):
        if self.chance(0.04) and kind not in "TL":
            kind = self.pick("sinfblmaN")
        table = {
            "s": STRINGS, "i": INTS, "f": FLOATS, "b": BOOLS, "l": LISTS, "m": MAPS, "p": PATTERNS, "c": CONSTRAINTS,
            "V": VERSIONS, "L": LAYOUTS, "D": DURATIONS, "N": NILS,
            "n": INTS + FIELDS_INT + FLOATS + ['"4"', ".number", ".float"],
            "T": ['(toDate "2006-01-02T15:04:05Z07:00" .date)', "1700000000", '(toDate "2006-01-02" "1999-12-31")'],
        }
        if kind == "a":
            if self.vars and self.chance(0.3):
                return self.pick(self.vars)
            if self.chance(0.1):
                return self.pick([".", "$"])
            kind = self.pick("ssinnfblmN")
        return self.pick(table[kind])

    def argument(self, kind, depth):
        # Anything but a time means now to the date functions, and now differs between two programs.
        if depth > 0 and kind != "T" and self.chance(0.25):
            inner = self.call(depth - 1)
            return {"s": f"({inner} | toString)", "i": f"({inner} | int)"}.get(kind, f"({inner})")
        return self.atom(kind)

    def format(self):
        pieces, kinds = [], []
        for _ in range(self.random.randint(1, 3)):
            flags = "".join(self.random.sample("+-# 0", self.random.choice([0, 0, 0, 1, 1, 2])))
            width = self.pick(["", "", "", "5", "10", "3", "*", "[1]"])
            precision = self.pick(["", "", "", ".2", ".0", ".", ".5", ".*"])
            pieces.append("%" + flags + width + precision + self.pick(VERBS))
            kinds.append(self.pick(["s", "n", "i", "f", "a", "l", "m", "b"]))
        text = self.pick(["", "x "]) + self.pick(["", " "]).join(pieces)
        count = self.random.choice([len(kinds)] * 4 + [len(kinds) + 1, max(0, len(kinds) - 1)])
        args = [self.atom(self.pick(kinds)) for _ in range(count)]
        return 'printf "' + text + '" ' + " ".join(args)

    def call(self, depth=2):
        name, kinds = self.pick(self.signatures)
        if kinds == "F":
            return self.format()
        if kinds.endswith("*"):
            kinds = kinds[:-1] + kinds[-2] * self.random.randint(0, 2)
        if self.chance(0.02):
            kinds = kinds[:-1]
        if name in MUTATING:
            # A map must never come to contain itself: Go dies of printing it.
            tame = {"m": [".labels", ".spec", ".void", '(dict "a" 1 "b" "x")', '(dict "env" (dict "A" "2" "B" 1))'], "s": STRINGS}
            args = [self.pick(tame.get(kind, STRINGS + INTS + FLOATS + BOOLS)) for kind in kinds]
        else:
            args = [self.argument(kind, depth) for kind in kinds]
        return (name + " " + " ".join(args)).strip()

    def pipeline(self, depth=2):
        text = self.call(depth) if self.chance(0.8) else self.atom("a")
        for _ in range(self.random.choice([0, 0, 0, 1, 1, 2])):
            name, kinds = self.pick(self.signatures)
            if kinds == "F" or not kinds:
                text += " | " + self.pick(["toJson", "quote", "toString", "len", "typeOf", "kindOf", 'printf "%v"', "upper", "not"])
                continue
            kinds = kinds.rstrip("*")
            if "T" in kinds or name in MUTATING:
                continue
            args = [self.argument(kind, 1) for kind in kinds[:-1]]
            if self.chance(0.9):
                text += {"s": " | toString", "i": " | int", "l": " | list", "b": " | not", "m": ' | dict "k"'}.get(kinds[-1], "")
            text += " | " + " ".join([name] + args)
        return text if text != "nil" else "print nil"

    def variable(self):
        name = "$" + self.pick("xyz")
        return name

    def action(self, depth):
        choice = self.random.random()
        left = self.pick(["{{", "{{", "{{ ", "{{- "])
        right = self.pick(["}}", "}}", " }}", " -}}"])
        if depth <= 0 or choice < 0.55:
            return left + self.pipeline() + right
        if choice < 0.63:
            name = self.variable()
            text = left + name + self.pick([" := ", " := ", ":="]) + self.pipeline() + right
            self.vars.append(name)
            return text + "[{{" + name + "}}]"
        if choice < 0.67 and self.vars:
            name = self.pick(self.vars)
            return left + name + " = " + self.pipeline() + right + "{{" + name + "}}"
        if choice < 0.75:
            other = self.pick(["", "{{else}}" + self.body(depth - 1), "{{else if " + self.pipeline(1) + "}}E"])
            return left + "if " + self.pipeline(1) + right + self.body(depth - 1) + other + "{{end}}"
        if choice < 0.88:
            return self.range(left, right, depth)
        if choice < 0.94:
            other = self.pick(["", "{{else}}" + self.body(depth - 1), "{{else with " + self.atom("a") + "}}W{{.}}"])
            return left + "with " + self.pick([self.pipeline(1), self.atom("m"), self.atom("l")]) + right + self.body(depth - 1) + other + "{{end}}"
        if choice < 0.97:
            return '{{define "t"}}<{{.}}>{{end}}{{template "t" ' + self.atom("a") + '}}{{include "t" ' + self.atom("a") + "}}"
        return self.pick(['{{block "b" .name}}({{.}}){{end}}', "{{/* note */}}", "{{- /* trim */ -}}", '{{template "missing"}}',
                          "{{.ports.x}}", "{{.name.x}}", "{{.mixed.k}}", "{{$.spec.image}}", "{{(index .ports 1).port}}",
                          "{{.name | .title}}", "{{1 | 2}}", "{{nil}}", "{{break}}", "{{$undefined}}", "{{nofunc}}",
                          '{{semver .version | printf "%v"}}', "{{(semver .version).Major}}", "{{(semver .version).Prerelease}}",
                          '{{(toDate "2006-01-02" "2024-05-06").Weekday}}', '{{(toDate "2006-01-02" "2024-05-06").Year}}'])

    def range(self, left, right, depth):
        saved = list(self.vars)
        form = self.pick(["", "$v := ", "$k, $v := ", ""])
        head = form + self.pick([self.atom("l"), self.atom("m"), self.atom("i"), self.pipeline(1)])
        if "$v" in form:
            self.vars.append("$v")
        if "$k" in form:
            self.vars.append("$k")
        inner = self.body(depth - 1)
        if "$k" in form:
            inner = "{{$k}}=" + inner
        leave = self.pick(["", "", "", "{{break}}", "{{continue}}", "{{if eq . 1}}{{break}}{{end}}"])
        other = self.pick(["", "", "{{else}}none"])
        self.vars = saved
        return left + "range " + head + right + self.pick(["{{.}},", ""]) + leave + inner + other + "{{end}}"

    def body(self, depth):
        saved = list(self.vars)
        text = "".join(self.pick(["", " ", "a\n", "  b: "]) + self.action(depth) for _ in range(self.random.choice([1, 1, 2])))
        self.vars = saved
        return text

    def template(self):
        self.vars = []
        text = "".join(self.pick(["", "\n", "k: ", " \n "]) + self.action(3) for _ in range(self.random.choice([1, 1, 1, 2, 3])))
        if self.chance(0.12):
            text = self.mutate(text)
        return text

    def mutate(self, text):
        for _ in range(self.random.randint(1, 3)):
            at = self.random.randrange(len(text) + 1)
            change = self.random.random()
            if change < 0.4 and text:
                text = text[:at] + text[at + 1:]
            elif change < 0.8:
                text = text[:at] + self.pick(["{{", "}}", "(", ")", "|", ".", "$", '"', " ", "-", ":=", "=", ",", "end", "else", "nil",
                                              "\n", "1", "'", "`", "\\", "\u00e9", "\x00", "{{end}}", "/*"]) + text[at:]
            else:
                end = min(len(text), at + self.random.randint(1, 8))
                text = text[:at] + text[at:end] * 2 + text[end:]
        return text

    def real(self, text):
        """A case from a published template: changed by words and lines, over fields of the names it uses."""
        spec = {}
        for path in re.findall(r"(?:spec|parameters)\.([A-Za-z][\w.]*)", text):
            here = spec
            *above, last = path.strip(".").split(".")
            for name in above:
                here = here.setdefault(name, {}) if isinstance(here.get(name, {}), dict) else {}
            here.setdefault(last, copy.deepcopy(self.pick(list(DATA.values()))))
        for _ in range(self.pick([0, 1, 1, 2])):
            words = re.findall(r"\w+", text) or ["x"]
            lines = text.splitlines(True) or [""]
            change = self.random.random()
            if change < 0.4:
                text = re.sub(rf"\b{self.pick(words)}\b", self.pick(words + ["quote", "toYaml", "nil", "0"]), text, count=1)
            elif change < 0.7:
                lines.insert(self.random.randrange(len(lines)), self.pick(lines))
                text = "".join(lines)
            elif change < 0.9:
                lines.pop(self.random.randrange(len(lines)))
                text = "".join(lines)
            else:
                text = self.mutate(text)
        resource = {"apiVersion": "example.org/v1", "kind": "XR", "metadata": {"name": "demo", "labels": DATA["labels"]},
                    "spec": {**spec, "parameters": spec}, "status": self.pick([{}, {"ready": True}])}
        return {"template": text, "data": {"observed": {"composite": {"resource": resource}}, "context": {}}, "option": ""}

    def case(self):
        option = self.pick(["", "", "", "", "missingkey=zero", "missingkey=error"])
        return {"template": self.template(), "data": DATA, "option": option}


# What answers differ in whenever they are asked.
UNSETTLED = re.compile(r"\b(now|rand\w+|uuidv4|gen[A-Z]\w+|bcrypt|htpasswd|shuffle|keys|values)\b")


def cases(count, seed, real=()):
    """So many cases; every fourth from a real template, where there are any."""
    generator = Generator(seed)
    settled = [text for text in real if not UNSETTLED.search(text)]
    return [generator.real(settled[i // 4 % len(settled)]) if settled and i % 4 == 3 else generator.case() for i in range(count)]

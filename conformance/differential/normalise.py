"""Answers of two servers made comparable: what must differ is replaced by tokens that keep equality.

A uid becomes `uid1(name)`, `uid2(name)`, … in order of first sight among objects of that name, a
resourceVersion `rv1`, `rv2`, … likewise, so that "this write changed nothing" and "these two are the same
object" remain visible. Times and ages become constants. Orders that the reference itself leaves to chance
are sorted.
"""

import base64
import collections
import copy
import json
import re

UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
NUMBERED = [
    (re.compile(r"(resource version: )\d+( \(|, current: )\d+", re.I), r"\1N\2N"),
    (re.compile(r"(ResourceVersion in the precondition \()\d+(\).* \()\d+\)"), r"\1N\2N)"),
    (re.compile(r'(resourceVersion\\?"?: ?\\?")\d+'), r"\1N"),
    (re.compile(r"\b(g{50,}|Bad_|s\d+-)[bcdfghjklmnpqrstvwxz2456789]{5}\b"), r"\1<random>"),
    (TIME, "<time>"),
    (re.compile(r"https://127\.0\.0\.1:\d+/[ab]/"), "<webhook>/"),
    (re.compile(r"\b10\.\d+\.\d+\.\d+\b"), "<ip>"),
]
QUOTED_OBJECT = re.compile(r'"\{(?:[^"\\]|\\.)*\}"')
# The reference's controllers run in a binary of the suite's own.
PROGRAMS = {"controllers": "kube-controller-manager"}
# Made by controllers in every namespace; their content is the installation's own.
AUTOMATIC = ("kube-root-ca.crt", "default")
ADDRESSES = {"clusterIP", "nodePort", "healthCheckNodePort"}


class Normaliser:
    """Tokens of one server in one stream."""

    def __init__(self):
        self.uids, self.versions, self.dates = {}, {}, set()
        self.counts = collections.Counter()

    def uid(self, value, name=""):
        if value not in self.uids:
            self.counts["uid", name] += 1
            self.uids[value] = f"uid{self.counts['uid', name]}({name})"
        return self.uids[value]

    def version(self, value, name):
        if not str(value).isdigit() or value == "0":
            return value
        if value not in self.versions:
            self.counts["rv", name] += 1
            self.versions[value] = f"rv{self.counts['rv', name]}"
        return self.versions[value]

    def answer(self, answer):
        body = answer.body
        if isinstance(body, list):
            body = [self.event(event) for event in body if not _is_progress(event)]
        else:
            body = self.value(body)
        kind = answer.kind.replace(" ", "")
        return {"code": answer.code, "type": kind, "warnings": [self.text(item) for item in answer.warnings], "body": body}

    def event(self, event):
        if event.get("type") != "BOOKMARK":
            return self.value(event)
        marked = copy.deepcopy(event)
        marked["object"]["metadata"]["resourceVersion"] = "<bookmark>"  # before it becomes a token: no object has it
        return self.value(marked)

    def text(self, value):
        value = QUOTED_OBJECT.sub(lambda found: self.quoted(found), value)
        value = UUID.sub(lambda found: self.uid(found.group()), value)
        for pattern, token in NUMBERED:
            value = pattern.sub(token, value)
        return value

    @staticmethod
    def quoted(found):
        """An object quoted in a message, with its fields in alphabetical order and its managers likewise."""
        try:
            quoted = json.loads(json.loads(found.group()))
        except ValueError:
            return found.group()
        managers = quoted.get("metadata", {}).get("managedFields") if isinstance(quoted.get("metadata"), dict) else None
        if isinstance(managers, list):
            managers.sort(key=lambda entry: _text({key: part for key, part in entry.items() if key != "time"}) if isinstance(entry, dict) else "")
        return json.dumps(_text(quoted))

    def value(self, value, key=""):
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            if key == "clusterIPs":
                return [item if item == "None" else "<ip>" for item in value]
            found = [self.value(item) for item in value]
            named = {"managedFields": _by_manager, "parameters": _by_name}.get(key)
            return named(found) if named else found
        if not isinstance(value, dict):
            return value
        if value.get("kind") == "Status" and value.get("apiVersion") == "v1":
            return self.status(value)
        if value.get("kind") == "APIResourceList" and "resources" in value:
            # Kinds are listed in the order in which their definitions were noticed.
            return {**value, "resources": sorted(value["resources"], key=lambda resource: resource["name"])}
        if value.get("resources") and isinstance(value["resources"], list) and "freshness" in value:
            return {**value, "resources": sorted(value["resources"], key=lambda resource: resource["resource"])}
        if value.get("kind") == "Table":
            return self.table(value)
        if _name(value) in AUTOMATIC:
            return {"name": _name(value)}
        return self.object(value)

    def object(self, value):
        found = {}
        if isinstance(value.get("items"), list) and str(value.get("kind", "")).endswith("List"):
            value = {**value, "items": [self.item(item, value) for item in value["items"]]}
        for key, item in value.items():
            key = UUID.sub(lambda match: self.uid(match.group()), key)
            if key == "metadata" and isinstance(item, dict):
                found[key] = self.metadata(item, collection="items" in value)
            elif key in ADDRESSES and item not in ("None", ""):
                found[key] = "<assigned>"
            else:
                found[key] = self.value(item, key)
        return found

    @staticmethod
    def item(item, listed):
        """An item without what its list says already: the reference leaves it out for built-in kinds."""
        same = {"apiVersion": listed.get("apiVersion"), "kind": listed["kind"][:-len("List")]}
        if isinstance(item, dict):
            return {key: part for key, part in item.items() if same.get(key) != part}
        return item

    def metadata(self, meta, collection):
        name = meta.get("generateName") or meta.get("name")
        if isinstance(meta.get("uid"), str):
            self.uid(meta["uid"], name)
        found = {key: self.value(item, key) for key, item in meta.items()}
        if "resourceVersion" in meta:
            found["resourceVersion"] = "<list>" if collection else self.version(meta["resourceVersion"], name)
        if meta.get("generateName") and str(meta.get("name", "")).startswith(meta["generateName"]):
            found["name"] = meta["generateName"] + "<random>"
        if meta.get("continue"):
            found["continue"] = _continuation(meta["continue"])
        return found

    def table(self, table):
        found = self.object({**table, "rows": [], "items": []})
        del found["items"]
        if table.get("columnDefinitions"):  # a watch sends them with its first event only
            self.dates = {index for index, column in enumerate(table["columnDefinitions"])
                          if column["name"] in ("Age", "Created At") or column["type"] == "date"}
        found["rows"] = [
            {**{key: self.value(item) for key, item in row.items() if key != "cells"},
             "cells": ["<age>" if index in self.dates else self.value(cell) for index, cell in enumerate(row["cells"])]}
            for row in table.get("rows") or []
        ]
        return found

    def status(self, status):
        found = self.object(status)
        details = found.get("details")
        causes = isinstance(details, dict) and details.get("causes")
        if causes:
            details["causes"] = {f"{cause.get('field')}: {cause.get('message')}": cause.get("reason") for cause in causes}
        if causes and len(causes) > 1:
            # Validation walks Go maps, so neither the order of causes nor that of their texts in the message is defined.
            # The reference repeats a cause once for each layer that checks it.
            head, bracket, _ = found.get("message", "").partition("is invalid: [")
            found["message"] = head + bracket + ("<causes>]" if bracket else "")
        # So does reading what is applied, which lists one error a line.
        head, listed, errors = found.get("message", "").partition(": errors:\n")
        if listed:
            found["message"] = head + listed + "\n".join(sorted(errors.split("\n")))
        return found


def meet(normalisers):
    """Lets the next uid and version of every name have the same token everywhere, whatever each has seen so far."""
    for counted in {key for each in normalisers for key in each.counts}:
        most = max(each.counts[counted] for each in normalisers)
        for each in normalisers:
            each.counts[counted] = most


def agree(normalisers, answers):
    """One token for the versions that an object has now, where the servers count them differently and may."""
    metas = [answer.body.get("metadata") if isinstance(answer.body, dict) else None for answer in answers]
    if all(isinstance(meta, dict) and meta.get("name") and str(meta.get("resourceVersion", "")).isdigit() for meta in metas):
        name = metas[0].get("generateName") or metas[0].get("name")
        count = 1 + max(each.counts["rv", name] for each in normalisers)
        for each, meta in zip(normalisers, metas):
            each.counts["rv", name] = count
            each.versions[meta["resourceVersion"]] = f"rv{count}"


def _continuation(token):
    try:
        decoded = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        return {**decoded, "rv": "<rv>" if decoded.get("rv", 0) > 0 else decoded.get("rv")}
    except ValueError:
        return f"<unreadable {token}>"


def _name(value):
    meta = value.get("metadata")
    return meta.get("name") if isinstance(meta, dict) else None


def _by_manager(entries):
    """managedFields by who, how and through what: their order depends on the second in which they were written."""
    found = {}
    for entry in entries:
        if not isinstance(entry, dict):
            return entries
        manager = PROGRAMS.get(entry.get("manager"), entry.get("manager"))
        parts = [manager, *(entry.get(part, "-") for part in ("operation", "apiVersion", "subresource"))]
        found[" ".join(str(part) for part in parts)] = {**entry, "manager": manager}
    return found if len(found) == len(entries) else sorted(entries, key=_text)


def _by_name(parameters):
    """The parameters of an OpenAPI operation by place and name: their order means nothing."""
    try:
        return {f"{each['in']} {each['name']}": each for each in parameters}
    except (KeyError, TypeError):
        return parameters


def _text(entry):
    return json.dumps(entry, sort_keys=True)


def _is_progress(event):
    """A bookmark that only reports progress: when it comes is a matter of timing."""
    if event.get("type") != "BOOKMARK":
        return False
    annotations = event["object"].get("metadata", {}).get("annotations", {})
    return "k8s.io/initial-events-end" not in annotations

#!/usr/bin/env python3
"""Writes the roles and bindings that a real kube-apiserver makes at its start to `crates/rbac/src/policy.json`.

The controllers are not started: rules of aggregated ClusterRoles are not part of what is recorded. `suite.py` compares
what Transom serves with the real server, so a record that is out of date fails there.
"""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parent))

import api  # noqa: E402
import servers  # noqa: E402

KINDS = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
TARGET = HERE.parent.parent / "crates/rbac/src/policy.json"
KEPT = ("name", "namespace", "labels", "annotations")


def policy(client):
    """Every object of the four kinds, by kind, without what a server adds."""
    found = {}
    for plural in KINDS:
        answer = client.request("GET", f"/apis/rbac.authorization.k8s.io/v1/{plural}")
        found[plural] = [recorded(each) for each in answer.body["items"]]
    return found


def recorded(item):
    metadata = {key: item["metadata"][key] for key in KEPT if key in item["metadata"]}
    rest = {key: value for key, value in item.items() if key in ("rules", "aggregationRule", "roleRef", "subjects")}
    if "aggregationRule" in rest:
        rest.pop("rules", None)
    return {"metadata": metadata, **rest}


def main():
    with servers.real(controllers=False) as real:
        found = policy(api.Client(real))
    lines = []
    for plural, items in found.items():
        rows = ",\n".join("  " + json.dumps(item, separators=(",", ":")) for item in items)
        lines.append(f' "{plural}": [\n{rows}\n ]')
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print({plural: len(items) for plural, items in found.items()})


if __name__ == "__main__":
    main()

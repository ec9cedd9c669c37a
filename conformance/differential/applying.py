"""Streams of server-side apply: several managers, forced and not, mixed with updates and status writes."""

import customs
import kinds
from operations import Handle, as_yaml
from writing import PATCHES

MANAGERS = ("red", "green", "blue", "kubectl")


def contest(kind):
    """Managers apply random configurations of the same object in turn."""

    def stream(rng, scope):
        target = Handle(kind, f"{scope.name}-ssa", scope.namespace if kind.namespaced else None)
        for _ in range(34):
            yield from move(kind, target, rng)

    stream.__name__ = f"apply-{kind.plural}"
    return stream


def move(kind, target, rng):
    action = rng.random()
    body = kind.make(rng, target.name, {rng.choice("abc"): kinds.simple(rng)} if rng.random() < 0.6 else None)
    if action < 0.55:
        query = {"dryRun": "All"} if rng.random() < 0.1 else {}
        body = as_yaml(body) if rng.random() < 0.3 else body
        yield target.apply(body, rng.choice(MANAGERS), rng.choice((None, "true", "true", "false")), **query)
    elif action < 0.65:
        yield target.patch(PATCHES["merge"], kind.change(rng), "patch.between", query={"fieldManager": rng.choice(MANAGERS)})
    elif action < 0.72:
        body["metadata"]["resourceVersion"] = target.version
        yield target.get()
        yield target.update(body, "update.between", query={"fieldManager": rng.choice(MANAGERS)})
    elif action < 0.8 and kind.status and kind.custom:
        state = kind.object(target.name, status=customs.instance(customs.STATUS, rng), spec={"size": 1})
        yield target.apply(state, rng.choice(MANAGERS), rng.choice((None, "true")), "patch.status", "/status")
    elif action < 0.84 and kind.scale:
        body = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": target.name}, "spec": {"replicas": rng.randrange(4)}}
        yield target.apply(body, rng.choice(MANAGERS), "true", "patch.scale", "/scale")
        yield target.get()
    elif action < 0.88:
        yield target.patch(PATCHES["merge"], {"metadata": {"managedFields": rng.choice(([], [{}], None))}}, "patch.reset")
    elif action < 0.95:
        yield from mistake(kind, target, rng)
    else:
        yield target.delete()


def mistake(kind, target, rng):
    body = kind.make(rng, target.name)
    choice = rng.randrange(9)
    if choice == 0:
        yield target.patch("application/apply-patch+yaml", body, "patch.nomanager")
    elif choice == 1:
        body["metadata"]["managedFields"] = [{"manager": "x"}]
        yield target.apply(body, "red", what="patch.mistake")
    elif choice == 2:
        body["metadata"]["name"] = "someone-else"
        yield target.apply(body, "red", what="patch.mistake")
    elif choice == 3:
        body["apiVersion"] = "wrong/v1"
        yield target.apply(body, "red", what="patch.mistake")
    elif choice == 4:
        yield target.apply("a: [", "red", what="patch.mistake")
    elif choice == 5:
        body["metadata"]["resourceVersion"] = "1"
        yield target.apply(body, "red", what="patch.mistake")
    elif choice == 6:
        yield target.patch(PATCHES["merge"], {}, "patch.forced", query={"force": "true"})
    elif choice == 7:
        del body["kind"]
        yield target.apply(body, "red", what="patch.mistake")
    else:
        body["stray"] = 1
        yield target.apply(body, "red", what="patch.mistake", fieldValidation=rng.choice(("Strict", "Warn")))


LISTS = [
    {"tags": ["a", "b"]}, {"tags": ["b", "c"]}, {"tags": []}, {"ports": [{"port": 80}]}, {"ports": [{"port": 80, "comment": "x"}, {"port": 81}]},
    {"ports": [{"port": 81, "protocol": "UDP"}, {"port": 80, "protocol": "TCP"}]}, {"ports": [{"port": 80}, {"port": 80}]}, {"tags": ["a", "a"]},
    {"settings": {"a": "1"}}, {"settings": {"b": "2"}}, {"frozen": {"a": "x"}}, {"frozen": {"b": 1}}, {"extra": {"deep": {"a": 1}}},
    {"extra": {"deep": {"b": [1]}}}, {"note": None}, {"note": "n"}, {"args": ["1"]}, {"args": ["1", "2"]}, {},
    {"ports": [{"port": 80, "weights": {"a": 1}}]}, {"ports": [{"port": 80, "weights": {"b": 2}}]}, {"limits": {"max": 5}}, {"nested": {}},
    {"nested": {"inner": {"deep": 8}}}, {"template": {"apiVersion": "v1", "kind": "T", "metadata": {"labels": {"q": "1"}}}},
]


def emptied(rng, scope):
    """A map whose last entry goes with its owner, alone and together with a change that is refused."""
    target = Handle(customs.WIDGET, f"{scope.name}-empty", scope.namespace)
    for klass in ("same", "other"):
        yield target.apply(customs.WIDGET.object(target.name, spec={"color": "red", "klass": "same", "settings": {"a": "1"}}), "red")
        yield target.apply(customs.WIDGET.object(target.name, spec={"color": "red", "klass": klass, "settings": {}}), "red")


def ownership(rng, scope):
    """Shared sets, keyed lists, atomic and granular maps: who owns what, and what vanishes with whom."""
    target = Handle(customs.WIDGET, f"{scope.name}-own", scope.namespace)
    for _ in range(34):
        spec = {"color": "red", **rng.choice(LISTS), **rng.choice(LISTS)}
        if rng.random() < 0.3:
            spec = rng.choice(LISTS)
        body = customs.WIDGET.object(target.name, spec=spec)
        yield target.apply(body, rng.choice(MANAGERS), rng.choice((None, None, "true")), "patch.ownership")

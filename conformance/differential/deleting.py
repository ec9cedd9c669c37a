"""Streams of deletion: finalizers, preconditions, owners and dependents, whole namespaces."""

import customs
import kinds
from operations import Handle, Operation
from writing import PATCHES

HOLD = "example.org/hold"


def finalizers(kind):
    """Objects held by finalizers, and what may still be done to them."""

    def stream(rng, scope):
        for index in range(5):
            target = Handle(kind, f"{scope.name}-f{index}", scope.namespace if kind.namespaced else None)
            body = kind.make(rng, target.name)
            body["metadata"]["finalizers"] = rng.choice(([HOLD], [HOLD, "example.org/other"], ["foregroundDeletion"] if index == 9 else [HOLD]))
            yield target.create(body)
            yield target.delete(condition(target, rng), "delete.precondition")
            yield target.delete(rng.choice((None, {"propagationPolicy": "Background"}, {"gracePeriodSeconds": 5}, {"propagationPolicy": "Nonsense"},
                                            {"orphanDependents": True, "propagationPolicy": "Orphan"}, {"dryRun": ["All"]})), "delete.held")
            yield target.get()
            yield target.delete(what="delete.again")
            yield target.create(kind.make(rng, target.name), "create.deleting")
            yield target.patch(PATCHES["merge"], kind.change(rng), "patch.deleting")
            yield target.patch(PATCHES["merge"], {"metadata": {"finalizers": [HOLD, "example.org/late"]}}, "patch.deleting")
            yield target.patch(PATCHES["merge"], {"metadata": {"finalizers": None}}, "patch.release")
            yield target.get()

    stream.__name__ = f"finalizers-{kind.plural}"
    return stream


def condition(target, rng):
    return {"preconditions": rng.choice(({"uid": "00000000-0000-0000-0000-000000000000"}, {"resourceVersion": "1"}, {
        "uid": target.field("metadata.uid"), "resourceVersion": "2"}))}


def family(rng, scope):
    """An owner with dependents, deleted under each propagation policy; what remains is compared once settled."""
    for policy in rng.sample(("Background", "Foreground", "Orphan"), 3):
        short = policy.lower()[:2]
        owner_kind = rng.choice((kinds.CONFIGMAP, customs.WIDGET, customs.PLAIN))
        child_kind = rng.choice((kinds.SECRET, kinds.CONFIGMAP, customs.WIDGET))
        owner = Handle(owner_kind, f"{scope.name}-{short}-owner", scope.namespace)
        other = Handle(kinds.CONFIGMAP, f"{scope.name}-{short}-other", scope.namespace)
        yield owner.create(owner_kind.make(rng, owner.name, None) if owner_kind is kinds.CONFIGMAP else owner_kind.object(owner.name, spec={"color": "red"}))
        yield other.create(kinds.CONFIGMAP.object(other.name))
        children = []
        for index in range(4):
            child = Handle(child_kind, f"{scope.name}-{short}-{index}", scope.namespace)
            body = child_kind.object(child.name, **({"spec": {"color": "red"}} if child_kind.custom else {}))
            body["metadata"]["ownerReferences"] = [reference(owner, blockOwnerDeletion=True)] + ([reference(other)] if index == 3 else [])
            if index == 2:
                body["metadata"]["ownerReferences"][0]["controller"] = True
            yield child.create(body)
            children.append(child)
        yield owner.delete({"propagationPolicy": policy}, f"delete.{short}", compare=policy == "Orphan")
        yield owner.gone()
        for index, child in enumerate(children):
            if policy == "Orphan" or index == 3:
                yield child.get("get.survivor", mode="await", until=lambda answer, count=int(policy != "Orphan"): len(
                    answer.body["metadata"].get("ownerReferences", [])) == count)
            else:
                yield child.gone()


def reference(owner, **more):
    return {"apiVersion": owner.kind.api_version, "kind": owner.kind.kind, "name": owner.name, "uid": owner.field("metadata.uid"), **more}


def namespaces(rng, scope):
    """A namespace's life: labels, finalize, content, termination."""
    space = Handle(kinds.NAMESPACE, f"{scope.name}-ns")
    yield space.create(kinds.NAMESPACE.object(space.name, {"team": "x"}))
    for _ in range(4):
        yield space.patch(PATCHES[rng.choice(("merge", "strategic"))], kinds.namespace_change(rng))
        yield space.get()
    held = Handle(kinds.CONFIGMAP, "held", space.name)
    yield held.create({**kinds.CONFIGMAP.object("held"), "metadata": {"name": "held", "finalizers": [HOLD]}})
    free = Handle(customs.WIDGET, "free", space.name)
    yield free.create(customs.WIDGET.object("free", spec={"color": "blue"}))
    yield space.delete()
    yield space.get("get.terminating", mode="await", until=lambda answer: len(answer.body.get("status", {}).get("conditions", [])) == 5)
    yield Handle(kinds.SECRET, "late", space.name).create(kinds.SECRET.object("late"), "create.terminating")
    yield free.gone()
    yield held.patch(PATCHES["merge"], {"metadata": {"finalizers": None}}, "patch.release", compare=False)
    yield space.gone()
    yield Handle(kinds.SECRET, "late", space.name).create(kinds.SECRET.object("late"), "create.nowhere")
    for name in ("default", "kube-system"):
        yield Operation("delete.protected namespaces", "DELETE", f"/api/v1/namespaces/{name}")

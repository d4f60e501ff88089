"""What each node was at the moment of each binding: room enough, there, not cordoned, without a taint that the pod does not tolerate.

A binding is decided a moment before it is written, by a mirror that lags, and what a node is may come to the record after the
binding: of all that the node was from LAG_SECONDS before to LAG_SECONDS after, while a fault keeps news from the leader, or held a
Binding of one that led, from its beginning on (to its end, if it keeps them from the record), and at the binding by the order of
resourceVersions, the best counts. Where none is good enough the audit logs are read: the binding was made when its API server received
it, which the record may show seconds later; and where one came after its call was answered (the judge of Bindings says whether it may),
another replica may have given the room away meanwhile.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

from tests.e2e.api import Json
from tests.e2e.fault_run.judges.bindings import wrong_bindings
from tests.e2e.fault_run.record import Past
from tests.e2e.history import Amounts, Change, amounts, version

LAG_SECONDS = 3.0
# Between the arrival of a late Binding and the record of it, or of another one by which the room was full.
LATE_SECONDS = 2 * LAG_SECONDS


class Nodes:
    """Name -> what it was, from when on; None: it was not there."""

    def __init__(self, past: Past) -> None:
        self._moments: defaultdict[str, list[float]] = defaultdict(list)
        self._versions: defaultdict[str, list[tuple[int, Json | None]]] = defaultdict(list)
        for at, kind, node in past.objects("nodes"):
            name = node["metadata"]["name"]
            self._moments[name].append(at)
            self._versions[name].append((version(node["metadata"]), None if kind == "DELETED" else node))
        self._excuses = past.excuses

    def at(self, binding: Change) -> list[Json]:
        """All that it was from a while before to a while after."""
        name, moment = binding.pod.node, binding.at
        since = self._excuses.decided_since(moment) - LAG_SECONDS
        until = self._excuses.recorded_until("nodes", moment) + LAG_SECONDS
        first = max(0, bisect_right(self._moments[name], since) - 1)
        last = bisect_left(self._moments[name], until)
        around = [*self._versions[name][first:last], *self._before(name, binding.pod.version)]
        return [node for _, node in around if node is not None]

    def _before(self, name: str, bound: int) -> list[tuple[int, Json | None]]:
        """The newest that is older than a resourceVersion, whenever the record had each of both."""
        older = [each for each in self._versions[name] if each[0] < bound]
        return [max(older, key=lambda each: each[0])] if older else []


def overcommitted(past: Past) -> list[str]:
    nodes, used = Nodes(past), defaultdict[str, dict[str, Amounts]](dict)
    where: dict[str, str] = {}  # a restored etcd takes pods from their nodes
    found: list[tuple[str, Change, frozenset[str]]] = []  # what is said, of which binding, and the UIDs on the node
    for change, bound in _bindings(past):
        node = change.pod.node
        used[where.get(change.pod.uid, "")].pop(change.pod.uid, None)
        where[change.pod.uid] = node
        if change.deleted or change.pod.finished or not node:
            continue
        used[node][change.pod.uid] = change.pod.requests
        if not bound:
            continue
        room = [amounts(each["status"]["allocatable"]) for each in nodes.at(change)]
        for resource in change.pod.requests:
            amount = sum(each.get(resource, 0) for each in used[node].values())
            most = max((each.get(resource, 0) for each in room), default=amount)
            if amount > most:
                said = f"{node}: {amount / 1000:g} {resource} of {most / 1000:g} once {change.pod.name} was bound"
                found.append((said, change, frozenset(used[node])))
    late = {write["uid"]: write["at"] for _, write, _ in wrong_bindings(past)} if found else {}
    return [
        said
        for said, change, there in found
        if not any(abs(change.at - late[uid]) <= LATE_SECONDS for uid in there & late.keys())
    ]


def unfit_nodes(past: Past) -> list[str]:
    nodes = Nodes(past)
    pods: Mapping[str, Json] = {pod["metadata"]["uid"]: pod for _, _, pod in past.objects("pods")}

    def fits(change: Change) -> bool:
        return any(_fit(pods[change.pod.uid], node) for node in nodes.at(change))

    wrong = [change for change, bound in _bindings(past) if bound and not change.deleted and not fits(change)]
    made = _made(past) if wrong else {}
    found = []
    for change in wrong:
        if not fits(replace(change, at=made.get(change.pod.uid, change.at))):
            what = "cordoned, tainted or not ready" if nodes.at(change) else "not there"
            found.append(f"{change.pod.name} was bound to {change.pod.node}, which was {what}")
    return found


def _made(past: Past) -> dict[str, float]:
    """UID -> when an API server received the last Binding that it made."""
    made = (write for write in past.audit() if write["subresource"] == "binding" and write["code"] < 300)
    return {write["uid"]: write["at"] for write in sorted(made, key=lambda write: float(write["at"]))}


def _bindings(past: Past) -> Iterator[tuple[Change, bool]]:
    """Every change, and whether it is the pod's binding; a pod that was made with its node has none."""
    waiting = set()
    for change in past.history:
        bound = bool(change.pod.node) and change.pod.uid in waiting
        if change.pod.node:
            waiting.discard(change.pod.uid)
        else:
            waiting.add(change.pod.uid)
        yield change, bound


def _fit(pod: Json, node: Json) -> bool:
    spec = node["spec"]
    ready = [each["status"] for each in node["status"].get("conditions", ()) if each["type"] == "Ready"]
    hard = [taint for taint in spec.get("taints", ()) if taint["effect"] in ("NoSchedule", "NoExecute")]
    tolerated = all(any(_tolerates(each, taint) for each in pod["spec"].get("tolerations", ())) for taint in hard)
    return not spec.get("unschedulable") and ready in ([], ["True"]) and tolerated


def _tolerates(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("key") not in (None, "", taint["key"]):
        return False
    return toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", "")

"""The whole history of the pods during a test, and THE checker of what no history may show.

Recorder watches; `violations` judges, over every state that the API server was ever in:
  - all or nothing: no group has 1..minMember-1 members bound for longer than a commit takes, nor at the end;
  - no node carries more than its allocatable, at any resourceVersion.
Used by conftest after every test, whatever the test was about; its own tests are tests/unit/e2e/test_history.py.
"""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import urllib3

from extender.api.quantity import parse_quantity
from extender.api.schedulingv1alpha1 import LIGHTWEIGHT_MIN_AVAILABLE_LABEL, LIGHTWEIGHT_NAME_LABEL, POD_GROUP_LABEL
from tests.e2e.api import ALL_PODS, Api, Json
from tests.e2e.processes import eventually

DESCRIBED = 24  # pods that a failed wait speaks of
Amounts = Mapping[str, int]  # in thousandths: cpu in milli, memory and counts a thousandfold


@dataclass(frozen=True, slots=True)
class Seen:
    """A pod as one event of the watch showed it. `node` is empty until it is bound."""

    uid: str
    name: str  # namespace/name
    node: str = ""
    group: str = ""  # namespace/name
    min_member: int = 0  # what the pod's own label says; 0 where a PodGroup object says it
    requests: Amounts = field(default_factory=dict)
    nominated: str = ""  # the node of its nomination
    finished: bool = False  # Succeeded or Failed: it uses no room any more


@dataclass(frozen=True, slots=True)
class Change:
    """One event: when it arrived (monotonic seconds), and whether it was the pod's last."""

    at: float
    pod: Seen
    deleted: bool = False


def seen(pod: Json) -> Seen:
    metadata, spec = pod["metadata"], pod["spec"]
    labels, namespace = metadata.get("labels", {}), metadata["namespace"]
    group = labels.get(POD_GROUP_LABEL) or labels.get(LIGHTWEIGHT_NAME_LABEL)
    return Seen(
        uid=metadata["uid"],
        name=f"{namespace}/{metadata['name']}",
        node=spec.get("nodeName", ""),
        group=f"{namespace}/{group}" if group else "",
        min_member=int(labels.get(LIGHTWEIGHT_MIN_AVAILABLE_LABEL, 0)),
        requests=_requests(spec),
        nominated=pod.get("status", {}).get("nominatedNodeName", ""),
        finished=pod.get("status", {}).get("phase") in ("Succeeded", "Failed"),
    )


def _requests(spec: Json) -> Amounts:
    total: defaultdict[str, int] = defaultdict(int, pods=1000)
    for container in spec["containers"]:
        for resource, amount in container.get("resources", {}).get("requests", {}).items():
            total[resource] += parse_quantity(amount).milli_value
    return dict(total)


def amounts(resources: Mapping[str, Any]) -> Amounts:
    return {resource: parse_quantity(amount).milli_value for resource, amount in resources.items()}


RECOVERY_SECONDS = 15.0


def commit_seconds(members: int, *, killed: bool, recovery: float = RECOVERY_SECONDS) -> float:
    """How long a group may be bound in part: while its bindings are written, or while a killed process comes back."""
    return recovery if killed else 1.0 + 0.010 * members


def violations(
    history: Sequence[Change],
    min_members: Mapping[str, int],
    allocatable: Mapping[str, Amounts],
    *,
    ended: float,
    killed: bool = False,
    recovery: float = RECOVERY_SECONDS,
    excused: Collection[str] = (),
) -> list[str]:
    """Everything that was wrong, a sentence each.

    `min_members` of the groups that have an object; others are taken from the pods' own labels. Pods that are gone no
    longer count, so a group that loses a bound member to preemption is a fraction; `excused` (namespace/name) are those
    that the test itself deletes: once bound they count as bound until the last pod of the group is gone.
    """
    found = [*_over_allocatable(history, allocatable)]
    for group, changes in _by_group(history).items():
        wanted = min_members.get(group) or max(change.pod.min_member for change in changes)
        limit = commit_seconds(len({change.pod.uid for change in changes}), killed=killed, recovery=recovery)
        found += _fractions(group, wanted, changes, ended=ended, limit=limit, excused=excused)
    return found


def _by_group(history: Iterable[Change]) -> Mapping[str, list[Change]]:
    groups: defaultdict[str, list[Change]] = defaultdict(list)
    for change in history:
        if change.pod.group:
            groups[change.pod.group].append(change)
    return groups


def _fractions(
    group: str, wanted: int, changes: Sequence[Change], *, ended: float, limit: float, excused: Collection[str]
) -> Iterable[str]:
    alive: set[str] = set()
    bound: dict[str, str] = {}
    since: float | None = None
    was = ""
    for change in changes:
        uid = change.pod.uid
        if change.pod.node:
            bound[uid] = change.pod.name
        if change.deleted and change.pod.name not in excused:
            bound.pop(uid, None)
        (alive.discard if change.deleted else alive.add)(uid)
        if not alive:
            bound.clear()
        if 0 < len(bound) < wanted:
            since = change.at if since is None else since
            was = f"{len(bound)} of minMember {wanted} bound ({', '.join(sorted(bound.values()))})"
        elif since is not None:
            if change.at - since > limit:
                yield f"{group}: {was} for {change.at - since:.2f} s, longer than a commit takes ({limit:.2f} s)"
            since = None
    if since is not None:
        yield f"{group}: {was} at the end, for {ended - since:.2f} s"


def _over_allocatable(history: Sequence[Change], allocatable: Mapping[str, Amounts]) -> Iterable[str]:
    pods: dict[str, Seen] = {}
    used: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    for change in history:
        before = pods.pop(change.pod.uid, None)
        if before is not None:
            _count(used[before.node], before.requests, -1)
        if change.deleted or change.pod.finished or not change.pod.node:
            continue
        pods[change.pod.uid] = change.pod
        node = used[change.pod.node]
        _count(node, change.pod.requests, +1)
        if before is None and change.pod.node in allocatable:
            room = allocatable[change.pod.node]
            for resource, amount in sorted(node.items()):
                if change.pod.requests.get(resource) and amount > room.get(resource, 0):
                    yield (
                        f"node {change.pod.node}: {amount / 1000:g} {resource} of {room.get(resource, 0) / 1000:g} "
                        f"once {change.pod.name} was bound"
                    )


def _count(used: defaultdict[str, int], requests: Amounts, sign: int) -> None:
    for resource, amount in requests.items():
        used[resource] += sign * amount


class Recorder:
    """Watches all pods from `start` on in a thread of its own, and resumes where the server drops it."""

    def __init__(self, api: Api, patience: float = 0.0) -> None:
        self._api = api
        self._patience = patience  # seconds that every wait may take longer
        self._changed = threading.Condition()  # guards all below
        self._history: list[Change] = []
        self._pods: dict[str, Json] = {}  # namespace/name -> as last seen
        self._stream: urllib3.BaseHTTPResponse | None = None
        self._stopping = False
        self._broken = ""
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._version = ""

    def start(self) -> Recorder:
        listed = self._api.get(ALL_PODS)
        self._version = listed["metadata"]["resourceVersion"]
        for pod in listed["items"]:
            self._record("ADDED", pod)
        self._thread.start()
        return self

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            if self._stream is not None:
                self._stream.shutdown()
        self._thread.join(10)
        assert not self._thread.is_alive(), "the recorder did not end"

    def history(self) -> list[Change]:
        with self._changed:
            return list(self._history)

    def pod(self, name: str) -> Json | None:
        """As last seen; `name` is namespace/name, or a name in default."""
        with self._changed:
            return self._pods.get(_key(name))

    def node_of(self, name: str) -> str:
        """Where it runs; empty while it waits."""
        node: str = (self.pod(name) or {"spec": {}})["spec"].get("nodeName", "")
        return node

    def were_promised(self, *names: str) -> set[str]:
        """Those of these pods that have had a node or a nomination at any time."""
        keys = {_key(name): name for name in names}
        return {
            keys[change.pod.name]
            for change in self.history()
            if change.pod.name in keys and (change.pod.node or change.pod.nominated)
        }

    def bound(self) -> set[str]:
        """The names of the pods in default that have a node, and are not gone."""
        with self._changed:
            return {pod["metadata"]["name"] for pod in self._pods.values() if pod["spec"].get("nodeName")}

    def catch_up(self) -> None:
        """Returns when everything that the API server shows now has been recorded."""

        def complete() -> bool:
            listed = {_uid(pod): _version(pod) for pod in self._api.items(ALL_PODS)}
            with self._changed:
                assert not self._broken, self._broken
                return listed == {_uid(pod): _version(pod) for pod in self._pods.values()}

        eventually(complete, within=10, what="the recorder has seen everything")

    def wait(self, true: Any, *, within: float, what: str) -> float:
        """Waits, woken by events, until `true()`; returns the seconds that it took."""
        began = time.monotonic()
        with self._changed:
            reached = self._changed.wait_for(lambda: self._broken or true(), timeout=within + self._patience)
            assert not self._broken, self._broken
            assert reached, f"not within {within:g} s: {what}\n{self._describe()}"
        return time.monotonic() - began

    def await_bound(self, *names: str, within: float) -> float:
        text = ", ".join(names) if len(names) < 20 else f"{len(names)} pods"
        return self.wait(lambda: all(map(self.node_of, names)), within=within, what=f"bound: {text}")

    def settle(self, quiet: float = 1.0, within: float = 15) -> None:
        """Returns when no pod has changed for `quiet` seconds."""
        deadline = time.monotonic() + within
        with self._changed:
            while self._changed.wait(quiet):
                assert time.monotonic() < deadline, f"not quiet within {within:g} s\n{self._describe()}"

    def condition(self, name: str) -> Json:
        """The pod's PodScheduled condition; empty where there is none yet."""
        pod = self.pod(name)
        conditions = (pod or {}).get("status", {}).get("conditions", [])
        return next((each for each in conditions if each["type"] == "PodScheduled"), {})

    def await_message(self, name: str, text: str, *, within: float) -> Json:
        """The PodScheduled condition, once its message contains `text`."""
        self.wait(lambda: text in self.condition(name).get("message", ""), within=within, what=f"{name} says {text!r}")
        return self.condition(name)

    def _describe(self) -> str:
        lines = []
        for name, pod in sorted(self._pods.items()):
            condition = self.condition(name)
            node = pod["spec"].get("nodeName", "-")
            lines.append(f"  {name} on {node}: {condition.get('reason', '')} {condition.get('message', '')}")
        return "\n".join([*lines[:DESCRIBED], *(["  ..."] if len(lines) > DESCRIBED else [])])

    def _record(self, kind: str, pod: Json) -> None:
        with self._changed:
            self._history.append(Change(time.monotonic(), seen(pod), kind == "DELETED"))
            key = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            if kind == "DELETED":
                self._pods.pop(key, None)
            else:
                self._pods[key] = pod
            self._changed.notify_all()

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._follow()
        except Exception as error:
            with self._changed:
                self._broken = f"the recorder broke: {error!r}"
                self._changed.notify_all()

    def _follow(self) -> None:
        stream = self._api.watch(ALL_PODS, self._version)
        with self._changed:
            self._stream = stream
            if self._stopping:
                stream.shutdown()
        rest = b""
        try:
            for piece in stream.stream(65536):
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    self._take(json.loads(line))
        except (urllib3.exceptions.HTTPError, OSError):
            time.sleep(0.05)  # the server went away, or we are stopping: resume from the last event
        finally:
            with self._changed:
                self._stream = None
            stream.close()

    def _take(self, event: Json) -> None:
        if event["type"] == "ERROR":
            raise RuntimeError(f"the history has a hole: {event['object'].get('message')}")
        self._version = event["object"]["metadata"]["resourceVersion"]
        if event["type"] != "BOOKMARK":
            self._record(event["type"], event["object"])


def _key(name: str) -> str:
    return name if "/" in name else f"default/{name}"


def _uid(pod: Json) -> str:
    uid: str = pod["metadata"]["uid"]
    return uid


def _version(pod: Json) -> str:
    version: str = pod["metadata"]["resourceVersion"]
    return version

"""Pods made and pods watched, each by a process of its own: the API server drops a watcher that is slow to read.

Used by the benchmarks of gangs. Times are of the monotonic clock, which all processes of a machine share.
"""

from __future__ import annotations

import multiprocessing
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import msgspec

from tests.benchmark.contenders import Contender, group_body, pod_body
from tests.e2e.api import ALL_PODS, PODS, Api
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import ControlPlane
from tests.e2e.processes import eventually

CREATORS = 8
BOUND = "spec.nodeName!="  # the measurement reads no other event, or it would cost a contender more that writes more
FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Load:
    """Gangs of so many members each; shuffled: their pods are made in random order, the same in every round."""

    gangs: int
    members: int
    shuffled: bool = True
    starts: int = 0  # how many gangs there is room for; 0: all
    cpu: str = "1"

    @property
    def expected(self) -> int:
        """Pods that will be bound."""
        return (self.starts or self.gangs) * self.members


@dataclass(frozen=True)
class History:
    """created: pod to when its creation had been answered. bound: pod to when the watch showed its node."""

    created: Mapping[str, float]
    bound: Mapping[str, float]

    def waits(self, load: Load) -> list[float]:
        """Last member created to last member bound, of every gang that is bound whole."""
        made, done = by_gang(self.created), by_gang(self.bound)
        return sorted(max(times) - max(made[gang]) for gang, times in done.items() if len(times) == load.members)

    def partial(self, load: Load) -> int:
        """Gangs that are bound in part."""
        return sum(len(times) != load.members for times in by_gang(self.bound).values())

    @property
    def seconds(self) -> float:
        """Last pod created to last pod bound."""
        return max(self.bound.values()) - max(self.created.values()) if self.bound else float("inf")

    @property
    def seconds_from_first(self) -> float:
        """First pod created to last pod bound."""
        return max(self.bound.values()) - min(self.created.values()) if self.bound else float("inf")

    @property
    def binding_seconds(self) -> float:
        """First pod bound to last pod bound."""
        return max(self.bound.values()) - min(self.bound.values()) if self.bound else float("inf")


def by_gang(times: Mapping[str, float]) -> Mapping[str, list[float]]:
    found: defaultdict[str, list[float]] = defaultdict(list)
    for name, at in times.items():
        found[name.rpartition("-")[0]].append(at)
    return found


Told = Callable[[str, float], None]  # a pod's name, and when the watch showed its node


def _untold(pod: str, at: float) -> None:
    """The default: nothing beside the notes."""


class Watcher:
    """A process that notes when each pod got its node. told: called there, for each once."""

    def __init__(self, plane: ControlPlane, told: Told = _untold) -> None:
        self._ours, theirs = FORK.Pipe()
        self._process = FORK.Process(target=_watch, args=(plane, theirs, told), daemon=True)
        self._process.start()
        self._ours.recv()  # it has listed

    def await_bound(self, count: int, within: float) -> Mapping[str, float]:
        """What is bound when so many are, or when time is up."""
        self._ours.send((count, within))
        found: Mapping[str, float] = self._ours.recv()
        return found

    def stop(self) -> None:
        self._process.kill()
        self._process.join()


class _Meta(msgspec.Struct):
    name: str = ""
    resourceVersion: str = ""  # noqa: N815 - as it comes


class _Spec(msgspec.Struct):
    nodeName: str = ""  # noqa: N815 - as it comes


class _Pod(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Event(msgspec.Struct):
    type: str
    object: _Pod


class _Notes:
    """What the watching thread writes and the process's own thread waits for."""

    def __init__(self, told: Told) -> None:
        self.changed = threading.Condition()  # guards bound
        self._told = told
        self.bound: dict[str, float] = {}

    def follow(self, api: Api, resource_version: str) -> None:
        """Resumes where the server has dropped us."""
        decode = msgspec.json.Decoder(_Event).decode
        while True:
            stream = api.watch(ALL_PODS, resource_version, fieldSelector=BOUND)
            for line in stream:
                now = time.monotonic()
                event = decode(line)
                if event.type == "ERROR":
                    raise RuntimeError(f"the watch has a hole: {line.decode()}")
                meta = event.object.metadata
                resource_version = meta.resourceVersion
                if event.object.spec.nodeName and event.type != "DELETED":
                    with self.changed:
                        first = meta.name not in self.bound
                        self.bound.setdefault(meta.name, now)
                        self.changed.notify()
                    if first:
                        self._told(meta.name, now)


def _watch(plane: ControlPlane, pipe: Connection, told: Told) -> None:
    plane.forget_connections()
    api = plane.api()
    version = api.get(ALL_PODS, limit=1)["metadata"]["resourceVersion"]
    notes = _Notes(told)
    threading.Thread(target=notes.follow, args=(api, version), daemon=True).start()
    pipe.send("watching")
    with suppress(EOFError):
        while True:
            count, within = pipe.recv()
            with notes.changed:
                until = time.monotonic() + within
                while len(notes.bound) < count and (left := until - time.monotonic()) > 0:
                    notes.changed.wait(left)
                pipe.send(dict(notes.bound))


def in_process(work: Callable[..., Any], plane: ControlPlane, *arguments: Any) -> Any:
    """What `work(plane, ...)` returns in a process of its own."""
    ours, theirs = FORK.Pipe()

    def act() -> None:
        plane.forget_connections()
        theirs.send(work(plane, *arguments))

    process = FORK.Process(target=act, daemon=True)
    process.start()
    answer = ours.recv()
    process.join()
    return answer


def _unlabelled(number: int) -> Mapping[str, str]:
    return {}


def create_nodes(
    plane: ControlPlane,
    count: int,
    cpu: str,
    prefix: str = "node",
    labels: Callable[[int], Mapping[str, str]] = _unlabelled,
) -> None:
    """labels: of the node of a number."""
    in_process(_create_nodes, plane, count, cpu, prefix, labels)


def _create_nodes(
    plane: ControlPlane, count: int, cpu: str, prefix: str, labels: Callable[[int], Mapping[str, str]]
) -> None:
    cluster = Cluster(plane)
    with ThreadPoolExecutor(CREATORS) as pool:
        list(pool.map(lambda index: cluster.node(f"{prefix}-{index}", cpu=cpu, labels=labels(index)), range(count)))


def create_gangs(plane: ControlPlane, contender: Contender, load: Load) -> Mapping[str, float]:
    """Groups first, then all pods; when each pod's creation had been answered."""
    created: Mapping[str, float] = in_process(_create_gangs, plane, contender, load)
    return created


def _create_gangs(plane: ControlPlane, contender: Contender, load: Load) -> dict[str, float]:
    api = plane.api()
    gangs = [f"gang-{number}" for number in range(load.gangs)]
    if contender.extended or contender.in_tree:
        for gang in gangs:
            api.create(*group_body(contender, gang, load.members))
    names = [(f"{gang}-{member}", gang) for gang in gangs for member in range(load.members)]
    if load.shuffled:
        random.Random(1).shuffle(names)
    created: dict[str, float] = {}

    def one(member: tuple[str, str]) -> None:
        name, gang = member
        api.create(PODS.format(namespace="default"), pod_body(contender, name, gang, load.cpu))
        created[name] = time.monotonic()

    with ThreadPoolExecutor(CREATORS) as pool:
        list(pool.map(one, names))
    return created


def clear(plane: ControlPlane, contender: Contender) -> None:
    """Deletes pods and groups, and waits until they are gone."""
    api = plane.api()
    api.delete(PODS.format(namespace="default"))
    groups = group_body(contender, "any", 1)[0]
    api.delete(groups)
    if contender.in_tree:  # no controller here takes the finalizer off that protects groups with pods
        for group in api.items(groups):
            api.patch(f"{groups}/{group['metadata']['name']}", {"metadata": {"finalizers": None}})
    eventually(lambda: not api.items(ALL_PODS, limit=1), within=60, what="all pods are gone")

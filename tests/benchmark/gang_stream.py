"""Gangs that are made all the time, and end: each creator makes one after the other, a whole gang is deleted seconds after it is bound.

Creators, the watcher and what ends gangs are processes of their own, as in gang_load; used by stream and samples. Creation keeps ahead of
binding by a number of pods, and no more: a queue that only grows would say how long the run was, and the creations alone would fill the
machine.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from types import TracebackType

from tests.benchmark.contenders import Contender, group_body, pod_body
from tests.benchmark.gang_load import CREATORS, FORK, Watcher, by_gang, in_process
from tests.e2e.api import PODS, Api, Json
from tests.e2e.control_plane import ControlPlane

SIZES = (4, 8, 16, 32, 64)
GANG_LABEL = "example.com/gang"  # on all contenders' pods: a gang is deleted by one call
LOOK_SECONDS = 0.005
ENDERS = 8  # the API server deletes the pods of one call one by one: two could not keep up with 130 pods a second


@dataclass(frozen=True)
class Stream:
    """seconds: how long gangs are made. ahead: pods that are made and not bound at which no further gang is begun. pod_seconds: from
    when a gang is bound to when it is deleted."""

    seconds: float
    ahead: int = 1024
    pod_seconds: float = 5.0
    cpu: str = "1"


class Progress:
    """What the processes tell each other. made and bound: numbers of pods; whole: gangs all bound, and since when."""

    def __init__(self) -> None:
        self.made = FORK.Value("q", 0)
        self.bound = FORK.Value("q", 0)
        self.whole = FORK.SimpleQueue()
        self._missing: dict[str, int] = {}  # the watcher's own

    def note_made(self) -> None:
        with self.made.get_lock():
            self.made.value += 1

    def note_bound(self, pod: str, at: float) -> None:
        with self.bound.get_lock():
            self.bound.value += 1
        gang = pod.rpartition("-")[0]
        self._missing[gang] = self._missing.get(gang, size_of(gang)) - 1
        if not self._missing[gang]:
            self.whole.put((gang, at))

    @property
    def waiting(self) -> int:
        return int(self.made.value - self.bound.value)


def size_of(gang: str) -> int:
    return int(gang.rpartition("-")[2])


class Streaming(AbstractContextManager["Streaming"]):
    """The watcher, and what ends gangs, from `with` to its end; `make` makes gangs meanwhile."""

    def __init__(self, plane: ControlPlane, contender: Contender, stream: Stream) -> None:
        self._plane, self._contender, self._stream = plane, contender, stream
        self.progress = Progress()
        self._undo = ExitStack()

    def __enter__(self) -> Streaming:
        self._watcher = Watcher(self._plane, self.progress.note_bound)
        self._undo.callback(self._watcher.stop)
        ending = FORK.Process(
            target=_end, args=(self._plane, self._contender, self._stream, self.progress), daemon=True
        )
        ending.start()
        self._undo.callback(ending.join)
        self._undo.callback(ending.kill)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._undo.close()

    def make(self) -> Mapping[str, float]:
        """Returns when the time is up, and every gang that was begun is made whole: pod to when its creation had been answered."""
        created: Mapping[str, float] = in_process(_make, self._plane, self._contender, self._stream, self.progress)
        return created

    def await_bound(self, count: int, within: float) -> Mapping[str, float]:
        return self._watcher.await_bound(count, within)


def _make(plane: ControlPlane, contender: Contender, stream: Stream, progress: Progress) -> dict[str, float]:
    api, created = plane.api(), dict[str, float]()
    until = time.monotonic() + stream.seconds

    def gangs_of(creator: int) -> None:
        sizes = random.Random(creator)
        number = 0
        while time.monotonic() < until:
            if progress.waiting >= stream.ahead:
                time.sleep(LOOK_SECONDS)
                continue
            _make_gang(f"gang-{creator}-{number}-{sizes.choice(SIZES)}")
            number += 1

    def _make_gang(gang: str) -> None:
        if contender.extended or contender.in_tree:
            api.create(*group_body(contender, gang, size_of(gang)))
        for member in range(size_of(gang)):
            name = f"{gang}-{member}"
            api.create(PODS.format(namespace="default"), _pod(contender, name, gang, stream))
            created[name] = time.monotonic()
            progress.note_made()

    with ThreadPoolExecutor(CREATORS) as pool:
        list(pool.map(gangs_of, range(CREATORS)))
    return created


def _pod(contender: Contender, name: str, gang: str, stream: Stream) -> Json:
    body = pod_body(contender, name, gang, stream.cpu)
    body["metadata"].setdefault("labels", {})[GANG_LABEL] = gang
    return body


def _end(plane: ControlPlane, contender: Contender, stream: Stream, progress: Progress) -> None:
    plane.forget_connections()
    api = plane.api()
    with ThreadPoolExecutor(ENDERS) as pool:
        while True:
            gang, at = progress.whole.get()
            time.sleep(max(0.0, at + stream.pod_seconds - time.monotonic()))
            pool.submit(_delete, api, contender, gang)


def _delete(api: Api, contender: Contender, gang: str) -> None:
    api.delete(f"{PODS.format(namespace='default')}?labelSelector={GANG_LABEL}%3D{gang}")
    if contender.extended or contender.in_tree:
        path = f"{group_body(contender, gang, 1)[0]}/{gang}"
        api.delete(path)
        if contender.in_tree:  # no controller here takes the finalizer off that protects groups with pods
            api.patch(path, {"metadata": {"finalizers": None}})


@dataclass(frozen=True)
class Outcome:
    """Of one run. created and bound: pod to when, as in gang_load.History; since, until: the time that is counted."""

    created: Mapping[str, float]
    bound: Mapping[str, float]
    since: float
    until: float

    @property
    def bound_a_second(self) -> float:
        return sum(self.since <= at < self.until for at in self.bound.values()) / (self.until - self.since)

    def waits(self) -> list[float]:
        """Last member created to last member bound, sorted, of whole gangs that were complete in the time that is counted."""
        made, done = by_gang(self.created), by_gang(self.bound)
        waits = (
            max(done[gang]) - max(times)
            for gang, times in made.items()
            if self.since <= max(times) < self.until and len(done.get(gang, ())) == size_of(gang)
        )
        return sorted(waits)

    @property
    def partial(self) -> int:
        """Gangs that are bound in part."""
        return sum(len(times) != size_of(gang) for gang, times in by_gang(self.bound).items())

    @property
    def unbound(self) -> int:
        """Pods."""
        return len(self.created) - len(self.bound)


def percentile(values: list[float], percent: int) -> float:
    """Of sorted values; infinite where there is none."""
    return values[(len(values) - 1) * percent // 100] if values else float("inf")

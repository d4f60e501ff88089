"""The scheduler as the server sees it: answers at once, or does what a pod's name asks for.

`held-...` is held until `release`, `commit-...` has begun to commit and is carried to its end, `endless-...` has begun and has no
end, `evict-...` begins something that a drain waits for, `fault-...` raises, `block-...` keeps the whole process busy without end,
`offload-...` computes for half a second on a thread of its own, `plan-...` until another filter call has come in, after `starve-...` no
native thread can be started. Used by tests/server, in this process and in one of its own.
"""

from __future__ import annotations

import os
import resource
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gevent import monkey

from extender.api.extenderv1 import (
    ExtenderArgs,
    ExtenderBindingArgs,
    ExtenderBindingResult,
    ExtenderFilterResult,
    ExtenderPreemptionArgs,
    ExtenderPreemptionResult,
    HostPriority,
)
from extender.scheduler.interface import (
    DEBUG_CACHE,
    DEBUG_GANG,
    DEBUG_GANGS,
    AccessUnknownError,
    Caller,
    Check,
    FeedClosedError,
    NotAuthenticatedError,
    NotAuthorizedError,
    TooManyViewersError,
)

start_native_thread = monkey.get_original("_thread", "start_new_thread")
COMMIT_SECONDS = 1.5
STACK = 256 * 1024 * 1024
GONE = "the caller is gone"


class FakeAccess:
    """rights: by token, the namespaces that its bearer may see; "" is the whole cluster."""

    def __init__(self) -> None:
        self.rights: dict[str, set[str]] = {"operator": {""}, "tenant": {"team-a"}}
        self.answers = True

    def check(self, token: str, namespace: str = "", name: str = "") -> None:
        if not self.answers:
            raise AccessUnknownError("the API server cannot be asked for the user's rights")
        if token not in self.rights:
            raise NotAuthenticatedError
        if not self.rights[token] & {"", namespace}:
            raise NotAuthorizedError(f'User "{token}" cannot see namespace "{namespace}"')


class FakeFeed:
    """Has messages for each viewer, and ends after them; with FEED=endless in the environment nothing comes then. most: viewers at a
    time."""

    def __init__(self) -> None:
        self.messages: list[bytes] = [b'{"whole":true}', b"", b'{"gangs":[]}']
        self.viewers: list[FakeViewer] = []
        self.most = 2

    def open(self, namespace: str = "") -> FakeViewer:
        if sum(not each.closed for each in self.viewers) >= self.most:
            raise TooManyViewersError(f"{self.most} look at the page already")
        viewer = FakeViewer(namespace, list(self.messages))
        self.viewers.append(viewer)
        return viewer


@dataclass
class FakeViewer:
    namespace: str
    messages: list[bytes]
    closed: bool = False

    def next(self, seconds: float) -> bytes:
        if not self.messages:
            if os.environ.get("FEED") == "endless":
                threading.Event().wait(seconds)
                return b""
            raise FeedClosedError
        return self.messages.pop(0)

    def close(self) -> None:
        self.closed = True


class FakeVerbs:
    def __init__(self, offload: Callable[..., Any] | None = None) -> None:
        self._offload = offload
        self._lock = threading.Lock()  # guards _held, counts and _draining
        self._held: list[_Hold] = []
        self._counts = dict.fromkeys(("filter", "bind", "gone", "committed"), 0)
        self._draining = ""
        self._evictions: list[threading.Thread] = []
        self.page, self.rights = FakeFeed(), FakeAccess()
        self.ready = self.leads = True
        self.alive = True

    def filter(self, args: ExtenderArgs) -> ExtenderFilterResult:
        self._count("filter")
        self._obey(args.pod.name)
        return ExtenderFilterResult(node_names=list(args.node_names or ()))

    def prioritize(self, args: ExtenderArgs) -> Sequence[HostPriority]:
        self._obey(args.pod.name)
        return [HostPriority(host=name, score=5) for name in args.node_names or ()]

    def preempt(self, args: ExtenderPreemptionArgs) -> ExtenderPreemptionResult:
        self._obey(args.pod.name)
        return ExtenderPreemptionResult(node_name_to_meta_victims=args.node_name_to_meta_victims or {})

    def bind(self, args: ExtenderBindingArgs, caller: Caller) -> ExtenderBindingResult:
        self._count("bind")
        self._obey(args.pod_name)
        match args.pod_name.split("-")[0]:
            case "held":
                return ExtenderBindingResult(error=self._hold(caller))
            case "commit":
                time.sleep(COMMIT_SECONDS)
                self._count("committed")
            case "endless":
                threading.Event().wait()
            case "release":
                self._release("")
        return ExtenderBindingResult()

    def keeps_connections(self) -> bool:
        return self.leads

    def readiness(self) -> Sequence[Check]:
        return [Check("informer-pods", True), Check("informer-nodes", self.ready, "" if self.ready else "not synced")]

    def liveness(self) -> Sequence[Check]:
        return [Check("background", self.alive, "" if self.alive else "it has ended")]

    def start(self) -> None:
        """Nothing runs here by itself."""

    def drain(self, message: str) -> None:
        with self._lock:
            self._draining = message
        self._release(message)
        for eviction in self._evictions:
            eviction.join()

    def stop(self) -> None:
        print("the verbs were stopped", file=sys.stderr)

    def pages(self) -> dict[str, Callable[..., object]]:
        """What a test wants to know of a service in another process."""
        return {"/gangs": self.report, "/whatif": lambda body, namespace: {"bytes": len(body)}}

    def debug(self) -> dict[str, Callable[..., object]]:
        return {
            DEBUG_CACHE: lambda against_api: {"api": against_api},
            DEBUG_GANGS: lambda: [{"group": "default/train"}],
            DEBUG_GANG: lambda key: {"group": key} if key == "default/train" else None,
        }

    def feed(self) -> FakeFeed:
        return self.page

    def access(self) -> FakeAccess:
        return self.rights

    def report(self) -> dict[str, object]:
        with self._lock:
            viewers = sum(not each.closed for each in self.page.viewers)
            return {**self._counts, "held": len(self._held), "pid": os.getpid(), "viewers": viewers}

    def _obey(self, name: str) -> None:
        match name.split("-")[0]:
            case "fault":
                raise ConnectionError("a fault of ours")
            case "evict":
                self._evictions.append(threading.Thread(target=_evict, daemon=True))
                self._evictions[-1].start()
            case "block":
                _compute(until=lambda: False)
            case "offload" if self._offload is not None:
                end = time.monotonic() + 0.5
                self._offload(_compute, lambda: time.monotonic() > end)
            case "plan" if self._offload is not None:
                before = self._counts["filter"]
                self._offload(_compute, lambda: self._counts["filter"] > before)
            case "starve":
                _take_the_room_for_threads()
            case "log":
                print("x" * 200_000, file=sys.stderr)
            case "demoted":
                self.leads = False
            case "leave":
                os._exit(9)

    def _hold(self, caller: Caller) -> str:
        hold = _Hold()
        with self._lock:
            if self._draining:
                return self._draining
            self._held.append(hold)
        cancel = caller.on_gone(lambda: hold.end(GONE))
        try:
            hold.ended.wait()
        finally:
            cancel()
            with self._lock:
                self._held.remove(hold)
        if hold.reason == GONE:
            self._count("gone")
        return hold.reason

    def _release(self, reason: str) -> None:
        with self._lock:
            held = list(self._held)
        for hold in held:
            hold.end(reason)

    def _count(self, what: str) -> None:
        with self._lock:
            self._counts[what] += 1


class _Hold:
    def __init__(self) -> None:
        self.ended = threading.Event()
        self.reason = ""

    def end(self, reason: str) -> None:
        if not self.ended.is_set():
            self.reason = reason
            self.ended.set()


def _take_the_room_for_threads() -> None:
    """As where the limit on processes is reached. The stack of a new thread needs more than is left, nothing else does."""
    threading.stack_size(STACK)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + STACK // 2, resource.RLIM_INFINITY))
    try:
        start_native_thread(lambda: None, ())
    except RuntimeError:
        return
    raise AssertionError("a native thread could be started")


def _evict() -> None:
    time.sleep(COMMIT_SECONDS)
    print("all victims were told", file=sys.stderr)


def _compute(until: Callable[[], bool]) -> None:
    """Pure Python that gives nothing away."""
    while not until():
        sum(range(1000))

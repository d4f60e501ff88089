"""Watches every pod of a test from its first moment to its last, and lets the test wait for what the watch shows.

Each Cluster has one; what it wrote down is judged by `history` when the test has ended.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from tests.e2e.api import ALL_PODS, Api, Json
from tests.e2e.follower import Follower, Take
from tests.e2e.history import Change, seen
from tests.e2e.processes import eventually

DESCRIBED = 24  # pods that a failed wait speaks of


class Recorder:
    """Watches all pods from `start` on.

    note: is told of every event too, with the pod as it came. over_holes: see Follower.
    """

    def __init__(
        self,
        api: Api,
        patience: float = 0.0,
        *,
        note: Take = lambda kind, pod: None,
        over_holes: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._patience = patience  # seconds that every wait may take longer
        self._note = note
        self._clock = clock
        self._changed = threading.Condition()  # guards all below
        self._history: list[Change] = []
        self._pods: dict[str, Json] = {}  # namespace/name -> as last seen
        self._broken = ""
        self._follower = Follower(api, ALL_PODS, self._record, self._break, over_holes=over_holes)

    def start(self) -> Recorder:
        self._follower.start()
        return self

    def stop(self) -> None:
        self._follower.stop()

    def history(self) -> list[Change]:
        with self._changed:
            return list(self._history)

    def pods(self) -> list[Json]:
        """As last seen."""
        with self._changed:
            return list(self._pods.values())

    def pod(self, name: str) -> Json | None:
        """As last seen; `name` is namespace/name, or a name in default."""
        with self._changed:
            return self._pods.get(_key(name))

    def node_of(self, name: str) -> str:
        """Where it runs; empty while it waits."""
        node: str = (self.pod(name) or {"spec": {}})["spec"].get("nodeName", "")
        return node

    def annotations(self, name: str) -> dict[str, str]:
        found: dict[str, str] = (self.pod(name) or {"metadata": {}})["metadata"].get("annotations", {})
        return found

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
        self._note(kind, pod)
        with self._changed:
            self._history.append(Change(self._clock(), seen(pod), kind == "DELETED"))
            key = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            if kind == "DELETED":
                self._pods.pop(key, None)
            else:
                self._pods[key] = pod
            self._changed.notify_all()

    def _break(self, why: str) -> None:
        with self._changed:
            self._broken = why
            self._changed.notify_all()


def _key(name: str) -> str:
    return name if "/" in name else f"default/{name}"


def _uid(pod: Json) -> str:
    uid: str = pod["metadata"]["uid"]
    return uid


def _version(pod: Json) -> str:
    version: str = pod["metadata"]["resourceVersion"]
    return version

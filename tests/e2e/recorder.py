"""Watches every pod of a test from its first moment to its last, and lets the test wait for what the watch shows.

Each Cluster has one; what it wrote down is judged by `history` when the test has ended.
"""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import urllib3

from tests.e2e.api import ALL_PODS, Api, Json
from tests.e2e.history import Change, seen
from tests.e2e.processes import eventually

DESCRIBED = 24  # pods that a failed wait speaks of


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

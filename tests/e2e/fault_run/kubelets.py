"""Kubelets during a fault run: they say when a pod has started; pods that have a grace period take a moment to go, and are gone
when their kubelet says so.

Used by `run`; which pods have one is said in `kinds` and `load`.
"""

from __future__ import annotations

import random
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime

from urllib3.exceptions import HTTPError

from tests.e2e.api import Api, Json, Refused
from tests.e2e.cluster import Cluster

GRACE_SECONDS = 30  # what the pods ask for; how long they take is drawn
TAKES_SECONDS = (0.0, 0.3, 1.0, 2.5)
LOOK_SECONDS = 0.1


class Kubelets:
    """All of the cluster's in one thread, from `start` to `stop`: when no pod is left."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self._api: Api = cluster.api
        self._recorder = cluster.recorder
        self._dice = random.Random(seed)
        self._due: dict[str, float] = {}  # UID -> when its last container has ended
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kubelets", daemon=True)

    def start(self) -> Kubelets:
        self._thread.start()
        return self

    def stop(self) -> None:
        self._ended.set()
        self._thread.join(30)
        assert not self._thread.is_alive(), "the kubelets did not end"

    def _run(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            pods = {pod["metadata"]["uid"]: pod for pod in self._recorder.pods()}
            for uid, pod in pods.items():
                if pod["spec"].get("nodeName") and pod["status"]["phase"] == "Pending" and not leaves(pod):
                    self._start(pod)
            leaving = {uid: pod for uid, pod in pods.items() if leaves(pod)}
            now = time.monotonic()
            self._due = {uid: self._due.get(uid) or now + self._dice.choice(TAKES_SECONDS) for uid in leaving}
            for uid, at in self._due.items():
                if at <= now:
                    self._confirm(leaving[uid])

    def _start(self, pod: Json) -> None:
        meta = pod["metadata"]
        precondition = {
            "uid": meta["uid"],
            "resourceVersion": meta["resourceVersion"],
        }  # it may have finished meanwhile
        status = {"phase": "Running", "startTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
        with suppress(Refused, HTTPError, OSError):
            self._api.patch(f"{_path(pod)}/status", {"metadata": precondition, "status": status})

    def _confirm(self, pod: Json) -> None:
        with suppress(Refused, HTTPError, OSError):  # gone, or the API server stands still: it is tried again
            self._api.delete(_path(pod), preconditions={"uid": pod["metadata"]["uid"]})


def _path(pod: Json) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def leaves(pod: Json) -> bool:
    return "deletionTimestamp" in pod["metadata"]

"""Runs the two programs of a replica as a kubelet runs the containers of the shipped Deployment: by its probes, in less time.

Every second of the manifest (periods, grace periods, back-off) is a fifth of one here (KUBELET_SCALE=1: as shipped), but for three: a
probe may take at least a second for an answer, and a program at least 15 to start, since this machine has other things to do, and a
container takes half a second to be made, as on a node.
kube-scheduler's own times are as shipped. Used by test_sick_leader.
Kubernetes: pkg/kubelet/prober/worker.go, pkg/kubelet/kuberuntime/kuberuntime_manager.go (computePodActions, doBackOff)
"""

from __future__ import annotations

import math
import os
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

import yaml

from tests.e2e.control_plane import MANIFESTS
from tests.e2e.pair import Pair
from tests.e2e.processes import Program

SCALE = float(os.environ.get("KUBELET_SCALE", "0.2"))
SHORTEST_TIMEOUT = 1.0
CREATION_SECONDS = 0.5
START_SECONDS = 15.0
FIRST_BACK_OFF, LONGEST_BACK_OFF = 10.0, 300.0
POD: Mapping[str, Any] = next(
    document["spec"]["template"]["spec"]
    for document in yaml.safe_load_all((MANIFESTS / "sidecar" / "deployment.yaml").read_text())
    if document["kind"] == "Deployment"
)
CONTAINERS: Mapping[str, Mapping[str, Any]] = {container["name"]: container for container in POD["containers"]}


@dataclass(frozen=True)
class Probe:
    """One probe of a container. Times are in seconds here, threshold is of failures one after the other."""

    url: str
    period: float
    timeout: float
    threshold: int
    grace: float

    @classmethod
    def of(
        cls, container: str, kind: str, listeners: Mapping[int, str], scale: float, start_seconds: float = START_SECONDS
    ) -> Probe:
        """scale: here, of a second. start_seconds: so long may the program take to start at least. listeners: port in the pod -> base URL
        here, of what listens on the pod's address: a kubelet reaches nothing else."""
        probe = CONTAINERS[container][f"{kind}Probe"]
        get = probe["httpGet"]
        assert "host" not in get, "the pod's own address"
        base = listeners[_port(container, get["port"])]
        assert base.startswith(f"{get.get('scheme', 'HTTP').lower()}:")
        grace = probe.get("terminationGracePeriodSeconds", POD["terminationGracePeriodSeconds"])
        period, threshold = probe.get("periodSeconds", 10) * scale, probe.get("failureThreshold", 3)
        return cls(
            url=base + get["path"],
            period=period,
            timeout=max(SHORTEST_TIMEOUT, probe.get("timeoutSeconds", 1) * scale),
            threshold=max(threshold, math.ceil(start_seconds / period)) if kind == "startup" else threshold,
            grace=grace * scale,
        )

    def passes(self) -> bool:
        """Certificates are not verified: a kubelet knows none of them."""
        where = urlsplit(self.url)
        connection = (
            HTTPSConnection(where.netloc, timeout=self.timeout, context=ssl._create_unverified_context())
            if where.scheme == "https"
            else HTTPConnection(where.netloc, timeout=self.timeout)
        )
        try:
            connection.request("GET", f"{where.path}?{where.query}" if where.query else where.path)
            return 200 <= connection.getresponse().status < 400
        except (HTTPException, OSError):
            return False
        finally:
            connection.close()


def _port(container: str, port: int | str) -> int:
    """A name is that of a port of the same container."""
    if isinstance(port, int):
        return port
    return int(next(each["containerPort"] for each in CONTAINERS[container]["ports"] if each["name"] == port))


class Container:
    """One program, on a thread: started, probed, killed where a probe fails too often, restarted where it ends."""

    def __init__(
        self,
        name: str,
        program: Program,
        listeners: Mapping[int, str],
        note: Callable[[str], None],
        longest_back_off: float = LONGEST_BACK_OFF,
        scale: float = SCALE,
        start_seconds: float = START_SECONDS,
    ) -> None:
        self.program = program
        self._scale = scale
        self._longest_back_off = longest_back_off
        self.restarts = 0
        self.startup_passed = threading.Event()  # of its first start that passed
        self.started: Callable[[], None] = lambda: None  # what befalls the program each time that it is started
        # is told when it began and ended, in seconds since 1970: a kubelet writes it into the pod's status
        self.ended: Callable[[float, float], None] = lambda began, ended: None
        self._began = 0.0
        self._startup = Probe.of(name, "startup", listeners, scale, start_seconds)
        self._liveness = Probe.of(name, "liveness", listeners, scale)
        self._name, self._happened = name, note
        self._stopping = threading.Event()
        self._back_off = 0.0  # seconds of a kubelet, after the last end
        self._last_end: float | None = None
        self._thread = threading.Thread(target=self._run, name=f"kubelet-{name}")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self.program.stop()

    def _run(self) -> None:
        self._begin()
        while not self._stopping.is_set():
            failed = self._outlived(self._startup, until_passed=True) or self._outlived(self._liveness)
            if self._stopping.is_set():
                return
            if failed is not None:
                kind = "startup" if failed is self._startup else "liveness"
                self._happened(f"{self._name}: {kind} failed")
                self.program.stop(failed.grace)
                self._restart(since=self._last_end)
            else:
                self._happened(f"{self._name}: ended")
                self._restart(since=time.monotonic())

    def _begin(self) -> None:
        self._began = time.time()
        self.program.start()
        self.started()

    def _restart(self, since: float | None) -> None:
        """Back-off counts from the last end that a kubelet knows of: where it has killed the container itself, from the end before."""
        self._last_end = time.monotonic()
        self.ended(self._began, time.time())
        wait = since + self._back_off * self._scale - self._last_end if since is not None else 0.0
        self._back_off = min(2 * self._back_off or FIRST_BACK_OFF, self._longest_back_off)
        if not self._stopping.wait(max(0.0, wait) + CREATION_SECONDS):
            self.restarts += 1
            self._begin()

    def _outlived(self, probe: Probe, *, until_passed: bool = False) -> Probe | None:
        """The probe, once it has failed as often as it may; None where it has passed, or the program has ended, or we are to stop."""
        failures = 0
        due = time.monotonic() + probe.period
        while not self._stopping.wait(max(0.0, due - time.monotonic())) and self.program.running:
            due += (
                probe.period
            )  # a kubelet probes by the clock: a probe that has taken its time is followed by the next at once
            if probe.passes():
                failures = 0
                if until_passed:
                    self.startup_passed.set()
                    return None
                continue
            failures += 1
            if failures >= probe.threshold:
                return probe
        return None


class Kubelet:
    """Of one replica. `happened` tells in order what the probes came to: `extender: liveness failed`.

    longest_back_off: in a kubelet's seconds. scale: how long one of these is here, in seconds. start_seconds: so long may each program
    take to start at least.
    """

    def __init__(
        self,
        pair: Pair,
        longest_back_off: float = LONGEST_BACK_OFF,
        scale: float = SCALE,
        start_seconds: float = START_SECONDS,
    ) -> None:
        self.pair = pair
        self.happened: list[str] = []
        listeners = {
            _port("extender", "ops"): pair.extender.ops_url,
            _port("kube-scheduler", "scheduler"): pair.scheduler.url,
        }
        times = (longest_back_off, scale, start_seconds)
        note = self.happened.append
        self.extender = Container("extender", pair.extender.program, listeners, note, *times)
        self.scheduler = Container("kube-scheduler", pair.scheduler.program, listeners, note, *times)

    def start(self) -> Kubelet:
        self.extender.start()
        self.scheduler.start()
        return self

    def stop(self) -> None:
        self.scheduler.stop()
        self.extender.stop()

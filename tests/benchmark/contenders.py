"""What starts the gangs: kube-scheduler with our extender (pods gated, or plain), alone, or with its own alpha gang cycle.

All run in turn against one etcd and one API server, that has the in-tree gang API switched on for all. Used by the
benchmarks contention, in_tree_gangs and parked. Without Go, or binaries named by KUBEBUILDER_ASSETS, they say so.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from extender.api.schedulingv1alpha1 import GANG_GATE, POD_GROUP_LABEL
from tests.e2e.api import POD_GROUPS, Json
from tests.e2e.build import UnavailableError, binaries
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import IN_TREE_API, SCHEDULER_NAME, WITH_IN_TREE_GROUPS, ControlPlane, Scheduler
from tests.e2e.extender import PROGRAM, Extender

T = TypeVar("T")
IN_TREE_GROUPS = f"/apis/{IN_TREE_API}/namespaces/{{namespace}}/podgroups"
AS_SHIPPED = "-v=2"  # the tests' own verbosity costs a tenth of its CPU
IN_TREE_GATES = ("--feature-gates=GenericWorkload=true,GangScheduling=true",)
DEFAULT_QPS = 50
RAISED_QPS = 5000
REST_SECONDS, REST_CPU = 2.0, 0.1  # longer than the pause before the second attempt; two attempts a second cost less
TICKS = os.sysconf("SC_CLK_TCK")


def rounds() -> int:
    """Medians are of five runs; BENCHMARK_ROUNDS=1 for a first look."""
    return int(os.environ.get("BENCHMARK_ROUNDS", "5"))


def program_of(module: str) -> tuple[str, ...]:
    """Our extender's, by a module of the benchmarks that changes something in it."""
    return tuple(module if part == "extender.cli.main" else part for part in PROGRAM)


@dataclass(frozen=True)
class Contender:
    """extended: with our extender. gated: pods are created with our gate. early: whether their gang may have room while it is still being
    made; None: as the program has it. in_tree: the scheduler's own gangs. program: what starts our extender. percentage:
    percentageOfNodesToScore of both, where it is not as shipped; 0 is kube-scheduler's own."""

    name: str
    extended: bool = False
    gated: bool = False
    early: bool | None = False
    in_tree: bool = False
    qps: int = RAISED_QPS
    program: tuple[str, ...] = PROGRAM
    percentage: int | None = None


GATED = Contender("ours, gated", extended=True, gated=True)
PLAIN = Contender("ours, plain", extended=True)
GATED_EARLY = Contender("ours, gated, early start", extended=True, gated=True, early=True)
PLAIN_EARLY = Contender("ours, plain, early start", extended=True, early=True)
PLANLESS = Contender(
    "no plans, plain", extended=True, early=None, program=program_of("tests.benchmark.planless_extender")
)
IN_TREE = Contender("in-tree gangs", in_tree=True)
ALONE = Contender("kube-scheduler alone")
GATED_50 = Contender("ours, gated, QPS 50", extended=True, gated=True, qps=DEFAULT_QPS)
ALONE_50 = Contender("kube-scheduler alone, QPS 50", qps=DEFAULT_QPS)


@contextmanager
def rival_plane() -> Iterator[ControlPlane | None]:
    """With the in-tree gang API. None, and a word why, where there are no binaries."""
    try:
        found = binaries(print)
    except UnavailableError as error:
        print(f"not run: {error}")
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        plane = ControlPlane(found, Path(folder) / "plane", WITH_IN_TREE_GROUPS)
        plane.start()
        try:
            Cluster(plane).install_crd()
            yield plane
        finally:
            plane.stop()


class Running:
    """A contender's processes, from `with` to its end. seconds: CPU of all of a process's session so far."""

    def __init__(self, contender: Contender, plane: ControlPlane, folder: Path) -> None:
        self.extender: Extender | None = None
        self._starts_early = contender.early is not False and contender.program == PROGRAM
        if contender.extended:
            settings = _settings(contender)
            self.extender = Extender(folder, plane.kubeconfig(), settings=settings, program=contender.program)
        self.scheduler = Scheduler(
            plane,
            folder,
            extender=self.extender.url if self.extender is not None else None,
            qps=contender.qps,
            change=partial(_as_users_have_it, contender),
            flags=(AS_SHIPPED, *IN_TREE_GATES) if contender.in_tree else (AS_SHIPPED,),
        )

    def __enter__(self) -> Running:
        if self.extender is not None:
            self.extender.start()
            if self._starts_early:  # a gang that is there before is not taken for one that is being made
                self.extender.await_leading()
        self.scheduler.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.scheduler.stop()
        if self.extender is not None:
            self.extender.stop()

    def await_rest(self, within: float = 60.0) -> float:
        """When kube-scheduler came to rest: it tries no pod again without an event. Now, where it does not."""
        until = time.monotonic() + within
        while (began := time.monotonic()) < until:
            before = self.scheduler_seconds
            time.sleep(REST_SECONDS)
            if self.scheduler_seconds - before <= REST_CPU:
                return began
        return began

    @property
    def scheduler_seconds(self) -> float:
        return cpu_seconds(self.scheduler.program.pid)

    @property
    def our_seconds(self) -> float:
        return cpu_seconds(self.extender.program.pid) if self.extender is not None else 0.0


def _settings(contender: Contender) -> Json:
    """Of the extender. Versions before early start know no argument for it."""
    settings: Json = {}
    if contender.percentage is not None:
        settings["percentageOfNodesToScore"] = contender.percentage
    if contender.early is not None:
        args = {"name": "Coscheduling", "args": {"earlyStart": contender.early}}
        settings["profiles"] = [{"schedulerName": SCHEDULER_NAME, "pluginConfig": [args]}]
    return settings


def _as_users_have_it(contender: Contender, config: dict[str, Any]) -> None:
    """All look at as many nodes as the manifests say, since that suits in-tree gangs too; kube-scheduler's own burst is twice its QPS."""
    config["clientConnection"]["burst"] = 2 * contender.qps
    if contender.percentage is not None:
        config["percentageOfNodesToScore"] = contender.percentage


def plane_seconds(plane: ControlPlane) -> float:
    """CPU of the API server and etcd: where the machine is busy, this decides as much as the schedulers' own."""
    return cpu_seconds(plane.apiserver.pid) + cpu_seconds(plane.etcd.pid)


def machine_seconds() -> tuple[float, float]:
    """Of all cores so far: busy, with what other machines took of them; idle."""
    user, nice, system, idle, waiting, *rest = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + sum(rest)) / TICKS, (idle + waiting) / TICKS


def cpu_seconds(session: int) -> float:
    """User and system time of all processes of a session: gunicorn's master and its worker."""
    return sum(int(stat[11]) + int(stat[12]) for stat in processes_of(session).values()) / TICKS


def processes_of(session: int) -> dict[int, list[str]]:
    """The fields of /proc/PID/stat after the name, by PID."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        if int(fields[3]) == session:
            found[int(entry.name)] = fields
    return found


def group_body(contender: Contender, name: str, members: int) -> tuple[str, Json]:
    """The path and the object that say how many must start together."""
    if contender.in_tree:
        spec: Json = {"schedulingPolicy": {"gang": {"minCount": members}}}
        body = {"apiVersion": IN_TREE_API, "kind": "PodGroup", "metadata": {"name": name}, "spec": spec}
        return IN_TREE_GROUPS.format(namespace="default"), body
    spec = {"minMember": members, "scheduleTimeoutSeconds": 60}
    body = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": name}, "spec": spec}
    return POD_GROUPS.format(namespace="default"), body


def pod_body(contender: Contender, name: str, group: str, cpu: str = "1") -> Json:
    """A member; a single pod where group is empty."""
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": {"cpu": cpu}}}
    metadata: Json = {"name": name}
    spec: Json = {
        "schedulerName": SCHEDULER_NAME,
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
    }
    if group and contender.in_tree:
        spec["schedulingGroup"] = {"podGroupName": group}
    elif group and contender.extended:
        metadata["labels"] = {POD_GROUP_LABEL: group}
        if contender.gated:
            spec["schedulingGates"] = [{"name": GANG_GATE}]
    return {"metadata": metadata, "spec": spec}


def only(*contenders: Contender) -> tuple[Contender, ...]:
    """Those whose name has one of BENCHMARK_ONLY's parts in it (`early start,in-tree`); all where that is not set."""
    wanted = os.environ.get("BENCHMARK_ONLY", "").split(",")
    return tuple(contender for contender in contenders if any(part in contender.name for part in wanted))


def for_each_round(contenders: tuple[T, ...], act: Callable[[T, int], None]) -> None:
    """Interleaved: every contender once, then all in the opposite order, and so on: what grows with time favours none of them."""
    for number in range(rounds()):
        for contender in contenders[:: -1 if number % 2 else 1]:
            act(contender, number)

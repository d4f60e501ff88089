"""1,000 nodes and gangs of 16 that find no room on them, in one process: the planner, filters and cache are the true ones.

What an event or a tick costs there is measured in gangs that were looked at, in calls inside the room, and in the longest piece of
work in which the thread gave no other its turn. Used by scale.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from unittest import mock

import extender.plugins.coscheduling as room
from extender.api import corev1
from extender.backend.cache.cache import Cache
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import Member
from tests.benchmark.planned_gangs import GATE, MEMBERS, NODES, Cluster
from tests.objects import HOSTNAME, ZONE, NodeBuilder, PodBuilder, make_node, make_pod, make_pod_group

ROOM = str(Path(room.__file__).parent)
POOLS = 10  # each has its share of the nodes, and each gang may go to one of them
NODE_CPU, RUNNING_CPU, MEMBER_CPU = 16, 12, 5  # a member finds no room beside the pod that runs on each node


class Looked:
    """Calls of functions of the room, and the gangs that any of them was given: as Group, as key, or by one of the members."""

    def __init__(self, groups: dict[str, Group]) -> None:
        self._groups = groups
        self._names: dict[CodeType, tuple[str, ...]] = {}
        self.calls = 0
        self.gangs: set[str] = set()

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(ROOM):
            return
        self.calls += 1
        names = self._names.get(code)
        if names is None:
            names = self._names[code] = code.co_varnames[: code.co_argcount]
        given = frame.f_locals
        for name in names:
            value = given.get(name)
            if isinstance(value, Group):
                self.gangs.add(value.key)
            elif isinstance(value, str) and value in self._groups:
                self.gangs.add(value)
            elif isinstance(value, Member):
                self.gangs.add(value.ref.key)

    @contextmanager
    def noted(self) -> Iterator[None]:
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)


def look(groups: dict[str, Group], act: Callable[[], object]) -> Looked:
    """What `act` costs a room that has these groups."""
    looked = Looked(groups)
    with looked.noted():
        act()
    return looked


class WaitingWorld:
    """plans: made so far. A node and a pod that runs on it have the same number; gangs are gated, or plain and refused once."""

    def __init__(self, gangs: int) -> None:
        self.cache = Cache()
        for number in range(NODES):
            self.cache.add_node(_node(number).obj())
            self.cache.add_pod(running(number))
        self.plans = 0
        self._planned_for = 0.0  # seconds of this thread's CPU
        self.cluster = Cluster(self.cache, offload=self._plan)
        for number in range(NODES):
            self.cluster.plugin.on_node(None, _node(number).obj())
            self.cluster.plugin.on_pod(None, running(number))
        for gang in range(gangs):
            self.add_gang(gang)
        self.settle()
        for _ in range(4):  # what is new of each gang has been told
            self.tick()
            self.cluster.clock.now += 1.0

    def _plan(self, function: Callable[..., object], *args: object) -> object:
        """As `offload` of serve: on another thread, so that it is no part of a piece of work on the event loop."""
        self.plans += 1
        began = time.thread_time()
        try:
            return function(*args)
        finally:
            self._planned_for += time.thread_time() - began

    def add_gang(self, gang: int) -> None:
        plugin = self.cluster.plugin
        plugin.on_pod_group(None, make_pod_group().name(f"g{gang}").min_member(MEMBERS).obj())
        for number in range(MEMBERS):
            plugin.on_pod(None, _member(gang, number).obj())

    def settle(self) -> None:
        while self.cluster.tasks:
            self.cluster.run_tasks()

    def tick(self) -> None:
        self.cluster.plugin.tick()
        self.settle()

    # Events

    def delete_pod(self, number: int) -> None:
        """A running one, and so its room comes free."""
        self._pod_goes(running(number))

    def delete_finished_pod(self, number: int) -> None:
        """It had given its room up when it ended: that is not measured."""
        pod = running(number)
        done = make_pod().name(pod.name).uid(pod.uid).node(pod.node_name).phase("Succeeded").obj()
        self.cluster.plugin.on_pod(done, None)
        self.settle()

    def _pod_goes(self, pod: corev1.Pod) -> None:
        self.cache.remove_pod(pod)
        self.cluster.plugin.on_pod(pod, None)
        self.settle()

    def cordon(self, number: int) -> None:
        old, new = _node(number).obj(), _node(number).unschedulable().obj()
        self.cache.update_node(old, new)
        self.cluster.plugin.on_node(old, new)
        self.settle()

    # What they cost

    def look(self, act: Callable[[], object]) -> Looked:
        return look(self.cluster.plugin.manager.groups, act)

    def longest_piece(self, act: Callable[[], object]) -> float:
        """Seconds of CPU between two moments at which other greenlets have their turn; plans are not counted."""
        pieces: list[float] = []
        began = 0.0

        def give_way(seconds: float) -> None:
            nonlocal began
            pieces.append(time.thread_time() - self._planned_for - began)
            began = time.thread_time() - self._planned_for

        with mock.patch("time.sleep", give_way):
            began = time.thread_time() - self._planned_for
            act()
            give_way(0.0)
        return max(pieces)


def _node(number: int) -> NodeBuilder:
    labels = {HOSTNAME: f"n{number}", ZONE: f"z{number % 3}", "pool": f"p{number % POOLS}"}
    return make_node().name(f"n{number}").labels(labels).capacity(cpu=str(NODE_CPU), memory="64Gi", pods="110")


def running(number: int) -> corev1.Pod:
    return make_pod().name(f"running-{number}").uid(f"running-{number}").node(f"n{number}").req(cpu=RUNNING_CPU).obj()


def _member(gang: int, number: int) -> PodBuilder:
    made = make_pod().name(f"g{gang}-{number}").uid(f"g{gang}-{number}").pod_group(f"g{gang}").req(cpu=MEMBER_CPU)
    return made.scheduling_gates(GATE).node_selector({"pool": f"p{gang % POOLS}"})

"""Whatever happens in whatever order: an incremental snapshot equals one from scratch, and old ones stay as they were."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from extender.api import corev1
from extender.backend.cache.cache import Cache
from extender.backend.cache.snapshot import Snapshot
from tests.unit.backend.cache.contents import contents, copied
from tests.unit.backend.objects import a_node, a_pod

NAMES = st.integers(0, 9).map("n{}".format)
ZONES = st.sampled_from(["", "a", "b"])
CPUS = st.sampled_from(["0", "100m", "2"])
AFFINITIES = st.sampled_from(["", "", "podAffinity", "podAntiAffinity"])
GPUS = st.sampled_from([None, "1", "9223372036854775807"])
KEPT = 6


def _gpu(amount: str | None) -> dict[str, str]:
    return {} if amount is None else {"example.com/gpu": amount}


class SnapshotMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.cache = Cache()
        self.nodes: set[str] = set()
        self.pods: dict[str, corev1.Pod] = {}
        self.assumed: set[str] = set()
        self.count = 0
        self.old: list[tuple[Snapshot, dict[str, Any]]] = []

    @rule(name=NAMES, zone=ZONES, cpu=CPUS, gpu=GPUS, image=st.booleans(), cordoned=st.booleans())
    def set_node(self, name: str, zone: str, cpu: str, gpu: str | None, image: bool, cordoned: bool) -> None:
        images = {"web:1": 10} if image else {}
        node = a_node(name, zone=zone, cpu=cpu, allocatable=_gpu(gpu), images=images, cordoned=cordoned)
        self.cache.update_node(None, node)
        self.nodes.add(name)

    @precondition(lambda self: self.nodes)
    @rule(data=st.data())
    def remove_node(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.nodes)))
        self.cache.remove_node(a_node(name))
        self.nodes.discard(name)

    @rule(node=NAMES, cpu=CPUS, affinity=AFFINITIES, gpu=GPUS, app=st.sampled_from("ab"), assume=st.booleans())
    def new_pod(self, node: str, cpu: str, affinity: str, gpu: str | None, app: str, assume: bool) -> None:
        self.count += 1
        port = self.count % 3
        labels = {"app": app, "own": str(self.count)}
        pod = a_pod(
            f"p{self.count}",
            node,
            cpu=cpu,
            affinity=affinity,
            requests=_gpu(gpu),
            port=port,
            claim=f"c{port}",
            labels=labels,
        )
        if assume:
            self.cache.assume_pod(pod)
            self.assumed.add(pod.uid)
        else:
            self.cache.add_pod(pod)
        self.pods[pod.uid] = pod

    @precondition(lambda self: self.pods)
    @rule(data=st.data(), cpu=CPUS, affinity=AFFINITIES)
    def change_pod(self, data: st.DataObject, cpu: str, affinity: str) -> None:
        pod = self.pods[data.draw(st.sampled_from(sorted(self.pods)))]
        node = pod.node_name
        if pod.uid in self.assumed:
            node = data.draw(NAMES)
        fresh = a_pod(pod.name, node, cpu=cpu, affinity=affinity)
        if pod.uid in self.assumed:
            self.cache.add_pod(fresh)
            self.assumed.discard(pod.uid)
        else:
            self.cache.update_pod(pod, fresh)
        self.pods[pod.uid] = fresh

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def end_pod(self, data: st.DataObject) -> None:
        pod = self.pods.pop(data.draw(st.sampled_from(sorted(self.pods))))
        if pod.uid in self.assumed:
            self.cache.forget_pod(pod)
            self.assumed.discard(pod.uid)
        else:
            self.cache.remove_pod(pod)

    @rule(columns=st.booleans(), keep=st.booleans())
    def take(self, columns: bool, keep: bool) -> None:
        """Some snapshots are asked for their columns and some are not: the next ones start from either."""
        snapshot = self.cache.snapshot()
        if keep:
            self.old = [*self.old[1 - KEPT :], (snapshot, copied(snapshot))]
        elif columns:
            snapshot.columns().requested("example.com/gpu")

    @rule()
    def ten_nodes(self) -> None:
        """So many that the columns of the others are carried on where one comes or goes."""
        for number in range(10):
            self.cache.update_node(None, a_node(f"n{number}"))
            self.nodes.add(f"n{number}")

    @rule()
    def prepare(self) -> None:
        """What changes after it, until the next snapshot, counts all the same."""
        self.cache.prepare_snapshot(lambda: None)

    @rule()
    def compare(self) -> None:
        incremental, fresh = self.cache.snapshot(), self.cache.update_snapshot(Snapshot())
        assert contents(incremental) == contents(fresh)
        assert {node.name for node in incremental.list()} == self.nodes

    @invariant()
    def old_ones_stay(self) -> None:
        for snapshot, before in self.old:
            assert contents(snapshot) == before

    def teardown(self) -> None:
        self.compare()


TestSnapshotMachine = SnapshotMachine.TestCase
TestSnapshotMachine.settings = settings(
    max_examples=40, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)

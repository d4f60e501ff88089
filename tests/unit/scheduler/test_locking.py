"""A walk through a whole scheduler, on its threads: events, verbs, ticks, pages and scrapes touch the gangs' state under its lock alone,
and what native threads run takes no lock."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from prometheus_client import generate_latest

from extender import metrics
from extender.api.schedulingv1alpha1 import GANG_GATE
from extender.client.embedded import EmbeddedAPI
from extender.client.interface import NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, POD_GROUPS, PODS
from extender.config.defaults import whole_profile
from extender.config.plugin_args import CoschedulingArgs
from extender.config.types import ExtenderConfiguration, KubeSchedulerConfiguration
from extender.crash import on_native_thread
from extender.plugins.coscheduling.pod_conditions import CALL_FAILED, NO_CANDIDATE
from extender.plugins.registry import new_in_tree_registry
from extender.scheduler.in_process.scheduler import InProcessScheduler
from extender.scheduler.interface import GANG, GANGS
from tests.native_threads import noted_locks
from tests.unit.plugins.coscheduling.locking import Watch, watched
from tests.unit.scheduler.conftest import GROUP_LABEL, SECONDS, Bench, Peer

GATES = [{"name": GANG_GATE}]
CLAIM = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]


@pytest.fixture
def watch() -> Iterator[Watch]:
    """Of all that is built after it, until that has ended."""
    with watched() as made:
        yield made
    assert dict(made.unlocked) == {}


@pytest.fixture
def bench(watch: Watch) -> Iterator[Bench]:
    with noted_locks() as taken:
        made = Bench(
            ExtenderConfiguration(shadow_after_seconds=0.001, shadow_max_seconds=60.0), offload=on_native_thread
        )
        yield made
        made.stop()
    assert list(taken.places) == []


def looked_at(bench: Bench) -> None:
    """Everything that asks how gangs are doing, and all that happens once a second."""
    parts, pages = bench.scheduler._dependencies, bench.scheduler.pages()
    for each in pages[GANGS]():  # type: ignore[attr-defined]
        pages[GANG](each.key)
    assert b"gang_extender_gangs" in generate_latest(metrics.REGISTRY)
    bench.scheduler.readiness()
    bench.scheduler.liveness()
    for tick in (parts.coscheduling.tick, parts.verdicts.tick, parts.steering.tick):
        tick()
    bench.flush()


def test_gangs_that_start_wait_and_go(bench: Bench) -> None:
    bench.node("n1", cpu="3")
    bench.node("n2", cpu="1")
    bench.pod_group("g", 2)
    pods = [bench.pod(f"g{i}", "g") for i in range(2)]
    assert bench.filter(pods[0], "n1", "n2").node_names
    assert bench.filter(pods[1], "n1", "n2").node_names
    bench.prioritize(pods[0], "n1", "n2")
    answers = [bench.bind(pods[0], "n1")]
    bench.held(pods[0])
    looked_at(bench)
    answers.append(bench.bind(pods[1], "n1"))
    assert [answer.result(SECONDS) for answer in answers] == ["", ""]
    bench.pod_group("waits", 3, minResources={"cpu": "64"})
    bench.pod_group("short", 5)
    waits = [bench.pod(f"w{i}", "waits", priority=5) for i in range(3)]
    bench.pod("gated", "waits", schedulingGates=GATES)
    short = bench.pod("s0", "short", volumes=CLAIM)
    single = bench.pod("single")
    for pod in (*waits, short, single):
        bench.filter(pod, "n1", "n2")
    bench.prioritize(single, "n1", "n2")
    looked_at(bench)
    bench.api.create(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": "data"}})
    bench.api.patch(POD_GROUPS, "waits", {"spec": {"minResources": None}}, namespace="default")
    bench.api.patch(NODES, "n2", {"spec": {"unschedulable": True}})
    looked_at(bench)
    bench.filter(waits[0], "n1", "n2")
    peer = Peer()
    alone = bench.bind(single, "n1", peer)
    peer.hang_up()
    alone.result(SECONDS)
    for pod in (*waits, short, *pods):
        bench.api.delete(PODS, pod.name, "default")
    for name in ("g", "short"):
        bench.api.delete(POD_GROUPS, name, "default")
    bench.api.delete(NODES, "n2")
    looked_at(bench)
    bench.scheduler.drain("ends")
    looked_at(bench)


def test_members_with_volumes(bench: Bench) -> None:
    """Their plans ask for what is assumed of claims and volumes."""
    bench.node("n1", cpu="1")
    claim = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data"}
    source = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"]}
    bench.api.create(PERSISTENT_VOLUMES, {"metadata": {"name": "pv"}, "spec": {**source, "claimRef": claim}})
    bound = {"metadata": {"name": "data", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}}
    bench.api.create(PERSISTENT_VOLUME_CLAIMS, {**bound, "spec": {**source, "volumeName": "pv"}})
    bench.until(lambda: bench.store(PERSISTENT_VOLUME_CLAIMS).get("default/data") is not None, "the claim is seen")
    bench.pod_group("g", 1)
    assert bench.filter(bench.pod("g0", "g", volumes=CLAIM), "n1").node_names
    looked_at(bench)


def test_gangs_that_are_preempted_and_preempt(bench: Bench) -> None:
    bench.until(bench.may_evict, "evictions are allowed")
    bench.node("n1", cpu="3")
    bench.pod_group("running", 3)
    running = [bench.pod(f"r{i}", "running", node="n1") for i in range(3)]
    bench.pod_group("extra", 2)
    extra = bench.pod("e0", "extra", priority=100)
    assert bench.preempt(extra, {"n1": running[:1]}) == {}
    looked_at(bench)
    vip = bench.pod("vip", priority=100)
    assert bench.preempt(vip, {"n1": running[:1]})
    for victim in running:
        bench.preempted(victim)
    looked_at(bench)
    bench.pod("low", node="n1", cpu="2")
    bench.pod_group("high", 3)
    high = [bench.pod(f"h{i}", "high", priority=100) for i in range(3)]
    for pod in high:
        bench.filter(pod, "n1")
    looked_at(bench)
    bench.api.delete(PODS, vip.name, "default")
    for name, text in (("vetoed", NO_CANDIDATE), ("unheard", CALL_FAILED[0])):  # before we were there
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": text}
        labels = {GROUP_LABEL: "high"}
        bench.api.create(PODS, {"metadata": {"name": name, "labels": labels}, "status": {"conditions": [condition]}})
    looked_at(bench)


def test_gangs_of_the_scheduler_that_runs_alone(watch: Watch) -> None:
    api = EmbeddedAPI()
    profile = whole_profile(coscheduling=CoschedulingArgs(scheduling_gate=GANG_GATE))
    scheduler = InProcessScheduler(api, KubeSchedulerConfiguration((profile,)), new_in_tree_registry())
    scheduler.start()
    try:
        room = {"cpu": "2", "memory": "8Gi", "pods": "110"}
        api.create(NODES, {"metadata": {"name": "n1"}, "status": {"allocatable": room}})
        api.create(POD_GROUPS, {"metadata": {"name": "g"}, "spec": {"minMember": 2}})
        labels = {GROUP_LABEL: "g"}
        resources = {"requests": {"cpu": "1"}}
        for name in ("a", "b", "late"):
            spec = {"containers": [{"name": "c", "resources": resources}], "schedulingGates": GATES}
            api.create(PODS, {"metadata": {"name": name, "labels": labels}, "spec": spec})
        Bench.until(lambda: sum(bool(pod.node_name) for pod in api.list_page(PODS).items) == 2, "the gang runs")
        api.delete(PODS, "a", "default")
    finally:
        scheduler.stop()

"""Gangs whose members bring claims that wait for their first consumer, behind the real kube-scheduler.

kube-scheduler binds volumes in its own PreBind, which comes before the bind call: a member is held only once its claims
are bound, and the gang starts when the slowest volume is there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from extender.plugins.volume_binding.matching import SELECTED_NODE
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import Scheduler
from tests.e2e.extender import Extender
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually
from tests.e2e.storage import CLAIMS, DRIVER, VOLUMES, Storage
from tests.e2e.test_gated_gangs import CPU, GATED

BOTH = pytest.mark.parametrize("gate", [pytest.param({}, id="plain"), pytest.param(GATED, id="gated")])
THREE = ["train-0", "train-1", "train-2"]


@pytest.fixture
def storage(cluster: Cluster) -> Iterator[Storage]:
    made = Storage(cluster)
    yield made
    made.stop()


def gang(storage: Storage, storage_class: str, gate: dict[str, Any], **group: Any) -> None:
    """Three members, each with a claim of its own of the same name."""
    storage.cluster.pod_group("train", min_member=3, **group)
    for name in THREE:
        storage.claim(name, storage_class)
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
        storage.cluster.pod(name, group="train", requests=CPU, volumes=[volume], **gate)


def await_held(pair: Pair, number: int) -> None:
    eventually(lambda: pair.extender.held() == number, within=15, what=f"{number} members are held")


@BOTH
def test_a_gang_starts_when_its_slowest_volume_is_there(
    storage: Storage, module_programs: Pair, gate: dict[str, Any]
) -> None:
    for number in (1, 2, 3):
        storage.cluster.node(f"node-{number}", cpu="1")
    storage.storage_class("fast", DRIVER)
    gang(storage, "fast", gate)
    nodes = {storage.await_selected_node(name) for name in THREE}
    assert nodes == {"node-1", "node-2", "node-3"}
    assert module_programs.extender.held() == 0, "kube-scheduler's PreBind comes before the bind call"
    for number, name in enumerate(THREE, 1):
        assert storage.cluster.recorder.bound() == set()
        storage.provision(name)
        if number < 3:
            await_held(module_programs, number)
    storage.cluster.recorder.await_bound(*THREE, within=5)


@BOTH
def test_a_gang_goes_where_its_disks_are(storage: Storage, module_programs: Pair, gate: dict[str, Any]) -> None:
    for number in range(1, 13):
        storage.cluster.node(f"node-{number}", cpu="4")
    storage.storage_class("local")
    for number in (3, 7, 11):
        storage.volume(f"disk-{number}", f"node-{number}")
    gang(storage, "local", gate)
    eventually(
        lambda: not storage.controller.sync() and len(storage.cluster.recorder.bound()) == 3,
        within=20,
        what="all three are bound",
    )
    assert {storage.node_of(name) for name in THREE} == {"node-3", "node-7", "node-11"}


def test_a_provisioner_that_gives_up_once(storage: Storage, module_programs: Pair) -> None:
    """kube-scheduler undoes the one member and tries it again; the others are held meanwhile, and no member is bound."""
    storage.cluster.node("node-1", cpu="4")
    storage.storage_class("fast", DRIVER)
    gang(storage, "fast", GATED)
    for name in THREE:
        storage.await_selected_node(name)
    storage.provision("train-0")
    storage.provision("train-1")
    await_held(module_programs, 2)
    annotations = {SELECTED_NODE: None, "volume.kubernetes.io/storage-provisioner": DRIVER}
    storage.api.patch(f"{CLAIMS}/train-2", {"metadata": {"annotations": annotations}})
    storage.cluster.recorder.await_message("train-2", "provisioning failed for PVC", within=10)
    storage.await_selected_node("train-2")
    assert storage.cluster.recorder.bound() == set()
    storage.provision("train-2")
    storage.cluster.recorder.await_bound(*THREE, within=15)


def test_a_member_that_was_to_start_with_a_group_that_is_gone_once_its_volume_is_there(
    storage: Storage, module_programs: Pair
) -> None:
    """It is not held: nothing could say for how long, and its room would lie idle."""
    cluster = storage.cluster
    cluster.node("node-1", cpu="4")
    storage.storage_class("fast", DRIVER)
    storage.claim("solver-0", "fast")
    cluster.pod_group("viewer", min_member=1)
    cluster.pod_group("solver", min_member=1, annotations={"gang-extender.dev/groups": "viewer"})
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "solver-0"}}
    cluster.pod("viewer-0", group="viewer", requests=CPU)
    cluster.pod("solver-0", group="solver", requests=CPU, volumes=[volume])
    storage.await_selected_node("solver-0")
    await_held(module_programs, 1)
    cluster.delete_pod("viewer-0")
    cluster.delete_pod_group("viewer")
    await_held(module_programs, 0)
    storage.provision("solver-0")
    text = "PodGroup default/viewer, which it is to start together with, is not found"
    cluster.recorder.await_message("solver-0", text, within=10)
    assert module_programs.extender.held() == 0


def three_with_slow_volumes(storage: Storage) -> None:
    storage.cluster.node("node-1", cpu="4")
    storage.storage_class("fast", DRIVER)
    gang(storage, "fast", GATED, scheduleTimeoutSeconds=2)
    for name in THREE:
        storage.await_selected_node(name)


def test_the_others_are_held_while_a_volume_is_made(storage: Storage, module_programs: Pair) -> None:
    """For longer than scheduleTimeoutSeconds."""
    three_with_slow_volumes(storage)
    storage.provision("train-0")
    await_held(module_programs, 1)
    until = time.monotonic() + 3
    eventually(lambda: time.monotonic() > until, within=5, what="the group's own time is over")
    assert module_programs.extender.held() == 1
    storage.provision("train-1")
    storage.provision("train-2")
    storage.cluster.recorder.await_bound(*THREE, within=5)
    assert not any("rejected" in event for name in THREE for event in storage.cluster.events(name))


def test_a_volume_that_takes_longer_than_a_member_may_be_held(
    storage: Storage, cluster: Cluster, tmp_path: Path, programs: list[Extender | Scheduler]
) -> None:
    """The others' holds end and their claims stay bound; the gang starts whole once the last volume is there."""
    programs.extend(Pair.of(cluster.plane, tmp_path, settings={"bindTimeoutSeconds": 10}).start())
    three_with_slow_volumes(storage)
    storage.provision("train-0")
    cluster.recorder.await_message("train-0", "rejected due to timeout", within=10)
    storage.provision("train-1")
    storage.provision("train-2")
    cluster.recorder.await_bound(*THREE, within=20)
    assert storage.get(VOLUMES, "pvc-train-0")["spec"]["claimRef"]["name"] == "train-0"

"""Volumes on a real API server: the whole profile in-process, and no kube-controller-manager but what a test plays.

What VolumeBinding writes passes the real validation, and what it waits for comes through real watches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from extender.config.defaults import whole_profile
from extender.config.plugin_args import VolumeBindingArgs
from extender.config.types import KubeSchedulerConfiguration
from extender.plugins.registry import new_in_tree_registry
from extender.plugins.volume_binding.matching import BOUND_BY_CONTROLLER, SELECTED_NODE
from extender.scheduler.in_process.scheduler import InProcessScheduler
from tests.e2e.cluster import Cluster
from tests.e2e.processes import eventually
from tests.e2e.storage import CLAIMS, DRIVER, HOSTNAME, VOLUMES, Storage

MIRROR = "mirror"


class Mirror(Storage):
    """With the scheduler that looks at them, in this process."""

    def __init__(self, cluster: Cluster, bind_timeout_seconds: int) -> None:
        super().__init__(cluster)
        profile = replace(
            whole_profile(MIRROR), plugin_config={"VolumeBinding": VolumeBindingArgs(bind_timeout_seconds)}
        )
        configuration = KubeSchedulerConfiguration((profile,))
        self._scheduler = InProcessScheduler(self.connection, configuration, new_in_tree_registry())

    def start(self) -> None:
        self._scheduler.start()

    def stop(self) -> None:
        self._scheduler.stop()
        super().stop()

    def pod(self, name: str, claim: str) -> None:
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
        self.cluster.pod(name, scheduler_name=MIRROR, volumes=[volume])


@pytest.fixture
def storage(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Mirror]:
    """Its parameter: bindTimeoutSeconds."""
    for name in ("node-1", "node-2"):
        cluster.node(name)
    made = Mirror(cluster, getattr(request, "param", 600))
    made.start()
    yield made
    made.stop()


def test_a_volume_of_one_node_is_bound_and_the_pod_follows_it(storage: Mirror) -> None:
    storage.storage_class("local")
    storage.volume("disk", "node-2")
    storage.claim("data")
    storage.pod("web", "data")
    reference = storage.await_claim_of("disk")
    assert (reference["namespace"], reference["name"]) == ("default", "data")
    assert reference["uid"] == storage.get(CLAIMS, "data")["metadata"]["uid"]
    assert storage.get(VOLUMES, "disk")["metadata"]["annotations"] == {BOUND_BY_CONTROLLER: "yes"}
    assert storage.node_of("web") == "", "the pod waits for the controller"
    storage.bind("disk", "data")
    storage.cluster.recorder.await_bound("web", within=10)
    assert storage.node_of("web") == "node-2"


def test_two_pods_get_two_volumes_and_a_third_hears_why_not(storage: Mirror) -> None:
    storage.storage_class("local")
    for number in (1, 2):
        storage.volume(f"disk-{number}", f"node-{number}")
    for name in "abc":
        storage.claim(f"data-{name}")
        storage.pod(f"web-{name}", f"data-{name}")
    recorder = storage.cluster.recorder
    eventually(
        lambda: (storage.controller.sync(), len(recorder.bound()) == 2)[1], within=15, what="two of three are bound"
    )
    text = "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind."
    eventually(
        lambda: sum(text in recorder.condition(f"web-{name}").get("message", "") for name in "abc") == 1,
        within=15,
        what="the third is told",
    )
    assert {storage.node_of(name) for name in recorder.bound()} == {"node-1", "node-2"}


def test_a_bind_that_is_undone_is_tried_again(storage: Mirror) -> None:
    """The controller drops the claim from the volume: the pod is told, and gets the volume at its next attempt."""
    storage.storage_class("local")
    storage.volume("disk", "node-1")
    storage.claim("data")
    storage.pod("web", "data")
    storage.await_claim_of("disk")
    storage.api.patch(f"{VOLUMES}/disk", {"spec": {"claimRef": None}})
    storage.cluster.recorder.await_message("web", 'binding volumes: ClaimRef got reset for pv "disk"', within=10)
    assert storage.cluster.recorder.condition("web")["reason"] == "SchedulerError"
    storage.await_claim_of("disk")
    storage.bind("disk", "data")
    storage.cluster.recorder.await_bound("web", within=10)


@pytest.mark.parametrize("storage", [2], indirect=True)
def test_a_controller_that_does_not_answer(storage: Mirror) -> None:
    """After bindTimeoutSeconds the attempt is over; the next one finds the volume meant for the claim already."""
    storage.storage_class("local")
    storage.volume("disk", "node-1")
    storage.claim("data")
    storage.pod("web", "data")
    storage.cluster.recorder.await_message("web", "binding volumes: context deadline exceeded", within=12)
    assert storage.get(VOLUMES, "disk")["spec"]["claimRef"]["name"] == "data"
    storage.bind("disk", "data")
    storage.cluster.recorder.await_bound("web", within=15)


def test_a_volume_is_provisioned_on_the_second_attempt(storage: Mirror) -> None:
    """The provisioner gives up once, which it says by taking the annotation off."""
    topology = {"matchLabelExpressions": [{"key": HOSTNAME, "values": ["node-2"]}]}
    storage.storage_class("fast", DRIVER, allowedTopologies=[topology])
    storage.claim("data", "fast")
    storage.pod("web", "data")
    assert storage.await_selected_node("data") == "node-2"
    annotations = {SELECTED_NODE: None, "volume.kubernetes.io/storage-provisioner": DRIVER}
    storage.api.patch(f"{CLAIMS}/data", {"metadata": {"annotations": annotations}})
    storage.cluster.recorder.await_message("web", 'binding volumes: provisioning failed for PVC "data"', within=10)
    storage.await_selected_node("data")
    eventually(
        lambda: not storage.controller.sync() and storage.get(CLAIMS, "data")["status"]["phase"] == "Bound",
        within=10,
        what="the claim is bound",
    )
    storage.cluster.recorder.await_bound("web", within=10)
    assert storage.node_of("web") == "node-2"


def test_a_claim_that_comes_late_wakes_its_pod(storage: Mirror) -> None:
    storage.storage_class("local")
    storage.volume("disk", "node-1")
    storage.pod("web", "data")
    storage.cluster.recorder.await_message("web", 'persistentvolumeclaim "data" not found', within=10)
    storage.claim("data")
    storage.await_claim_of("disk")
    storage.bind("disk", "data")
    storage.cluster.recorder.await_bound("web", within=10)


def test_a_scheduler_that_stops_does_not_wait_for_volumes(storage: Mirror) -> None:
    """The fixture stops it long before bindTimeoutSeconds."""
    storage.storage_class("local")
    storage.volume("disk", "node-1")
    storage.claim("data")
    storage.pod("web", "data")
    storage.await_claim_of("disk")
    assert storage.node_of("web") == ""

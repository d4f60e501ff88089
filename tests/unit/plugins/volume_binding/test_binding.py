"""Reserve, PreBind and Unreserve of VolumeBinding on an API: what is assumed, written, awaited and given back.

kube-scheduler: pkg/scheduler/framework/plugins/volumebinding/binder_test.go (AssumePodVolumes, BindPodVolumes)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from extender.api import corev1
from extender.api.codec import to_builtins
from extender.client.embedded import EmbeddedAPI
from extender.client.interface import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    ResourceType,
)
from extender.config.plugin_args import VolumeBindingArgs
from extender.framework.cycle_state import CycleState
from extender.framework.status import SKIP, SUCCESS, error, unresolvable
from extender.plugins.volume_binding import VolumeBinding
from extender.plugins.volume_binding.binder import BIND_CONFLICT
from extender.plugins.volume_binding.matching import BOUND_BY_CONTROLLER, SELECTED_NODE
from extender.simulation.volume_controller import VolumeController
from tests.objects import make_node, make_pod
from tests.unit.plugins.storage import PodInPreBind, StorageHandle, make_claim, make_class, make_volume

WATCHED: tuple[ResourceType[Any], ...] = (PODS, NODES, PERSISTENT_VOLUMES, PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES)
NODE = make_node().name("n1").label("zone", "a")
POD = make_pod().name("p").uid("uid-p").pvc("c")
LOCAL, FAST = make_class("local"), make_class("fast", "csi.example.com")


class Cluster:
    """An API, what the watch shows of it, and the plugin; `show` brings the watch up to date."""

    def __init__(self, *objects: Any) -> None:
        self.api = EmbeddedAPI()
        self.handle = StorageHandle(api=self.api)
        for obj in (NODE.obj(), POD.obj(), LOCAL, FAST, *objects):
            self.create(obj)
        self.show()
        handle: Any = self.handle
        self.plugin = VolumeBinding.create(VolumeBindingArgs(bind_timeout_seconds=30), handle)
        self.controller = VolumeController(self.api)

    def create(self, obj: Any) -> None:
        resource = next(kind for kind in WATCHED if kind.type is type(obj))
        self.api.create(resource, to_builtins(obj), obj.metadata.namespace)

    def show(self) -> None:
        for resource in WATCHED:
            shown = self.handle.lister(resource.type)
            objects = {obj.metadata.key: obj for obj in self.api.list_page(resource).items}
            for gone in [obj for obj in shown.list() if obj.metadata.key not in objects]:
                self.handle.remove(gone)
            for obj in objects.values():
                self.handle.put(obj)

    def reserve(self, pod: corev1.Pod, node: str = "n1") -> CycleState:
        """PreFilter, Filter and Reserve, all of which succeed."""
        state = CycleState()
        assert self.plugin.pre_filter(state, pod, []) == (None, SUCCESS)
        assert self.plugin.filter(state, pod, NODE.info()) == SUCCESS
        assert self.plugin.reserve(state, pod, node) == SUCCESS
        return state

    def while_bound(self, *steps: Callable[[], object]) -> None:
        """One step each time that PreBind sleeps, and the watch shows what came of it."""
        left = list(steps)

        def step() -> None:
            if left:
                left.pop(0)()
                self.show()

        self.handle.while_asleep = step

    def volume(self, name: str = "v") -> corev1.PersistentVolume:
        return self.api.get(PERSISTENT_VOLUMES, name)

    def claim(self, name: str = "c") -> corev1.PersistentVolumeClaim:
        return self.api.get(PERSISTENT_VOLUME_CLAIMS, name, "default")

    def patch_volume(self, body: dict[str, Any], name: str = "v") -> None:
        self.api.patch(PERSISTENT_VOLUMES, name, body)

    def patch_claim(self, body: dict[str, Any], name: str = "c") -> None:
        self.api.patch(PERSISTENT_VOLUME_CLAIMS, name, body, namespace="default")


def _static(**volume: Any) -> Cluster:
    return Cluster(make_claim("c", storage_class="local"), make_volume("v", storage_class="local", **volume))


def _assumed(pod: str = "p") -> corev1.Pod:
    return POD.name(pod).node("n1").obj()


def test_an_existing_volume_is_bound() -> None:
    cluster = _static(zone="a")
    state = cluster.reserve(POD.obj())
    assert cluster.plugin.pre_bind_pre_flight(state, _assumed(), "n1") == SUCCESS
    assert cluster.volume().spec.claim_ref is None, "nothing is written before PreBind"
    cluster.while_bound(cluster.show, cluster.controller.sync)
    assert cluster.plugin.pre_bind(state, _assumed(), "n1") == SUCCESS
    volume, claim = cluster.volume(), cluster.claim()
    assert volume.spec.claim_ref is not None
    assert volume.spec.claim_ref.uid == claim.metadata.uid
    assert volume.metadata.annotations[BOUND_BY_CONTROLLER] == "yes"
    assert (volume.status.phase, claim.status.phase, claim.spec.volume_name) == ("Bound", "Bound", "v")


def test_a_volume_is_provisioned() -> None:
    cluster = Cluster(make_claim("c", storage_class="fast", size="3Gi"))
    state = cluster.reserve(POD.obj())
    cluster.while_bound(cluster.show, cluster.controller.sync, cluster.controller.sync)
    assert cluster.plugin.pre_bind(state, _assumed(), "n1") == SUCCESS
    claim = cluster.claim()
    assert claim.metadata.annotations[SELECTED_NODE] == "n1"
    assert cluster.volume(claim.spec.volume_name).spec.capacity["storage"].text == "3Gi"


def test_a_bound_claim_needs_no_pre_bind() -> None:
    cluster = Cluster(make_claim("c", bound_to="v"), make_volume("v", phase="Bound"))
    state = cluster.reserve(POD.obj())
    assert cluster.plugin.pre_bind_pre_flight(state, _assumed(), "n1") == SKIP
    assert cluster.plugin.pre_bind(state, _assumed(), "n1") == SUCCESS


def test_a_pod_without_claims_needs_nothing() -> None:
    cluster, state, pod = Cluster(), CycleState(), make_pod().name("q").obj()
    assert cluster.plugin.pre_filter(state, pod, []) == (None, SKIP)
    assert cluster.plugin.reserve(state, pod, "n1") == SUCCESS
    assert cluster.plugin.pre_bind_pre_flight(state, pod, "n1") == SKIP
    cluster.plugin.unreserve(state, pod, "n1")
    cluster.plugin.unreserve(CycleState(), pod, "n1")


def test_an_assumed_volume_is_not_given_to_the_next_pod_until_it_is_given_back() -> None:
    cluster = _static()
    cluster.create(make_claim("d", storage_class="local"))
    cluster.show()
    state, other, next_state = cluster.reserve(POD.obj()), make_pod().name("q").pvc("d").obj(), CycleState()
    cluster.plugin.pre_filter(next_state, other, [])
    assert cluster.plugin.filter(next_state, other, NODE.info()) == unresolvable(BIND_CONFLICT)
    cluster.plugin.unreserve(state, POD.obj(), "n1")
    cluster.plugin.pre_filter(next_state, other, [])
    assert cluster.plugin.filter(next_state, other, NODE.info()) == SUCCESS


def test_a_claim_that_two_pods_share_is_provisioned_on_one_node() -> None:
    cluster = Cluster(make_claim("c", storage_class="fast"))
    cluster.reserve(POD.obj())
    other, state = make_pod().name("q").pvc("c").obj(), CycleState()
    cluster.plugin.pre_filter(state, other, [])
    assert cluster.plugin.filter(state, other, NODE.info()) == SUCCESS
    elsewhere = make_node().name("n2").info()
    assert cluster.plugin.filter(state, other, elsewhere) == unresolvable(BIND_CONFLICT)


def test_what_has_changed_since_filter_is_not_assumed() -> None:
    cluster, state = _static(), CycleState()
    cluster.create(make_claim("b", storage_class="fast"))
    cluster.show()
    pod = POD.pvc("b").obj()
    cluster.plugin.pre_filter(state, pod, [])
    cluster.plugin.filter(state, pod, NODE.info())
    cluster.patch_claim({"metadata": {"labels": {"a": "b"}}}, "b")
    cluster.show()
    status = cluster.plugin.reserve(state, pod, "n1")
    assert "is out of sync" in status.message
    other = CycleState()
    cluster.plugin.pre_filter(other, POD.obj(), [])
    assert cluster.plugin.filter(other, POD.obj(), NODE.info()) == SUCCESS, "the volume was given back"


def test_another_pod_was_first() -> None:
    """The watch is behind: what was decided on is not so any more, and nothing is overwritten."""
    cluster = _static()
    state = cluster.reserve(POD.obj())
    cluster.patch_volume({"spec": {"claimRef": {"namespace": "x", "name": "y", "uid": "z"}}})
    status = cluster.plugin.pre_bind(state, _assumed(), "n1")
    assert "the object has been modified" in status.message
    assert cluster.volume().spec.claim_ref == corev1.ClaimReference(name="y", namespace="x", uid="z")
    cluster.plugin.unreserve(state, _assumed(), "n1")
    cluster.show()
    again = CycleState()
    cluster.plugin.pre_filter(again, POD.obj(), [])
    assert cluster.plugin.filter(again, POD.obj(), NODE.info()) == unresolvable(BIND_CONFLICT)


def test_a_bind_that_is_given_up_leaves_what_was_written() -> None:
    """The volume keeps its claim, so the next attempt finds it meant for the pod."""
    cluster = _static()
    state = cluster.reserve(POD.obj())
    cluster.while_bound(cluster.show)
    status = cluster.plugin.pre_bind(state, _assumed(), "n1")
    assert status == error("binding volumes: context deadline exceeded")
    assert cluster.handle.now >= 30
    cluster.plugin.unreserve(state, _assumed(), "n1")
    again = cluster.reserve(POD.obj())
    cluster.while_bound(cluster.controller.sync)
    assert cluster.plugin.pre_bind(again, _assumed(), "n1") == SUCCESS


def test_a_pod_that_is_preempted_meanwhile_waits_no_longer() -> None:
    cluster = _static()
    state = cluster.reserve(POD.obj())
    running = cluster.handle.running = PodInPreBind()
    cluster.while_bound(lambda: running.cancel_pod("preempted"))
    assert cluster.plugin.pre_bind(state, _assumed(), "n1") == error("binding volumes: context canceled")


@pytest.mark.parametrize(
    ("happens", "text"),
    [
        pytest.param(
            lambda c: c.api.delete(PODS, "p", "default"),
            'pod does not exist any more: pod "p" not found',
            id="the pod is deleted",
        ),
        pytest.param(lambda c: c.api.delete(NODES, "n1"), 'failed to get node "n1": node "n1" not found', id="no node"),
        pytest.param(
            lambda c: c.patch_volume({"spec": {"claimRef": None}}), 'ClaimRef got reset for pv "v"', id="unbound again"
        ),
        pytest.param(
            lambda c: c.api.delete(PERSISTENT_VOLUMES, "v"),
            'failed to check binding: persistentvolumes "v" not found',
            id="the volume is deleted",
        ),
        pytest.param(
            lambda c: c.api.delete(PERSISTENT_VOLUME_CLAIMS, "c", "default"),
            'failed to check binding: persistentvolumeclaims "default/c" not found',
            id="the claim is deleted",
        ),
        pytest.param(
            lambda c: c.api.patch(NODES, "n1", {"metadata": {"labels": {"zone": "b"}}}),
            'pv "v" node affinity doesn\'t match node "n1": no matching NodeSelectorTerms',
            id="the node moves",
        ),
    ],
)
def test_an_existing_volume_that_will_not_be_bound(happens: Callable[[Cluster], object], text: str) -> None:
    cluster = _static(zone="a")
    state = cluster.reserve(POD.obj())
    cluster.while_bound(lambda: happens(cluster))
    assert cluster.plugin.pre_bind(state, _assumed(), "n1") == error(f"binding volumes: {text}")


@pytest.mark.parametrize(
    ("happens", "text"),
    [
        pytest.param(
            lambda c: c.patch_claim({"metadata": {"annotations": None}}),
            'selectedNode annotation reset for PVC "c"',
            id="no annotation is left",
        ),
        pytest.param(
            lambda c: c.patch_claim({"metadata": {"annotations": {SELECTED_NODE: None, "other": "x"}}}),
            'provisioning failed for PVC "c"',
            id="the provisioner gives up",
        ),
        pytest.param(
            lambda c: c.api.delete(PERSISTENT_VOLUME_CLAIMS, "c", "default"),
            'failed to check provisioning pvc: persistentvolumeclaims "default/c" not found',
            id="the claim is deleted",
        ),
        pytest.param(
            lambda c: (
                c.create(make_volume("elsewhere", zone="b")),
                c.patch_claim({"spec": {"volumeName": "elsewhere"}}),
            ),
            'pv "elsewhere" node affinity doesn\'t match node "n1": no matching NodeSelectorTerms',
            id="provisioned elsewhere",
        ),
    ],
)
def test_a_new_volume_that_will_not_be_made(happens: Callable[[Cluster], object], text: str) -> None:
    cluster = Cluster(make_claim("c", storage_class="fast"))
    state = cluster.reserve(POD.obj())
    cluster.while_bound(lambda: happens(cluster))
    assert cluster.plugin.pre_bind(state, _assumed(), "n1") == error(f"binding volumes: {text}")


def test_a_new_volume_that_the_watch_has_yet_to_show_is_waited_for() -> None:
    cluster = Cluster(make_claim("c", storage_class="fast"))
    state = cluster.reserve(POD.obj())
    cluster.while_bound(
        lambda: cluster.patch_claim({"spec": {"volumeName": "new"}}),
        lambda: cluster.create(make_volume("new", zone="a")),
        lambda: cluster.patch_claim({"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}}),
    )
    assert cluster.plugin.pre_bind(state, _assumed(), "n1") == SUCCESS


def test_what_was_not_written_is_given_back() -> None:
    """The first volume is written, the second has changed: only the second is free again at once."""
    cluster = _static(size="1Gi")
    cluster.create(make_claim("d", storage_class="local", size="5Gi"))
    cluster.create(make_volume("w", storage_class="local", size="5Gi"))
    cluster.show()
    pod = POD.pvc("d").obj()
    state = cluster.reserve(pod)
    cluster.patch_volume({"metadata": {"labels": {"a": "b"}}}, "w")
    assert "the object has been modified" in cluster.plugin.pre_bind(state, pod, "n1").message
    cluster.plugin.unreserve(state, pod, "n1")
    assert cluster.volume().spec.claim_ref is not None
    again = CycleState()
    cluster.plugin.pre_filter(again, make_pod().name("q").pvc("d").obj(), [])
    assert cluster.plugin.filter(again, make_pod().name("q").pvc("d").obj(), NODE.info()) == SUCCESS


def test_a_node_that_filter_never_saw() -> None:
    cluster, state = _static(), CycleState()
    cluster.plugin.pre_filter(state, POD.obj(), [])
    expected = error('no pod volume found for node "n1"')
    assert cluster.plugin.pre_bind_pre_flight(state, _assumed(), "n1") == expected
    assert cluster.plugin.pre_bind(state, _assumed(), "n1") == expected


def test_without_a_cycle_there_is_an_error() -> None:
    cluster = _static()
    assert cluster.plugin.reserve(CycleState(), POD.obj(), "n1") == error("not found")
    assert cluster.plugin.pre_bind(CycleState(), POD.obj(), "n1") == error("not found")

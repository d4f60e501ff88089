"""VolumeRestrictions by its rules. kube-scheduler: pkg/scheduler/framework/plugins/volumerestrictions"""

from __future__ import annotations

from typing import Any

import pytest

from extender.api import corev1
from extender.framework.cycle_state import CycleState
from extender.framework.interface import QueueingHint
from extender.framework.status import SKIP, SUCCESS, Status, error, unresolvable
from extender.plugins.volume_restrictions import DISK_CONFLICT, READ_WRITE_ONCE_POD_CONFLICT, VolumeRestrictions
from tests.objects import PodBuilder, make_node, make_pod
from tests.unit.plugins.storage import StorageHandle, make_claim

RWOP = make_claim("data", modes=["ReadWriteOncePod"])
SHARED = make_claim("shared", modes=["ReadWriteMany"])
NODE = make_node().name("n1")


def _plugin(*objects: Any, pods: list[corev1.Pod] | None = None) -> VolumeRestrictions:
    handle: Any = StorageHandle(objects).with_cluster(pods or [], [NODE.obj()])
    return VolumeRestrictions.create(None, handle)


def _gce(name: str, *, read_only: bool = False) -> dict[str, Any]:
    return {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


def _aws(name: str, *, read_only: bool = False) -> dict[str, Any]:
    return {"awsElasticBlockStore": {"volumeID": name, "readOnly": read_only}}


def _iscsi(iqn: str, *, read_only: bool = False) -> dict[str, Any]:
    return {"iscsi": {"iqn": iqn, "targetPortal": "a", "lun": 0, "readOnly": read_only}}


def _rbd(image: str, *monitors: str, pool: str = "rbd", read_only: bool = False) -> dict[str, Any]:
    return {"rbd": {"image": image, "monitors": list(monitors), "pool": pool, "readOnly": read_only}}


@pytest.mark.parametrize(
    ("mine", "theirs", "expected"),
    [
        pytest.param(_gce("a"), _gce("a"), DISK_CONFLICT, id="GCE: the same disk, both writing"),
        pytest.param(_gce("a", read_only=True), _gce("a"), DISK_CONFLICT, id="GCE: one reads, one writes"),
        pytest.param(_gce("a", read_only=True), _gce("a", read_only=True), SUCCESS, id="GCE: all read"),
        pytest.param(_gce("a"), _gce("b"), SUCCESS, id="GCE: two disks"),
        pytest.param(
            _aws("a", read_only=True), _aws("a", read_only=True), DISK_CONFLICT, id="AWS: never shared, not to read"
        ),
        pytest.param(_aws("a"), _aws("b"), SUCCESS, id="AWS: two disks"),
        pytest.param(_iscsi("x"), _iscsi("x"), DISK_CONFLICT, id="ISCSI: the same name, both writing"),
        pytest.param(_iscsi("x", read_only=True), _iscsi("x", read_only=True), SUCCESS, id="ISCSI: all read"),
        pytest.param(_iscsi("x"), _iscsi("y"), SUCCESS, id="ISCSI: two names"),
        pytest.param(_rbd("i", "a", "b"), _rbd("i", "b", "c"), DISK_CONFLICT, id="RBD: one monitor in common"),
        pytest.param(_rbd("i", "a"), _rbd("i", "b"), SUCCESS, id="RBD: no monitor in common"),
        pytest.param(_rbd("i", "a"), _rbd("i", "a", pool="other"), SUCCESS, id="RBD: another pool"),
        pytest.param(_rbd("i", "a"), _rbd("j", "a"), SUCCESS, id="RBD: another image"),
        pytest.param(_rbd("i", "a", read_only=True), _rbd("i", "a", read_only=True), SUCCESS, id="RBD: all read"),
        pytest.param(_gce("a"), _aws("a"), SUCCESS, id="the same name in different kinds"),
    ],
)
def test_disks(mine: dict[str, Any], theirs: dict[str, Any], expected: Status) -> None:
    plugin, state = _plugin(), CycleState()
    pod = make_pod().name("new").volume("v", **mine).obj()
    assert plugin.pre_filter(state, pod, []) == (None, SUCCESS)
    node = NODE.info(make_pod().name("old").node("n1").volume("v", **theirs).obj())
    assert plugin.filter(state, pod, node) == expected


KINDS = [_gce("a"), _aws("a"), _iscsi("a"), _rbd("a", "a"), {"emptyDir": {}}]


@pytest.mark.parametrize("mine", KINDS[:-1], ids=lambda source: next(iter(source)))
@pytest.mark.parametrize("theirs", KINDS, ids=lambda source: next(iter(source)))
def test_disks_of_two_kinds_never_conflict(mine: dict[str, Any], theirs: dict[str, Any]) -> None:
    if mine is not theirs:
        test_disks(mine, theirs, SUCCESS)


USER = make_pod().name("user").node("n1").pvc("data").obj()


@pytest.mark.parametrize(
    ("pod", "objects", "pods", "expected"),
    [
        pytest.param(make_pod().name("p"), [], [], SKIP, id="no volumes"),
        pytest.param(make_pod().name("p").volume("v", emptyDir={}), [], [], SKIP, id="no volume of these kinds"),
        pytest.param(make_pod().name("p").pvc("data"), [RWOP], [], SKIP, id="ReadWriteOncePod, used by no pod"),
        pytest.param(make_pod().name("p").pvc("data"), [RWOP], [USER], SUCCESS, id="ReadWriteOncePod, in use"),
        pytest.param(
            make_pod().name("p").pvc("shared"),
            [SHARED],
            [make_pod().name("user").node("n1").pvc("shared").obj()],
            SKIP,
            id="a claim that many may use",
        ),
        pytest.param(
            make_pod().name("p").pvc("data"),
            [],
            [],
            unresolvable('persistentvolumeclaim "data" not found'),
            id="the claim is not there",
        ),
        pytest.param(
            make_pod().name("p").pvc("data"),
            [RWOP],
            [make_pod().name("user").namespace("other").node("n1").pvc("data").obj()],
            SKIP,
            id="another namespace's claim of that name",
        ),
        pytest.param(
            make_pod().name("p").volume("data", ephemeral={}),
            [],
            [USER],
            SKIP,
            id="ephemeral volumes are not looked at",
        ),
    ],
)
def test_pre_filter(pod: PodBuilder, objects: list[Any], pods: list[corev1.Pod], expected: Status) -> None:
    assert _plugin(*objects, pods=pods).pre_filter(CycleState(), pod.obj(), []) == (None, expected)


def test_preemption_frees_a_claim_that_one_pod_has_to_itself() -> None:
    plugin, state = _plugin(RWOP, pods=[USER]), CycleState()
    pod, node = make_pod().name("p").pvc("data").obj(), NODE.info(USER)
    assert plugin.pre_filter(state, pod, []) == (None, SUCCESS)
    assert plugin.filter(state, pod, node) == READ_WRITE_ONCE_POD_CONFLICT
    dry_run = state.clone()
    extensions = plugin.pre_filter_extensions()
    assert extensions.remove_pod(dry_run, pod, node.pods[0], node) == SUCCESS
    assert plugin.filter(dry_run, pod, node) == SUCCESS
    assert plugin.filter(state, pod, node) == READ_WRITE_ONCE_POD_CONFLICT, "the cycle's own state is as it was"
    assert extensions.add_pod(dry_run, pod, node.pods[0], node) == SUCCESS
    assert plugin.filter(dry_run, pod, node) == READ_WRITE_ONCE_POD_CONFLICT


def test_without_pre_filter_there_is_an_error() -> None:
    plugin, pod, node = _plugin(), make_pod().name("p").obj(), NODE.info(USER)
    expected = error('cannot read "PreFilterVolumeRestrictions" from cycleState')
    assert plugin.filter(CycleState(), pod, node) == expected
    assert plugin.add_pod(CycleState(), pod, node.pods[0], node) == expected


@pytest.mark.parametrize(
    ("gone", "expected"),
    [
        pytest.param(make_pod().name("g").pvc("data"), QueueingHint.QUEUE, id="it had the claim"),
        pytest.param(make_pod().name("g").pvc("other"), QueueingHint.SKIP, id="it had another claim"),
        pytest.param(make_pod().name("g").pvc("data").namespace("x"), QueueingHint.SKIP, id="another namespace"),
        pytest.param(make_pod().name("g").volume("v", **_gce("a")), QueueingHint.QUEUE, id="it had the disk"),
        pytest.param(make_pod().name("g").volume("v", **_gce("b")), QueueingHint.SKIP, id="it had another disk"),
    ],
)
def test_a_pod_is_deleted(gone: PodBuilder, expected: QueueingHint) -> None:
    pod = make_pod().name("p").pvc("data").volume("v", **_gce("a")).obj()
    assert _plugin().after_pod_deleted(pod, gone.obj(), None) is expected


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        pytest.param(make_claim("data"), QueueingHint.QUEUE, id="the pod's"),
        pytest.param(make_claim("other"), QueueingHint.SKIP, id="not the pod's"),
        pytest.param(make_claim("data", namespace="x"), QueueingHint.SKIP, id="another namespace's"),
    ],
)
def test_a_claim_is_made(claim: corev1.PersistentVolumeClaim, expected: QueueingHint) -> None:
    assert _plugin().after_claim_added(make_pod().name("p").pvc("data").obj(), None, claim) is expected

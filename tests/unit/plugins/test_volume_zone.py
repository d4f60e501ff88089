"""VolumeZone by its rules. kube-scheduler: pkg/scheduler/framework/plugins/volumezone"""

from __future__ import annotations

from typing import Any

import pytest

from extender.api import corev1, storagev1
from extender.framework.cycle_state import CycleState
from extender.framework.interface import QueueingHint
from extender.framework.status import SKIP, SUCCESS, Status, unresolvable
from extender.plugins.volume_zone import BETA_REGION, BETA_ZONE, REFUSED, REGION, ZONE, VolumeZone
from tests.objects import PodBuilder, make_node, make_pod
from tests.unit.plugins.storage import StorageHandle, make_claim, make_class, make_volume

POD = make_pod().name("p").pvc("data")


def _plugin(*objects: Any) -> VolumeZone:
    handle: Any = StorageHandle(objects)
    return VolumeZone.create(None, handle)


@pytest.mark.parametrize(
    ("volume_labels", "node_labels", "expected"),
    [
        pytest.param({ZONE: "a"}, {ZONE: "a"}, SUCCESS, id="the same zone"),
        pytest.param({ZONE: "a"}, {ZONE: "b"}, REFUSED, id="another zone"),
        pytest.param({ZONE: "a__b"}, {ZONE: "b"}, SUCCESS, id="one of several zones"),
        pytest.param({ZONE: "a__b"}, {ZONE: "c"}, REFUSED, id="none of several zones"),
        pytest.param({ZONE: "a"}, {}, SUCCESS, id="a node without any zone or region takes everything"),
        pytest.param({ZONE: "a"}, {REGION: "r"}, REFUSED, id="a node with a region and no zone"),
        pytest.param({REGION: "r"}, {REGION: "r", ZONE: "a"}, SUCCESS, id="the same region"),
        pytest.param({REGION: "r"}, {REGION: "s"}, REFUSED, id="another region"),
        pytest.param({BETA_ZONE: "a"}, {ZONE: "a"}, SUCCESS, id="the volume's label is of the first generation"),
        pytest.param({BETA_REGION: "r"}, {REGION: "s"}, REFUSED, id="of the first generation, another region"),
        pytest.param({ZONE: "a"}, {BETA_ZONE: "a"}, REFUSED, id="the node's alone is of the first generation"),
        pytest.param({BETA_ZONE: "a"}, {BETA_ZONE: "a", ZONE: "b"}, SUCCESS, id="the volume's own generation first"),
        pytest.param({ZONE: "a", REGION: "r"}, {ZONE: "a", REGION: "s"}, REFUSED, id="zone fits, region does not"),
        pytest.param(
            {ZONE: "a____b", REGION: "r"}, {ZONE: "z", REGION: "r"}, SUCCESS, id="an unreadable label is none"
        ),
    ],
)
def test_filter(volume_labels: dict[str, str], node_labels: dict[str, str], expected: Status) -> None:
    plugin = _plugin(make_claim("data", bound_to="v"), make_volume("v", labels=volume_labels))
    node, state = make_node().name("n").labels(node_labels).info(), CycleState()
    assert plugin.pre_filter(state, POD.obj(), []) == (None, SUCCESS)
    assert plugin.filter(state, POD.obj(), node) == expected
    assert plugin.filter(CycleState(), POD.obj(), node) == expected, "without PreFilter's state it is looked up"


@pytest.mark.parametrize(
    ("pod", "objects", "expected"),
    [
        pytest.param(make_pod().name("p"), [], SKIP, id="no claims"),
        pytest.param(make_pod().name("p").volume("v", ephemeral={}), [], SKIP, id="ephemeral volumes are left out"),
        pytest.param(POD, [make_claim("data", bound_to="v"), make_volume("v")], SKIP, id="a volume without zones"),
        pytest.param(POD, [], unresolvable('persistentvolumeclaim "data" not found'), id="no claim"),
        pytest.param(
            POD, [make_claim("data", bound_to="v")], unresolvable('persistentvolume "v" not found'), id="no volume"
        ),
        pytest.param(
            make_pod().name("p").volume("v", persistentVolumeClaim={"claimName": ""}),
            [],
            unresolvable("PersistentVolumeClaim had no name"),
            id="a claim without a name",
        ),
        pytest.param(
            POD,
            [make_claim("data")],
            unresolvable("PersistentVolumeClaim had no pv name and storageClass name"),
            id="unbound and without a class",
        ),
        pytest.param(
            POD,
            [make_claim("data", storage_class="gone")],
            unresolvable('storageclass.storage.k8s.io "gone" not found'),
            id="unbound, and the class is gone",
        ),
        pytest.param(
            POD,
            [make_claim("data", storage_class="now"), make_class("now", volumeBindingMode="Immediate")],
            unresolvable("PersistentVolume had no name"),
            id="unbound although bound at once",
        ),
        pytest.param(
            POD, [make_claim("data", storage_class="local"), make_class("local")], SKIP, id="waits for its consumer"
        ),
    ],
)
def test_pre_filter(pod: PodBuilder, objects: list[Any], expected: Status) -> None:
    plugin, state = _plugin(*objects), CycleState()
    assert plugin.pre_filter(state, pod.obj(), []) == (None, expected)
    if not expected.skip:
        assert plugin.filter(CycleState(), pod.obj(), make_node().name("n").zone("a").info()) == expected


@pytest.mark.parametrize(
    ("added", "expected"),
    [
        pytest.param(make_class("a"), QueueingHint.QUEUE, id="waits for the first consumer"),
        pytest.param(make_class("a", volumeBindingMode="Immediate"), QueueingHint.SKIP, id="binds at once"),
    ],
)
def test_a_class_is_made(added: storagev1.StorageClass, expected: QueueingHint) -> None:
    assert _plugin().after_class_added(POD.obj(), None, added) is expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, make_volume("v"), QueueingHint.QUEUE, id="made"),
        pytest.param(
            make_volume("v", labels={ZONE: "a"}), make_volume("v", labels={ZONE: "b"}), QueueingHint.QUEUE, id="moved"
        ),
        pytest.param(
            make_volume("v", labels={ZONE: "a"}),
            make_volume("v", labels={ZONE: "a", "x": "y"}),
            QueueingHint.SKIP,
            id="another label",
        ),
    ],
)
def test_a_volume_changes(
    old: corev1.PersistentVolume | None, new: corev1.PersistentVolume, expected: QueueingHint
) -> None:
    assert _plugin().after_volume_change(POD.obj(), old, new) is expected


def test_a_claim_changes() -> None:
    plugin = _plugin()
    assert plugin.after_claim_change(POD.obj(), None, make_claim("data")) is QueueingHint.QUEUE
    assert plugin.after_claim_change(POD.obj(), None, make_claim("other")) is QueueingHint.SKIP
    assert plugin.after_claim_change(POD.obj(), None, make_claim("data", namespace="x")) is QueueingHint.SKIP

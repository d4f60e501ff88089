"""PreFilter and Filter of VolumeBinding. kube-scheduler: pkg/scheduler/framework/plugins/volumebinding"""

from __future__ import annotations

from typing import Any

import pytest

from extender.framework.cycle_state import CycleState
from extender.framework.status import SKIP, SUCCESS, Status, error, unresolvable
from extender.plugins.volume_binding import VolumeBinding
from extender.plugins.volume_binding.assume_cache import AssumeCache
from extender.plugins.volume_binding.binder import BIND_CONFLICT, NODE_CONFLICT, NOT_ENOUGH_SPACE, VOLUME_NOT_EXIST
from extender.plugins.volume_binding.matching import SELECTED_NODE
from extender.plugins.volume_binding.plugin import promise_volumes
from tests.objects import PodBuilder, make_node, make_pod
from tests.unit.plugins.storage import (
    StorageHandle,
    affinity,
    allowed,
    make_capacity,
    make_claim,
    make_class,
    make_csi_node,
    make_driver,
    make_volume,
)

POD = make_pod().name("p").pvc("a")
TWO = POD.pvc("b")
EPHEMERAL = make_pod().name("p").volume("v", ephemeral={})
DELETING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
NODE = make_node().name("n1").label("zone", "a").info()
DRIVER = "csi.example.com"
LOCAL, FAST = make_class("local"), make_class("fast", DRIVER)
ZONE = "topology.kubernetes.io/zone"


def _plugin(*objects: Any) -> VolumeBinding:
    handle: Any = StorageHandle(objects)
    return VolumeBinding.create(None, handle)


@pytest.mark.parametrize(
    ("pod", "objects", "expected"),
    [
        pytest.param(make_pod().name("p"), [], SKIP, id="no volumes"),
        pytest.param(make_pod().name("p").volume("v", emptyDir={}), [], SKIP, id="no claims"),
        pytest.param(POD, [make_claim("a", bound_to="v")], SUCCESS, id="all bound"),
        pytest.param(POD, [], unresolvable('persistentvolumeclaim "a" not found'), id="no claim"),
        pytest.param(
            EPHEMERAL,
            [],
            unresolvable('waiting for ephemeral volume controller to create the persistentvolumeclaim "p-v"'),
            id="no claim yet for an ephemeral volume",
        ),
        pytest.param(
            EPHEMERAL,
            [make_claim("p-v", bound_to="v", owner="other")],
            unresolvable("PVC default/p-v was not created for pod default/p (pod is not owner)"),
            id="an ephemeral volume's claim that is another's",
        ),
        pytest.param(
            EPHEMERAL, [make_claim("p-v", bound_to="v", owner="p")], SUCCESS, id="an ephemeral volume's own claim"
        ),
        pytest.param(
            POD,
            [make_claim("a", bound_to="gone", phase="Lost")],
            unresolvable('persistentvolumeclaim "a" bound to non-existent persistentvolume "gone"'),
            id="a lost claim",
        ),
        pytest.param(
            POD,
            [make_claim("a", bound_to="v", metadata=DELETING)],
            unresolvable('persistentvolumeclaim "a" is being deleted'),
            id="a claim that is being deleted",
        ),
        pytest.param(
            POD,
            [make_claim("a")],
            unresolvable("pod has unbound immediate PersistentVolumeClaims"),
            id="unbound, without a class",
        ),
        pytest.param(
            POD,
            [make_claim("a", storage_class="gone")],
            unresolvable("pod has unbound immediate PersistentVolumeClaims"),
            id="unbound, its class gone",
        ),
        pytest.param(
            POD,
            [make_claim("a", storage_class="now"), make_class("now", DRIVER, volumeBindingMode="Immediate")],
            unresolvable("pod has unbound immediate PersistentVolumeClaims"),
            id="unbound although bound at once",
        ),
        pytest.param(
            POD,
            [make_claim("a", storage_class="local", spec={"volumeName": "v"}), LOCAL],
            unresolvable("pod has unbound immediate PersistentVolumeClaims"),
            id="names its volume, not bound yet",
        ),
        pytest.param(POD, [make_claim("a", storage_class="local"), LOCAL], SUCCESS, id="waits for its consumer"),
        pytest.param(
            TWO,
            [make_claim("a", storage_class="local"), LOCAL, make_claim("b")],
            unresolvable("pod has unbound immediate PersistentVolumeClaims"),
            id="one waits, one should have been bound",
        ),
    ],
)
def test_pre_filter(pod: PodBuilder, objects: list[Any], expected: Status) -> None:
    plugin, state = _plugin(*objects), CycleState()
    assert plugin.pre_filter(state, pod.obj(), []) == (None, expected)
    assert plugin.pre_score(state, pod.obj(), []) == SKIP, "scoring by capacity is off"


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([make_claim("a", bound_to="v"), make_volume("v")], SUCCESS, id="bound, reachable everywhere"),
        pytest.param([make_claim("a", bound_to="v"), make_volume("v", zone="a")], SUCCESS, id="bound, in this zone"),
        pytest.param(
            [make_claim("a", bound_to="v"), make_volume("v", zone="b")],
            unresolvable(NODE_CONFLICT),
            id="bound, in another zone",
        ),
        pytest.param([make_claim("a", bound_to="gone")], unresolvable(VOLUME_NOT_EXIST), id="bound to what is gone"),
        pytest.param(
            [make_claim("a", storage_class="local"), LOCAL, make_volume("v", storage_class="local")],
            SUCCESS,
            id="a volume fits",
        ),
        pytest.param(
            [make_claim("a", storage_class="local"), LOCAL, make_volume("v", storage_class="local", zone="b")],
            unresolvable(BIND_CONFLICT),
            id="the volume is elsewhere, and none can be made",
        ),
        pytest.param(
            [make_claim("a", storage_class="fast"), FAST, make_volume("v", storage_class="fast", zone="b")],
            SUCCESS,
            id="the volume is elsewhere, a new one is made",
        ),
        pytest.param(
            [make_claim("a", storage_class="x"), make_class("x", DRIVER, allowedTopologies=allowed("zone", "a"))],
            SUCCESS,
            id="made in this zone",
        ),
        pytest.param(
            [make_claim("a", storage_class="x"), make_class("x", DRIVER, allowedTopologies=allowed("zone", "b", "c"))],
            unresolvable(BIND_CONFLICT),
            id="made in other zones only",
        ),
        pytest.param(
            [make_claim("a", storage_class="x"), make_class("x", DRIVER, allowedTopologies=[{}])],
            unresolvable(BIND_CONFLICT),
            id="an empty topology allows nothing",
        ),
        pytest.param(
            [make_claim("a", storage_class="x"), make_class("x", "")],
            unresolvable(BIND_CONFLICT),
            id="no provisioner at all",
        ),
        pytest.param(
            [make_claim("a", storage_class="fast", annotations={SELECTED_NODE: "n1"}), FAST],
            SUCCESS,
            id="being made for this node",
        ),
        pytest.param(
            [make_claim("a", storage_class="fast", annotations={SELECTED_NODE: "n2"}), FAST],
            unresolvable(BIND_CONFLICT),
            id="being made for another node",
        ),
    ],
)
def test_filter(objects: list[Any], expected: Status) -> None:
    plugin, state = _plugin(*objects), CycleState()
    assert plugin.pre_filter(state, POD.obj(), []) == (None, SUCCESS)
    assert plugin.filter(state, POD.obj(), NODE) == expected


CLAIM = make_claim("a", storage_class="fast", size="5Gi")
TRACKED = make_driver(DRIVER, storage_capacity=True)


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([], SUCCESS, id="no driver known: not asked"),
        pytest.param([make_driver(DRIVER, storage_capacity=False)], SUCCESS, id="the driver does not say"),
        pytest.param([TRACKED], unresolvable(NOT_ENOUGH_SPACE), id="nothing published yet"),
        pytest.param([TRACKED, make_capacity("c", "fast", "a", "5Gi")], SUCCESS, id="just enough"),
        pytest.param(
            [TRACKED, make_capacity("c", "fast", "a", "4Gi")], unresolvable(NOT_ENOUGH_SPACE), id="not enough"
        ),
        pytest.param(
            [TRACKED, make_capacity("c", "fast", "b", "50Gi")], unresolvable(NOT_ENOUGH_SPACE), id="in another zone"
        ),
        pytest.param(
            [TRACKED, make_capacity("c", "other", "a", "50Gi")], unresolvable(NOT_ENOUGH_SPACE), id="another class'"
        ),
        pytest.param(
            [TRACKED, make_capacity("c", "fast", "a", "50Gi", largest="4Gi")],
            unresolvable(NOT_ENOUGH_SPACE),
            id="room for it, but not in one volume",
        ),
        pytest.param(
            [TRACKED, make_capacity("c", "fast", "a", "1Gi"), make_capacity("d", "fast", "a", "9Gi")],
            SUCCESS,
            id="enough in one of two places",
        ),
    ],
)
def test_published_capacity(objects: list[Any], expected: Status) -> None:
    plugin, state = _plugin(CLAIM, FAST, *objects), CycleState()
    assert plugin.pre_filter(state, POD.obj(), []) == (None, SUCCESS)
    assert plugin.filter(state, POD.obj(), NODE) == expected


def test_several_reasons_come_in_their_order() -> None:
    bound = [make_claim("b", bound_to="v"), make_volume("v", zone="b")]
    plugin, state = _plugin(make_claim("a", storage_class="local"), LOCAL, *bound), CycleState()
    assert plugin.pre_filter(state, TWO.obj(), []) == (None, SUCCESS)
    assert plugin.filter(state, TWO.obj(), NODE) == unresolvable(NODE_CONFLICT, BIND_CONFLICT)
    plugin, state = _plugin(CLAIM, FAST, TRACKED, make_claim("b", bound_to="gone")), CycleState()
    assert plugin.pre_filter(state, TWO.obj(), []) == (None, SUCCESS)
    assert plugin.filter(state, TWO.obj(), NODE) == unresolvable(NOT_ENOUGH_SPACE, VOLUME_NOT_EXIST)


def test_two_claims_do_not_get_the_same_volume() -> None:
    claims = [make_claim("a", storage_class="local"), make_claim("b", storage_class="local"), LOCAL]
    one, other = (make_volume(name, storage_class="local") for name in ("v", "w"))
    plugin, state = _plugin(*claims, one), CycleState()
    plugin.pre_filter(state, TWO.obj(), [])
    assert plugin.filter(state, TWO.obj(), NODE) == unresolvable(BIND_CONFLICT)
    plugin, state = _plugin(*claims, one, other), CycleState()
    plugin.pre_filter(state, TWO.obj(), [])
    assert plugin.filter(state, TWO.obj(), NODE) == SUCCESS


@pytest.mark.parametrize(
    ("promised", "expected"),
    [
        pytest.param({"default/a": "v"}, SUCCESS, id="to the claim itself"),
        pytest.param({"default/other": "v"}, SUCCESS, id="to another claim: a new one is made"),
        pytest.param({"default/a": "far"}, unresolvable(BIND_CONFLICT), id="another: no new one is made for the claim"),
    ],
)
def test_a_promised_volume(promised: dict[str, str], expected: Status) -> None:
    volumes = make_volume("v", storage_class="fast"), make_volume("far", storage_class="fast", zone="b")
    plugin, state = _plugin(FAST, make_claim("a", storage_class="fast"), *volumes), CycleState()
    plugin.pre_filter(state, POD.obj(), [])
    promise_volumes(state, promised)
    assert plugin.filter(state, POD.obj(), NODE) == expected


def test_of_volumes_of_other_classes_it_is_not_asked_whether_they_are_assumed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster has thousands, and each member of a gang has its own PreFilter."""
    asked: list[str] = []
    current = AssumeCache._current

    def noted(cache: AssumeCache[Any], stored: Any) -> Any:
        asked.append(stored.metadata.name)
        return current(cache, stored)

    monkeypatch.setattr(AssumeCache, "_current", noted)
    volume = make_volume("v", storage_class="fast")
    others = [make_volume(f"o{i}", storage_class="other") for i in range(3)]
    plugin = _plugin(FAST, make_claim("a", storage_class="fast"), volume, *others)
    plugin.pre_filter(CycleState(), POD.obj(), [])
    plugin._binder.volumes.assume(volume)
    plugin.pre_filter(CycleState(), POD.obj(), [])
    assert [name for name in asked if name != "a"] == ["v"]


def test_the_smaller_claim_gets_the_smaller_volume() -> None:
    claims = [make_claim("a", storage_class="local", size="8Gi"), make_claim("b", storage_class="local", size="2Gi")]
    volumes = [
        make_volume("big", storage_class="local", size="10Gi"),
        make_volume("small", storage_class="local", size="3Gi"),
    ]
    plugin, state = _plugin(LOCAL, *claims, *volumes), CycleState()
    plugin.pre_filter(state, TWO.obj(), [])
    assert plugin.filter(state, TWO.obj(), NODE) == SUCCESS, "the other way round the 8Gi would find nothing"


@pytest.mark.parametrize(
    ("migrated", "expected"),
    [
        pytest.param("kubernetes.io/aws-ebs", SUCCESS, id="migrated: the driver's own zone label counts"),
        pytest.param("", unresolvable(NODE_CONFLICT), id="not migrated: the zone label itself"),
    ],
)
def test_in_tree_volumes_are_compared_as_the_driver_sees_them(migrated: str, expected: Status) -> None:
    spec = {"awsElasticBlockStore": {"volumeID": "vol-1"}, "nodeAffinity": affinity(ZONE, "a")}
    node = make_node().name("n1").label("topology.ebs.csi.aws.com/zone", "a").info()
    csi_node = make_csi_node("n1", migrated=migrated)
    plugin, state = _plugin(csi_node, make_claim("a", bound_to="v"), make_volume("v", spec=spec)), CycleState()
    plugin.pre_filter(state, POD.obj(), [])
    assert plugin.filter(state, POD.obj(), node) == expected


def test_what_cannot_be_judged_is_an_error() -> None:
    assert _plugin().filter(CycleState(), POD.obj(), NODE) == error("not found")
    handle: Any = StorageHandle([make_claim("a", storage_class="local"), LOCAL])
    plugin, state = VolumeBinding.create(None, handle), CycleState()
    plugin.pre_filter(state, POD.obj(), [])
    handle.remove(LOCAL)
    assert plugin.filter(state, POD.obj(), NODE) == error('failed to find storage class "local"')

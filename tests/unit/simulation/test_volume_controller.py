"""The volume controller by what it makes of claims and volumes. Kubernetes: pkg/controller/volume/persistentvolume"""

from __future__ import annotations

from typing import Any

import pytest

from extender.api import corev1
from extender.api.codec import to_builtins
from extender.client.embedded import EmbeddedAPI
from extender.client.interface import (
    CSI_NODES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    ResourceType,
)
from extender.plugins.volume_binding.matching import BIND_COMPLETED, SELECTED_NODE
from extender.simulation.volume_controller import VolumeController
from tests.objects import make_node, make_pod
from tests.unit.plugins.storage import affinity, allowed, make_claim, make_class, make_volume

KINDS: tuple[ResourceType[Any], ...] = (NODES, PODS, PERSISTENT_VOLUMES, PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES)
DRIVER = "csi.example.com"
NOW = make_class("now", DRIVER, volumeBindingMode="Immediate")
STATIC_NOW = make_class("now", volumeBindingMode="Immediate")
LOCAL, FAST = make_class("local"), make_class("fast", DRIVER)


def _after(*objects: Any) -> EmbeddedAPI:
    """The API when the controller has come to rest."""
    api = EmbeddedAPI()
    for obj in objects:
        resource = next(kind for kind in KINDS if kind.type is type(obj))
        api.create(resource, to_builtins(obj), obj.metadata.namespace)
    _settle(VolumeController(api))
    return api


def _settle(controller: VolumeController) -> None:
    for _ in range(10):
        if not controller.sync():
            return
    raise AssertionError("the controller does not come to rest")


def _volume(api: EmbeddedAPI, name: str = "v") -> corev1.PersistentVolume:
    return api.get(PERSISTENT_VOLUMES, name)


def _claim(api: EmbeddedAPI, name: str = "c") -> corev1.PersistentVolumeClaim:
    return api.get(PERSISTENT_VOLUME_CLAIMS, name, "default")


@pytest.mark.parametrize(
    ("objects", "bound_to", "phases"),
    [
        pytest.param([make_volume("v", phase="Pending")], "", ("Available", ""), id="a new volume is available"),
        pytest.param(
            [make_volume("v"), make_claim("c", storage_class="now"), STATIC_NOW, make_volume("w", storage_class="now")],
            "w",
            ("Available", "Bound"),
            id="a claim is bound at once to a volume of its class",
        ),
        pytest.param(
            [make_volume("v", storage_class="local"), make_claim("c", storage_class="local"), LOCAL],
            "",
            ("Available", "Pending"),
            id="a claim that waits for its consumer stays",
        ),
        pytest.param(
            [
                make_volume("v", storage_class="local", claim={"namespace": "default", "name": "c", "uid": "uid-c"}),
                make_claim("c", storage_class="local"),
                LOCAL,
            ],
            "v",
            ("Bound", "Bound"),
            id="until a volume is meant for it",
        ),
        pytest.param(
            [make_volume("v"), make_claim("c", spec={"volumeName": "v"})],
            "v",
            ("Bound", "Bound"),
            id="a claim that names its volume gets it",
        ),
        pytest.param(
            [
                make_volume("v", claim={"namespace": "x", "name": "y", "uid": "z"}),
                make_claim("c", spec={"volumeName": "v"}),
            ],
            "v",
            ("Released", "Pending"),
            id="unless it is another's, or was one's that is gone",
        ),
        pytest.param(
            [make_claim("c", bound_to="gone"), make_volume("v")], "gone", ("Available", "Lost"), id="the volume is gone"
        ),
        pytest.param(
            [make_volume("v", claim={"namespace": "default", "name": "c"}, phase="Pending")],
            "",
            ("Available", ""),
            id="meant for a claim that is yet to come",
        ),
    ],
)
def test_binding(objects: list[Any], bound_to: str, phases: tuple[str, str]) -> None:
    api = _after(*objects)
    assert _volume(api).status.phase == phases[0]
    if phases[1]:
        claim = _claim(api)
        assert (claim.spec.volume_name, claim.status.phase) == (bound_to, phases[1])
        assert (BIND_COMPLETED in claim.metadata.annotations) == (phases[1] != "Pending")


def test_two_claims_do_not_get_one_volume() -> None:
    claims = [make_claim("c", storage_class="now"), make_claim("d", storage_class="now")]
    api = _after(STATIC_NOW, make_volume("v", storage_class="now"), *claims)
    assert sorted([_claim(api, "c").spec.volume_name, _claim(api, "d").spec.volume_name]) == ["", "v"]


def _provisioned(api: EmbeddedAPI) -> Any:
    claim = _claim(api)
    assert claim.status.phase == "Bound"
    return to_builtins(_volume(api, claim.spec.volume_name))


def test_a_volume_is_made_where_the_selected_node_reaches_it() -> None:
    api = EmbeddedAPI()
    api.create(NODES, make_node().name("n1").label("zone", "a").json())
    driver = {"name": DRIVER, "nodeID": "n1", "topologyKeys": ["zone", "missing"]}
    api.create(CSI_NODES, {"metadata": {"name": "n1"}, "spec": {"drivers": [driver]}})
    api.create(STORAGE_CLASSES, to_builtins(FAST))
    claim = make_claim("c", storage_class="fast", size="3Gi")
    api.create(PERSISTENT_VOLUME_CLAIMS, to_builtins(claim))
    controller = VolumeController(api)
    _settle(controller)
    assert api.list_page(PERSISTENT_VOLUMES).items == [], "not before a node is selected"
    body = {"metadata": {"annotations": {SELECTED_NODE: "n1"}}}
    api.patch(PERSISTENT_VOLUME_CLAIMS, "c", body, namespace="default")
    _settle(controller)
    spec = _provisioned(api)["spec"]
    assert spec["nodeAffinity"] == affinity("zone", "a")
    assert (spec["capacity"], spec["csi"]["driver"]) == ({"storage": "3Gi"}, DRIVER)


def test_a_volume_that_is_made_at_once_is_where_the_class_allows() -> None:
    now = make_class(
        "now", "kubernetes.io/aws-ebs", volumeBindingMode="Immediate", allowedTopologies=allowed("zone", "b")
    )
    spec = _provisioned(_after(now, make_claim("c", storage_class="now")))["spec"]
    assert spec["nodeAffinity"] == affinity("zone", "b")
    assert spec["csi"]["driver"] == "ebs.csi.aws.com", "drivers have taken the place of in-tree provisioners"


def test_an_ephemeral_volume_gets_its_claim() -> None:
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"storageClassName": "now", "accessModes": ["ReadWriteOnce"]},
    }
    pod = make_pod().name("p").volume("c", ephemeral={"volumeClaimTemplate": template}).obj()
    api = _after(NOW, pod)
    claim = _claim(api, "p-c")
    assert (claim.metadata.labels, claim.status.phase) == ({"a": "b"}, "Bound")
    (owner,) = claim.metadata.owner_references
    assert (owner.uid, owner.controller) == (pod.uid, True)


def test_at_rest_it_reads_one_object_and_writes_nothing() -> None:
    api = _after(NOW, make_claim("c", storage_class="now"))
    controller = VolumeController(api)
    assert not controller.sync()
    before = api.list_page(PERSISTENT_VOLUMES).resource_version
    assert not controller.sync()
    assert api.list_page(PERSISTENT_VOLUMES).resource_version == before

"""NodeVolumeLimits by its rules. kube-scheduler: pkg/scheduler/framework/plugins/nodevolumelimits"""

from __future__ import annotations

from typing import Any

import pytest

from extender.api import corev1, storagev1
from extender.framework.cycle_state import CycleState
from extender.framework.interface import QueueingHint
from extender.framework.status import SKIP, SUCCESS, Status, error, unresolvable
from extender.plugins.node_volume_limits import EXCEEDED, NodeVolumeLimits
from tests.objects import PodBuilder, make_node, make_pod
from tests.unit.plugins.storage import (
    StorageHandle,
    make_attachment,
    make_claim,
    make_class,
    make_csi_node,
    make_volume,
)

DRIVER = "csi.example.com"
ONE = make_csi_node("n1", csi_example_com=1)
TWO = make_csi_node("n1", csi_example_com=2)
AWS = {"awsElasticBlockStore": {"volumeID": "aws://zone/vol-1"}}


def _bound(name: str, handle: str = "") -> list[Any]:
    """A claim and its volume of the driver."""
    return [make_claim(name, bound_to=f"pv-{name}"), make_volume(f"pv-{name}", csi=f"{DRIVER}/{handle or name}")]


def _plugin(*objects: Any) -> NodeVolumeLimits:
    handle: Any = StorageHandle(objects)
    return NodeVolumeLimits.create(None, handle)


def _filter(plugin: NodeVolumeLimits, pod: corev1.Pod, *others: corev1.Pod) -> Status:
    state, node = CycleState(), make_node().name("n1").info(*others)
    assert plugin.pre_filter(state, pod, [])[1].success
    status = plugin.filter(state, pod, node)
    assert plugin.filter(CycleState(), pod, node) == status, "without PreFilter's state it says the same"
    return status


NEW = make_pod().name("new").pvc("a")
OLD = make_pod().name("old").node("n1").pvc("b").obj()


@pytest.mark.parametrize(
    ("objects", "others", "expected"),
    [
        pytest.param([ONE, *_bound("a")], [], SUCCESS, id="the last place is taken"),
        pytest.param([ONE, *_bound("a"), *_bound("b")], [OLD], EXCEEDED, id="no place is left"),
        pytest.param([TWO, *_bound("a"), *_bound("b")], [OLD], SUCCESS, id="two places, two volumes"),
        pytest.param(
            [ONE, *_bound("a", "same"), *_bound("b", "same")], [OLD], SUCCESS, id="a volume in both pods counts once"
        ),
        pytest.param([*_bound("a"), *_bound("b")], [OLD], SUCCESS, id="no CSINode: no limits"),
        pytest.param(
            [make_csi_node("n1", csi_example_com=None), *_bound("a"), *_bound("b")],
            [OLD],
            SUCCESS,
            id="a driver that says no number has no limit",
        ),
        pytest.param(
            [make_csi_node("n1", other=0), *_bound("a"), *_bound("b")],
            [OLD],
            SUCCESS,
            id="another driver's limit does not matter",
        ),
        pytest.param([ONE, *_bound("a")], [OLD], SUCCESS, id="a running pod's claim that is gone does not count"),
        pytest.param(
            [ONE, *_bound("a"), make_volume("held", csi=f"{DRIVER}/x"), make_attachment("va", DRIVER, "n1", "held")],
            [],
            EXCEEDED,
            id="a volume that is still attached counts",
        ),
        pytest.param(
            [ONE, *_bound("a"), make_volume("held", csi=f"{DRIVER}/x"), make_attachment("va", DRIVER, "n2", "held")],
            [],
            SUCCESS,
            id="attached to another node",
        ),
        pytest.param(
            [ONE, *_bound("a"), make_attachment("va", DRIVER, "n1", "gone")],
            [],
            SUCCESS,
            id="an attachment whose volume is gone does not count",
        ),
        pytest.param(
            [ONE, *_bound("a"), make_attachment("va", DRIVER, "n1", None)],
            [],
            SUCCESS,
            id="an attachment of an inline volume does not count",
        ),
        pytest.param(
            [TWO, *_bound("a"), *_bound("b"), make_attachment("va", DRIVER, "n1", "pv-b")],
            [OLD],
            SUCCESS,
            id="a running pod's attached volume counts once",
        ),
        pytest.param(
            [ONE, *_bound("a"), make_attachment("va", DRIVER, "n1", "pv-a")],
            [],
            EXCEEDED,
            id="the pod's own volume, left attached, counts again",
        ),
    ],
)
def test_bound_claims(objects: list[Any], others: list[corev1.Pod], expected: Status) -> None:
    assert _filter(_plugin(*objects), NEW.obj(), *others) == expected


FULL = make_csi_node("n1", csi_example_com=0, ebs_csi_aws_com=0)


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param(
            [make_claim("a", storage_class="c"), make_class("c", DRIVER)], EXCEEDED, id="by the class' provisioner"
        ),
        pytest.param([make_claim("a")], SUCCESS, id="no class: bound before it is scheduled"),
        pytest.param([make_claim("a", storage_class="gone")], SUCCESS, id="the class is gone"),
        pytest.param(
            [make_claim("a", bound_to="gone", storage_class="c"), make_class("c", DRIVER)],
            EXCEEDED,
            id="the volume is gone: by the class",
        ),
        pytest.param(
            [make_claim("a", storage_class="c"), make_class("c", "kubernetes.io/aws-ebs")],
            EXCEEDED,
            id="an in-tree provisioner counts as its driver",
        ),
        pytest.param(
            [make_claim("a", storage_class="c"), make_class("c", "kubernetes.io/vsphere-volume")],
            SUCCESS,
            id="an in-tree provisioner that is not translated",
        ),
        pytest.param(
            [make_claim("a", bound_to="v"), make_volume("v", spec=AWS)], EXCEEDED, id="an in-tree volume of AWS"
        ),
        pytest.param(
            [
                make_claim("a", bound_to="v"),
                make_volume("v", spec={"awsElasticBlockStore": {"volumeID": "aws://zone/what"}}),
            ],
            SUCCESS,
            id="an in-tree volume that cannot be translated",
        ),
        pytest.param([make_claim("a", bound_to="v"), make_volume("v")], SUCCESS, id="a volume that no driver attaches"),
        pytest.param([], unresolvable('looking up PVC default/a: persistentvolumeclaim "a" not found'), id="no claim"),
    ],
)
def test_unbound_and_in_tree(objects: list[Any], expected: Status) -> None:
    assert _filter(_plugin(FULL, *objects), NEW.obj()) == expected


def test_two_unbound_claims_are_two_volumes_and_one_is_one() -> None:
    objects = [ONE, make_class("c", DRIVER), make_claim("a", storage_class="c"), make_claim("b", storage_class="c")]
    plugin = _plugin(*objects)
    assert _filter(plugin, make_pod().name("new").pvc("a").pvc("b").obj()) == EXCEEDED
    assert _filter(plugin, NEW.obj(), make_pod().name("old").node("n1").pvc("a").obj()) == SUCCESS


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(AWS, EXCEEDED, id="AWS"),
        pytest.param({"emptyDir": {}}, None, id="not attached at all"),
        pytest.param({"azureFile": {"secretName": "s", "shareName": "x"}}, SUCCESS, id="known, not translated"),
        pytest.param(
            {"awsElasticBlockStore": {"volumeID": "aws://zone/what"}},
            error("converting volume(v) from inline to csi: Invalid format for AWS volume (aws://zone/what)"),
            id="not to be translated",
        ),
    ],
)
def test_inline_volumes(source: dict[str, Any], expected: Status | None) -> None:
    plugin, pod = _plugin(FULL), make_pod().name("new").volume("v", **source).obj()
    if expected is None:
        assert plugin.pre_filter(CycleState(), pod, []) == (None, SKIP)
    else:
        assert _filter(plugin, pod) == expected


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        pytest.param("new", EXCEEDED, id="made for the pod"),
        pytest.param(
            "other",
            error("PVC default/new-v was not created for pod default/new (pod is not owner)"),
            id="made for another",
        ),
    ],
)
def test_ephemeral_volumes(owner: str, expected: Status) -> None:
    claim = make_claim("new-v", bound_to="pv", owner=owner)
    plugin = _plugin(FULL, claim, make_volume("pv", csi=f"{DRIVER}/x"))
    assert _filter(plugin, make_pod().name("new").volume("v", ephemeral={}).obj()) == expected


def test_a_claim_without_a_name_is_an_error() -> None:
    pod = make_pod().name("new").volume("v", persistentVolumeClaim={"claimName": ""}).obj()
    assert _filter(_plugin(FULL), pod) == error("PersistentVolumeClaim had no name")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(ONE, TWO, QueueingHint.QUEUE, id="more than before"),
        pytest.param(TWO, ONE, QueueingHint.SKIP, id="less than before"),
        pytest.param(ONE, make_csi_node("n1", csi_example_com=1, b=3), QueueingHint.QUEUE, id="one more driver"),
        pytest.param(ONE, make_csi_node("n1", csi_example_com=None), QueueingHint.SKIP, id="no number any more"),
    ],
)
def test_a_csi_node_changes(old: storagev1.CSINode, new: storagev1.CSINode, expected: QueueingHint) -> None:
    assert _plugin().after_csi_node_change(NEW.obj(), old, new) is expected


@pytest.mark.parametrize(
    ("gone", "expected"),
    [
        pytest.param(make_pod().name("g").node("n1").pvc("x"), QueueingHint.QUEUE, id="with a claim"),
        pytest.param(make_pod().name("g").pvc("x"), QueueingHint.SKIP, id="that was nowhere"),
        pytest.param(
            make_pod().name("g").nominated_node_name("n1").pvc("x"), QueueingHint.QUEUE, id="that was nominated"
        ),
        pytest.param(make_pod().name("g").node("n1").volume("v", **AWS), QueueingHint.QUEUE, id="with a disk"),
        pytest.param(make_pod().name("g").node("n1").volume("v", emptyDir={}), QueueingHint.SKIP, id="with neither"),
    ],
)
def test_a_pod_is_deleted(gone: PodBuilder, expected: QueueingHint) -> None:
    assert _plugin().after_pod_deleted(NEW.obj(), gone.obj(), None) is expected


def test_a_claim_is_made() -> None:
    plugin = _plugin()
    assert plugin.after_claim_added(NEW.obj(), None, make_claim("a")) is QueueingHint.QUEUE
    assert plugin.after_claim_added(NEW.obj(), None, make_claim("b")) is QueueingHint.SKIP
    ephemeral = make_pod().name("new").volume("v", ephemeral={}).obj()
    assert plugin.after_claim_added(ephemeral, None, make_claim("new-v")) is QueueingHint.QUEUE


@pytest.mark.parametrize(
    ("pod", "attacher", "expected"),
    [
        pytest.param(NEW, "any", QueueingHint.QUEUE, id="a pod with a claim"),
        pytest.param(make_pod().name("p").volume("v", **AWS), "ebs.csi.aws.com", QueueingHint.QUEUE, id="its driver"),
        pytest.param(make_pod().name("p").volume("v", **AWS), "other", QueueingHint.SKIP, id="another driver"),
        pytest.param(make_pod().name("p"), "any", QueueingHint.SKIP, id="a pod without volumes"),
    ],
)
def test_a_volume_is_detached(pod: PodBuilder, attacher: str, expected: QueueingHint) -> None:
    attachment = make_attachment("va", attacher, "n1", "pv")
    assert _plugin().after_detached(pod.obj(), attachment, None) is expected

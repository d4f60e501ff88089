"""What the cluster lacks for minResources, and the room that is asked for members that are made later."""

from __future__ import annotations

import math
from typing import Any

import pytest
from msgspec import structs

from extender.api.quantity import parse_quantity
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.state.slots import Slot
from tests.objects import make_pod
from tests.unit.plugins.coscheduling.kube_scheduler import group, member
from tests.unit.plugins.coscheduling.scheduling.test_plan_request_beside import Asked, kube

__all__ = ["kube"]


def asking(**resources: str) -> Any:
    made = group()
    amounts = {name: parse_quantity(text) for name, text in resources.items()}
    return structs.replace(made, spec=structs.replace(made.spec, min_resources=amounts))


def gap(kube: Asked) -> tuple[str, ...]:
    manager = kube.plugin.manager
    with manager.lock:
        gang = manager.groups["default/g"]
        spec = manager.specs.of(gang)
        assert spec is not None
        return kube.plugin.rounds.requests.resource_gap(gang, spec, kube.world.snapshot())


@pytest.mark.parametrize(
    ("resources", "lacking"),
    [
        pytest.param({"cpu": "16"}, (), id="all that there is"),
        pytest.param({"cpu": "17", "memory": "17Gi"}, ("cpu", "memory"), id="more of two than there is"),
        pytest.param({"ephemeral-storage": "1"}, ("ephemeral-storage",), id="storage that no node has"),
        pytest.param({"example.com/gpu": "1"}, ("example.com/gpu",), id="a device that no node has"),
        pytest.param({"memory": "16Gi"}, (), id="all memory that there is"),
    ],
)
def test_what_the_cluster_lacks_of_min_resources(
    resources: dict[str, str], lacking: tuple[str, ...], kube: Asked
) -> None:
    kube.apply(asking(**resources))
    assert gap(kube) == lacking


def test_a_node_that_was_given_too_much_has_nothing_left_and_takes_nothing_from_others(kube: Asked) -> None:
    large = make_pod().name("large").uid("large").node("n2").req(cpu="9", memory="9Gi").obj()
    kube.world.on_nodes["large"] = large
    for resources, lacking in (
        ({"cpu": "8", "memory": "8Gi"}, ()),
        ({"cpu": "8001m", "memory": str(8 * 1024**3 + 1)}, ("cpu", "memory")),
    ):
        kube.apply(asking(**resources))
        assert gap(kube) == lacking


def test_room_is_asked_for_members_that_are_made_later(kube: Asked) -> None:
    """Of the nodes that come once the initializers have ended."""
    made = group("t", 5)
    resources = {"cpu": parse_quantity("8")}
    kube.apply(structs.replace(made, spec=structs.replace(made.spec, min_resources=resources)))
    for name in ("dataset", "model"):
        pod = member(name, "t")
        labels = {**pod.metadata.labels, "jobset.sigs.k8s.io/replicatedjob-name": f"{name}-initializer"}
        kube.create(structs.replace(pod, metadata=structs.replace(pod.metadata, labels=labels)))
    foreseen = kube.question("default/t").request.foreseen
    assert foreseen is not None
    assert foreseen.total.milli_cpu == 6000
    assert kube.question().request.foreseen is None


def test_without_min_resources_nothing_lacks(kube: Asked) -> None:
    assert gap(kube) == ()


def test_what_placed_members_hold_is_not_asked_for_again(kube: Asked) -> None:
    kube.apply(asking(cpu="18"))
    assert gap(kube) == ("cpu",)
    kube.has_a_place("default/g", "default/g0", "n1")
    assert gap(kube) == ("cpu",)
    likeness = PodInfo(member("likeness", ""))
    kube.plugin.manager.slots.reserve(Slot(likeness, "default/g", "n2", math.inf, to_come=True))
    assert gap(kube) == (), "nor what is kept for those to come"

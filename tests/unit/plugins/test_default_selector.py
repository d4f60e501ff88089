"""By what the default spread constraints know a pod's siblings: its services' selectors and its controller's, together.

kube-scheduler: pkg/scheduler/framework/plugins/helper/spread_test.go (TestDefaultSelector)
"""

from __future__ import annotations

from typing import Any

import pytest

from extender.api import corev1
from extender.api.codec import convert
from extender.plugins.pod_topology_spread.constraints import default_selector
from tests.objects import make_pod
from tests.unit.plugins.storage import StorageHandle

LABELS = {"app": "web", "tier": "front"}


def service(name: str, namespace: str = "default", **selector: str) -> corev1.Service:
    return convert({"metadata": {"name": name, "namespace": namespace}, "spec": {"selector": selector}}, corev1.Service)


def controller(kind: Any, name: str, selector: Any, namespace: str = "default") -> Any:
    return convert({"metadata": {"name": name, "namespace": namespace}, "spec": {"selector": selector}}, kind)


def replication_controller(name: str = "c", **selector: str) -> Any:
    return controller(corev1.ReplicationController, name, selector)


def replica_set(name: str = "c", **selector: str) -> Any:
    return controller(corev1.ReplicaSet, name, {"matchLabels": selector})


def stateful_set(name: str = "c", **selector: str) -> Any:
    return controller(corev1.StatefulSet, name, {"matchLabels": selector})


RC, RS, STS = ("ReplicationController", "v1"), ("ReplicaSet", "apps/v1"), ("StatefulSet", "apps/v1")


@pytest.mark.parametrize(
    ("owner", "objects", "matched", "refused"),
    [
        pytest.param(None, [service("s", app="web")], {"app": "web"}, {"tier": "front"}, id="a service"),
        pytest.param(
            None,
            [service("s", app="web"), service("t", tier="front")],
            LABELS,
            {"app": "web"},
            id="two services: both selectors at once",
        ),
        pytest.param(RC, [replication_controller(app="web")], {"app": "web"}, {}, id="a ReplicationController"),
        pytest.param(RS, [replica_set(app="web")], {"app": "web"}, {}, id="a ReplicaSet"),
        pytest.param(STS, [stateful_set(app="web")], {"app": "web"}, {}, id="a StatefulSet"),
        pytest.param(
            STS,
            [service("s", app="web"), stateful_set(tier="front")],
            LABELS,
            {"app": "web"},
            id="a service and a StatefulSet",
        ),
    ],
)
def test_siblings(owner: Any, objects: list[Any], matched: dict[str, str], refused: dict[str, str]) -> None:
    selector = default_selector(_pod(owner), _handle(objects))
    assert not selector.empty
    assert selector.matches(matched)
    assert not selector.matches(refused)


@pytest.mark.parametrize(
    ("owner", "objects"),
    [
        pytest.param(None, [], id="nothing"),
        pytest.param(None, [service("s", app="db")], id="a service of others"),
        pytest.param(None, [service("s")], id="a service that selects nothing"),
        pytest.param(None, [service("s", "other", app="web")], id="a service of another namespace"),
        pytest.param(STS, [stateful_set("another", app="web")], id="a StatefulSet of another name"),
        pytest.param(STS, [replica_set(app="web")], id="a controller of another kind"),
        pytest.param(("StatefulSet", "example.com/v1"), [stateful_set(app="web")], id="a kind of another group"),
        pytest.param(("Job", "batch/v1"), [replica_set(app="web")], id="a kind that has no selector for this"),
        pytest.param(None, [replication_controller(app="web")], id="a controller that does not own it"),
    ],
)
def test_no_siblings(owner: Any, objects: list[Any]) -> None:
    assert default_selector(_pod(owner), _handle(objects)).empty


def test_an_owner_that_does_not_control_it_counts_for_nothing() -> None:
    pod = make_pod().name("p").labels(LABELS).json()
    pod["metadata"]["ownerReferences"] = [{"kind": "StatefulSet", "apiVersion": "apps/v1", "name": "c", "uid": "u"}]
    assert default_selector(convert(pod, corev1.Pod), _handle([stateful_set(app="web")])).empty


def _pod(owner: tuple[str, str] | None) -> corev1.Pod:
    pod = make_pod().name("p").namespace("default").labels(LABELS)
    return (pod.owner(owner[0], "c", owner[1]) if owner else pod).obj()


def _handle(objects: list[Any]) -> Any:
    return StorageHandle(objects)

"""What is alike in different pods and nodes is kept once, and nothing of them changes by that."""

from __future__ import annotations

from typing import Any

import pytest

from extender.api import codec, corev1
from extender.client import shared_parts
from extender.client.shared_parts import SharedParts


def _pod(name: str, **more: Any) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": "500m"}}}
    toleration = {"key": "k", "operator": "Exists"}
    return {
        "metadata": {"name": name, "namespace": "team", "labels": {"app": "web"}, **more},
        "spec": {"nodeName": "node-1", "containers": [container], "tolerations": [toleration]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def _decoded(*raw: dict[str, Any], type_: Any = corev1.Pod) -> list[Any]:
    return [codec.decode(codec.encode(each), type_) for each in raw]


def test_pods_that_are_alike_share_all_but_their_names() -> None:
    parts, (one, two) = SharedParts(), _decoded(_pod("one"), _pod("two"))
    for pod in (one, two):
        parts.share(pod)
    assert one.metadata.labels is two.metadata.labels
    assert one.metadata.namespace is two.metadata.namespace
    assert one.spec.containers is two.spec.containers
    assert one.spec.tolerations is two.spec.tolerations
    assert one.spec.overhead is two.spec.overhead
    assert one.status.conditions is two.status.conditions
    assert (one.name, two.name) == ("one", "two")
    assert [one, two] == _decoded(_pod("one"), _pod("two"))


def test_what_differs_stays_apart() -> None:
    parts, (one, two) = SharedParts(), _decoded(_pod("one"), _pod("two", labels={"app": "db"}))
    for pod in (one, two):
        parts.share(pod)
    assert (one.metadata.labels, two.metadata.labels) == ({"app": "web"}, {"app": "db"})


def test_nodes_share_their_images_one_by_one() -> None:
    common = {"names": ["registry.example/base:v1"], "sizeBytes": 5}
    raw = [
        {"metadata": {"name": name}, "status": {"images": [common, {"names": [name], "sizeBytes": 1}]}}
        for name in ("one", "two")
    ]
    parts, (one, two) = SharedParts(), _decoded(*raw, type_=corev1.Node)
    for node in (one, two):
        parts.share(node)
    assert one.status.images[0] is two.status.images[0]
    assert [one, two] == _decoded(*raw, type_=corev1.Node)


def test_parts_that_are_in_one_pod_only_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_parts, "MOST_NEW", 3)
    parts = SharedParts()
    pods = _decoded(*(_pod(str(number), labels={"number": str(number)}) for number in range(10)))
    for pod in pods:
        parts.share(pod)
    assert [pod.metadata.labels["number"] for pod in pods] == [str(number) for number in range(10)]
    assert len(parts._known["labels"]) <= 4


def test_what_two_pods_have_outlives_any_number_of_parts_that_are_in_one_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand pods that are alike come between others, each with labels of its own."""
    monkeypatch.setattr(shared_parts, "MOST_NEW", 3)
    parts = SharedParts()
    alike = _decoded(*(_pod(str(number)) for number in range(10)))
    for number, pod in enumerate(alike):
        parts.share(pod)
        for other in _decoded(*(_pod("other", labels={"number": f"{number}-{i}"}) for i in range(number))):
            parts.share(other)
    assert {id(pod.metadata.labels) for pod in alike} == {id(alike[0].metadata.labels)}


def test_what_two_pods_had_that_have_gone_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_parts, "MOST_NEW", 3)
    parts = SharedParts()
    for kind in range(30):
        for pod in _decoded(*(_pod(f"{kind}-{number}", labels={"kind": str(kind)}) for number in range(2))):
            parts.share(pod)
    assert len(parts._known["labels"]) <= 4


def test_where_many_kinds_are_kept_they_are_looked_at_the_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_parts, "MOST_NEW", 3)
    looks: list[int] = []
    forget = shared_parts.Parts._forget

    def counted(self: shared_parts.Parts) -> None:
        looks.append(len(self))
        forget(self)

    monkeypatch.setattr(shared_parts.Parts, "_forget", counted)
    parts, kept = shared_parts.Parts(), []
    for kind in range(200):
        part = {"kind": str(kind)}
        kept += [parts.same(part), parts.same(dict(part))]
    assert len(parts) == 200
    assert len(looks) < 10, looks


def test_versions_of_one_large_part_do_not_pile_up() -> None:
    """One pod's annotation, and another one each moment. What is small and alike is shared all the same."""
    parts = SharedParts()
    for version in range(200):
        (pod,) = _decoded(_pod(str(version), annotations={"a": f"{version}" + "x" * 200_000}))
        parts.share(pod)
    assert len(parts._known["annotations"]) <= 1 + shared_parts.MOST_BYTES / 200_000
    assert len(parts._known["labels"]) == 1


@pytest.mark.parametrize(
    ("raw", "type_", "parts_of"),
    [
        pytest.param(
            _pod("one", annotations={"a": "b"}),
            corev1.Pod,
            lambda pod: (pod.metadata.labels, pod.metadata.annotations, pod.spec.containers, pod.status.conditions),
            id="a pod",
        ),
        pytest.param(
            {
                "metadata": {"name": "one", "annotations": {"a": "b"}},
                "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
                "status": {"images": [{"names": ["base:v1"]}, {"names": ["base:v2"]}], "allocatable": {"cpu": "8"}},
            },
            corev1.Node,
            lambda node: (node.metadata.annotations, node.spec.taints, node.status.allocatable, node.status.images),
            id="a node",
        ),
    ],
)
def test_a_version_has_what_it_has_in_common_with_the_one_before_however_long_that_is_known(
    raw: dict[str, Any], type_: Any, parts_of: Any
) -> None:
    before, again = _decoded(raw, raw, type_=type_)
    SharedParts().share(before)
    SharedParts().share(again, before)  # that has forgotten all
    assert [id(part) for part in parts_of(again)] == [id(part) for part in parts_of(before)]
    assert again == before


def test_what_a_version_has_anew_is_its_own() -> None:
    before, changed = _decoded(_pod("one"), _pod("one", labels={"app": "db"}))
    SharedParts().share(before)
    SharedParts().share(changed, before)
    assert (before.metadata.labels, changed.metadata.labels) == ({"app": "web"}, {"app": "db"})


def test_images_that_a_node_has_anew_are_its_own() -> None:
    before, changed = _decoded(
        *({"metadata": {"name": "one"}, "status": {"images": [{"names": [name]}]}} for name in ("base:v1", "base:v2")),
        type_=corev1.Node,
    )
    SharedParts().share(changed, before)
    assert changed.status.images[0].names == ("base:v2",)

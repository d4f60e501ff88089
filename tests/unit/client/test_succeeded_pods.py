"""The pods that have Succeeded, page by page, and what becomes of a list that breaks off."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from extender.api import corev1
from extender.client import succeeded_pods
from extender.client.embedded import EmbeddedAPI
from extender.client.errors import ApiError
from extender.client.interface import PODS
from extender.client.succeeded_pods import hand_over_succeeded_pods


def test_pods_of_the_namespace_that_have_succeeded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(succeeded_pods, "PAGE", 2)
    api = EmbeddedAPI()
    for number, phase in enumerate(("Succeeded", "Running", "Succeeded", "Failed", "Succeeded")):
        api.create(PODS, {"metadata": {"name": f"p{number}"}, "spec": {"containers": []}, "status": {"phase": phase}})
    elsewhere = {"metadata": {"name": "q"}, "spec": {"containers": []}, "status": {"phase": "Succeeded"}}
    api.create(PODS, elsewhere, "other")
    found: list[str] = []
    hand_over_succeeded_pods(api, "default", lambda pods: found.extend(pod.name for pod in pods))
    assert found == ["p0", "p2", "p4"]


def test_a_list_that_fails_halfway_is_not_taken_for_a_whole_one(monkeypatch: pytest.MonkeyPatch) -> None:
    api, taken = EmbeddedAPI(), list[list[corev1.Pod]]()

    def fails(*_: object, **__: object) -> None:
        raise ApiError("the connection broke")

    def found(pods: Iterable[corev1.Pod]) -> None:
        taken.append(list(pods))

    monkeypatch.setattr(api, "list_page", fails)
    hand_over_succeeded_pods(api, "default", found)
    assert taken == []

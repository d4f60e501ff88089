"""The pods that have ended, page by page, and what becomes of a list that breaks off."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from extender.api import corev1
from extender.client import ended_pods
from extender.client.embedded import EmbeddedAPI
from extender.client.ended_pods import ENDED_PODS, SUCCEEDED_PODS, hand_over_ended_pods
from extender.client.errors import ApiError
from extender.client.interface import PODS


@pytest.mark.parametrize(
    ("selector", "names"), [(SUCCEEDED_PODS, ["p0", "p2", "p4"]), (ENDED_PODS, ["p0", "p2", "p3", "p4"])]
)
def test_pods_of_the_namespace_that_have_ended(
    monkeypatch: pytest.MonkeyPatch, selector: str, names: list[str]
) -> None:
    monkeypatch.setattr(ended_pods, "PAGE", 2)
    api = EmbeddedAPI()
    for number, phase in enumerate(("Succeeded", "Running", "Succeeded", "Failed", "Succeeded")):
        api.create(PODS, {"metadata": {"name": f"p{number}"}, "spec": {"containers": []}, "status": {"phase": phase}})
    elsewhere = {"metadata": {"name": "q"}, "spec": {"containers": []}, "status": {"phase": "Succeeded"}}
    api.create(PODS, elsewhere, "other")
    found: list[str] = []
    hand_over_ended_pods(selector, api, "default", lambda pods: found.extend(pod.name for pod in pods))
    assert found == names


def test_a_list_that_fails_halfway_is_not_taken_for_a_whole_one(monkeypatch: pytest.MonkeyPatch) -> None:
    api, taken = EmbeddedAPI(), list[list[corev1.Pod]]()

    def fails(*_: object, **__: object) -> None:
        raise ApiError("the connection broke")

    def found(pods: Iterable[corev1.Pod]) -> None:
        taken.append(list(pods))

    monkeypatch.setattr(api, "list_page", fails)
    hand_over_ended_pods(SUCCEEDED_PODS, api, "default", found)
    assert taken == []

"""The Binding POST. kube-scheduler: pkg/scheduler/framework/plugins/defaultbinder/default_binder_test.go"""

from __future__ import annotations

from typing import Any

import pytest

from extender.api import corev1
from extender.client.errors import ConflictError, NotFoundError
from extender.client.time_limit import seconds_left
from extender.framework.binding_deadline import end_binding_by
from extender.framework.cycle_state import CycleState
from extender.framework.status import SUCCESS, Status, error
from extender.plugins.default_binder import DefaultBinder
from tests.objects import make_pod

POD = make_pod().name("foo").namespace("ns").uid("uid-1").obj()


class BindAPI:
    """Answers a binding with what it is told, and a read with the pod as it is by now."""

    def __init__(self, answer: Exception | None, now: corev1.Pod = POD) -> None:
        self._answer = answer
        self._now = now
        self.bindings: list[corev1.Binding] = []

    def bind(self, binding: corev1.Binding) -> None:
        self.left = seconds_left()
        self.bindings.append(binding)
        if self._answer is not None:
            raise self._answer

    def get(self, resource: object, name: str, namespace: str) -> corev1.Pod:
        return self._now


class Handle:
    def __init__(self, api: BindAPI) -> None:
        self.api = api
        self.clock = lambda: 0.0


@pytest.mark.parametrize(
    ("api", "expected"),
    [
        pytest.param(BindAPI(None), SUCCESS, id="bound"),
        pytest.param(BindAPI(NotFoundError("no such pod")), error("no such pod"), id="the pod is gone"),
        pytest.param(
            BindAPI(ConflictError("assigned"), make_pod().name("foo").namespace("ns").uid("uid-1").node("n1").obj()),
            SUCCESS,
            id="bound there already",
        ),
        pytest.param(BindAPI(ConflictError("deleting")), error("deleting"), id="not to be bound"),
    ],
)
def test_bind(api: BindAPI, expected: Status) -> None:
    handle: Any = Handle(api)
    assert DefaultBinder.create(None, handle).bind(CycleState(), POD, "n1") == expected
    (binding,) = api.bindings
    assert (binding.metadata.name, binding.metadata.namespace, binding.metadata.uid) == ("foo", "ns", "uid-1")
    assert (binding.target.kind, binding.target.name) == ("Node", "n1")


def test_a_binding_has_no_longer_than_the_caller_of_the_verb_waits() -> None:
    api, state = BindAPI(None), CycleState()
    handle: Any = Handle(api)
    end_binding_by(state, 0.9)
    assert DefaultBinder.create(None, handle).bind(state, POD, "n1").success
    assert 0.0 < api.left < 0.9
    end_binding_by(state, -0.1)
    assert "no time was left" in DefaultBinder.create(None, handle).bind(state, POD, "n1").message

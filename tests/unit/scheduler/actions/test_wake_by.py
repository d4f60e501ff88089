"""By what parked pods are woken: the configuration, the API server's version, and what kube-scheduler's refusals show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from extender.api import corev1
from extender.client.embedded import EmbeddedAPI
from extender.client.errors import ApiError, ConnectionFailedError
from extender.scheduler.actions.wake_by import FORBIDDEN_RECHECK_SECONDS, WakeBy
from tests.objects import make_pod


def _wake_by(
    setting: str = "auto", *versions: tuple[int, int] | ApiError, now: Sequence[float] = (0.0,)
) -> tuple[WakeBy, list[Any]]:
    """With the answers that are left to be given about the version, the last of them time after time."""
    api = EmbeddedAPI()
    answers: list[Any] = list(versions or [(1, 36)])

    def version() -> tuple[int, int]:
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, ApiError):
            raise answer
        known: tuple[int, int] = answer
        return known

    api.version = version  # type: ignore[method-assign]
    return WakeBy(api, setting, lambda: now[0]), answers


def refused(seen: int, *, generation: int = 1, reason: str = "Unschedulable") -> corev1.Pod:
    """Refused by a kube-scheduler that has written which generation it saw, 0 if it does not know of that."""
    pod = make_pod().name("p").obj()
    condition = corev1.PodCondition(type="PodScheduled", status="False", reason=reason, observed_generation=seen)
    return replace(
        pod, metadata=replace(pod.metadata, generation=generation), status=replace(pod.status, conditions=(condition,))
    )


UNTRIED = make_pod().name("p").obj()
BY_AN_OLD_ONE = refused(0)
BY_A_NEW_ONE = refused(1)


@pytest.mark.parametrize(
    ("setting", "version", "pods", "annotation"),
    [
        pytest.param("auto", (1, 36), [UNTRIED], False, id="a new server"),
        pytest.param("auto", (1, 33), [UNTRIED], False, id="the first that needs none"),
        pytest.param("auto", (1, 32), [UNTRIED], True, id="the last that does"),
        pytest.param("auto", (1, 32), [BY_A_NEW_ONE], True, id="kube-scheduler is not newer than its server"),
        pytest.param("auto", (0, 0), [UNTRIED], False, id="a version that cannot be read"),
        pytest.param("auto", (0, 0), [BY_AN_OLD_ONE], True, id="a version that cannot be read, an old kube-scheduler"),
        pytest.param("annotation", (1, 36), [BY_A_NEW_ONE], True, id="the configuration says annotation"),
        pytest.param("status", (1, 30), [BY_AN_OLD_ONE], False, id="the configuration says status"),
        pytest.param("auto", (1, 36), [BY_A_NEW_ONE], False, id="a new kube-scheduler"),
        pytest.param("auto", (1, 36), [BY_AN_OLD_ONE], True, id="an old kube-scheduler beside a new server"),
        pytest.param("auto", (1, 36), [refused(0, reason="SchedulerError")], True, id="an error says it as well"),
        pytest.param("auto", (1, 36), [BY_AN_OLD_ONE, UNTRIED], True, id="what one pod has shown holds for the next"),
        pytest.param("auto", (1, 36), [BY_AN_OLD_ONE, BY_A_NEW_ONE], False, id="until it is upgraded"),
        pytest.param("auto", (1, 36), [refused(0, reason="SchedulingGated")], False, id="the API server's own word"),
        pytest.param("auto", (1, 33), [refused(0, generation=0)], False, id="a server that counts no generations"),
        pytest.param(
            "auto", (1, 36), [BY_AN_OLD_ONE, refused(1, generation=2)], True, id="what is left of the time of its gates"
        ),
    ],
)
def test_by_what_parked_pods_are_woken(
    setting: str, version: tuple[int, int], pods: Sequence[corev1.Pod], annotation: bool
) -> None:
    by, _ = _wake_by(setting, version)
    assert [by.annotation(pod) for pod in pods][-1] is annotation


def test_a_version_that_could_not_be_had_is_asked_for_again() -> None:
    by, answers = _wake_by("auto", ConnectionFailedError("cut"), (1, 30), (1, 36))
    assert [by.annotation(UNTRIED) for _ in range(3)] == [False, True, True]
    assert answers == [(1, 36)]  # once it is known, no more


def test_what_is_forbidden_is_tried_again_after_a_while_only() -> None:
    now = [0.0]
    by, _ = _wake_by(now=now)
    assert by.annotation(BY_AN_OLD_ONE)
    assert by.forbidden()
    assert not by.annotation(BY_AN_OLD_ONE)
    now[0] = FORBIDDEN_RECHECK_SECONDS
    assert by.annotation(BY_AN_OLD_ONE)


@pytest.mark.parametrize(("setting", "version"), [("annotation", (1, 36)), ("auto", (1, 30))])
def test_where_nothing_else_wakes_pods_what_is_forbidden_is_a_failure(setting: str, version: tuple[int, int]) -> None:
    by, _ = _wake_by(setting, version)
    assert by.annotation(UNTRIED)
    assert not by.forbidden()
    assert by.annotation(UNTRIED)

"""How much a pod asks for, where rounding and a resize in place come in."""

from __future__ import annotations

from typing import Any

import pytest

from extender.api import corev1
from extender.api.codec import convert
from extender.framework.pod_requests import pod_requests

Json = dict[str, Any]


def _pod(*containers: Json, **more: Json) -> corev1.Pod:
    named = [{"name": f"c{at}", "resources": {"requests": requests}} for at, requests in enumerate(containers)]
    status = more.pop("status", {})
    pod: corev1.Pod = convert(
        {"metadata": {"name": "p"}, "spec": {"containers": named, **more}, "status": status}, corev1.Pod
    )
    return pod


@pytest.mark.parametrize(
    ("pod", "asked"),
    [
        pytest.param(_pod({"memory": "128m"}, {"memory": "128m"}), {"memory": 1}, id="only the sum is rounded"),
        pytest.param(
            _pod({"memory": "500m"}, overhead={"memory": "1500m"}), {"memory": 2}, id="overhead is part of the sum"
        ),
        pytest.param(_pod({"cpu": "100m"}, {"cpu": "0.15"}), {"cpu": 250}, id="cpu is counted in thousandths"),
        pytest.param(_pod({"memory": "16Pi"}, {"memory": "16Pi"}), {"memory": 2**55}, id="a great deal of memory"),
    ],
)
def test_requests_are_added_up_exactly(pod: corev1.Pod, asked: dict[str, int]) -> None:
    assert pod_requests(pod) == asked


def test_what_a_resize_gave_the_pod_counts_for_all_that_the_pod_names_and_is_nothing_where_it_gave_nothing() -> None:
    infeasible = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
    pod = _pod(
        {"cpu": "1", "memory": "1Ki"},
        resources={"requests": {"cpu": "2", "memory": "2Ki"}},
        status={"resources": {"requests": {"memory": "3Ki"}}, "conditions": [infeasible]},
    )
    assert pod_requests(pod, use_status=True) == {"cpu": 0, "memory": 3072}
    assert pod_requests(pod) == {"cpu": 2000, "memory": 2048}

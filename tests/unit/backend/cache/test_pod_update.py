"""Which updates of an assumed pod are its own binding coming back."""

from __future__ import annotations

from typing import Any

import pytest

from extender.api import corev1
from extender.api.codec import convert
from extender.backend.cache.pod_update import is_binding_echo

Json = dict[str, Any]


def a_pod(metadata: Json | None = None, spec: Json | None = None, status: Json | None = None) -> corev1.Pod:
    meta = {"name": "p", "namespace": "default", "uid": "u", "resourceVersion": "1", **(metadata or {})}
    containers = [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]
    whole = {"metadata": meta, "spec": {"containers": containers, **(spec or {})}, "status": status or {}}
    return convert(whole, corev1.Pod)


@pytest.mark.parametrize(
    ("updated", "echo"),
    [
        pytest.param(a_pod(), True, id="the same"),
        pytest.param(a_pod(metadata={"resourceVersion": "2"}), True, id="its version"),
        pytest.param(a_pod(spec={"nodeName": "n1"}), True, id="its node"),
        pytest.param(a_pod(metadata={"annotations": {"a": "b"}}), True, id="an annotation"),
        pytest.param(a_pod(metadata={"finalizers": ["example.com/f"]}), True, id="a finalizer"),
        pytest.param(a_pod(status={"conditions": [{"type": "T", "status": "True"}]}), True, id="a condition"),
        pytest.param(a_pod(metadata={"labels": {"a": "b"}}), False, id="a label"),
        pytest.param(a_pod(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), False, id="its deletion"),
        pytest.param(a_pod(spec={"priority": 7}), False, id="its spec"),
        pytest.param(a_pod(status={"phase": "Running"}), False, id="its phase"),
    ],
)
def test_an_update_is_the_echo_of_a_binding(updated: corev1.Pod, echo: bool) -> None:
    assert is_binding_echo(a_pod(), updated) is echo

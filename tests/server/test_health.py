"""The probes of the real service while filter answers Error to every pod, and once it does so no more."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from tests.server.service import Service

FASTER = 30.0  # sick_program's clock
SICK = "sick"  # what the names of the pods begin with at which it raises
TEXT = "[-]filter failed: every filter call has been answered with an Error for "


def ask(service: Service, *names: str) -> list[str]:
    """The Errors."""
    bodies = [{"Pod": {"metadata": {"name": name, "namespace": "default"}}, "NodeNames": ["n1"]} for name in names]
    return [service.post("filter", json.dumps(body).encode())[1]["Error"] for body in bodies]


def test_readyz_fails_then_livez_and_both_pass_again_with_the_first_answer(start: Callable[..., Service]) -> None:
    service = start(program="tests.server.sick_program")
    began, failed = time.monotonic(), dict[str, float]()
    while len(failed) < 2 and time.monotonic() < began + 20:
        assert all(ask(service, f"{SICK}-a", f"{SICK}-b"))
        for path in ("/readyz", "/livez"):
            status, text = service.ops(path)
            if status == 503 and TEXT in text:
                failed.setdefault(path, FASTER * (time.monotonic() - began))
        time.sleep(0.1)
    assert list(failed) == ["/readyz", "/livez"]
    assert failed["/readyz"] >= 30
    assert failed["/livez"] >= 90
    metrics = service.ops("/metrics")[1]
    assert 'gang_extender_plugin_errors_total{extension_point="PreFilter",plugin="Coscheduling"}' in metrics
    assert 'gang_extender_unexpected_errors_total{where="plugin"}' in metrics
    assert ask(service, "well") == [""]
    assert service.ops("/livez") == (200, "ok")
    assert "[+]filter ok" in service.ops("/readyz?verbose")[1]

"""The stories of the sidecar's shape again, where the extender is called over TLS and leads by a Lease of its own.

With OVER_TLS=all in the environment these are all stories that a module's programs are shared for, and that need no others than conftest's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from inspect import signature

import pytest

from tests.e2e import (
    test_broken_gangs,
    test_churn,
    test_elastic,
    test_ended_members,
    test_explain,
    test_gang_room,
    test_gang_stories,
    test_gangs_with_volumes,
    test_gated_gangs,
    test_parked_plain,
    test_preemption,
    test_scenarios,
    test_verdicts,
)
from tests.e2e.control_plane import MANIFESTS, ControlPlane
from tests.e2e.pair import Pair
from tests.e2e.service import ServiceShape
from tests.e2e.test_two_replicas import own_host_name

RIGHTS = [f"--filename={MANIFESTS / overlay / 'role.yaml'}" for overlay in ("gate", "preemption")]
"""What the stories take besides the manifests of the shape: to take gates off, and to evict. Not gate's policy, which gates all gangs."""


@pytest.fixture(scope="module")
def module_programs(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """In place of conftest's: the one replica is the leader."""
    shape = ServiceShape(plane, tmp_path_factory.mktemp("service"))
    extender = shape.replica("alone", own_host_name("alone"))
    plane.kubectl("apply", "--server-side", *RIGHTS)
    try:
        extender.start()
        shape.await_leader("alone", extender, within=20)
        pair = Pair(extender, shape.scheduler())
        try:
            pair.scheduler.start()
            yield pair
        finally:
            pair.scheduler.stop()
    finally:
        extender.stop()
        plane.kubectl("delete", "--ignore-not-found", *RIGHTS)
        shape.stop()


ALWAYS = (test_gang_stories, test_gated_gangs, test_verdicts)
FURTHER = (
    test_broken_gangs,
    test_churn,
    test_elastic,
    test_ended_members,
    test_explain,
    test_gang_room,
    test_gangs_with_volumes,
    test_parked_plain,
    test_preemption,
    test_scenarios,
)
broken, storage = test_broken_gangs.broken, test_gangs_with_volumes.storage  # fixtures of these stories

for stories in ALWAYS + (FURTHER if os.environ.get("OVER_TLS") == "all" else ()):
    for name, story in list(vars(stories).items()):
        if name.startswith("test_") and "module_programs" in signature(story).parameters:
            globals()[name] = story

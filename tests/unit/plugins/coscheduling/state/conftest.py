"""A manager of groups by itself."""

from __future__ import annotations

import pytest

from extender.plugins.coscheduling.spec.membership import GroupLabels
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from tests.unit.plugins.coscheduling.conftest import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def manager(clock: FakeClock) -> PodGroupManager:
    return PodGroupManager(GroupLabels(), denied_seconds=10.0, permitted_seconds=10.0, clock=clock, gate="gate")

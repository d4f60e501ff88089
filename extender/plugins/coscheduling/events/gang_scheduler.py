"""What preemption, and what follows from events, need of the plugin above them: its parts, by their names there.

The Coscheduling plugin is one. No counterpart upstream.
"""

from __future__ import annotations

from typing import Protocol

from extender.plugins.coscheduling.dependencies import CoschedulingDependencies
from extender.plugins.coscheduling.dispatch.dispatcher import Dispatcher
from extender.plugins.coscheduling.dispatch.holds import Holds
from extender.plugins.coscheduling.events.ended_members import EndedMembers
from extender.plugins.coscheduling.events.group_events import GroupEvents
from extender.plugins.coscheduling.scheduling.planning_rounds import PlanningRounds
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager


class GangScheduler(Protocol):
    """A plugin that is connected. wait_seconds: how long a place is kept for a member that does not come."""

    @property
    def manager(self) -> PodGroupManager: ...

    @property
    def dependencies(self) -> CoschedulingDependencies: ...

    @property
    def rounds(self) -> PlanningRounds: ...

    @property
    def dispatcher(self) -> Dispatcher: ...

    @property
    def events(self) -> GroupEvents: ...

    @property
    def ended_members(self) -> EndedMembers: ...

    @property
    def holds(self) -> Holds: ...

    @property
    def wait_seconds(self) -> float: ...

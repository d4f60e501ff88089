"""The start of a gang: pre-flight for every member, then all holds are lifted, and what begins is noted and told.

Permit starts a gang with the member that completes it. No counterpart upstream.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import partial

from extender import failpoints
from extender.framework.status import SUCCESS, Status, unschedulable
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.dependencies import CoschedulingDependencies
from extender.plugins.coscheduling.dispatch.holds import HeldMember, Holds
from extender.plugins.coscheduling.extension_points.preflight import preflight
from extender.plugins.coscheduling.scheduling.checks import verdict_of_start
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import MemberEvent
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.quorum import note_early, note_start
from extender.plugins.coscheduling.state.starts import record_start

log = logging.getLogger(__name__)


class GangStart:
    """Everything here runs under the manager's lock; the locks of waiting pods are taken inside it."""

    def __init__(self, manager: PodGroupManager, dependencies: CoschedulingDependencies, holds: Holds) -> None:
        self._manager = manager
        self._with = dependencies
        self._holds = holds

    def start(self, starting: Sequence[HeldMember], arriving: str) -> Status:
        """Pre-flight, then all holds are lifted; if one was decided otherwise meanwhile, no member starts."""
        if not self._with.may_commit():
            return unschedulable("not the leader: nothing is committed")
        waiting = [(group, uid) for group, uid in starting if uid != arriving]
        snapshot = self._with.newest_snapshot()
        for group, uid in starting:
            member = group.members[uid]
            status = preflight(member.pod, member.node, snapshot)
            if not status.success:
                self._holds.reject_members(waiting, status.message)
                return status
        for group, uid in starting:
            group.happened(uid, MemberEvent.START_BEGUN)
        begun = False
        try:
            lifted = self._holds.lift([uid for _, uid in waiting])
            failpoints.reached("holds-lifted")
            begun = lifted
        finally:
            if not begun:  # whatever has happened: PreBind of the members that are lifted finds that they do not start
                for group, uid in starting:
                    group.happened(uid, MemberEvent.START_CALLED_OFF)
                self._holds.reject_members(waiting, messages.NOT_ENOUGH_LEFT)
        if not begun:
            return unschedulable(messages.NOT_ENOUGH_LEFT)
        keys = " ".join(sorted({group.key for group, _ in starting}))
        log.info("gang starts group=%s members=%d", keys, len(starting))
        self._tell_start(starting)
        return SUCCESS

    def _tell_start(self, starting: Sequence[HeldMember]) -> None:
        """All holds are lifted by now: nothing that raises here may keep the member back that has just arrived."""
        for group in {group.key: group for group, _ in starting}.values():
            planned = self._manager.slots.uids_of(group.key) & group.members.keys()
            group.refuted.clear()
            begins = {uid for of, uid in starting if of is group}
            note = partial(self._note_start, group, begins, planned | begins)
            self._manager.quarantine.for_gang(group.key, "permit", note, None)

    def _note_start(self, group: Group, begins: AbstractSet[str], uids: AbstractSet[str]) -> None:
        """begins: the members that start. uids: with those that were planned together with them, and come later."""
        try:
            spec = self._manager.specs.of(group)
            if spec is not None:
                record_start(group, spec, begins, self._manager.wall())
                if group.whole_of < spec.min_member:  # else these are members beyond it, or in place of some
                    self._manager.starts.begins(group.key, self._manager.line.standing(group).since)
        finally:
            note_start(group, uids)  # they keep their places where the gang is set aside now
        self._manager.places.follow(group)
        if spec is not None:
            note_early(group, spec.been if spec.to_come else 0)
            self._with.verdicts.decided(group.object, group.key, verdict_of_start(group, spec))

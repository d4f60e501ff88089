"""PostFilter and Unreserve: the whole gang lets go where one member cannot go on, and is not tried again for podGroupBackoffSeconds.

The plugin hands on what the framework asks. scheduler-plugins: pkg/coscheduling/coscheduling.go (PostFilter, Unreserve)
"""

from __future__ import annotations

from extender.api import corev1
from extender.config.plugin_args import CoschedulingArgs
from extender.framework.cycle_state import CycleState
from extender.framework.permit_rejection import rejection_of
from extender.framework.status import Status, unschedulable
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.dispatch.holds import Holds
from extender.plugins.coscheduling.extension_points.permit import GangPermit
from extender.plugins.coscheduling.scheduling.planning_rounds import PlanningRounds
from extender.plugins.coscheduling.state.diagnosis import Diagnosis, UnschedulableReason
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.quorum import needs


class GangRejection:
    """args: the plugin's. errors_back_off: whether kube-scheduler retries a pod by itself, after its error back-off, if its bind call was
    answered with an error.
    """

    def __init__(
        self,
        args: CoschedulingArgs,
        manager: PodGroupManager,
        rounds: PlanningRounds,
        gang_permit: GangPermit,
        holds: Holds,
        *,
        errors_back_off: bool,
    ) -> None:
        self._args = args
        self._manager = manager
        self._rounds = rounds
        self._gang_permit = gang_permit
        self._holds = holds
        self._errors_back_off = errors_back_off

    def post_filter(self, pod: corev1.Pod) -> Status:
        with self._manager.lock:
            group = self._manager.group_of(pod)
            spec = self._manager.specs.valid(group) if group is not None else None
            if group is None or spec is None:
                return unschedulable("can not find pod group")
            missing = needs(group, spec, group.assigned | group.waiting()).total
            if missing <= spec.min_member * self._args.pod_group_reject_percentage / 100:
                return unschedulable()
            self._back_off(group)
            text = messages.rejected_after_post_filter(group.key, pod.name)
            group.stop(Diagnosis(UnschedulableReason.REFUTED_BY_SCHEDULER, text, self._manager.clock()))
            self._holds.reject_all(group, messages.OPTIMISTIC_REJECTION)
        self._rounds.drop_plan(group.key)
        return unschedulable(text)

    def unreserve(self, state: CycleState, pod: corev1.Pod) -> None:
        cause = rejection_of(state) or messages.REJECTION_IN_UNRESERVE
        with self._manager.lock:
            group = self._manager.holder_of(pod)
            if group is not None:
                self._note_error(group, pod)
            if group is None or not self._gang_permit.unreserve(pod, cause):
                return
            self._back_off(group)
        self._rounds.drop_plan(group.key)

    def _back_off(self, group: Group) -> None:
        """podGroupBackoffSeconds: a group that was just rejected is not tried for so long."""
        if self._args.pod_group_backoff_seconds > 0 and group.key in self._manager.groups:
            self._manager.queue.back_off(group.key, float(self._args.pod_group_backoff_seconds))
            for call in group.calls.values():
                call.close()

    def _note_error(self, group: Group, pod: corev1.Pod) -> None:
        """Its bind call will be answered with an error, so it comes back by itself, and not before its time. Lock held."""
        if not self._errors_back_off or pod.uid not in group.members:
            return
        due = group.errors.failed(pod.uid, self._manager.clock())
        self._manager.queue.retry_at(group.key, due)

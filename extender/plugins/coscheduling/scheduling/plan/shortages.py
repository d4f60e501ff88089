"""Why a gang set finds no places: by counting alone, before a plan is made, or by what the planner has said.

GangSetPlanning asks; GangSetRefusals notes and tells it. No counterpart upstream.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from extender.framework.listers import NodeInfoLister
from extender.plugins.coscheduling import messages, planner
from extender.plugins.coscheduling.planner.room import Counting
from extender.plugins.coscheduling.scheduling.plan.gang_set_refusals import SAID_BY_THE_CLUSTER, Fits, look_closer
from extender.plugins.coscheduling.scheduling.plan_request import PlanQuestion, PlanRequests
from extender.plugins.coscheduling.state.diagnosis import Diagnosis, UnschedulableReason, diagnosis_of_plan
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager


class Shortages:
    """Takes the manager's lock, unless a method says otherwise. fits: plans, and says whether that finds places."""

    def __init__(self, manager: PodGroupManager, requests: PlanRequests, fits: Fits) -> None:
        self._manager = manager
        self._requests = requests
        self._fits = fits
        self._counting = Counting()

    def gap(self, group: Group, request: planner.Request, snapshot: NodeInfoLister) -> tuple[str, ...]:
        spec = self._manager.specs.of(group)
        if spec is None or group.key in self._manager.permitted or not request.needed:
            return ()
        return self._requests.resource_gap(group, spec, snapshot)

    def still_short(
        self, gang_set: Sequence[Group], request: planner.Request, snapshot: NodeInfoLister
    ) -> Diagnosis | None:
        """Its last stop, where a plan could only come to the same."""
        with self._manager.lock:
            last = gang_set[0].last_diagnosis
            has_places = any(self._manager.slots.of_group(each.key) for each in gang_set)  # it might fit without them
            spec = self._manager.specs.of(gang_set[0])
        if last is None or last.reason is not UnschedulableReason.INSUFFICIENT_RESOURCES or last.verdict is None:
            return None
        if has_places or not self._short(request, last, snapshot):
            return None
        minimum = spec.asked if spec is not None else 0
        return diagnosis_of_plan([each.key for each in gang_set], minimum, last.verdict)

    def _short(self, request: planner.Request, stop: Diagnosis, snapshot: NodeInfoLister) -> bool:
        """Whether counting alone shows that it finds no room, for want of what ran out when it was planned last."""
        resource = (
            stop.verdict.resource if stop.verdict is not None and stop.verdict.cause is planner.Cause.ROOM else ""
        )
        return self._counting.too_little(snapshot, request, resource)

    def diagnosis_of(
        self,
        gang_set: Sequence[Group],
        question: PlanQuestion,
        permitted: PlanQuestion,
        result: object,
    ) -> Diagnosis:
        """permitted: the question without the nodes that are kept free for another gang, which is what was planned."""
        with self._manager.lock:
            spec = self._manager.specs.of(gang_set[0])
        minimum = spec.asked if spec is not None else 0
        if permitted is not question and self._fits(question):
            return Diagnosis(UnschedulableReason.ORDERED_AFTER_OTHERS, messages.kept_free(minimum))
        stop = diagnosis_of_plan([each.key for each in gang_set], minimum, result)
        return look_closer(self._manager, self._requests, gang_set, permitted, stop, self._fits)

    def kept_from_nodes(self, question: PlanQuestion, offered: Collection[str], stop: Diagnosis) -> bool:
        """Whether the gang may have found no room because nodes were left out of the plan: refused by kube-scheduler, or not offered.

        offered: UIDs of members with filter calls that wait for the plan.
        """
        request = question.request
        confined = {uid: nodes for uid, nodes in request.allowed.items() if uid not in offered}
        return bool(request.excluded or confined) or stop.reason not in SAID_BY_THE_CLUSTER

    def fits_elsewhere(self, question: PlanQuestion, offered: Collection[str], stop: Diagnosis) -> bool:
        """Likewise, for nodes that those calls have not offered: kube-scheduler's sample of the nodes may have none of a required rack."""
        if not offered or self._short(question.request, stop, question.snapshot):
            return False
        return self._fits(question.asking(replace(question.request, allowed={})))

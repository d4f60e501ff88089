"""The Coscheduling plugin: a group of pods starts whole or not at all.

PreFilter admits by plan, Filter guards the places promised to others, Score keeps single pods off free domains, Permit
holds until the quorum is there, PreBind starts only whole gangs. What it knows of groups is in pod_group_manager, the gates
in admission, the holds in permit.
scheduler-plugins: pkg/coscheduling/coscheduling.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Self

from extender.api import corev1
from extender.api.schedulingv1alpha3 import CompositePodGroup
from extender.client.interface import OwnPodGroup
from extender.config.plugin_args import CoschedulingArgs
from extender.crash import guarded, tell_every
from extender.framework.columnar import (
    FilterColumns,
    IntColumn,
    NodeTable,
    Rows,
    ScoreColumns,
    Verdicts,
)
from extender.framework.cycle_state import CycleState
from extender.framework.handle import Handle
from extender.framework.interface import (
    ClusterEventWithHint,
    EnqueueExtensions,
    FilterPlugin,
    NodeToStatus,
    PermitPlugin,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
)
from extender.framework.node_info import NodeInfo
from extender.framework.preemption.candidate import Candidate, Victims
from extender.framework.status import SKIP, SUCCESS, Status, unschedulable
from extender.plugins import names
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.builder import GangParts
from extender.plugins.coscheduling.dependencies import CoschedulingDependencies
from extender.plugins.coscheduling.extension_points.pre_filter import GangPreFilter
from extender.plugins.coscheduling.extension_points.rejection import GangRejection
from extender.plugins.coscheduling.extension_points.single_pods import PackingScores
from extender.plugins.coscheduling.extension_points.unshown_pods import UnshownPods
from extender.plugins.coscheduling.hints.group_hints import GroupHints
from extender.plugins.coscheduling.members_to_come.early_start import EarlyStartLimits
from extender.plugins.coscheduling.preemption.preemption import Preemption
from extender.plugins.coscheduling.spec.keys import START
from extender.plugins.coscheduling.spec.membership import GroupLabels
from extender.plugins.coscheduling.spec.sources.foreign import ForeignPodGroup
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager

PACKING = "Packing" + names.COSCHEDULING
DEFAULT_WAIT_SECONDS = 60.0


class Coscheduling(
    PreFilterPlugin,
    FilterPlugin,
    FilterColumns,
    PostFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    ScoreColumns,
    ReservePlugin,
    PermitPlugin,
    PreBindPlugin,
    PostBindPlugin,
    EnqueueExtensions,
):
    """Shared by all profiles of a scheduler, since a group is one thing whichever profile asks."""

    name = names.COSCHEDULING

    def __init__(self, args: CoschedulingArgs, handle: Handle) -> None:
        self._args = args
        self._handle = handle
        self.wait_seconds = float(args.permit_waiting_time_seconds or DEFAULT_WAIT_SECONDS)
        self.manager = PodGroupManager(
            GroupLabels.of(args),
            denied_seconds=float(args.denied_pg_expiration_time_seconds),
            permitted_seconds=self.wait_seconds,
            clock=handle.clock,
            gate=args.scheduling_gate,
            to_come_seconds=float(args.members_to_come_seconds),
            in_part_after_seconds=float(args.in_part_after_seconds),
        )

    @classmethod
    def create(cls, args: CoschedulingArgs | None, handle: Handle) -> Self:
        return cls(args or CoschedulingArgs(), handle)

    def connect(self, dependencies: CoschedulingDependencies) -> None:
        """Called once, when the scheduler around the frameworks exists."""
        parts = GangParts(
            self.manager,
            self._handle,
            dependencies,
            denied_seconds=float(self._args.denied_pg_expiration_time_seconds),
            wait_seconds=self.wait_seconds,
            early_start=_early_start(self._args),
        )
        self.dependencies = parts.dependencies
        self.early_starts = parts.early_starts
        self.admission, self.single_pods, self.room = parts.admission, parts.single_pods, parts.room
        self.gang_permit, self.holds = parts.gang_permit, parts.holds
        self.dispatcher, self.rounds = parts.dispatcher, parts.rounds
        self.events, self.observer, self.set_aside = parts.events, parts.observer, parts.set_aside
        self.ended_members, self.waiting_gangs = parts.ended_members, parts.waiting_gangs
        self.lead_changes, self.stale_refusals = parts.lead_changes, parts.stale_refusals
        self.expired_slots, self.report = parts.expired_slots, parts.report
        self.what_if, self.drain = parts.what_if, parts.drain
        watched = self.manager.labels.in_tree and self.rounds.beside_the_verbs
        self._unshown = UnshownPods(self.manager, self.rounds.waiting_time) if watched else None
        self._filters = GangPreFilter(
            self.manager, self.rounds, self.admission, self.single_pods, self.room, self._unshown, self._handle.snapshot
        )
        self._rejection = GangRejection(
            self._args,
            self.manager,
            self.rounds,
            self.gang_permit,
            self.holds,
            errors_back_off=self.dependencies.errors_back_off,
        )
        self._preempting = () if parts.preemption is None else (parts.preemption,)

    @property
    def preemption(self) -> Preemption:
        """Raises LookupError where no pod is evicted for gangs."""
        if not self._preempting:
            raise LookupError("no pod is evicted for gangs")
        return self._preempting[0]

    def process_preemption(self, pod: corev1.Pod, victims: Mapping[str, Victims]) -> dict[str, Victims]:
        """Those of kube-scheduler's candidates, by node, that leave no fraction of a gang; perhaps with other victims.

        Go: ProcessPreemption of an extender
        """
        with self.manager.lock:
            if self.early_starts.makes_way_for(pod):
                return {}  # the room comes free, and no pod need be evicted
        if not self._preempting:
            return dict(victims)
        usable = self.preemption.guard.review(pod, [Candidate(name, found) for name, found in victims.items()])
        return {each.name: each.victims for each in usable}

    def shows_its_start(self, pod: corev1.Pod) -> bool:
        """Whether the pod bears the record of a start: it was bound with its gang."""
        return START.on(pod.metadata)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return GroupHints(self.manager.labels).events_to_register()

    # PreFilter and Filter

    def pre_filter(
        self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        return self._filters.pre_filter(state, pod, nodes)

    def filter(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> Status:
        return self._filters.filter(state, pod, node)

    def filter_columns(self, state: CycleState, pod: corev1.Pod, table: NodeTable) -> Verdicts | None:
        return self._filters.filter_columns(state, pod, table)

    # PostFilter

    def post_filter(
        self, state: CycleState, pod: corev1.Pod, node_statuses: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        """A gang of which one member fits nowhere gives up early, unless it is nearly complete."""
        step = partial(self._rejection.post_filter, pod)
        set_aside = unschedulable(messages.INTERNAL_ERROR)
        return None, self.manager.quarantine.for_gang(self.manager.key_of(pod), "filter", step, set_aside)

    # PreScore and Score

    def pre_score(self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]) -> Status:
        if not self.dependencies.pack_single_pods or len(nodes) < 2:
            return SKIP
        step = partial(self.single_pods.scores, pod, nodes, self._handle.snapshot())
        scores = self.manager.quarantine.for_gang(self.manager.key_of(pod), "score", step, None)
        if scores is None:
            return SKIP
        state.write(PACKING, scores)
        return SUCCESS

    def score(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> tuple[int, Status]:
        return state.read(PACKING, PackingScores).of(node.name), SUCCESS

    def score_columns(self, state: CycleState, pod: corev1.Pod, table: NodeTable, rows: Rows) -> IntColumn | None:
        return state.read(PACKING, PackingScores).of_rows(table, rows)

    # Reserve, Permit, PreBind, PostBind

    def reserve(self, state: CycleState, pod: corev1.Pod, node_name: str) -> Status:
        """Only the places of others are looked at: no fault of theirs is to keep this pod back."""
        self.manager.quarantine.for_gang("", "reserve", partial(self.room.arrived, pod, node_name), None)
        return SUCCESS

    def unreserve(self, state: CycleState, pod: corev1.Pod, node_name: str) -> None:
        """Releases the whole group: none of it can start now."""
        with self.manager.quarantine.blame(partial(self.manager.key_of, pod)):
            self._rejection.unreserve(state, pod)
        self.dispatcher.send_those_that_wait()

    def permit(self, state: CycleState, pod: corev1.Pod, node_name: str) -> tuple[Status, float]:
        key = self.manager.key_of(pod)
        step = partial(self.gang_permit.permit, pod, node_name, self.wait_seconds)
        set_aside = unschedulable(messages.INTERNAL_ERROR), 0.0
        decided = self.manager.quarantine.for_gang(key, "permit", step, set_aside if key else (SUCCESS, 0.0))
        self._dispatch_next_wave(pod)
        if not decided[0].wait:  # one that is held frees no call
            self.dispatcher.send_those_that_wait()
        return decided

    def pre_bind(self, state: CycleState, pod: corev1.Pod, node_name: str) -> Status:
        with self.manager.quarantine.blame(partial(self.manager.key_of, pod)):
            return self.gang_permit.pre_bind(state, pod, node_name, self._handle)

    def post_bind(self, state: CycleState, pod: corev1.Pod, node_name: str) -> None:
        with self.manager.quarantine.blame(partial(self.manager.key_of, pod)):
            self.gang_permit.bound(pod, node_name)
        self._dispatch_next_wave(pod)

    def _dispatch_next_wave(self, pod: corev1.Pod) -> None:
        """The member is held or bound now."""
        with self.manager.lock:
            in_waves = bool(self.manager.slots.waves)
        if in_waves:
            step = partial(self.dispatcher.on_waiting_or_bound, pod)
            self.manager.quarantine.for_gang(self.manager.key_of(pod), "arrivals", step, None)

    # What the watch says

    def on_pod(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        """An exception sets the pod's gang aside, and the event is brought again (client/deliveries).

        Preemption hears of it last: victims are gone from the groups by then.
        """
        tell_every((self._on_pod, *(each.on_pod for each in self._preempting)), old, new)

    def _on_pod(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        pod = new or old
        with self.manager.quarantine.blame(lambda: self.manager.key_of(pod) if pod is not None else ""):
            try:
                self.room.on_pod(old, new)
                self.early_starts.on_pod(old, new)
            finally:
                self.events.on_pod(old, new)
            if self._unshown is not None:
                self._unshown.on_pod(old, new)

    def on_pod_group(self, old: OwnPodGroup | None, new: OwnPodGroup | None) -> None:
        with self.manager.quarantine.blame(partial(_key, old, new)):
            self.events.on_pod_group(old, new)

    def on_foreign_pod_group(self, old: ForeignPodGroup | None, new: ForeignPodGroup | None) -> None:
        with self.manager.quarantine.blame(partial(_key, old, new)):
            self.events.on_foreign_pod_group(old, new)

    def on_composite_pod_group(self, old: CompositePodGroup | None, new: CompositePodGroup | None) -> None:
        self.events.on_composite_pod_group(old, new)

    def on_node(self, old: corev1.Node | None, new: corev1.Node | None) -> None:
        tell_every((self._on_node, *(each.on_node for each in self._preempting)), old, new)

    def _on_node(self, old: corev1.Node | None, new: corev1.Node | None) -> None:
        self.room.on_node(old, new)
        self.events.on_node(old, new)

    def on_volumes(self, old: object, new: object) -> None:
        self.events.on_volumes(old, new)

    def tick(self) -> None:
        """About once a second: gives up plans whose members did not come, and renews messages that are no longer true."""
        for where, step in self._steps():
            guarded(f"{where}-tick", step)
        for each in self._preempting:
            each.tick()

    def _steps(self) -> Sequence[tuple[str, Callable[[], None]]]:
        """Each is done though another fails."""
        return (
            ("room", self.room.tick),
            ("quarantine", self.set_aside.tick),
            ("unseen", self.events.tick),
            ("due", self.rounds.tick),
            ("bind-slots", self.dispatcher.tick),
            ("leadership", self.lead_changes.tick),
            ("stale-refusals", self.stale_refusals.tick),
            ("observer", self.observer.tick),
            ("waiting-gangs", self.waiting_gangs.tick),
            ("ended", self.ended_members.tick),
            ("expired", self.expired_slots.tick),
            ("early-starts", lambda: self.early_starts.tick(self.dependencies.may_plan())),
            ("shadows", self.rounds.reservations.tick),
        )


def _early_start(args: CoschedulingArgs) -> EarlyStartLimits | None:
    if not args.early_start:
        return None
    silence, most = float(args.early_start_silence_seconds), float(args.early_start_max_seconds)
    return EarlyStartLimits(silence, most, args.early_start_percentage_of_room / 100)


AnyPodGroup = OwnPodGroup | ForeignPodGroup


def _key(old: AnyPodGroup | None, new: AnyPodGroup | None) -> str:
    known = new or old
    return known.key if known is not None else ""

"""kube-scheduler in a few lines that preempts as the real one does: which pods may, for which, and what becomes of nominations.

It asks the guard of the preempt verb, and carries out what gangs evict. A nomination goes where it finds no candidate itself; it
stays where our verb leaves none, and while a pod ends on the nominated node. Pods that its own filters refuse are woken by
room alone, as by real queueing hints.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from datetime import UTC, datetime
from functools import partial

from msgspec import structs

from extender.api import corev1, policyv1
from extender.client.embedded import EmbeddedAPI
from extender.client.events import Recorder
from extender.client.store import Store
from extender.crash import guarded
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.framework.preemption.candidate import Candidate, Victims
from extender.framework.preemption.executor import DISRUPTION_TARGET, PREEMPTION_BY_SCHEDULER
from extender.framework.preemption.ordering import sort_by_importance
from extender.framework.runtime.framework import FrameworkDependencies
from extender.plugins.coscheduling.dependencies import Done, Eviction, PreemptionDependencies, PreemptionRules
from extender.plugins.coscheduling.pod_conditions import NO_CANDIDATE, was_preempted
from tests.unit.plugins.coscheduling.conftest import Rooms, World
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler

NOT_ELIGIBLE = "not eligible due to a terminating pod on the nominated node."
GRACE_SECONDS = 30.0


class Evictions:
    """What is to be carried out. Fulfils Evictor."""

    def __init__(self) -> None:
        self.asked: list[tuple[Eviction, Done]] = []

    def allowed(self) -> bool:
        return True

    def allowed_despite_budgets(self) -> bool:
        return True

    def evict(self, eviction: Eviction, done: Done) -> None:
        self.asked.append((eviction, done))


class Preempting(KubeScheduler):
    """in_tree: UIDs of those that no patch wakes. budgets: those there are. Evicted pods are on their node until they `end`."""

    def __init__(self, world: World, rules: PreemptionRules | None = None) -> None:
        super().__init__(world)
        self.in_tree: set[str] = set()
        self.budgets: list[policyv1.PodDisruptionBudget] = []
        self.evictions = Evictions()
        self.rules = rules or PreemptionRules()
        self.begun: tuple[corev1.Pod, Sequence[NodeInfo]] | None = None  # the attempt that is being made
        self._connect(world)

    def extender_restarts(self, world: World) -> None:
        """What the old process was about to evict it evicts no more."""
        self.evictions.asked.clear()
        self._connect(world)
        super().extender_restarts(world)

    def _connect(self, world: World) -> None:
        world.nominator = self
        api = EmbeddedAPI()
        around = FrameworkDependencies(
            api=api,
            events=Recorder(api),
            newest_snapshot=world.snapshot,
            lister=lambda type_: Store(),
            nominator=self,  # type: ignore[arg-type]
        )
        evicting = PreemptionDependencies(
            evictor=self.evictions,
            rules=self.rules,
            pdbs=lambda: self.budgets,
            assumed=self._assumed,
            wall=self._wall,
        )
        world.connect(judges=Rooms(around=around), preemption=evicting)
        assert world.plugin.preemption is not None
        self.preemption = world.plugin.preemption

    def _wall(self) -> float:
        return 1_800_000_000.0 + self.world.clock.now

    def _assumed(self) -> set[str]:
        return {uid for uid in self.world.on_nodes if uid in self.pods and not self.pods[uid].node_name}

    # Nominations, as the extender's nominator has them

    def nominated_nodes(self) -> list[str]:
        return sorted({name for pod in self._unbound() if (name := pod.status.nominated_node_name)})

    def nominated_pods_for_node(self, name: str) -> list[corev1.Pod]:
        return [pod for pod in self._unbound() if pod.status.nominated_node_name == name]

    def nominated_pods_but(self, uids: Set[str]) -> list[tuple[str, corev1.Pod]]:
        names = self.nominated_nodes()
        return [(name, pod) for name in names for pod in self.nominated_pods_for_node(name) if pod.uid not in uids]

    def _unbound(self) -> Iterable[corev1.Pod]:
        return (pod for uid, pod in self.pods.items() if uid not in self.world.on_nodes)

    # Which events wake which pods

    def run(self) -> None:
        if self.begun is not None:
            self.end_attempt()
        super().run()

    def wake(self) -> None:
        by_name = {pod.name: pod for pod in self.pods.values() if not pod.node_name}
        for name in self.world.given_up:
            if name in by_name:
                self._patch(by_name[name].uid, nominated_node_name="")
        self.world.given_up.clear()
        for name in self.world.roused:
            if name in by_name:
                self.on_capacity_freed(by_name[name].priority)
        self.world.roused.clear()
        awake = set(self.active)
        super().wake()
        for uid in self.in_tree - awake:
            self.active.pop(uid, None)
        asked, self.evictions.asked = self.evictions.asked, []
        for eviction, done in asked:
            wanted = eviction.wanted()
            self._evict(eviction.victims if wanted else ())
            guarded("evictor", partial(done, "" if wanted else "not wanted"))

    def on_capacity_freed(self, priority: float = float("inf")) -> None:
        """For all that are parked, of at most that priority."""
        for pod in self._unbound():
            if not pod.gated and pod.priority <= priority and pod.uid not in self._backing_off:
                self.in_tree.discard(pod.uid)
                self.active[pod.uid] = None

    def _patch(self, uid: str, **status: object) -> None:
        old = self.pods[uid]
        super()._patch(uid, **status)
        if old.status.nominated_node_name not in ("", self.pods[uid].status.nominated_node_name):
            mine = uid in self.active
            self.on_capacity_freed(old.priority)
            if not mine:
                self.active.pop(uid, None)

    def delete(self, *pods: corev1.Pod) -> None:
        for pod in pods:
            known = self.pods[pod.uid]
            super().delete(pod)
            if known.node_name:
                self.on_capacity_freed()
            elif known.status.nominated_node_name:
                self.on_capacity_freed(known.priority)

    def _let_go(self, pod: corev1.Pod, cause: str) -> None:
        super()._let_go(pod, cause)
        self.on_capacity_freed()

    # A pod's attempt

    def attempt(self, uid: str) -> None:
        self.begin(uid)
        self.end_attempt()

    def begin(self, uid: str) -> None:
        """Its attempt, which goes by the pod and the nodes as they are now. What happens to the pod meanwhile has it tried once more."""
        assert self.begun is None, "one at a time"
        del self.active[uid]
        self.in_tree.discard(uid)
        self.begun = self.pods[uid], self.world.snapshot().list()

    def end_attempt(self) -> None:
        """Of the one that has begun."""
        assert self.begun is not None
        (pod, nodes), self.begun = self.begun, None
        uid = pod.uid
        if uid not in self.pods:
            return
        known = self.world.snapshot()
        fitting = [info for info in nodes if not info.unschedulable and self._fits(pod, info)]
        nominated = [info for info in fitting if info.name == pod.status.nominated_node_name]
        node_name, text = "", "Insufficient cpu"
        for offered in (nominated, fitting):
            if offered and not node_name:
                node_name, text = self._ask(pod, [known.infos[info.name] for info in offered])
        if not fitting:
            self.in_tree.add(uid)
        if node_name:
            self.active.pop(uid, None)
            self._bind(pod, node_name)
        else:
            may_help = [info for info in nodes if info not in fitting and not info.unschedulable]
            self._post_filter(pod, text, may_help)

    def _fits(self, pod: corev1.Pod, info: NodeInfo, without: Sequence[corev1.Pod] = ()) -> bool:
        nominated = [each for each in self.nominated_pods_for_node(info.name) if each.priority >= pod.priority]
        coming = sum(PodInfo(each).requests.milli_cpu for each in nominated if each.uid != pod.uid)
        going = sum(PodInfo(each).requests.milli_cpu for each in without)
        asked = PodInfo(pod).requests.milli_cpu
        return info.requested.milli_cpu - going + coming + asked <= info.allocatable.milli_cpu

    def _post_filter(self, pod: corev1.Pod, text: str, may_help: Sequence[NodeInfo]) -> None:
        kept = pod.status.nominated_node_name
        there = [each.pod for info in may_help if info.name == kept for each in info.pods]
        if any(each.deleting and was_preempted(each) and each.priority < pod.priority for each in there):
            self._refused(pod, f"{text}. preemption: {NOT_ELIGIBLE}", nominated=kept)
            return
        found = {info.name: victims for info in may_help if (victims := self._victims(pod, info))}
        if not found:
            self._refused(pod, f"{text}. preemption: no preemption victims found")
            return
        there_now = {each.pod.uid for info in self.world.snapshot().list() for each in info.pods}
        offered = [
            Candidate(name, Victims(tuple(victims)))
            for name, victims in found.items()
            if all(each.uid in there_now for each in victims)
        ]
        left = self.preemption.guard.review(pod, offered)
        if not left:
            self._refused(pod, f"{text}. preemption: {NO_CANDIDATE}", nominated=kept)
        else:
            best = min(
                left, key=lambda each: (max(v.priority for v in each.victims.pods), len(each.victims.pods), each.name)
            )
            self._preempts(pod, text, best)
        self._settle()

    def _victims(self, pod: corev1.Pod, info: NodeInfo) -> list[corev1.Pod]:
        """None where it would not fit whatever went."""
        below = [each.pod for each in info.pods if each.pod.priority < pod.priority]
        if not below or not self._fits(pod, info, below):
            return []
        sort_by_importance(below)
        victims = list(below)
        for each in below:
            if self._fits(pod, info, [victim for victim in victims if victim is not each]):
                victims.remove(each)
        return victims

    def _preempts(self, pod: corev1.Pod, text: str, chosen: Candidate) -> None:
        self._evict(chosen.victims.pods)
        for each in self.nominated_pods_for_node(chosen.name):
            if each.priority < pod.priority:
                self._patch(each.uid, nominated_node_name="")
        if pod.uid in self.pods:
            self._refused(self.pods[pod.uid], text, nominated=chosen.name)

    # Victims

    def _evict(self, victims: Sequence[corev1.Pod]) -> None:
        """All are marked, then told."""
        condition = corev1.PodCondition(type=DISRUPTION_TARGET, status="True", reason=PREEMPTION_BY_SCHEDULER)
        there = [victim.uid for victim in victims if victim.uid in self.pods]
        for uid in there:
            self._patch(uid, conditions=(*self.pods[uid].status.conditions, condition))
            self._shown(uid)
        for uid in there:
            old = self.pods[uid]
            if not old.node_name:
                self.delete(old)
            elif not old.deleting:
                self.ends_in(old, GRACE_SECONDS)

    def ends_in(self, pod: corev1.Pod, seconds: float) -> None:
        """It is deleted with this grace period."""
        stamp = datetime.fromtimestamp(self._wall() + seconds, UTC)
        old = self.pods[pod.uid]
        new = structs.replace(old, metadata=structs.replace(old.metadata, deletion_timestamp=stamp))
        self.pods[pod.uid] = new
        self._shown(pod.uid)
        self.plugin.on_pod(old, new)

    def _shown(self, uid: str) -> None:
        if uid in self.world.on_nodes and self.pods[uid].node_name:
            self.world.on_nodes[uid] = self.pods[uid]

    def ending(self) -> list[corev1.Pod]:
        return [pod for pod in self.pods.values() if pod.deleting]

    def passes(self, seconds: float, step: float = 1.0) -> None:
        """What goes has ended at the next step."""
        until = self.world.clock.now + seconds
        while self.world.clock.now < until:
            self.run()
            self.delete(*self.ending())
            self.world.clock.now += step
            self.plugin.tick()
        self.run()

    def end_all(self) -> None:
        """Until nothing moves and no pod is on its way out."""
        self.run()
        for _ in range(100):
            if not self.ending():
                return
            self.delete(self.ending()[0])
            self.run()
        raise AssertionError("preemption never comes to rest")

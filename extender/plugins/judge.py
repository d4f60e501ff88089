"""The in-tree filters of a profile, on states that do not exist yet: what plans for gangs ask (coscheduling/planner).

Its framework is its own: planning runs beside scheduling cycles, and must not see their snapshot. No counterpart upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace

from extender.api import corev1
from extender.config.defaults import planning_profile
from extender.framework.cycle_state import CycleState
from extender.framework.hint_rows import HintRow, registered_rows
from extender.framework.hypothetical import Cluster, snapshot_of, with_pods
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.framework.runtime.framework import Framework, FrameworkDependencies
from extender.framework.runtime.registry import Registry
from extender.framework.status import SUCCESS, Status, unresolvable
from extender.plugins import names
from extender.plugins.coscheduling.planner.request import Added
from extender.plugins.planned_volumes import PlannedNodeVolumeLimits, PlannedVolumeBinding, ties
from extender.plugins.pod_claims import named_claims
from extender.plugins.storage_listers import StorageListers
from extender.plugins.volume_binding.plugin import chosen_volumes, promise_volumes
from extender.plugins.volume_restrictions import read_write_once_pod_claims

NOT_NAMED = unresolvable("node(s) didn't match Pod's node affinity/selector", plugin=names.NODE_AFFINITY)


class FrameworkTrial:
    """One pod: PreFilter has run, each node is judged by the Filters that it did not skip. Fulfils planner.Trial."""

    def __init__(
        self,
        framework: Framework,
        pod: corev1.Pod,
        snapshot: NodeInfoLister,
        exclusive_claims: frozenset[str] = frozenset(),
    ) -> None:
        """exclusive_claims: names of the pod's ReadWriteOncePod claims."""
        self._framework = framework
        self._pod = pod
        self._exclusive_claims = exclusive_claims
        self._snapshot = snapshot
        self._added: list[Added] = []
        self._heard = (
            0  # how many of them the plugins have been told of: a trial that is asked nothing more is told nothing more
        )
        self._promised: dict[str, str] = {}
        self._pre_filter(snapshot)

    def _pre_filter(self, snapshot: NodeInfoLister) -> None:
        self._state = CycleState()
        self._framework.set_snapshot(snapshot)
        result, self._refused, _ = self._framework.run_pre_filter_plugins(self._state, self._pod, snapshot.list())
        self._allowed = result.node_names if result is not None else None
        self._listens = self._framework.listens_to_added_pods(self._state)
        if self._promised:
            promise_volumes(self._state, self._promised)

    def filter(self, node: NodeInfo) -> Status:
        if not self._refused.success:
            return self._refused
        if self._allowed is not None and node.name not in self._allowed:
            return NOT_NAMED
        return self._framework.run_filter_plugins(self._state, self._pod, node)

    def filter_all(self) -> Sequence[Status]:
        """By columns, where the snapshot has them."""
        nodes = self._snapshot.list()
        if not self._refused.success or self._allowed is not None:
            return [self.filter(node) for node in nodes]
        self._framework.set_snapshot(self._snapshot)
        filtered = self._framework.filter_nodes(self._state, self._pod, nodes, nominated=False)
        if filtered.error is not None:
            return [filtered.error] * len(nodes)
        statuses = filtered.statuses
        return [statuses.get(node.name, SUCCESS) for node in nodes] if statuses else [SUCCESS] * len(nodes)

    def volumes_on(self, node_name: str) -> Mapping[str, str]:
        return chosen_volumes(self._state, node_name)

    def add_pods(self, added: Sequence[Added]) -> None:
        """Raises RuntimeError for a plugin that breaks its promise."""
        self._added.extend(added)
        promised = {claim: volume for *_, volumes in added if volumes for claim, volume in volumes.items()}
        if promised:
            self._promised = {**self._promised, **promised}
            promise_volumes(self._state, promised)
        if not self._refused.success:
            return
        if self._overlooks_one([pod for pod, *_ in added]):
            self._pre_filter(with_pods(self._snapshot, [(node.name, pod) for pod, node, _ in self._added]))
            return
        for pod, node, _ in added if self._listens else ():
            status = self._framework.run_pre_filter_extension_add_pod(self._state, self._pod, pod, node)
            if not status.success:
                raise RuntimeError(status.message)

    def _overlooks_one(self, new: Sequence[PodInfo]) -> bool:
        """A plugin that PreFilter skips is not told of added pods: InterPodAffinity of one with an anti-affinity against the pod,
        VolumeRestrictions of one that uses a claim which the pod has to have to itself."""
        skipped = self._state.skip_filter_plugins
        if names.VOLUME_RESTRICTIONS in skipped and self._exclusive_claims:
            of_namespace = [added.pod for added in new if added.pod.namespace == self._pod.namespace]
            if any(not self._exclusive_claims.isdisjoint(named_claims(pod)) for pod in of_namespace):
                return True
        if names.INTER_POD_AFFINITY not in skipped:
            return False
        terms = [terms for added in new if (terms := added.required_anti_affinity_terms)]
        return any(
            term.namespace_selector is not None or term.matches(self._pod, {}) for each in terms for term in each
        )

    def clone(self) -> FrameworkTrial:
        copied = copy(self)
        copied._state = self._state.clone()
        copied._added = list(self._added)
        return copied


class FrameworkJudge:
    """One plan at a time uses it; the frameworks have in-tree filters only and belong to it alone.

    with_volumes: for pods that bring volumes, while volumes are known; where they are not, kube-scheduler's own verdict
    is all there is.
    """

    def __init__(
        self,
        framework: Framework,
        with_volumes: Framework | None = None,
        volumes_known: Callable[[], bool] = lambda: True,
    ) -> None:
        self._framework = framework
        self._with_volumes = with_volumes
        self._volumes_known = volumes_known

    def begin(self, pod: corev1.Pod, cluster: Cluster) -> FrameworkTrial:
        snapshot = snapshot_of(cluster)
        if pod.spec.volumes and self._with_volumes is not None and self._volumes_known():
            exclusive = read_write_once_pod_claims(pod, StorageListers(self._with_volumes))
            return FrameworkTrial(self._with_volumes, pod, snapshot, exclusive)
        return FrameworkTrial(self._framework, pod, snapshot)

    def hint_rows(self) -> Sequence[HintRow]:
        """When what its plugins say of a pod may be otherwise."""
        return registered_rows((self._with_volumes or self._framework).plugins.values())

    def ties(self, pod: corev1.Pod) -> object:
        if self._with_volumes is None or not self._volumes_known():
            return ()
        return ties(pod, StorageListers(self._with_volumes).claims())


class FrameworkJudges:
    """Makes judges, each with frameworks of its own. plans: the one of plans. Fulfils coscheduling's Judges."""

    def __init__(
        self, registry: Registry, dependencies: FrameworkDependencies, volumes_known: Callable[[], bool] = lambda: True
    ) -> None:
        self._registry = registry
        self._dependencies = replace(dependencies, record=None)
        self._volumes_known = volumes_known
        self.plans = self.new()

    def new(self) -> FrameworkJudge:
        with_volumes = Registry(self._registry)
        with_volumes[names.VOLUME_BINDING] = PlannedVolumeBinding.create
        with_volumes[names.NODE_VOLUME_LIMITS] = PlannedNodeVolumeLimits.create
        return FrameworkJudge(
            self.in_tree(),
            Framework(planning_profile(volumes=True), with_volumes, self._dependencies),
            self._volumes_known,
        )

    def in_tree(self) -> Framework:
        return Framework(planning_profile(), self._registry, self._dependencies)

    def hint_rows(self) -> Sequence[HintRow]:
        return self.plans.hint_rows()

"""A cluster on which victims are planned by the real filters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import pytest

from extender.api import policyv1
from extender.api.schedulingv1alpha1 import POD_GROUP_LABEL
from extender.backend.cache.cache import Cache
from extender.backend.queue.nominator import Nominator
from extender.client.embedded import EmbeddedAPI
from extender.client.events import Recorder
from extender.client.store import Store
from extender.config.defaults import planning_profile
from extender.framework.pod_info import PodInfo
from extender.framework.runtime.framework import Framework, FrameworkDependencies
from extender.plugins.coscheduling.planner import NoPlacement, Request
from extender.plugins.coscheduling.preemption.evictable import Rules, RunningGang, evictable_pods
from extender.plugins.coscheduling.preemption.planning import VictimPlan, plan_with_victims
from extender.plugins.judge import FrameworkJudge
from extender.plugins.registry import new_registry
from tests.objects import NodeBuilder, PodBuilder


class Cluster:
    """gangs: minMember of each running gang; its members are the pods with its name as their pod group."""

    def __init__(
        self, nodes: Iterable[NodeBuilder], pods: Iterable[PodBuilder], gangs: Mapping[str, int] | None = None
    ) -> None:
        self._cache = Cache()
        for node in nodes:
            self._cache.add_node(node.obj())
        running: dict[str, dict[str, tuple[PodInfo, str]]] = {key: {} for key in gangs or {}}
        for builder in pods:
            pod = builder.obj()
            self._cache.add_pod(pod)
            key = pod.labels.get(POD_GROUP_LABEL)
            if key in running:
                running[key][pod.uid] = PodInfo(pod), pod.node_name
        self._gangs = [RunningGang(key, count, running[key]) for key, count in (gangs or {}).items()]
        api = EmbeddedAPI()
        around = FrameworkDependencies(
            api=api,
            events=Recorder(api),
            newest_snapshot=self._cache.snapshot,
            lister=lambda type_: Store(),
            nominator=Nominator(),
        )
        self._judge = FrameworkJudge(Framework(planning_profile(), new_registry(), around))

    def plan(
        self,
        members: Sequence[PodBuilder],
        *,
        needed: int | None = None,
        pdbs: Sequence[policyv1.PodDisruptionBudget] = (),
        rules: Rules | None = None,
        going: Collection[str] = (),
        request: Request | None = None,
    ) -> VictimPlan | NoPlacement:
        infos = [PodInfo(member.obj()) for member in members]
        priority = min(info.pod.priority for info in infos)
        snapshot = self._cache.snapshot()
        evictable = evictable_pods(snapshot.list(), self._gangs, rules or Rules(priority))
        request = request or Request(infos, len(infos) if needed is None else needed, clock=lambda: 0.0)
        return plan_with_victims(snapshot, request, self._judge, evictable, pdbs, going)


@pytest.fixture
def cluster() -> type[Cluster]:
    return Cluster

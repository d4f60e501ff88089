"""kube-scheduler has a filter that the extender does not know: only its preempt calls tell where victims help."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from extender.api import corev1
from extender.framework.node_info import NodeInfo
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import group, member, on_node
from tests.unit.plugins.coscheduling.machines.test_preempting_machine import of_priority
from tests.unit.plugins.coscheduling.preempting import Preempting

FLUSH_SECONDS = 300  # after which kube-scheduler tries again what it has parked


class OwnFilter(Preempting):
    """A vip may run in its pool alone, on a node without another of vip or low."""

    pool: frozenset[str] = frozenset({"n0", "n1"})

    def _fits(self, pod: corev1.Pod, info: NodeInfo, without: Sequence[corev1.Pod] = ()) -> bool:
        if pod.name.startswith("vip"):
            gone = {each.uid for each in without} | {pod.uid}
            others = [each.pod for each in info.pods if each.pod.uid not in gone]
            if info.name not in self.pool or any(other.name.startswith(("low", "vip")) for other in others):
                return False
        return super()._fits(pod, info, without)

    def _post_filter(self, pod: corev1.Pod, text: str, may_help: Sequence[NodeInfo]) -> None:
        super()._post_filter(pod, "0/4 nodes are available: 4 own filter", may_help)

    def flush(self) -> None:
        self.active.update(dict.fromkeys(uid for uid, pod in self.pods.items() if not pod.node_name and not pod.gated))
        self.in_tree.clear()


def with_vips(kube: OwnFilter, low: Sequence[str], *, gated: bool) -> OwnFilter:
    """A pod of low priority runs on each of these nodes; two members of a gang have come."""
    kube.apply(group("vip", 2))
    kube.create(*(on_node(member(f"low-{name}", ""), name) for name in low))
    kube.create(*(of_priority(member(f"vip{number}", "vip", gated=gated), 10) for number in range(2)))
    return kube


def kept_seconds(kube: OwnFilter, seconds: int) -> int:
    """For how many of them room was kept for the gang."""
    kept = 0
    for second in range(1, seconds + 1):
        kube.passes(1)
        kept += bool(kube.plugin.manager.slots.of_group("default/vip"))
        if second % FLUSH_SECONDS == 0:
            kube.flush()
    return kept


BOTH = pytest.mark.parametrize("gated", [pytest.param(False, id="plain"), pytest.param(True, id="gated")])


@BOTH
def test_a_gang_preempts_where_it_may_run_though_other_nodes_are_empty_for_all_that_is_known(gated: bool) -> None:
    """Its members are told the same each time, of which kube-scheduler patches nothing."""
    kube = OwnFilter(World([node("n0", "1"), node("n1", "1"), node("n2"), node("n3")]))
    with_vips(kube, ("n0", "n1"), gated=gated).passes(290)
    assert kube.running("vip") == {"vip0", "vip1"}


@BOTH
def test_no_room_is_kept_for_long_where_pods_would_have_to_go_that_the_extender_does_not_mind(gated: bool) -> None:
    kube = with_vips(OwnFilter(World([node(f"n{number}") for number in range(4)])), ("n0", "n1"), gated=gated)
    assert kept_seconds(kube, 3 * FLUSH_SECONDS) < 100


@pytest.mark.parametrize("size", [pytest.param(60, id="all are named"), pytest.param(120, id="a hundred are named")])
def test_of_a_large_pool_pods_go_where_kube_scheduler_names_candidates(size: int) -> None:
    """The other pool has room, for all that the extender knows."""

    class Pool(OwnFilter):
        pool = frozenset(f"p{number}" for number in range(size))

    names = sorted(Pool.pool)
    kube = Pool(World([*(node(name, "1") for name in names), *(node(f"q{number}") for number in range(4))]))
    with_vips(kube, names, gated=True)
    kept_seconds(kube, 2 * FLUSH_SECONDS)
    assert kube.running("vip") == {"vip0", "vip1"}

"""Where a pod that comes singly is to go, so that what is free stays whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.backend.cache.snapshot import Snapshot, new_snapshot
from extender.config.types import Packing, TopologyLevel
from extender.framework.hypothetical import HypotheticalSnapshot, with_pods
from extender.plugins.coscheduling.extension_points.packing_score import Usage, Wishes, banded, scores
from extender.plugins.coscheduling.planner.domains import DomainCache, Domains
from tests.objects import make_node
from tests.unit.plugins.coscheduling.planning import LEVELS, existing, node

Cluster = Mapping[str, tuple[str, str, int]]
"""Node -> (zone, rack, CPUs in use of 4)."""


def snapshot(cluster: Cluster) -> Snapshot:
    nodes = [node(name, 4, zone, rack).obj() for name, (zone, rack, _) in cluster.items()]
    pods = [existing(f"on-{name}", name, cpu).obj() for name, (_, _, cpu) in cluster.items() if cpu]
    return new_snapshot(pods, nodes)


def ranking(
    cluster: Cluster,
    levels: Sequence[TopologyLevel] = LEVELS,
    siblings: Mapping[str, int] | None = None,
    **wishes: Packing,
) -> list[str]:
    """Nodes, the best first."""
    seen = snapshot(cluster)
    rows = np.arange(len(seen))
    names = [info.name for info in seen.list()]
    beside = {seen.position(name): count for name, count in (siblings or {}).items()}
    found = scores(Domains(seen, levels), Usage.of(seen, ["cpu"]), Wishes(siblings=beside, **wishes), rows)
    plain = HypotheticalSnapshot(seen.list())
    assert (
        found.tolist()
        == scores(Domains(plain, levels), Usage.of(plain, ["cpu"]), Wishes(siblings=beside, **wishes), rows).tolist()
    ), "columns and plain nodes differ"
    assert 0 <= found.min() <= found.max() <= 100
    return sorted(names, key=lambda name: (-found[names.index(name)], name))


@pytest.mark.parametrize(
    ("cluster", "order"),
    [
        pytest.param(
            {"free": ("a", "1", 0), "used": ("b", "2", 1), "full": ("c", "3", 3)},
            ["full", "used", "free"],
            id="the fullest node first, a free one last",
        ),
        pytest.param(
            {"in-use": ("a", "1", 1), "beside": ("a", "1", 0), "rack-1": ("a", "2", 0), "rack-2": ("a", "2", 0)},
            ["in-use", "beside", "rack-1", "rack-2"],
            id="a free node of a rack in use before a free rack",
        ),
        pytest.param(
            {"in-use": ("a", "1", 4), "rack": ("a", "2", 0), "zone-1": ("b", "1", 0), "zone-2": ("b", "2", 0)},
            ["in-use", "rack", "zone-1", "zone-2"],
            id="a free rack of a zone in use before a free zone",
        ),
        pytest.param(
            {"a": ("a", "1", 2), "a2": ("a", "1", 2), "b": ("b", "2", 2), "b2": ("b", "2", 1)},
            ["a", "a2", "b", "b2"],
            id="of nodes equally full the one in the fuller rack",
        ),
        pytest.param(
            {"in-a-rack": ("a", "1", 0), "in-none": ("a", "", 0), "in-use": ("b", "2", 1)},
            ["in-use", "in-none", "in-a-rack"],
            id="a node of no rack breaks up no rack",
        ),
    ],
)
def test_a_pod_of_no_gang(cluster: Cluster, order: list[str]) -> None:
    assert ranking(cluster) == order


def test_without_levels_the_fullest_node_comes_first() -> None:
    cluster = {"free": ("a", "1", 0), "used": ("a", "1", 1), "full": ("b", "2", 3)}
    assert ranking(cluster, levels=()) == ["full", "used", "free"]


EXTRA: Cluster = {
    "elsewhere": ("b", "1", 3),
    "in-the-zone": ("a", "2", 3),
    "in-the-rack": ("a", "1", 0),
    "beside-one": ("a", "1", 1),
    "beside-two": ("a", "1", 2),
}


@pytest.mark.parametrize(
    ("packing", "order"),
    [
        pytest.param(
            Packing.FEWEST_NODES,
            ["beside-two", "beside-one", "in-the-rack", "in-the-zone", "elsewhere"],
            id="fewest nodes: beside siblings",
        ),
        pytest.param(
            Packing.MOST_EVEN,
            ["in-the-rack", "beside-one", "beside-two", "in-the-zone", "elsewhere"],
            id="most even: in the siblings' rack, on the node with the fewest of them",
        ),
    ],
)
def test_an_extra_member_goes_where_its_gang_is(packing: Packing, order: list[str]) -> None:
    assert ranking(EXTRA, siblings={"beside-one": 1, "beside-two": 2}, packing=packing) == order


def test_agents_that_run_everywhere_break_nothing_up() -> None:
    """A tenth of a node may be theirs."""
    big = [make_node().name(f"n{i}").capacity(cpu=40, pods=110).obj() for i in range(2)]
    seen = new_snapshot([existing("agent", "n0", 4).obj(), existing("job", "n1", 5).obj()], big)
    rows = np.arange(2)
    assert scores(Domains(seen, ()), Usage.of(seen, ["cpu"]), Wishes(), rows).tolist() == [50, 100]


def test_a_promised_place_is_in_use() -> None:
    seen = snapshot({"free": ("a", "1", 0), "promised": ("b", "2", 0)})
    usage = Usage.of(with_pods(seen, [("promised", existing("m0", "promised", 2).info())]), ["cpu"])
    assert usage.by_node().tolist() == [0.0, 0.5]
    assert Usage.of(seen, ["cpu"]).by_node().tolist() == [0.0, 0.0]


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(0, 1)), min_size=1))
def test_bands_keep_the_order_of_ranks(entries: list[tuple[int, float]]) -> None:
    rank, within = (np.array(column) for column in zip(*entries, strict=True))
    found = banded(rank, within).tolist()
    assert 0 <= min(found) <= max(found) <= 100
    for (one, first), mine in zip(entries, found, strict=True):
        for (other, second), theirs in zip(entries, found, strict=True):
            assert mine > theirs if one > other else one < other or mine >= theirs or first <= second


def test_domains_are_computed_anew_only_when_labels_change() -> None:
    cache = DomainCache(LEVELS)
    before = snapshot({"a": ("z", "1", 0), "b": ("z", "2", 0)})
    changed = before.get("a").clone()
    changed.add_pod(existing("p", "a").info())
    later = before.replaced({"a": changed})
    assert cache.of(later) is cache.of(before)
    moved = node("a", 4, "z", "3").info()
    assert cache.of(later.replaced({"a": moved})).names[1] == ["z/2", "z/3"]
    assert cache.of(HypotheticalSnapshot(later.list())) is not cache.of(later)


def test_a_node_with_more_than_it_has_room_for_is_as_full_as_a_full_one() -> None:
    seen = snapshot({"over": ("a", "1", 7), "full": ("a", "1", 4), "half": ("b", "2", 2)})
    usage = Usage.of(seen, ["cpu"])
    shares = {info.name: share for info, share in zip(seen.list(), usage.by_node().tolist(), strict=True)}
    assert shares == {"over": 1.0, "full": 1.0, "half": 0.5}
    assert max(usage.by_domain(Domains(seen, LEVELS), 0).tolist()) == 1.0

"""Which members are of one kind for events, and which labels of nodes and pods their kind looks at."""

from __future__ import annotations

import pytest

from extender.plugins.coscheduling.waits_for import kinds_of
from tests.objects import HOSTNAME, ZONE, PodBuilder
from tests.unit.plugins.coscheduling.planning import GANG, gang, member


@pytest.mark.parametrize(
    ("one", "other", "kinds"),
    [
        pytest.param(member(), member(), 1, id="alike"),
        pytest.param(member(), member(cpu=2), 2, id="another size"),
        pytest.param(
            member(), member().label("index", "1"), 1, id="another label, which members of this kind do not look at"
        ),
        pytest.param(
            member().pod_affinity(ZONE, GANG),
            member().pod_affinity(ZONE, GANG).label("index", "1"),
            2,
            id="another label, where members look at pods",
        ),
    ],
)
def test_members_of_one_kind_are_asked_about_once(one: PodBuilder, other: PodBuilder, kinds: int) -> None:
    found = kinds_of([*gang(5, one), *gang(5, other, "o")])
    assert len(found) == kinds
    assert found[0].first.pod.name == "m0"


@pytest.mark.parametrize(
    ("of", "keys", "domains"),
    [
        pytest.param(member(), set(), set(), id="none"),
        pytest.param(member().node_selector({"gpu": "yes"}), {"gpu"}, set(), id="a node selector"),
        pytest.param(member().node_affinity_in("disk", ["ssd"]), {"disk"}, set(), id="node affinity"),
        pytest.param(
            member().spread_constraint(1, ZONE, "DoNotSchedule", GANG), {ZONE}, set(), id="a spread that must hold"
        ),
        pytest.param(member().spread_constraint(1, ZONE, "ScheduleAnyway", GANG), set(), set(), id="one that need not"),
        pytest.param(member().pod_affinity(ZONE, GANG), set(), {ZONE}, id="affinity"),
        pytest.param(member().pod_anti_affinity(HOSTNAME, GANG), set(), {HOSTNAME}, id="anti-affinity"),
    ],
)
def test_which_labels_a_kind_looks_at(of: PodBuilder, keys: set[str], domains: set[str]) -> None:
    kind = kinds_of(gang(2, of))[0]
    assert (set(kind.keys), set(kind.domain_keys), kind.minds_pods) == (keys, domains, bool(domains))
    assert kind.spreads == bool(keys and ZONE in keys)


def test_amounts_and_volumes_are_those_of_its_members() -> None:
    kind = kinds_of([member(cpu=2).pvc("data").name("m").info()])[0]
    assert (kind.asked, kind.has_volumes) == ({"cpu": 2000}, True)
    assert not kinds_of(gang(1, member()))[0].has_volumes

"""Stories of topology through the plugin: a PodGroup's annotations, the levels of the configuration, and what users are told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from extender.api import corev1
from extender.api.codec import convert
from extender.api.schedulingv1alpha1 import LIGHTWEIGHT_MIN_AVAILABLE_LABEL, LIGHTWEIGHT_NAME_LABEL, PodGroup
from extender.config.types import Packing, TopologyLevel
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.scheduling.topology import topology_of
from extender.plugins.coscheduling.spec.keys import TOPOLOGY_PREFERRED as PREFERRED
from extender.plugins.coscheduling.spec.keys import TOPOLOGY_REQUIRED as REQUIRED
from extender.plugins.coscheduling.spec.topology import AskedTopology
from extender.plugins.coscheduling.state.diagnosis import UnschedulableReason
from tests.documented import configuration_in
from tests.unit.plugins.coscheduling.conftest import World, pod

LEVELS = (TopologyLevel("zone", "zone"), TopologyLevel("rack", "rack"))
NewWorld = Callable[..., World]
OPERATIONS = Path(__file__).parents[5] / "docs" / "operations.md"


def node(name: str, zone: str, rack: str, cpu: int = 4) -> corev1.Node:
    labels = {"zone": zone, "rack": rack}
    return convert(
        {
            "metadata": {"name": name, "labels": {k: v for k, v in labels.items() if v}},
            "status": {"allocatable": {"cpu": str(cpu), "pods": "110"}},
        },
        corev1.Node,
    )


def group(min_member: int, **annotations: str) -> PodGroup:
    keys = {"required": REQUIRED, "preferred": PREFERRED}
    said = {keys[word]: level for word, level in annotations.items()}
    metadata = {"name": "g", "namespace": "default", "annotations": said}
    return convert({"metadata": metadata, "spec": {"minMember": min_member}}, PodGroup)


def started(new: NewWorld, nodes: Sequence[corev1.Node], packing: Packing = Packing.FEWEST_NODES) -> World:
    world = new(nodes)
    world.connect(topology=planner.Topology(LEVELS, packing=packing))
    return world


def ask(world: World, pod_group: PodGroup, count: int) -> dict[str, str]:
    """Where each member is sent, or what it is told."""
    world.plugin.on_pod_group(None, pod_group)
    members = [pod(f"m{i}", "g", cpu="2") for i in range(count)]
    world.create(*members)
    return {member.name: world.filter(member) for member in members}


TWO_RACKS = [
    *(node(f"a{i}", "a", "1", 2) for i in range(2)),
    *(node(f"b{i}", "a", "2", 4) for i in range(2)),
    *(node(f"c{i}", "b", "1", 4) for i in range(4)),
]
"""Room for members of 2 CPUs: two in rack a/1, four in rack a/2, eight in rack b/1."""


def racks(places: dict[str, str]) -> set[str]:
    return {node_name[0] for node_name in places.values()}


@pytest.mark.parametrize(
    ("count", "annotations", "expected"),
    [
        pytest.param(2, {}, {"a"}, id="the smallest rack that holds it"),
        pytest.param(3, {}, {"b"}, id="one rack that holds it before two that do"),
        pytest.param(5, {}, {"c"}, id="the only rack that holds it"),
        pytest.param(9, {}, {"a", "c"}, id="no zone holds it: as few racks as can be"),
        pytest.param(4, {"required": "rack"}, {"b"}, id="required, met by a rack"),
        pytest.param(6, {"required": "zone"}, {"c"}, id="a zone is required, and one of its racks will do"),
        pytest.param(9, {"preferred": "rack"}, {"a", "c"}, id="preferred, met by none: anywhere"),
        pytest.param(6, {"preferred": "zone"}, {"a", "b"}, id="a preferred zone: narrower levels are not tried"),
        pytest.param(
            4, {"required": "zone", "preferred": "rack"}, {"b"}, id="a rack if there is one, a zone in any case"
        ),
    ],
)
def test_a_gang_goes_to_as_few_domains_as_it_can(
    world: NewWorld, count: int, annotations: dict[str, str], expected: set[str]
) -> None:
    made = started(world, TWO_RACKS)
    assert racks(ask(made, group(count, **annotations), count)) == expected


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        pytest.param({REQUIRED: "rack"}, set(), id="no rack holds it"),
        pytest.param({REQUIRED: "zone"}, {"c"}, id="a zone does"),
        pytest.param({PREFERRED: "rack"}, {"a", "c"}, id="preferred, and met by none"),
    ],
)
def test_the_pods_of_a_group_without_an_object_say_it(
    world: NewWorld, annotations: dict[str, str], expected: set[str]
) -> None:
    nodes = [*(node(f"a{i}", "a", "1", 2) for i in range(2)), *(node(f"c{i}", "b", str(i), 2) for i in range(3))]
    made = started(world, nodes)
    members = [light_member(f"m{i}", annotations) for i in range(3 if REQUIRED in annotations else 5)]
    made.create(*members)
    told = [made.filter(member) for member in members]
    assert {answer[0] for answer in told if len(answer) == 2} == expected
    if not expected:
        assert stop_of(made)[0] is UnschedulableReason.TOPOLOGY_UNSATISFIABLE


def light_member(name: str, annotations: dict[str, str]) -> corev1.Pod:
    minimum = "5" if PREFERRED in annotations else "3"
    labels = {LIGHTWEIGHT_NAME_LABEL: "g", LIGHTWEIGHT_MIN_AVAILABLE_LABEL: minimum}
    plain = pod(name, cpu="2", labels=labels)
    return replace(plain, metadata=replace(plain.metadata, annotations=annotations))


def test_a_level_is_found_by_its_label_too(world: NewWorld) -> None:
    made = world(TWO_RACKS)
    made.connect(topology=planner.Topology((TopologyLevel("cabinet", "rack"),)))
    assert racks(ask(made, group(2, required="rack"), 2)) == {"b"}


def test_members_of_a_domain_are_laid_out_as_configured(world: NewWorld) -> None:
    for packing, nodes in ((Packing.FEWEST_NODES, 2), (Packing.MOST_EVEN, 3)):
        made = started(world, [node(f"n{i}", "a", "1", 8) for i in range(3)], packing)
        places = ask(made, group(6, required="rack"), 6)
        assert len(set(places.values())) == nodes


def stop_of(world: World) -> tuple[UnschedulableReason, str]:
    last_diagnosis = world.plugin.manager.groups["default/g"].last_diagnosis
    assert last_diagnosis is not None
    return last_diagnosis.reason, last_diagnosis.message


@pytest.mark.parametrize(
    ("annotations", "reason", "message"),
    [
        pytest.param(
            {"required": "rack"},
            UnschedulableReason.TOPOLOGY_UNSATISFIABLE,
            "minMember of 9 does not fit: no single rack takes it: Insufficient cpu",
            id="room in two racks, not in one",
        ),
        pytest.param(
            {"required": "rak"},
            UnschedulableReason.TOPOLOGY_UNSATISFIABLE,
            'minMember of 9 does not fit: topology level "rak" is not configured: the key `topology` has the levels zone, rack',
            id="a level that there is not",
        ),
        pytest.param(
            {"preferred": "row"},
            UnschedulableReason.TOPOLOGY_UNSATISFIABLE,
            'minMember of 9 does not fit: topology level "row" is not configured: the key `topology` has the levels zone, rack',
            id="a level that there is not, though it were only preferred",
        ),
    ],
)
def test_what_cannot_be_met_is_said(
    world: NewWorld, annotations: dict[str, str], reason: UnschedulableReason, message: str
) -> None:
    made = started(world, TWO_RACKS)
    told = set(ask(made, group(9, **annotations), 9).values())
    assert told == {f"pod with pgName: default/g last failed in 3s, deny: {message}"}
    assert stop_of(made) == (reason, message)
    assert len(made.plugin.manager.slots) == 0


def test_an_annotation_that_is_put_right_has_the_gang_planned(world: NewWorld) -> None:
    made = started(world, TWO_RACKS)
    wrong, right = group(2, required="rak"), group(2, required="rack")
    ask(made, wrong, 2)
    made.plugin.on_pod_group(wrong, right)
    made.run_tasks()
    assert {name for name, _ in made.steered} == {"m0", "m1"}
    assert {node_name[0] for _, node_name in made.steered} == {"a"}


def test_the_rest_of_a_gang_comes_to_the_rack_where_it_is_already(world: NewWorld) -> None:
    """Two of three have their nodes: the last has to go beside them, though another rack is smaller."""
    made = started(world, TWO_RACKS)
    made.plugin.on_pod_group(None, group(3, required="rack"))
    for number in range(2):
        running = pod(f"m{number}", "g", cpu="2", node_name="c0")
        made.on_nodes[running.name] = running
        made.create(running)
    last = pod("m2", "g", cpu="2")
    made.create(last)
    assert made.filter(last)[0] == "c"


def test_the_example_of_the_documentation_is_a_configuration(tmp_path: Path) -> None:
    assert [level.name for level in configuration_in(OPERATIONS.read_text(), tmp_path).topology] == [
        "zone",
        "block",
        "rack",
    ]


@pytest.mark.parametrize(
    ("names", "asked", "required", "preferred"),
    [
        pytest.param(("zone", "rack"), AskedTopology(required="tier 1"), "rack", "", id="the first is the narrowest"),
        pytest.param(("zone", "rack"), AskedTopology(required="tier 2"), "zone", "", id="and then the wider ones"),
        pytest.param(("zone", "rack"), AskedTopology(required="tier 3"), "tier 3", "", id="one too many is refused"),
        pytest.param(("zone", "rack"), AskedTopology(preferred="tier 1"), "", "rack", id="a preferred one likewise"),
        pytest.param((), AskedTopology(preferred="tier 1"), "", "", id="where there are none nothing is preferred"),
        pytest.param(("zone", "rack"), AskedTopology(preferred="tier 3"), "", "", id="nor where there are too few"),
        pytest.param(("rack",), AskedTopology(preferred="layer rack"), "", "rack", id="a layer by its name"),
        pytest.param(("rack",), AskedTopology(preferred="layer b"), "", "", id="a layer that there is not"),
        pytest.param((), AskedTopology(required="tier 1"), "tier 1", "", id="but one that is required is refused"),
    ],
)
def test_levels_by_tier(names: tuple[str, ...], asked: AskedTopology, required: str, preferred: str) -> None:
    configured = planner.Topology(tuple(TopologyLevel(name, f"example.com/{name}") for name in names))
    found = topology_of(configured, [asked])
    assert (found.required, found.preferred) == (required, preferred)

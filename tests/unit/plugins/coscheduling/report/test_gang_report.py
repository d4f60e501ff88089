"""What the pages say of gangs with roles and of groups that start together; a reason for every pod that waits."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from msgspec import structs

from extender.api.corev1.pod import DEFAULT_SCHEDULER_NAME
from extender.cli import explain_text
from extender.plugins.coscheduling.report.gang_status import GangStatus
from tests.unit.plugins.coscheduling.conftest import World, node, pod_group
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, members, on_node

Make = Callable[..., World]


@pytest.fixture
def kube(world: Make) -> KubeScheduler:
    return KubeScheduler(world([node("n1", "3")]))


def status(kube: KubeScheduler, key: str = "default/g") -> GangStatus:
    found = kube.plugin.report.status(key)
    assert found is not None
    return found


def would_fit(kube: KubeScheduler, key: str = "default/g") -> list[str]:
    return [each.text for each in status(kube, key).relaxations]


def page(kube: KubeScheduler, key: str = "default/g") -> str:
    return "\n".join(explain_text.page(status(kube, key), datetime.now(UTC)))


def test_a_gang_with_roles_shows_how_many_of_each_there_are(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=3, roles="master=1,worker=2"))
    kube.create(*members(2, prefix="w", role="worker"))
    kube.run()
    assert "roles        master 0 of 1, worker 2 of 2" in page(kube)
    assert would_fit(kube) == ["1 pod more of role master"]


@pytest.mark.parametrize(
    ("roles", "cause"),
    [
        pytest.param("", "fewer pods exist than minMember of 3", id="of the group"),
        pytest.param("worker=3", "fewer pods of role worker exist than its minimum of 3", id="of a role"),
    ],
)
def test_pods_that_would_come_to_another_scheduler_do_not_count_and_are_told_of(
    roles: str, cause: str, kube: KubeScheduler
) -> None:
    kube.apply(group(minimum=3, roles=roles))
    stranger = member("w2", role="worker")
    stranger = structs.replace(stranger, spec=structs.replace(stranger.spec, scheduler_name="other"))
    kube.create(*members(2, prefix="w", role="worker"), stranger)
    kube.run()
    assert status(kube).gang.message == f"{cause}; not counted: 1 with another schedulerName"


@pytest.mark.parametrize(
    ("bound", "elsewhere", "message"),
    [
        pytest.param(
            2,
            (),
            "2 of minMember 3 run, and no other pod is to come to this scheduler",
            id="a part that another scheduler has bound",
        ),
        pytest.param(3, (), "", id="a gang that runs"),
        pytest.param(
            0, ("gang-schduler",), "pods name another scheduler: gang-schduler", id="a misspelt schedulerName"
        ),
        pytest.param(
            0,
            tuple(f"{name}" * 1000 for name in "abcde"),
            f"pods name another scheduler: {'a' * 63}, {'b' * 63}, {'c' * 63} and 2 more",
            id="many long names",
        ),
        pytest.param(1, ("x",), "1 of minMember 3 run, and no other pod is to come to this scheduler", id="both"),
    ],
)
def test_why_nothing_is_asked_about_a_gang_is_said_where_no_member_is_to_come(
    kube: KubeScheduler, bound: int, elsewhere: tuple[str, ...], message: str
) -> None:
    kube.world.connect(ours=lambda pod: pod.spec.scheduler_name == DEFAULT_SCHEDULER_NAME)
    kube.apply(group(minimum=3))
    kube.create(*(on_node(each, "n1") for each in members(bound)))
    for number, name in enumerate(elsewhere):
        stranger = member(f"x{number}")
        kube.create(structs.replace(stranger, spec=structs.replace(stranger.spec, scheduler_name=name)))
    said = status(kube).not_asked
    assert said.startswith(message)
    assert bool(said) == bool(message) == ("not asked" in page(kube))
    assert len(said) < 400


def test_a_role_that_does_not_fit_is_named_with_the_minimum_that_would(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=5, roles="master=1,worker=4"))
    kube.create(member("m", role="master"), *members(4, prefix="w", role="worker"))
    kube.run()
    said = status(kube)
    assert said.gang.message == "minMember of 5 does not fit: role worker: Insufficient cpu"
    assert would_fit(kube) == ["role worker 2 instead of 4", "1 more node with cpu 3, like n1"]


def test_a_group_shows_the_groups_it_starts_with_and_waits_for(kube: KubeScheduler) -> None:
    kube.apply(group("a", groups="b"))
    kube.create(*members(2, "a"))
    kube.run()
    assert status(kube, "default/a").starts_with == ("default/b",)
    assert "starts with  default/b" in page(kube, "default/a")
    assert would_fit(kube, "default/a") == [
        "what default/b waits for, or without naming it in gang-extender.dev/groups"
    ]


def test_a_unit_that_does_not_fit_says_whose_minimum_could_be_lower(kube: KubeScheduler) -> None:
    kube.apply(group("a", groups="b"), group("b"))
    kube.create(*members(2, "a"), *members(2, "b"))
    kube.run()
    for key, other in (("default/a", "default/b"), ("default/b", "default/a")):
        assert status(kube, key).gang.reason == "InsufficientResources"
        assert would_fit(kube, key) == [
            f"minMember of {key} 1 instead of 2",
            f"minMember of {other} 1 instead of 2",
            "1 more node with cpu 3, like n1",
        ]


def test_groups_that_have_started_are_shown_on_their_own(kube: KubeScheduler) -> None:
    kube.apply(group("a", 1, groups="b"), group("b"))
    kube.create(*members(1, "a"), *members(2, "b"))
    kube.run()
    assert (status(kube, "default/a").starts_with, status(kube, "default/a").gang.phase) == ((), "Bound")


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        pytest.param(lambda k: k.create(*members(1)), "PodGroupNotFound", id="no PodGroup"),
        pytest.param(lambda k: start(k, 0, 1), "InvalidPodGroup", id="minMember 0"),
        pytest.param(lambda k: start(k, 2, 1), "QuorumMissing", id="a member is missing"),
        pytest.param(lambda k: start(k, 4, 4), "InsufficientResources", id="no room"),
        pytest.param(lambda k: start(k, 1, 1, cpu=9), "InsufficientResources", id="refused before we are asked"),
        pytest.param(lambda k: min_resources(k), "MinResources", id="minResources"),
        pytest.param(lambda k: start(k, 2, 2, groups="x"), "CompanionNotReady", id="a companion is missing"),
        pytest.param(lambda k: behind(k), "ReservedForOthers", id="others have the room"),
    ],
)
def test_every_gang_that_waits_has_a_reason_a_message_and_a_place_in_line(
    prepare: Callable[[KubeScheduler], object], reason: str, kube: KubeScheduler
) -> None:
    prepare(kube)
    kube.run()
    said = status(kube)
    assert (said.gang.reason, said.gang.place) == (reason, 1)
    assert said.gang.message
    assert said.told
    (line,) = (each for each in kube.plugin.report.summaries() if each.name == "g")
    assert line.message == said.gang.message, "the list and the page have one source"
    if reason not in ("PodGroupNotFound", "InvalidPodGroup"):
        assert said.relaxations


def start(kube: KubeScheduler, minimum: int, count: int, cpu: int = 1, **annotations: str) -> None:
    kube.apply(group(minimum=minimum, **annotations))
    kube.create(*members(count, cpu=cpu))


def min_resources(kube: KubeScheduler) -> None:
    kube.plugin.on_pod_group(None, pod_group("g", 1, minResources={"cpu": "9"}))
    kube.create(member("p0"))


def behind(kube: KubeScheduler) -> None:
    """Gang o has its places, and its members are on their way."""
    kube.apply(group("o", 3))
    kube.create(*members(3, "o", gated=True))
    kube.world.run_tasks()
    kube.world.steered.clear()
    start(kube, 2, 2)

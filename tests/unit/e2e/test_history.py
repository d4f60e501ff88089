"""The checker that every e2e test ends with: what it lets pass, and that a bad history does not."""

from __future__ import annotations

import pytest

from tests.e2e.history import Amounts, Change, Seen, commit_seconds, seen, violations

ROOM: dict[str, Amounts] = {"node-1": {"cpu": 2000, "pods": 110_000}, "node-2": {"cpu": 8000, "pods": 3000}}


def pending(at: float, name: str, group: str = "default/web") -> Change:
    return Change(at, Seen(f"uid-{name}", f"default/{name}", group=group, requests={"cpu": 1000, "pods": 1000}))


def bound(at: float, name: str, node: str = "node-2", group: str = "default/web", finished: bool = False) -> Change:
    requests = {"cpu": 1000, "pods": 1000}
    return Change(at, Seen(f"uid-{name}", f"default/{name}", node, group, requests=requests, finished=finished))


def deleted(at: float, name: str, node: str = "node-2", group: str = "default/web") -> Change:
    return Change(at, bound(at, name, node, group).pod, deleted=True)


WHOLE = [bound(0, "a"), bound(0.01, "b"), bound(0.02, "c")]


@pytest.mark.parametrize(
    ("history", "options", "expected"),
    [
        pytest.param([], {}, [], id="nothing ever happened"),
        pytest.param([pending(0, "a"), pending(0, "b")], {}, [], id="a gang that waits whole"),
        pytest.param(WHOLE, {}, [], id="a gang bound within a commit"),
        pytest.param(
            [bound(0, "a"), bound(0, "b")], {}, ["default/web: 2 of minMember 3 bound"], id="a fraction at the end"
        ),
        pytest.param(
            [bound(0, "a"), bound(0, "b"), bound(1.5, "c")],
            {},
            ["default/web: 2 of minMember 3 bound (default/a, default/b) for 1.50 s"],
            id="a fraction that was completed too late",
        ),
        pytest.param(
            [bound(0, "a"), bound(0, "b"), bound(14, "c")],
            {"killed": True},
            [],
            id="a killed process may take its time to come back",
        ),
        pytest.param(
            [bound(0, "a"), bound(0, "b"), bound(16, "c")],
            {"killed": True},
            ["default/web: 2 of minMember 3 bound"],
            id="a killed process that takes longer than that",
        ),
        pytest.param(
            [bound(0, "a"), bound(0, "b"), bound(24, "c")],
            {"killed": True, "restarts": [10]},
            [],
            id="its time counts from when it is back",
        ),
        pytest.param(
            [bound(20, "a"), bound(20, "b"), bound(36, "c")],
            {"killed": True, "restarts": [10, 40]},
            ["default/web: 2 of minMember 3 bound"],
            id="not where it was back before the gang, or after",
        ),
        pytest.param(
            [bound(0, "a"), deleted(5, "a"), *[bound(9, name) for name in "bcd"]],
            {},
            ["default/web: 1 of minMember 3 bound (default/a) for 5.00 s"],
            id="a fraction long ago, mended since",
        ),
        pytest.param(
            [bound(0, "a"), deleted(0.5, "a")], {}, [], id="a deleted pod no longer counts, and the fraction was short"
        ),
        pytest.param(
            [*WHOLE, deleted(5, "a")], {}, ["default/web: 2 of minMember 3 bound"], id="a victim taken out of a gang"
        ),
        pytest.param([*WHOLE, deleted(5, "a")], {"excused": ["default/a"]}, [], id="a member that the test deletes"),
        pytest.param(
            [*WHOLE, deleted(5, "a"), deleted(8, "b")],
            {"excused": ["default/a"]},
            ["default/web: 1 of minMember 3 bound (default/c) at the end"],
            id="a victim taken out of what is left of a gang",
        ),
        pytest.param(
            [*WHOLE, deleted(5, "a"), deleted(8, "b")],
            {"excused": ["default/a"], "loose": {"default/web": 0}},
            [],
            id="once-satisfied: no member needs the others of what is left of a gang",
        ),
        pytest.param(
            [*WHOLE, bound(0, "d", "node-1"), deleted(5, "a"), deleted(8, "b")],
            {"excused": ["default/a"], "loose": {"default/web": 4}},
            [],
            id="once-satisfied: nor where that is as many as it asked for once",
        ),
        pytest.param(
            [*WHOLE, bound(0, "d", "node-1"), deleted(5, "a"), deleted(8, "b"), deleted(8, "c")],
            {"excused": ["default/a"], "loose": {"default/web": 3}},
            ["default/web: 1 of minMember 3 bound (default/d) at the end"],
            id="once-satisfied: not where that is as many as it ever asked for",
        ),
        pytest.param(
            [*WHOLE, deleted(8, "b")],
            {"loose": {"default/web": 4}},
            [],
            id="once-satisfied: a victim taken out of a gang that asks for more than it has",
        ),
        pytest.param(
            [*WHOLE, deleted(8, "b")],
            {"loose": {"default/web": 3}},
            ["default/web: 2 of minMember 3 bound (default/a, default/c) at the end"],
            id="once-satisfied: a victim taken out of a gang that asks for as many as it has",
        ),
        pytest.param(
            [*WHOLE, deleted(8, "b")],
            {"excused": ["default/a"], "loose": {"default/web": 0}},
            ["default/web: 2 of minMember 3 bound (default/a, default/c) at the end"],
            id="once-satisfied: a victim taken out of a whole gang",
        ),
        pytest.param(
            [bound(0, "a"), bound(0, "b"), deleted(0.1, "b")],
            {"excused": ["default/b"], "loose": {"default/web": 4}},
            ["default/web: 2 of minMember 3 bound (default/a) at the end"],
            id="once-satisfied: a gang that has never been whole",
        ),
        pytest.param(
            [*WHOLE, bound(0, "d", "node-1"), deleted(5, "a"), deleted(5.4, "b")],
            {"excused": ["default/a"]},
            [],
            id="a victim that could be spared when that was decided",
        ),
        pytest.param(
            [*WHOLE, deleted(5, "a"), deleted(8, "b"), deleted(8.1, "c")],
            {"excused": ["default/a"]},
            [],
            id="all that is left of it",
        ),
        pytest.param(
            [*[deleted(at, name) for at, name in enumerate("abc")], bound(60, "d")],
            {"excused": ["default/a", "default/b", "default/c"]},
            ["default/web: 1 of minMember 3 bound (default/d) at the end"],
            id="a member that starts alone, long after the test has deleted the others",
        ),
        pytest.param(
            [*[pending(0, name) for name in "abc"], deleted(5, "c"), bound(5.1, "a"), bound(5.1, "b")],
            {"excused": ["default/c"]},
            [],
            id="a member that the test deletes while its gang's bindings are on their way",
        ),
        pytest.param(
            [pending(0, "c"), bound(0, "a"), bound(0, "b"), *[deleted(0.1, name) for name in "cab"]],
            {"excused": ["default/a", "default/b", "default/c"]},
            [],
            id="a gang that the test deletes in mid-commit",
        ),
        pytest.param(
            [*WHOLE, deleted(5, "a"), deleted(5.1, "b"), deleted(5.2, "c")], {}, [], id="a whole gang that goes"
        ),
        pytest.param(
            [*WHOLE, bound(60, "a", finished=True), bound(90, "b", finished=True)],
            {},
            [],
            id="members that finish one by one have been bound all the same",
        ),
        pytest.param(
            [*WHOLE, *[bound(60, name, finished=True) for name in "abc"], bound(120, "d")],
            {},
            ["default/web: 1 of minMember 3 bound (default/d) at the end"],
            id="a member that starts alone, long after the others have finished",
        ),
        pytest.param(
            [*WHOLE, bound(50, "a", finished=True), deleted(60, "b"), deleted(60.1, "c"), deleted(90, "a")],
            {},
            [],
            id="what is left of a gang goes whole, beside one that has finished",
        ),
        pytest.param(
            [bound(0, "a"), bound(0, "b"), deleted(0.1, "b"), Change(0.2, Seen("uid-new", "default/b", "", "default/web"))],
            {},
            ["default/web: 1 of minMember 3 bound (default/a) at the end"],
            id="a pod made anew under the same name is another pod",
        ),
        pytest.param([bound(0, "a", group="")], {}, [], id="a plain pod"),
    ],
)  # fmt: skip
def test_all_or_nothing(history: list[Change], options: dict[str, object], expected: list[str]) -> None:
    found = violations(history, {"default/web": 3}, ROOM, ended=100, **options)  # type: ignore[arg-type]
    assert len(found) == len(expected)
    for violation, beginning in zip(found, expected):
        assert violation.startswith(beginning)


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        pytest.param([bound(0, "a", "node-1", ""), bound(0, "b", "node-1", "")], [], id="exactly full"),
        pytest.param(
            [bound(0, name, "node-1", "") for name in "abc"],
            ["node node-1: 3 cpu of 2 once default/c was bound"],
            id="a pod too many",
        ),
        pytest.param(
            [*[bound(0, name, "node-1", "") for name in "abc"], deleted(1, "a", "node-1", "")],
            ["node node-1: 3 cpu of 2 once default/c was bound"],
            id="a pod too many for a moment",
        ),
        pytest.param(
            [bound(0, "a", "node-1", ""), bound(0, "b", "node-1", ""), deleted(1, "a", "node-1", ""), bound(1, "c", "node-1", "")],
            [],
            id="a place that was freed first",
        ),
        pytest.param(
            [bound(0, "a", "node-1", ""), bound(0, "b", "node-1", ""), bound(1, "a", "node-1", "", True), bound(1, "c", "node-1", "")],
            [],
            id="a finished pod uses no room",
        ),
        pytest.param(
            [bound(0, name, "node-2", "") for name in "abcd"],
            ["node node-2: 4 pods of 3 once default/d was bound"],
            id="more pods than the node takes",
        ),
        pytest.param([bound(0, "a", "node-9", "")], [], id="a node that is gone has no room to compare with"),
    ],
)  # fmt: skip
def test_no_node_over_allocatable(history: list[Change], expected: list[str]) -> None:
    assert violations(history, {}, ROOM, ended=100) == expected


def test_a_group_without_an_object_is_judged_by_its_pods_own_label() -> None:
    labels = {
        "pod-group.scheduling.sigs.k8s.io/name": "light",
        "pod-group.scheduling.sigs.k8s.io/min-available": "2",
    }
    pod = {
        "metadata": {"name": "a", "namespace": "default", "uid": "uid-a", "labels": labels},
        "spec": {"nodeName": "node-1", "containers": [{"resources": {"requests": {"cpu": "500m"}}}, {}]},
    }
    assert seen(pod).requests == {"cpu": 500, "pods": 1000}
    assert violations([Change(0, seen(pod))], {}, ROOM, ended=9) == [
        "default/light: 1 of minMember 2 bound (default/a) at the end, for 9.00 s"
    ]


def test_a_commit_takes_a_second_and_ten_milliseconds_a_member() -> None:
    assert commit_seconds(512, killed=False) == pytest.approx(6.12)
    assert commit_seconds(512, killed=True) == 15


def test_a_pod_names_its_group_by_label_or_in_its_spec() -> None:
    spec = {"containers": [], "schedulingGroup": {"podGroupName": "in-tree"}}
    metadata = {"name": "a", "namespace": "default", "uid": "a"}
    assert seen({"metadata": metadata, "spec": spec}).group == "default/in-tree"
    labelled = {**metadata, "labels": {"scheduling.x-k8s.io/pod-group": "by-label"}}
    assert seen({"metadata": labelled, "spec": spec}).group == "default/by-label"

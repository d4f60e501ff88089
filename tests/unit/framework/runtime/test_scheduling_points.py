"""PreEnqueue to PostFilter: what becomes of each code.

kube-scheduler: TestPreEnqueuePlugins, TestRunPreFilterPlugins, TestRunPreFilterExtensionAddPod and RemovePod,
TestFilterPlugins, TestFilterPluginsWithNominatedPods, TestPostFilterPlugins
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from extender.api import corev1
from extender.framework.cycle_state import CycleState
from extender.framework.interface import NodeToStatus, NominatingMode, PostFilterResult, QueuedPodInfo
from extender.framework.status import SUCCESS, Code, Status, unresolvable, unschedulable
from tests.objects import make_node, make_pod
from tests.unit.framework.runtime.fakes import (
    NODES,
    POD,
    REASON,
    FakePlugin,
    Nominations,
    make_dependencies,
    make_framework,
)

E, U, UU, SK, W, P = (
    Code.ERROR,
    Code.UNSCHEDULABLE,
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
    Code.SKIP,
    Code.WAIT,
    Code.PENDING,
)


@pytest.mark.parametrize(
    ("codes", "expected", "asked"),
    [
        pytest.param([], SUCCESS, 0, id="no plugin: not gated"),
        pytest.param([Code.SUCCESS, Code.SUCCESS], SUCCESS, 2, id="all succeed: not gated"),
        pytest.param([UU, U], Status(UU, (REASON,), "p0"), 1, id="the first refusal gates"),
        pytest.param([Code.SUCCESS, E], Status(E, (REASON,), "p1"), 2, id="an error gates"),
        pytest.param([SK], Status(SK, (REASON,), "p0"), 1, id="a skip gates"),
        pytest.param([W], Status(W, (REASON,), "p0"), 1, id="a wait gates"),
        pytest.param([P], Status(P, (REASON,), "p0"), 1, id="a pending gates"),
    ],
)
def test_pre_enqueue(codes: list[Code], expected: Status, asked: int) -> None:
    plugins = [FakePlugin(f"p{i}", pre_enqueue=code) for i, code in enumerate(codes)]
    assert make_framework("pre_enqueue", *plugins).run_pre_enqueue_plugins(POD) == expected
    assert sum(len(plugin.calls) for plugin in plugins) == asked


def test_the_queue_sort_of_the_profile_decides_which_pod_is_first() -> None:
    framework = make_framework("filter")
    older, newer = QueuedPodInfo(make_pod().info(), 1.0), QueuedPodInfo(make_pod().info(), 2.0)
    assert framework.less(older, newer)
    assert not framework.less(newer, older)


def pre_filter_error(plugin: str, text: str = REASON) -> Status:
    return Status(E, (f'running PreFilter plugin "{plugin}": {text}',), plugin)


@pytest.mark.faults
@pytest.mark.parametrize(
    ("plugins", "expected", "skipped"),
    [
        pytest.param([FakePlugin("a"), FakePlugin("b")], SUCCESS, set(), id="all succeed"),
        pytest.param(
            [FakePlugin("a"), FakePlugin("b", pre_filter=E)],
            pre_filter_error("b"),
            set(),
            id="an error after a success",
        ),
        pytest.param(
            [FakePlugin("a", pre_filter=SK), FakePlugin("b", pre_filter=E)],
            pre_filter_error("b"),
            {"a"},
            id="an error after a skip: the skip is noted all the same",
        ),
        pytest.param([FakePlugin(name, pre_filter=SK) for name in "abc"], SUCCESS, {"a", "b", "c"}, id="all skip"),
        pytest.param(
            [FakePlugin("a", pre_filter=SK), FakePlugin("b"), FakePlugin("c", pre_filter=SK)],
            SUCCESS,
            {"a", "c"},
            id="some skip",
        ),
        pytest.param(
            [FakePlugin("a", pre_filter=U), FakePlugin("b", pre_filter=SK)],
            unschedulable(REASON, plugin="a"),
            {"b"},
            id="after an unschedulable the others run, for preemption's sake",
        ),
        pytest.param(
            [FakePlugin("a", pre_filter=UU), FakePlugin("b", pre_filter=SK)],
            unresolvable(REASON, plugin="a"),
            set(),
            id="an unresolvable ends it",
        ),
        pytest.param(
            [FakePlugin("a", narrowed=()), FakePlugin("b", pre_filter=SK)],
            unresolvable("node(s) didn't satisfy plugin a"),
            set(),
            id="no node left by one plugin ends it",
        ),
        pytest.param(
            [FakePlugin("b", narrowed=["n1"]), FakePlugin("a", narrowed=["n2"])],
            unresolvable("node(s) didn't satisfy plugin(s) [a b] simultaneously"),
            set(),
            id="no node left by two plugins together",
        ),
        pytest.param(
            [FakePlugin("a", pre_filter=U), FakePlugin("b", pre_filter=U)],
            unschedulable(REASON, plugin="b"),
            set(),
            id="of two unschedulable the last is returned",
        ),
        pytest.param([FakePlugin("a", pre_filter=P)], pre_filter_error("a"), set(), id="pending is an error here"),
        pytest.param([FakePlugin("a", pre_filter=W)], pre_filter_error("a"), set(), id="wait is an error here"),
        pytest.param(
            [FakePlugin("a", raises={"pre_filter": KeyError("k")})],
            pre_filter_error("a", "KeyError: 'k'"),
            set(),
            id="an exception is an error",
        ),
    ],
)
def test_pre_filter(plugins: list[FakePlugin], expected: Status, skipped: set[str]) -> None:
    state = CycleState()
    _, status, _ = make_framework("pre_filter", *plugins).run_pre_filter_plugins(state, POD, NODES)
    assert status == expected
    assert state.skip_filter_plugins == skipped


def test_pre_filter_results_are_intersected_and_their_plugins_named() -> None:
    plugins = [FakePlugin("a", narrowed=["n1", "n2"]), FakePlugin("b"), FakePlugin("c", narrowed=["n2", "n3"])]
    result, status, narrowing = make_framework("pre_filter", *plugins).run_pre_filter_plugins(CycleState(), POD, NODES)
    assert status.success
    assert result is not None
    assert result.node_names == frozenset({"n2"})
    assert narrowing == {"a", "c"}


def test_without_narrowing_all_nodes_are_left() -> None:
    result, _, narrowing = make_framework("pre_filter", FakePlugin()).run_pre_filter_plugins(CycleState(), POD, NODES)
    assert result is not None
    assert result.all_nodes
    assert narrowing == frozenset()


def test_a_plugin_that_skips_narrows_nothing() -> None:
    plugin = FakePlugin("a", narrowed=(), pre_filter=SK)
    result, status, _ = make_framework("pre_filter", plugin).run_pre_filter_plugins(CycleState(), POD, NODES)
    assert status.success
    assert result is not None
    assert result.all_nodes


@pytest.mark.parametrize("method", ["add_pod", "remove_pod"])
@pytest.mark.parametrize(
    ("codes", "skipped", "expected", "asked"),
    [
        pytest.param([Code.SUCCESS, Code.SUCCESS], set(), "", 2, id="all succeed"),
        pytest.param([Code.SUCCESS, E], set(), "p1", 2, id="an error"),
        pytest.param([U, Code.SUCCESS], set(), "p0", 1, id="any other code is an error and ends it"),
        pytest.param([Code.SUCCESS, E], {"p1"}, "", 1, id="a plugin that skipped is not asked"),
    ],
)
def test_pre_filter_extensions(method: str, codes: list[Code], skipped: set[str], expected: str, asked: int) -> None:
    plugins = [FakePlugin(f"p{i}", answers={method: code}) for i, code in enumerate(codes)]
    framework = make_framework("pre_filter", *plugins)
    state = CycleState()
    state.skip_filter_plugins = frozenset(skipped)
    run = getattr(framework, f"run_pre_filter_extension_{method}")
    what = {"add_pod": "AddPod", "remove_pod": "RemovePod"}[method]
    text = f'running {what} on PreFilter plugin "{expected}": {REASON}'
    assert run(state, POD, make_pod().name("other").info(), NODES[0]) == (Status(E, (text,)) if expected else SUCCESS)
    assert sum(len(plugin.calls) for plugin in plugins) == asked


def filter_error(plugin: str, text: str = REASON) -> Status:
    return Status(E, (f'running "{plugin}" filter plugin: {text}',), plugin)


@pytest.mark.parametrize(
    ("codes", "skipped", "expected"),
    [
        pytest.param([Code.SUCCESS], set(), SUCCESS, id="success"),
        pytest.param([E], set(), filter_error("p0"), id="error"),
        pytest.param([U], set(), unschedulable(REASON, plugin="p0"), id="unschedulable"),
        pytest.param([UU], set(), unresolvable(REASON, plugin="p0"), id="unresolvable"),
        pytest.param([P], set(), Status(P, (REASON,), "p0"), id="pending is a refusal"),
        pytest.param([SK], set(), filter_error("p0"), id="skip is an error"),
        pytest.param([W], set(), filter_error("p0"), id="wait is an error"),
        pytest.param([E, E], set(), filter_error("p0"), id="two errors: the first"),
        pytest.param([U, U], set(), unschedulable(REASON, plugin="p0"), id="two unschedulable: the first"),
        pytest.param([U, UU], set(), unschedulable(REASON, plugin="p0"), id="unschedulable hides unresolvable"),
        pytest.param([Code.SUCCESS, Code.SUCCESS], set(), SUCCESS, id="two successes"),
        pytest.param([Code.SUCCESS, E], {"p1"}, SUCCESS, id="a plugin that skipped in PreFilter is not asked"),
        pytest.param([E, Code.SUCCESS], set(), filter_error("p0"), id="error, then success"),
        pytest.param([Code.SUCCESS, E], set(), filter_error("p1"), id="success, then error"),
        pytest.param([Code.SUCCESS, U], set(), unschedulable(REASON, plugin="p1"), id="success, then unschedulable"),
    ],
)
def test_filter(codes: list[Code], skipped: set[str], expected: Status) -> None:
    framework = make_framework("filter", *(FakePlugin(f"p{i}", filter=code) for i, code in enumerate(codes)))
    state = CycleState()
    state.skip_filter_plugins = frozenset(skipped)
    assert framework.run_filter_plugins(state, POD, NODES[0]) == expected


@pytest.mark.faults
def test_a_filter_that_raises_is_an_error() -> None:
    framework = make_framework("filter", FakePlugin("a", raises={"filter": ValueError("no")}))
    assert framework.run_filter_plugins(CycleState(), POD, NODES[0]) == filter_error("a", "ValueError: no")


LOW = make_pod().name("low").priority(10).obj()
HIGH = make_pod().name("high").priority(100).obj()


@pytest.mark.parametrize(
    ("pod", "nominated", "codes", "expected", "passes"),
    [
        pytest.param(LOW, [], {}, SUCCESS, [["resident"]], id="no pod nominated: one pass"),
        pytest.param(
            LOW, [HIGH], {}, SUCCESS, [["resident", "high"], ["resident"]], id="all succeed with and without the other"
        ),
        pytest.param(
            LOW,
            [HIGH],
            {"add_pod": E},
            Status(E, (f'running AddPod on PreFilter plugin "a": {REASON}',)),
            [],
            id="AddPod fails: no pass",
        ),
        pytest.param(
            LOW,
            [HIGH],
            {"filter": E},
            filter_error("a"),
            [["resident", "high"]],
            id="the first pass fails: it is final",
        ),
        pytest.param(
            LOW,
            [HIGH],
            {"filter": U},
            unschedulable(REASON, plugin="a"),
            [["resident", "high"]],
            id="the first pass refuses: it is final",
        ),
        pytest.param(
            HIGH, [LOW], {"add_pod": U}, SUCCESS, [["resident"]], id="one of lower priority is not taken into account"
        ),
        pytest.param(
            LOW,
            [make_pod().name("equal").priority(10).obj()],
            {},
            SUCCESS,
            [["resident", "equal"], ["resident"]],
            id="one of equal priority is",
        ),
        pytest.param(LOW, [LOW], {}, SUCCESS, [["resident"]], id="the pod's own nomination is not"),
        pytest.param(
            LOW,
            [HIGH, make_pod().name("lower").priority(1).obj(), make_pod().name("other").priority(11).obj()],
            {},
            SUCCESS,
            [["resident", "high", "other"], ["resident"]],
            id="of several those that count are there together",
        ),
    ],
)
def test_filter_with_nominated_pods(
    pod: corev1.Pod, nominated: Sequence[corev1.Pod], codes: dict[str, Code], expected: Status, passes: list[list[str]]
) -> None:
    plugin = FakePlugin("a", answers=codes)
    dependencies = make_dependencies(nominator=Nominations({"n1": nominated}))
    framework = make_framework("filter", plugin, dependencies=dependencies)
    framework.pre_filter_plugins = [plugin]
    node = make_node().name("n1").info(make_pod().name("resident").obj())
    state = CycleState()
    assert framework.run_filter_plugins_with_nominated_pods(state, pod, node) == expected
    assert plugin.seen_pods == passes
    assert [info.pod.name for info in node.pods] == ["resident"]


def test_the_second_pass_decides_where_the_first_succeeds() -> None:
    plugin = FakePlugin("a")
    framework = make_framework("filter", plugin, dependencies=make_dependencies(nominator=Nominations({"n1": [HIGH]})))
    outcomes = iter([SUCCESS, unschedulable("only with the other")])
    plugin.filter = lambda state, pod, node: next(outcomes)  # type: ignore[method-assign]
    status = framework.run_filter_plugins_with_nominated_pods(CycleState(), LOW, make_node().name("n1").info())
    assert status == unschedulable("only with the other", plugin="a")


NOMINATION = PostFilterResult("n1", NominatingMode.OVERRIDE)
NOOP = PostFilterResult()


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        pytest.param([FakePlugin("a", result=NOMINATION)], (NOMINATION, SUCCESS), id="one makes room"),
        pytest.param(
            [FakePlugin("a", post_filter=U), FakePlugin("b", result=NOMINATION)],
            (NOMINATION, SUCCESS),
            id="the second makes room",
        ),
        pytest.param(
            [FakePlugin("a", result=NOMINATION), FakePlugin("b", post_filter=U)],
            (NOMINATION, SUCCESS),
            id="the first makes room: the second is not asked",
        ),
        pytest.param(
            [FakePlugin("a", post_filter=E), FakePlugin("b")], (None, Status(E, (REASON,), "a")), id="an error ends it"
        ),
        pytest.param(
            [FakePlugin("a", post_filter=U), FakePlugin("b", post_filter=UU)],
            (None, unresolvable(REASON, plugin="b")),
            id="unresolvable ends it",
        ),
        pytest.param(
            [FakePlugin("a", post_filter=U), FakePlugin("b", post_filter=U)],
            (None, unschedulable(REASON, REASON, plugin="a")),
            id="none makes room: all reasons, the first plugin",
        ),
        pytest.param(
            [FakePlugin("a", post_filter=P), FakePlugin("b", post_filter=U)],
            (None, unschedulable(REASON, REASON, plugin="a")),
            id="pending is collected like unschedulable",
        ),
        pytest.param(
            [FakePlugin("a", post_filter=U, result=NOMINATION), FakePlugin("b", post_filter=U, result=NOOP)],
            (NOMINATION, unschedulable(REASON, REASON, plugin="a")),
            id="the last nomination that says something is kept",
        ),
        pytest.param([FakePlugin("a", post_filter=SK)], (None, Status(E, (REASON,), "a")), id="skip is an error"),
        pytest.param([FakePlugin("a", post_filter=W)], (None, Status(E, (REASON,), "a")), id="wait is an error"),
    ],
)
def test_post_filter(plugins: list[FakePlugin], expected: tuple[PostFilterResult | None, Status]) -> None:
    framework = make_framework("post_filter", *plugins)
    assert framework.run_post_filter_plugins(CycleState(), POD, NodeToStatus({}, unresolvable())) == expected


def test_what_there_is_at_a_point_can_be_asked() -> None:
    framework = make_framework("filter", FakePlugin("a"))
    state = CycleState()
    assert framework.has_filter_plugins()
    assert framework.has_filter_plugins_left(state)
    state.skip_filter_plugins = frozenset({"a"})
    assert not framework.has_filter_plugins_left(state)
    assert not framework.has_post_filter_plugins()
    assert not framework.has_score_plugins()


def test_runs_are_reported_with_the_code_that_they_ended_with() -> None:
    seen = []
    dependencies = make_dependencies(record=lambda point, code, profile, seconds: seen.append((point, code, profile)))
    framework = make_framework("pre_filter", FakePlugin("a", pre_filter=U), dependencies=dependencies)
    framework.run_pre_filter_plugins(CycleState(), POD, NODES)
    framework.run_reserve_plugins_unreserve(CycleState(), POD, "n1")
    assert seen == [("PreFilter", "Unschedulable", "test"), ("Unreserve", "Success", "test")]

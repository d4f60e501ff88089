"""The cache's state machine, edge by edge, and what each edge does to the nodes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.api import corev1
from extender.backend.cache.cache import Cache, CacheError
from extender.backend.cache.snapshot import Snapshot
from extender.backend.cache.transitions import TRANSITIONS, Action, PodState
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from tests.unit.backend.objects import FakeClock, a_node, a_pod

POD = a_pod("p", "n1")
TTL = 30.0


def a_cache_in(state: PodState, clock: FakeClock | None = None) -> Cache:
    cache = Cache(TTL, clock or FakeClock())
    cache.add_node(a_node("n1"))
    if state is PodState.ASSUMED:
        cache.assume_pod(POD)
    elif state is PodState.ADDED:
        cache.add_pod(POD)
    return cache


def state_of(cache: Cache, pod: corev1.Pod = POD) -> PodState:
    if cache.get_pod(pod) is None:
        return PodState.INITIAL
    return PodState.ASSUMED if cache.is_assumed_pod(pod) else PodState.ADDED


ACTIONS: dict[Action, Callable[[Cache], object]] = {
    Action.ASSUME: lambda cache: cache.assume_pod(POD),
    Action.FORGET: lambda cache: cache.forget_pod(POD),
    Action.FINISH_BINDING: lambda cache: cache.finish_binding(POD),
    Action.EXPIRE: lambda cache: cache.cleanup_assumed_pods(),
    Action.ADD: lambda cache: cache.add_pod(POD),
    Action.UPDATE: lambda cache: cache.update_pod(POD, POD),
    Action.REMOVE: lambda cache: cache.remove_pod(POD),
}
LEGAL = [(state, action, to) for (state, action), to in TRANSITIONS.items() if isinstance(to, PodState)]
REFUSED = [(state, action, to) for (state, action), to in TRANSITIONS.items() if isinstance(to, str)]


@pytest.mark.parametrize(
    ("state", "action", "to"), [pytest.param(*row, id=f"{row[0].value} {row[1].value}") for row in LEGAL]
)
def test_legal_edge_ends_in_its_state_and_keeps_the_sums_right(state: PodState, action: Action, to: PodState) -> None:
    clock = FakeClock()
    cache = a_cache_in(state, clock)
    if action is Action.EXPIRE:
        cache.finish_binding(POD)
        clock.step(TTL + 0.1)
    ACTIONS[action](cache)
    assert state_of(cache) is to
    requested = cache.snapshot().get("n1").requested.milli_cpu
    assert requested == (0 if to is PodState.INITIAL else 100)
    assert cache.pod_count() == (0 if to is PodState.INITIAL else 1)
    assert cache.assumed_uids() == ({POD.uid} if to is PodState.ASSUMED else set())
    assert cache.assumed_count() == len(cache.assumed_uids())


@pytest.mark.parametrize(
    ("state", "action", "words"), [pytest.param(*row, id=f"{row[0].value} {row[1].value}") for row in REFUSED]
)
def test_missing_edge_is_refused_in_kube_schedulers_words_and_changes_nothing(
    state: PodState, action: Action, words: str
) -> None:
    cache = a_cache_in(state)
    before = cache.snapshot()
    with pytest.raises(CacheError) as caught:
        ACTIONS[action](cache)
    assert str(caught.value) == words.format("uid-p", "default/p")
    assert state_of(cache) is state
    assert cache.snapshot() is before


def test_every_pair_of_state_and_action_is_decided() -> None:
    undecided = {(state, action) for state in PodState for action in Action} - set(TRANSITIONS)
    assert undecided == {(PodState.INITIAL, Action.EXPIRE), (PodState.ADDED, Action.EXPIRE)}  # nothing asks for them


def test_forget_names_both_nodes_when_they_differ() -> None:
    cache = a_cache_in(PodState.ASSUMED)
    with pytest.raises(CacheError, match=r"pod uid-p\(default/p\) was assumed on n2 but assigned to n1"):
        cache.forget_pod(a_pod("p", "n2"))
    assert state_of(cache) is PodState.ASSUMED


def test_assume_takes_the_node_beside_the_pod_and_forget_needs_none() -> None:
    cache = a_cache_in(PodState.INITIAL)
    assumed = cache.assume_pod(a_pod("p"), "n1")
    assert assumed.node_name == "n1"
    assert cache.pod_by_uid("uid-p") == assumed
    cache.forget_pod(a_pod("p"))
    assert state_of(cache) is PodState.INITIAL


def test_assume_without_any_node_is_refused() -> None:
    with pytest.raises(CacheError, match="without a node"):
        Cache().assume_pod(a_pod("p"))


def test_an_assumed_pod_that_is_seen_elsewhere_counts_where_it_is_seen(caplog: pytest.LogCaptureFixture) -> None:
    cache = a_cache_in(PodState.ASSUMED)
    cache.add_node(a_node("n2"))
    cache.add_pod(a_pod("p", "n2"))
    snapshot = cache.snapshot()
    assert (len(snapshot.get("n1").pods), len(snapshot.get("n2").pods)) == (0, 1)
    assert "different node than it was assumed" in caplog.text


def test_remove_goes_by_the_cached_node_whatever_the_event_says() -> None:
    cache = a_cache_in(PodState.ADDED)
    cache.add_node(a_node("n2"))
    cache.remove_pod(a_pod("p", "n2"))
    assert cache.snapshot().get("n1").pods == []


def test_update_moves_the_pod_to_the_end_of_its_nodes_list() -> None:
    cache = a_cache_in(PodState.ADDED)
    cache.add_pod(a_pod("q", "n1"))
    cache.update_pod(POD, a_pod("p", "n1", cpu="300m"))
    node = cache.snapshot().get("n1")
    assert [info.pod.name for info in node.pods] == ["q", "p"]
    assert node.requested.milli_cpu == 400


def test_of_a_pod_that_is_removed_it_is_remembered_no_longer_that_it_was_assumed() -> None:
    cache = a_cache_in(PodState.ASSUMED)
    cache.add_pod(a_pod("p", "n1"))
    assert cache.was_assumed(POD)
    cache.remove_pod(a_pod("p", "n1"))
    assert not cache.was_assumed(POD)


def test_a_pod_that_was_updated_may_be_updated_again_and_removed() -> None:
    cache = a_cache_in(PodState.ADDED)
    for cpu in ("200m", "300m"):
        cache.update_pod(POD, a_pod("p", "n1", cpu=cpu))
    assert cache.snapshot().get("n1").requested.milli_cpu == 300
    cache.remove_pod(POD)
    assert state_of(cache) is PodState.INITIAL


@pytest.mark.parametrize(
    ("pods", "milli_cpu", "non_zero", "ports"),
    [
        pytest.param([a_pod("a", "n1", port=80)], 100, (100, 200 << 20), 1, id="one pod"),
        pytest.param(
            [a_pod("a", "n1", port=80), a_pod("b", "n1", cpu="200m", port=8080)],
            300,
            (300, 400 << 20),
            2,
            id="two pods add up",
        ),
        pytest.param(
            [a_pod("a", "n1", cpu="0", requests={"memory": "1Gi"})], 0, (0, 1 << 30), 0, id="an explicit zero is zero"
        ),
        pytest.param(
            [a_pod("a", "n1", port=80), a_pod("b", "n1", port=80)],
            200,
            (200, 400 << 20),
            1,
            id="ports are a set: the same one twice is one",
        ),
    ],
)
def test_assumed_pods_sum_up_and_vanish_when_forgotten(
    pods: list[corev1.Pod], milli_cpu: int, non_zero: tuple[int, int], ports: int
) -> None:
    cache = a_cache_in(PodState.INITIAL)
    for pod in pods:
        cache.assume_pod(pod)
    node = cache.snapshot().get("n1")
    assert node.requested.milli_cpu == milli_cpu
    assert (node.non_zero_milli_cpu, node.non_zero_memory) == non_zero
    assert len(node.used_ports) == ports
    for pod in pods:
        cache.forget_pod(pod)
    node = cache.snapshot().get("n1")
    assert (node.requested.milli_cpu, node.non_zero_milli_cpu, len(node.used_ports)) == (0, 0, 0)


@pytest.mark.parametrize(
    ("ttl", "finished", "seconds", "gone"),
    [
        pytest.param(TTL, True, TTL, False, id="at the deadline it stays"),
        pytest.param(TTL, True, TTL + 0.1, True, id="past the deadline it expires"),
        pytest.param(TTL, False, 1e9, False, id="a binding that is not finished never expires"),
        pytest.param(None, True, 1e9, False, id="without a TTL nothing expires"),
    ],
)
def test_expiry(ttl: float | None, finished: bool, seconds: float, gone: bool) -> None:
    """seconds: since the binding was finished, which was a while after the pod was assumed."""
    clock = FakeClock()
    cache = Cache(ttl, clock)
    cache.assume_pod(POD)
    clock.step(100.0)
    if finished:
        cache.finish_binding(POD)
    clock.step(seconds)
    assert (cache.cleanup_assumed_pods() == [POD]) is gone
    assert (state_of(cache) is PodState.INITIAL) is gone


@pytest.mark.parametrize(
    ("act", "then", "found"),
    [
        pytest.param(lambda c: c.finish_binding(POD), 100.0, False, id="at that time: not before it"),
        pytest.param(lambda c: c.finish_binding(POD), 100.1, True, id="before that time"),
        pytest.param(lambda c: None, 1e9, False, id="a binding that is under way"),
        pytest.param(lambda c: (c.finish_binding(POD), c.add_pod(POD)), 1e9, False, id="the watch has shown it"),
        pytest.param(lambda c: (c.finish_binding(POD), c.forget_pod(POD)), 1e9, False, id="forgotten"),
    ],
)
def test_pods_that_were_bound_and_that_no_watch_has_shown(
    act: Callable[[Cache], object], then: float, found: bool
) -> None:
    clock = FakeClock()
    cache = Cache(clock=clock)
    cache.assume_pod(POD)
    clock.step(100.0 - clock())
    act(cache)
    assert (list(cache.bound_before(then)) == [POD]) is found


@pytest.mark.parametrize(
    ("act", "told"),
    [
        pytest.param(lambda c: c.update_pod(POD, POD), False, id="an update on its node"),
        pytest.param(lambda c: c.update_pod(POD, a_pod("p", "n2")), True, id="an update on another node"),
        pytest.param(lambda c: c.remove_pod(POD), False, id="gone from its node"),
        pytest.param(lambda c: c.remove_pod(a_pod("p")), False, id="gone, no node said"),
        pytest.param(lambda c: c.remove_pod(a_pod("p", "n2")), True, id="gone from another node"),
    ],
)
def test_an_event_that_names_another_node_than_the_cache_knows_is_logged(
    act: Callable[[Cache], object], told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """A pod does not move: the events, or the cache, are wrong."""
    act(a_cache_in(PodState.ADDED))
    assert bool(caplog.records) is told


def test_a_pod_on_an_unknown_node_makes_a_ghost_until_the_node_comes_or_the_pod_goes() -> None:
    cache = Cache()
    cache.add_pod(POD)
    assert cache.node_count() == 1
    assert "n1" not in cache.snapshot()
    cache.add_node(a_node("n1"))
    assert [info.pod.name for info in cache.snapshot().get("n1").pods] == ["p"]
    cache.remove_node(a_node("n1"))
    assert "n1" not in cache.snapshot()
    assert cache.node_count() == 1
    cache.remove_pod(POD)
    assert cache.node_count() == 0


def test_removing_an_unknown_node_is_refused_a_ghost_too() -> None:
    cache = Cache()
    cache.add_pod(POD)
    with pytest.raises(CacheError, match="node n1 is not found"):
        cache.remove_node(a_node("n1"))


def test_update_of_an_unknown_node_adds_it() -> None:
    cache = Cache()
    cache.update_node(None, a_node("n1"))
    assert "n1" in cache.snapshot()


def test_an_image_has_the_size_first_reported_and_the_number_of_its_nodes() -> None:
    cache = Cache()
    cache.add_node(a_node("n1", images={"web:1": 100}))
    cache.add_node(a_node("n2", images={"web:1": 999, "db:1": 5}))
    states = cache.snapshot().get("n2").image_states
    assert {name: (state.size, state.num_nodes) for name, state in states.items()} == {
        "web:1": (100, 2),
        "db:1": (5, 1),
    }
    cache.update_node(None, a_node("n1"))
    cache.add_pod(POD)
    after = cache.update_snapshot(Snapshot())
    assert after.get("n1").image_states == {}
    assert after.get("n2").image_states["web:1"].num_nodes == 1
    cache.remove_node(a_node("n2"))
    cache.add_node(a_node("n3", images={"web:1": 7}))
    assert cache.snapshot().get("n3").image_states["web:1"].size == 7


def test_a_prepared_snapshot_clones_only_what_has_changed_since(monkeypatch: pytest.MonkeyPatch) -> None:
    cache, cloned = Cache(), list[str]()
    for number in range(4):
        cache.add_node(a_node(f"n{number}"))
    clone = NodeInfo.clone

    def noted(node: NodeInfo) -> NodeInfo:
        cloned.append(node.name)
        return clone(node)

    monkeypatch.setattr(NodeInfo, "clone", noted)

    def meanwhile() -> None:
        cache.assume_pod(a_pod(f"p{len(cloned)}", "n0"))

    cache.prepare_snapshot(meanwhile)
    assert sorted(cloned) == ["n0", "n1", "n2", "n3"]
    snapshot = cache.snapshot()
    assert cloned[4:] == ["n0"]
    assert len(snapshot.get("n0").pods) == 4
    cache.snapshot()
    assert len(cloned) == 5


def test_dump_is_a_copy() -> None:
    cache = a_cache_in(PodState.ASSUMED)
    dump = cache.dump()
    cache.forget_pod(POD)
    assert (set(dump.assumed_pods), dict(dump.pods)) == ({"uid-p"}, {"uid-p": "default/p"})


def test_removing_one_of_two_pods_with_one_port_frees_it() -> None:
    node = NodeInfo(a_node("n1"), [PodInfo(a_pod("a", "n1", port=80)), PodInfo(a_pod("b", "n1", port=80))])
    node.remove_pod(a_pod("a", "n1", port=80))
    assert not node.used_ports.conflicts("", "TCP", 80)

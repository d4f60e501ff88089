"""Gangs that run with fewer than minMember: for how long, and what becomes of the rest of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from msgspec import structs

from extender import metrics
from extender.api import corev1, policyv1
from extender.api.codec import convert
from extender.api.metav1 import Condition
from extender.plugins.coscheduling.dependencies import Eviction
from extender.plugins.coscheduling.preemption.broken_gangs import AGAIN
from tests.unit.plugins.coscheduling.conftest import LABEL, World, node
from tests.unit.plugins.coscheduling.kube_scheduler import PREFIX, group, member, members
from tests.unit.plugins.coscheduling.preempting import Preempting

Make = Callable[..., World]
RESTART = {f"{PREFIX}/broken-after": "5m", f"{PREFIX}/when-broken": "restart"}
KEEP = {f"{PREFIX}/broken-after": "5m"}
BROKEN = Condition("Scheduled", "False", "GangBroken", "")
TEXT = "fewer than minMember of 3 members have run for 5m0s"


class Town(Preempting):
    """A gang of three on nodes of its own, which asks by its pods' annotations. Evictions are carried out by `evicts`."""

    def __init__(self, world: World, **annotations: str) -> None:
        self.ended: list[corev1.Pod] = []
        self.lists = True
        world.connect(succeeded_pods=self._list)
        super().__init__(world)
        self.apply(group(minimum=3))
        self.annotations = annotations
        self.create(*members(3, annotations=annotations))
        self.run()
        assert self.running() == {"g0", "g1", "g2"}

    def _list(self, namespace: str, found: Callable[[Iterable[corev1.Pod]], None]) -> None:
        if self.lists:
            found(self.ended)

    def wake(self) -> None:
        """Evictions stay where they are."""
        asked, self.evictions.asked = self.evictions.asked, []
        super().wake()
        self.evictions.asked = asked

    def passes(self, seconds: float, step: float = 1.0) -> None:
        for _ in range(int(seconds / step)):
            self.world.clock.now += step
            self.plugin.tick()
            self.run()

    def shows(self, condition: Condition) -> None:
        """Of the PodGroup."""
        known = self.groups["default/g"]
        self.apply(structs.replace(known, status=structs.replace(known.status, conditions=(condition,))))

    def restarts(self, world: World) -> None:
        world.connect(succeeded_pods=self._list)
        self.extender_restarts(world)

    def lose(self, name: str, *, succeeded: bool = False) -> None:
        pod = self.pods[f"default/{name}"]
        self.ended += [pod] if succeeded else []
        self.delete(pod)
        self.run()

    @property
    def evicting(self) -> list[Eviction]:
        return [eviction for eviction, _ in self.evictions.asked]

    def evicts(self, failure: str = "", only: int = 3) -> None:
        """What was asked for: it failed, or so many of the victims went."""
        asked, self.evictions.asked = self.evictions.asked, []
        for eviction, done in asked:
            if not failure:
                self._evict(eviction.victims[:only])
                self.end_all()
            done(failure)
        self.run()

    def says(self) -> list[str]:
        return [text for text in self.world.verdicts if "GangBroken" in text]


def counted(then: str) -> float:
    return float(metrics.broken_gangs.labels(then)._value.get())


@pytest.fixture
def town(world: Make) -> Town:
    return Town(world([node(f"n{number}", "1") for number in range(5)]), **RESTART)


def test_the_rest_of_a_broken_gang_goes_whole_and_the_gang_starts_anew(town: Town) -> None:
    before = counted("restart")
    town.lose("g0")
    town.passes(299)
    assert (town.evicting, town.says()) == ([], [])
    town.passes(2)
    [eviction] = town.evicting
    assert ([pod.name for pod in eviction.victims], eviction.within_budgets) == (["g1", "g2"], True)
    assert (eviction.event, eviction.note.startswith(TEXT)) == ("GangRestarted", True)
    assert town.says() == [f"default/g GangBroken: {TEXT}: the rest is evicted, so that it starts anew"]
    assert counted("restart") == before + 1
    town.create(member("h0"))
    town.run()
    assert "h0" not in town.running(), "it starts with the others that are made, not beside those that go"
    town.evicts()
    town.create(member("h1"), member("h2"))
    town.run()
    assert town.running() == {"h0", "h1", "h2"}
    town.passes(400)
    assert (town.evicting, len(town.says())) == ([], 1)


def test_a_gang_that_is_whole_again_in_time_is_let_alone(town: Town) -> None:
    town.lose("g0")
    town.passes(290)
    town.create(member("h0", annotations=RESTART))
    town.run()
    assert "h0" in town.running()
    town.passes(200)
    town.lose("h0")
    town.passes(290)
    assert (town.evicting, town.says()) == ([], []), "each time it is broken counts by itself"
    town.passes(11)
    assert len(town.evicting) == 1


def test_a_gang_of_which_members_have_succeeded_is_not_broken(town: Town) -> None:
    town.lose("g0", succeeded=True)
    town.passes(600)
    assert (town.evicting, town.says()) == ([], [])
    town.lose("g1")
    town.passes(302)
    assert [pod.name for pod in town.evicting[0].victims] == ["g2"]


def test_a_gang_that_asks_for_nothing_is_kept_without_a_word(world: Make) -> None:
    town = Town(world([node(f"n{number}", "1") for number in range(5)]))
    town.lose("g0")
    town.passes(600)
    assert (town.evicting, town.says(), town.plugin.manager.begun.broken) == ([], [], {})


def test_a_gang_that_is_to_be_kept_says_once_that_it_is_broken(world: Make) -> None:
    town = Town(world([node(f"n{number}", "1") for number in range(5)]), **KEEP)
    before = counted("keep")
    town.lose("g0")
    town.passes(900)
    assert (town.evicting, town.says()) == ([], [f"default/g GangBroken: {TEXT}: the rest is kept"])
    assert (town.running(), counted("keep")) == ({"g1", "g2"}, before + 1)


def test_nothing_is_done_before_it_is_known_which_members_have_succeeded(town: Town) -> None:
    town.lists = False
    town.lose("g0")
    town.passes(400)
    assert town.evicting == []
    town.lists = True
    town.passes(AGAIN.first_seconds + 1)
    assert len(town.evicting) == 1


def test_what_a_budget_forbids_is_tried_again_with_growing_pauses(town: Town) -> None:
    town.lose("g0")
    town.passes(301)
    pauses = []
    for _ in range(3):
        town.evicts(failure='pod "default/g1" may not be evicted: Cannot evict pod')
        assert (town.running(), town.evicting) == ({"g1", "g2"}, [])
        since = town.world.clock.now
        while not town.evicting:
            town.passes(1)
        pauses.append(town.world.clock.now - since)
    assert [round(pause, -1) for pause in pauses] == [10, 20, 40]
    town.evicts()
    town.passes(700)
    assert (town.running(), town.evicting, len(town.says())) == (set(), [], 1)


def budget(allowed: int) -> policyv1.PodDisruptionBudget:
    """Of all members of the gang."""
    selector = {"matchLabels": {LABEL: "g"}}
    made = {"metadata": {"name": "b", "namespace": "default"}, "spec": {"selector": selector}}
    return convert({**made, "status": {"disruptionsAllowed": allowed}}, policyv1.PodDisruptionBudget)


def test_a_budget_that_allows_one_of_two_forbids_both(town: Town) -> None:
    """The server's dry run would allow each of them, since it counts none."""
    town.budgets = [budget(1)]
    town.lose("g0")
    town.passes(340)
    assert (town.running(), town.evicting, len(town.says())) == ({"g1", "g2"}, [], 1)
    town.budgets = [budget(2)]
    town.passes(120)
    assert [pod.name for pod in town.evicting[0].victims] == ["g1", "g2"]


@pytest.mark.parametrize("refused_by", ["what is known of budgets", "the server"])
def test_a_gang_that_is_whole_again_while_budgets_forbid_its_restart_is_let_alone(town: Town, refused_by: str) -> None:
    town.budgets = [budget(0)] if refused_by != "the server" else []
    town.lose("g0")
    town.passes(301)
    town.evicts(failure='pod "default/g1" may not be evicted: Cannot evict pod')
    town.create(member("h0", annotations=RESTART))
    town.run()
    assert town.running() == {"h0", "g1", "g2"}
    town.budgets = []
    town.passes(700)
    assert (town.running(), town.evicting) == ({"h0", "g1", "g2"}, [])


def test_a_gang_that_breaks_again_after_its_restart_is_restarted_again(town: Town) -> None:
    town.lose("g0")
    town.passes(301)
    town.evicts()
    town.create(*(member(f"h{number}", annotations=RESTART) for number in range(3)))
    town.run()
    assert town.running() == {"h0", "h1", "h2"}
    town.lose("h0")
    town.passes(302)
    assert [pod.name for pod in town.evicting[0].victims] == ["h1", "h2"]


def test_the_podgroup_says_that_the_gang_is_broken_until_it_is_whole_again(town: Town) -> None:
    """What is left of it runs on while budgets forbid the restart, and that is no start."""
    town.budgets = [budget(0)]
    town.lose("g0")
    town.passes(302)
    town.shows(BROKEN)
    told = len(town.world.verdicts)
    town.passes(30)
    assert town.world.verdicts[told:] == []
    town.create(member("h0", annotations=RESTART))
    town.run()
    town.passes(3)
    assert {text.split()[1] for text in town.world.verdicts[told:]} == {"GangScheduled:"}


def test_what_is_left_of_a_restart_goes_though_the_gang_is_whole_with_it(town: Town) -> None:
    """Of the old gang one has gone: it is to start anew, not to go on with members of two lives."""
    town.lose("g0")
    town.passes(301)
    town.evicts(only=1)
    town.create(*(member(f"h{number}", annotations=RESTART) for number in range(2)))
    town.run()
    town.passes(120)
    assert [pod.name for pod in town.evicting[0].victims] == ["g2"]


@pytest.mark.parametrize("early", [False, True])
def test_a_restart_that_was_cut_short_is_finished_by_the_next_leader(
    town: Town, world: Make, early: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of two has gone; the PodGroup says that the gang is broken. early: it is looked at before what has started is known."""
    town.lose("g0")
    town.passes(301)
    town.evicts(only=1)
    assert town.running() == {"g2"}
    town.shows(BROKEN)
    after = world([node(f"n{number}", "1") for number in range(5)])
    if early:
        tick = after.plugin.tick

        def preemption_first() -> None:
            town.preemption.tick()
            tick()

        monkeypatch.setattr(after.plugin, "tick", preemption_first)
    town.restarts(after)
    town.passes(3)
    assert [pod.name for pod in town.evicting[0].victims] == ["g2"], "its time is not waited for once more"


def test_what_the_podgroup_said_of_an_earlier_time_does_not_count(town: Town, world: Make) -> None:
    town.shows(BROKEN)
    town.restarts(world([node(f"n{number}", "1") for number in range(5)]))
    town.passes(3)
    town.lose("g0")
    town.passes(290)
    assert town.evicting == [], "it was whole when we came"
    town.passes(20)
    assert len(town.evicting) == 1


def test_a_member_that_was_not_told_with_the_others_is_told_again(town: Town) -> None:
    town.lose("g0")
    town.passes(301)
    town.evicts(only=1)
    assert town.running() == {"g2"}
    town.passes(120)
    assert [pod.name for pod in town.evicting[0].victims] == ["g2"]
    town.evicts()
    town.passes(700)
    assert (town.running(), town.evicting) == (set(), [])


def test_a_replica_that_does_not_lead_evicts_no_pod(town: Town) -> None:
    leads = False
    town.plugin.preemption._broken.dependencies = type(
        "Dependencies", (), {"may_plan": lambda self: leads, "verdicts": town.world}
    )()
    town.lose("g0")
    town.passes(400)
    assert town.evicting == []
    leads = True
    town.passes(1)
    assert len(town.evicting) == 1


def test_a_gang_that_goes_is_forgotten(town: Town) -> None:
    town.lose("g0")
    assert town.plugin.manager.begun.broken.keys() == {"default/g"}
    town.lose("g1")
    town.lose("g2")
    assert town.plugin.manager.begun.broken == {}
    town.passes(400)
    assert town.evicting == []

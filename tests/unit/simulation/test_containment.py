"""A simulation in which one gang raises reports on all of them."""

from __future__ import annotations

import pytest

from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.manager.specs import Specs
from extender.simulation.journal import Journal
from extender.simulation.report import gang_reports
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, members


@pytest.mark.faults
def test_a_gang_that_raises_is_reported_as_set_aside_beside_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = KubeScheduler(World([node("n1", "8")]))
    kube.apply(group("bad", 2), group("good", 2))
    kube.create(*members(2, "bad", gated=True), *members(2, "good", gated=True))
    spec = Specs.of

    def faulty(specs: Specs, of: Group) -> object:
        if of.key == "default/bad":
            raise KeyError("a fault of ours")
        return spec(specs, of)

    monkeypatch.setattr(Specs, "of", faulty)
    kube.run()
    assert {each.group: each.state for each in gang_reports(kube.plugin, Journal(lambda news: None))} == {
        "bad": "Quarantined",
        "good": "Bound",
    }

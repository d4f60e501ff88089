"""Members beyond minCount of a group in a tree, which find no room beside their group."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.scheduling.test_tree_request import Trees, composite, part

NewWorld = Callable[..., World]
TEXT = "members beyond minMember of 2 find no room: Insufficient cpu"


def seconds_pass(kube: Trees, count: int = 3) -> None:
    for _ in range(count):
        kube.world.clock.now += 1
        kube.plugin.tick()
        kube.run()


@pytest.mark.parametrize(
    "parents",
    [
        pytest.param([""], id="a group of its own"),
        pytest.param(["top"], id="the one group of a tree"),
        pytest.param(["top", "top"], id="one of two that have started"),
        pytest.param(["inner"], id="one of an inner composite"),
    ],
)
def test_they_are_told_why_they_wait_and_come_once_there_is_room(parents: list[str], world: NewWorld) -> None:
    names = "ab"[: len(parents)]
    kube = Trees(world([node("n1", str(2 * len(parents)))], in_tree_pod_groups=True))
    if "" not in parents:
        kube.composite(composite("top", 1))
    if "inner" in parents:
        kube.composite(composite("inner", 1, "top"))
    kube.parts(*(part(name, parent) for name, parent in zip(names, parents, strict=True)))
    kube.members(*names, count=3, gated=True)
    kube.run()
    seconds_pass(kube)
    assert kube.reason("default/a") == "ExtraMembersWait"
    group = kube.plugin.manager.groups["default/a"]
    assert group.last_diagnosis is not None
    assert group.last_diagnosis.message == TEXT
    kube.world.nodes["n2"] = node("n2", "2")
    kube.plugin.on_node(None, kube.world.nodes["n2"])
    kube.run()
    seconds_pass(kube)
    assert kube.running() == {f"{name}-{number}" for name in names for number in range(3)}
    assert kube.reason("default/a") == ""

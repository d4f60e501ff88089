"""A kube-scheduler beside an extender in which plans for one gang raise: told in the stories of planning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from extender.plugins.coscheduling import planner
from tests.unit.plugins.coscheduling.conftest import World
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler


class Faulty(KubeScheduler):
    """While it is faulty, plans for members of the group `bad` raise."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.faulty = True
        world.connect(offload=self._offload)

    def _offload(self, function: Callable[..., object], *args: Any) -> object:
        requests = [arg for arg in args if isinstance(arg, planner.Request)]
        if self.faulty and any(info.pod.name.startswith("bad") for request in requests for info in request.members):
            raise KeyError("a fault of ours")
        return function(*args)


def passes(kube: KubeScheduler, seconds: float) -> None:
    kube.world.clock.now += seconds
    kube.plugin.tick()
    kube.run()

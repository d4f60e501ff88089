"""A cluster in which gangs wait for room, and nodes are kept free for them in turn: what its stories are told with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from extender.api import corev1
from extender.plugins.coscheduling.dependencies import BackfillRules
from extender.plugins.coscheduling.scheduling.backfill_reservation import BackfillReservation
from tests.unit.plugins.coscheduling.conftest import World, node, pod, pod_group

RULES = BackfillRules(after_seconds=300, max_seconds=600, max_nodes_percent=50)


class Story:
    """Four nodes of two cpus with a pod of one cpu each; gangs of two members of two cpus each fit nowhere."""

    def __init__(self, world: Callable[..., World], rules: BackfillRules = RULES) -> None:
        self.w = world([node(f"n{number}", "2") for number in range(4)])
        self.rings: list[list[str]] = []
        self.w.connect(backfill=rules, ring=self._ring, may_plan=lambda: self.w.leading)
        for name in self.w.nodes:
            self.runs(pod(f"on-{name}", node_name=name))
        self.w.plugin.tick()

    def _ring(self, pods: Sequence[corev1.Pod]) -> None:
        self.rings.append([pod.name for pod in pods])

    def runs(self, there: corev1.Pod) -> None:
        self.w.on_nodes[there.uid] = there
        self.w.plugin.on_pod(None, there)

    def ends(self, name: str) -> None:
        self.w.plugin.on_pod(self.w.on_nodes.pop(name), None)
        self.w.run_tasks()

    def gang(self, name: str, day: int = 1, cpu: str = "2", **spec: Any) -> list[corev1.Pod]:
        """Asks, and is refused for want of room."""
        self.w.plugin.on_pod_group(None, pod_group(name, 2, f"2026-01-{day:02}T00:00:00Z"))
        members = [pod(f"{name}-{number}", name, cpu=cpu, **spec) for number in range(2)]
        self.w.create(*members)
        self.w.filter(members[0])
        return members

    def after(self, seconds: float) -> BackfillReservation | None:
        self.w.clock.now += seconds
        self.w.plugin.tick()
        return self.shadow

    @property
    def shadow(self) -> BackfillReservation | None:
        return self.w.plugin.rounds.reservations.current

    @property
    def owner(self) -> str:
        return self.shadow.group.removeprefix("default/") if self.shadow is not None else ""

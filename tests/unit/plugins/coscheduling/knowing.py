"""kube-scheduler in a few lines that knows reasons which the extender does not: used by the stories of its refusals."""

from __future__ import annotations

from tests.unit.plugins.coscheduling.conftest import World
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler


class Knowing(KubeScheduler):
    """Refuses some pods in its own filters, and wakes those for its own reasons only."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.refuses: dict[str, str] = {}  # a pod's name, or the beginning of it -> the text
        self.in_tree: set[str] = set()  # UIDs of those that no patch wakes

    def attempt(self, uid: str) -> None:
        text = next((text for name, text in self.refuses.items() if self.pods[uid].name.startswith(name)), "")
        if not text:
            self.in_tree.discard(uid)
            super().attempt(uid)
            return
        del self.active[uid]
        self.in_tree.add(uid)
        self._refused(self.pods[uid], text)

    def wake(self) -> None:
        super().wake()
        for uid in self.in_tree:
            self.active.pop(uid, None)

    def settle(self) -> None:
        """What was decided of those that are held is carried out."""
        self._settle()

    def something_happens(self) -> None:
        """That its filters wait for, and that we do not see."""
        self.active.update(dict.fromkeys(self.in_tree & self.pods.keys()))
        self.in_tree.clear()

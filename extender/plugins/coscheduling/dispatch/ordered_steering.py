"""Steering with each decision on a pod carried out in the order in which it was taken.

Decisions are taken under the manager's lock and carried out beyond it. Another thread may decide anew of the same pod in between, and
its nomination must not be overtaken by the older one: the plan that stands behind that is gone, and no plan would take it back.
So a decision is put in line while the lock is held, and one thread at a time carries out what is in line.
No counterpart upstream: kube-scheduler decides of a pod in one goroutine.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from extender.api import corev1
from extender.crash import crashed
from extender.plugins.coscheduling.dependencies import Steering
from extender.plugins.coscheduling.quarantine import Quarantine

Act = Callable[[], None]


class OrderedSteering:
    """What Steering's methods of the same names do, for a group; `key` is that of the group, which is set aside where one raises.

    `carry_out` is called after the lock, by each caller. A thread that finds another one at it leaves its own decisions to that one.
    """

    def __init__(self, steering: Steering, quarantine: Quarantine) -> None:
        self._steering = steering
        self._quarantine = quarantine
        self._line: deque[tuple[str, Act]] = deque()  # put in under the manager's lock, taken out under _carrying
        self._carrying = (
            threading.Lock()
        )  # the outermost: the steering's own locks are taken inside it, the manager's for a fault

    def nominate(self, key: str, places: Sequence[tuple[corev1.Pod, str]]) -> None:
        self._put(key, partial(self._steering.nominate, places), places)

    def activate_by_nomination(self, key: str, places: Sequence[tuple[corev1.Pod, str]]) -> None:
        self._put(key, partial(self._steering.activate_by_nomination, places), places)

    def clear_nominations(self, key: str, pods: Sequence[corev1.Pod]) -> None:
        self._put(key, partial(self._steering.clear_nominations, pods), pods)

    def clear_foreign_nominations(self, key: str, pods: Sequence[corev1.Pod]) -> None:
        self._put(key, partial(self._steering.clear_foreign_nominations, pods), pods)

    def activate(self, key: str, pods: Sequence[corev1.Pod]) -> None:
        self._put(key, partial(self._steering.activate, pods), pods)

    def ungate(self, key: str, pods: Sequence[corev1.Pod]) -> None:
        self._put(key, partial(self._steering.ungate, pods), pods)

    def _put(self, key: str, act: Act, pods: Sequence[object]) -> None:
        """Lock held."""
        if pods:
            self._line.append((key, act))

    def carry_out(self) -> None:
        """Returns at once. The manager's lock is not held: steering may take locks inside which that one is taken elsewhere."""
        while self._line and self._carrying.acquire(blocking=False):
            try:
                self._carry_out_all()
            finally:
                self._carrying.release()  # what was put in line since the last look is this loop's next turn

    def _carry_out_all(self) -> None:
        while self._line:
            key, act = self._line.popleft()
            try:
                act()
            except Exception:
                crashed("steering", f"group={key}" if key else "")
                self._quarantine.set_aside(key)

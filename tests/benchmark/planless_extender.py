"""`gang-extender` without plans: `python -m tests.benchmark.planless_extender serve ...`. Used by gangs.

Each member is answered one of the nodes that it is asked about, as a planned one is, so that kube-scheduler need not choose; it is held in
bind, and the last of its gang starts all. Nothing is planned, kept, refused or told. So it is no gang scheduling: gangs block each other
where room is short. What it takes is what an extender in these programs costs at the least: the calls, the watch and the bindings.
"""

from extender.server import serve as serve  # isort: skip  - patches: everything else comes after

import sys
from collections import defaultdict
from collections.abc import Callable
from itertools import count
from threading import Lock
from typing import Any

from extender.api import corev1
from extender.api.schedulingv1alpha1 import PodGroup
from extender.cli import main as command
from extender.framework.columnar import ALL_PASS
from extender.framework.cycle_state import CycleState
from extender.framework.interface import PreFilterResult
from extender.framework.named_nodes import NamedNodes
from extender.framework.status import SUCCESS, Status, wait
from extender.plugins.coscheduling.plugin import Coscheduling

WAIT_SECONDS = 60.0
NAME = Coscheduling.name


class Planless:
    """What takes the place of the plugin's own methods."""

    def __init__(self) -> None:
        self._lock = Lock()  # guards the two below
        self._min_members: dict[str, int] = {}
        self._held: defaultdict[str, set[str]] = defaultdict(set)  # key of the gang -> UIDs
        self._asked = count()

    def on_pod_group(self, plugin: Coscheduling, old: object, new: object) -> None:
        if isinstance(new, PodGroup):
            with self._lock:
                self._min_members[new.key] = new.spec.min_member

    def pre_filter(
        self, plugin: Coscheduling, state: CycleState, pod: corev1.Pod, nodes: NamedNodes
    ) -> tuple[PreFilterResult, Status]:
        name = nodes.names[next(self._asked) % len(nodes.names)]
        return PreFilterResult(frozenset((name,))), SUCCESS

    def permit(self, plugin: Coscheduling, state: CycleState, pod: corev1.Pod, node_name: str) -> tuple[Status, float]:
        key = plugin.manager.key_of(pod)
        if not key:
            return SUCCESS, 0.0
        with self._lock:
            held = self._held[key]
            if len(held) + 1 < self._min_members[key]:
                held.add(pod.uid)
                return wait(), WAIT_SECONDS
            del self._held[key]
        for uid in held:
            waiting = plugin._handle.get_waiting_pod(uid)
            if waiting is not None:
                waiting.allow(NAME)
        return SUCCESS, 0.0


def _always(answer: Any) -> Callable[..., Any]:
    return lambda *arguments, **options: answer


def main(*arguments: str) -> int:
    planless = Planless()
    in_place: dict[str, Callable[..., Any]] = {
        "pre_filter": lambda plugin, *rest: planless.pre_filter(plugin, *rest),
        "filter": _always(SUCCESS),
        "filter_columns": _always(ALL_PASS),
        "reserve": _always(SUCCESS),
        "permit": lambda plugin, *rest: planless.permit(plugin, *rest),
        "pre_bind": _always(SUCCESS),
        "on_pod_group": lambda plugin, old, new: planless.on_pod_group(plugin, old, new),
        **dict.fromkeys(("unreserve", "post_bind", "on_pod", "on_node", "on_volumes", "tick"), _always(None)),
    }
    for name, function in in_place.items():
        setattr(Coscheduling, name, function)
    return command.main(arguments)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

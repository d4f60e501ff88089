"""Faults that are injected for one gang: any function of coscheduling that is given the gang, or a pod of it, can be made to raise.

The functions are found in the code, so that a new one cannot be forgotten. And what is around the plugin where it raises: events
come again, and an exception of an extension point is an Error. Used by the stories and the machine of containment.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import pytest

from extender.api import corev1
from extender.api.schedulingv1alpha1 import PodGroup
from extender.client.deliveries import Deliveries
from extender.framework.pod_info import PodInfo
from extender.framework.status import Status, error
from extender.plugins import coscheduling
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.slots import Slot
from tests.unit.plugins.coscheduling.conftest import LABEL, World
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler

BAD = "default/bad"
GIVEN_A_GANG = ("Group", "corev1.Pod", "PodGroup", "Slot", "key", "planner.Request", "PodInfo")


@dataclass(frozen=True)
class Place:
    """owner: the class, or the module, that has the function."""

    owner: Any
    name: str
    function: FunctionType

    @property
    def id(self) -> str:
        module = self.function.__module__.removeprefix("extender.plugins.coscheduling.")
        return f"{module}:{self.function.__qualname__}"


def places() -> Iterator[Place]:
    """All functions and methods of the package whose parameters may be a gang, a pod, or the key of a gang."""
    for info in pkgutil.walk_packages(coscheduling.__path__, f"{coscheduling.__name__}."):
        module = importlib.import_module(info.name)
        for owner in (module, *_classes(module)):
            for name, function in list(vars(owner).items()):
                if (
                    isinstance(function, FunctionType)
                    and name != "__init__"
                    and function.__module__ == info.name
                    and _given(function)
                ):
                    yield Place(owner, name, function)


def _classes(module: object) -> Iterator[type]:
    for each in vars(module).values():
        if inspect.isclass(each) and each.__module__ == getattr(module, "__name__", ""):
            yield each


def _given(function: FunctionType) -> bool:
    parameters = inspect.signature(function).parameters.values()
    return any(
        parameter.name in ("key", "keys") or any(word in str(parameter.annotation) for word in GIVEN_A_GANG)
        for parameter in parameters
    )


def called_by(story: Callable[[], object], of: Sequence[Place]) -> frozenset[str]:
    """The ids of the places that are given the bad gang in the story, where nothing raises."""
    faults = [Fault(place, Exception, armed=False) for place in of]
    with pytest.MonkeyPatch.context() as patched:
        for fault in faults:
            fault.inject(patched)
        story()
    return frozenset(fault.place.id for fault in faults if fault.calls)


@dataclass
class Fault:
    """While it is armed the function raises where it is given the bad gang. calls: how often it is; hits: how often it raised."""

    place: Place
    kind: type[Exception]
    armed: bool = True
    calls: int = 0
    hits: int = 0

    def inject(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Before anything has kept the function."""
        function = self.place.function

        @functools.wraps(function)
        def faulty(*args: Any, **kwargs: Any) -> Any:
            if any(is_bad(arg) for arg in (*args, *kwargs.values())):
                self.calls += 1
                if self.armed:
                    self.hits += 1
                    raise self.kind("a fault of ours")
            return function(*args, **kwargs)

        if inspect.isclass(self.place.owner):
            monkeypatch.setattr(self.place.owner, self.place.name, faulty)
            return
        for module in [each for name, each in sys.modules.items() if name.startswith("extender.")]:
            if vars(module).get(self.place.name) is function:
                monkeypatch.setattr(module, self.place.name, faulty)


def is_bad(value: object) -> bool:
    """Whether it is the bad gang, or something of it alone."""
    match value:
        case Group() | PodGroup():
            return value.key == BAD
        case corev1.Pod():
            return value.labels.get(LABEL) == "bad"
        case PodInfo():
            return is_bad(value.pod)
        case Slot():
            return value.group == BAD
        case planner.Request():
            return bool(value.members) and all(map(is_bad, value.members))
        case str():
            return value == BAD
        case list() | tuple() | set() | frozenset():
            return len(value) > 0 and all(map(is_bad, value))
    return False


class Handler:
    """What an informer calls."""

    def __init__(self, tell: Callable[[Any, Any], None]) -> None:
        self._tell = tell

    def on_add(self, obj: Any) -> None:
        self._tell(None, obj)

    def on_update(self, old: Any, new: Any) -> None:
        self._tell(old, new)

    def on_delete(self, obj: Any) -> None:
        self._tell(obj, None)


def answering(call: Callable[..., Any], failed: Callable[[Status], Any]) -> Callable[..., Any]:
    """With an exception as the framework's runtime answers it."""

    def answers(*args: Any) -> Any:
        try:
            return call(*args)
        except Exception as exception:
            return failed(error(str(exception)))

    return answers


def with_boundaries(world: World) -> tuple[Callable[[], None], Callable[[], bool]]:
    """Put around the world's plugin. Returns (what delivers again the events that are due, whether there are any)."""
    plugin: Any = world.plugin
    lines: list[Deliveries[Any]] = []
    for name in ("on_pod", "on_pod_group", "on_node"):
        line: Deliveries[Any] = Deliveries(Handler(getattr(plugin, name)), "handler", world.clock)
        lines.append(line)
        setattr(plugin, name, line.tell)
    for name in ("post_bind", "unreserve"):
        setattr(plugin, name, answering(getattr(plugin, name), lambda status: None))
    plugin.pre_bind = answering(plugin.pre_bind, lambda status: status)
    plugin.pre_filter = answering(plugin.pre_filter, lambda status: (None, status))
    plugin.permit = answering(plugin.permit, lambda status: (status, 0.0))

    def catch_up() -> None:
        for line in lines:
            line.catch_up()

    return catch_up, lambda: any(line._behind for line in lines)


class BindingAgain(KubeScheduler):
    """A bind call that fails is made again."""

    def _binding(self, uid: str, node_name: str) -> str:
        name = super()._binding(uid, node_name)
        if not name and uid in self.pods:
            self._let_go(self.pods[uid], "its binding failed")
            self._refused(self.pods[uid], "its binding failed", "SchedulerError")
        return name

"""A watch over what the manager's lock guards: each access from our own code without the lock is noted, with where it came from.

Guarded is every field of the gangs' room that is a container or is set again after `__init__`, as the code itself shows, and every
field of a Group but its key; what has another lock, or needs none, stands in EXEMPT with the reason. While `watched` lasts, the
classes look at the lock whenever such a field is read or written, and the sets and dicts of a Group whenever they are used, so
that one that was taken out under the lock and is read after it is seen as well. Accesses by tests are not looked at.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

import extender
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager

OURS = Path(extender.__file__).parent
ROOM = OURS / "plugins" / "coscheduling"
STATE = f"{ROOM / 'state'}/"
PURE = {"planner", "spec"}  # packages in which nothing is kept
MAKING = ("__init__", "__post_init__")
CONTAINERS = {"set", "dict", "list", "deque", "Counter", "TTLCache", "LRUCache", "Index"}

EXEMPT: Mapping[str, str] = {
    "Coscheduling": "set by connect, once, before anything is shared",
    "GangParts": "made by connect, once, before anything is shared",
    "Reselection": "lives for one preempt call, in one thread",
    "RoomEstimate": "lives for one search, in one thread",
    "_Problem": "lives for one search, in one thread",
    "Sparing": "lives for one search, in one thread",
    "PodGroupManager.max_held_binds": "set by connect",
    "PodGroupManager.labels": "set by connect",
    "GroupRegistry.on_changed": "set by connect",
    "GroupRegistry.on_dropped": "filled by connect",
    "Quarantine.on_set_aside": "set by connect",
    "GangSetPlanning": "its callbacks are set by connect",
    "FitAnalyses": "has a lock of its own",
    "LargestGang": "has a lock of its own",
    "WaitingTime": "has a lock of its own",
    "OrderedSteering": "a deque: taken from under a lock of its own",
    "LeadChanges": "the tick's thread alone",
    "WaitingGangs": "the tick's thread alone; `now` is frozen, and replaced as a whole",
    "GangHints": "stateless",
    "EventJudge": "lives for one event, in one thread",
    "PlanningRounds.planning": "a lock",
}


@cache
def guarded_fields(*, exempt: bool = True) -> Mapping[type, frozenset[str]]:
    """By class, as the code of the room shows them. exempt: without what is exempt."""
    without: Mapping[str, str] = EXEMPT if exempt else {}
    parsed = {path: ast.parse(path.read_text()) for path in sorted(ROOM.rglob("*.py")) if _keeps(path)}
    by_others = {target.attr for tree in parsed.values() for target, _ in _assignments(tree) if not _of_self(target)}
    found: dict[type, frozenset[str]] = {}
    for path, tree in parsed.items():
        for each in tree.body:
            if isinstance(each, ast.ClassDef) and each.name not in without:
                names = _changing(each) | (_declared(each) & by_others)
                if kept := frozenset(name for name in names if f"{each.name}.{name}" not in without):
                    found[_class(path, each.name)] = kept
    found[Group] = frozenset(Group.__dataclass_fields__) - {"key"}
    return found


def _keeps(path: Path) -> bool:
    return PURE.isdisjoint(path.relative_to(ROOM).parts)


def _class(path: Path, name: str) -> type:
    module = ".".join(path.relative_to(OURS.parent).with_suffix("").parts)
    return getattr(import_module(module), name)  # type: ignore[no-any-return]


def _changing(defined: ast.ClassDef) -> frozenset[str]:
    """What its own methods make as a container, or set again."""
    return frozenset(
        target.attr
        for function in defined.body
        if isinstance(function, ast.FunctionDef)
        for target, value in _assignments(function)
        if _of_self(target) and (function.name not in MAKING or _is_container(value))
    )


def _declared(defined: ast.ClassDef) -> frozenset[str]:
    """Its fields, of a class that is not frozen."""
    if any("frozen" in ast.unparse(each) for each in (*defined.decorator_list, *defined.keywords)):
        return frozenset()
    fields = {
        each.target.id for each in defined.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    return frozenset(fields | {target.attr for target, _ in _assignments(defined) if _of_self(target)})


def _of_self(target: ast.Attribute) -> bool:
    return isinstance(target.value, ast.Name) and target.value.id == "self"


def _assignments(tree: ast.AST) -> Iterator[tuple[ast.Attribute, ast.expr | None]]:
    """To attributes, with what they are set to."""
    for each in ast.walk(tree):
        targets: Iterable[ast.expr] = ()
        if isinstance(each, ast.Assign):
            targets = each.targets
        elif isinstance(each, ast.AnnAssign | ast.AugAssign):
            targets = (each.target,)
        for target in targets:
            for one in target.elts if isinstance(target, ast.Tuple) else (target,):
                if isinstance(one, ast.Attribute):
                    yield one, each.value  # type: ignore[attr-defined]


def _is_container(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Dict | ast.Set | ast.List | ast.DictComp | ast.SetComp | ast.ListComp):
        return True
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in CONTAINERS


class Watch:
    """unlocked: where what was touched without the lock, and how often. The locks are those of the managers that were made last."""

    def __init__(self) -> None:
        self.unlocked: Counter[str] = Counter()
        self._locks: deque[Any] = deque(maxlen=2)  # one that ends, and the one that was started in its place

    def made(self, manager: PodGroupManager) -> None:
        self._locks.append(manager.lock)

    def touched(self, what: str, owner: object = None) -> None:
        """owner: of the field; while it is made no other thread has it."""
        if not self._locks or any(lock._is_owned() for lock in self._locks):
            return
        frame = sys._getframe(2)
        if frame.f_code.co_name in MAKING and frame.f_locals.get("self") is owner:
            return
        way, at = [], frame
        while at.f_back is not None and at.f_code.co_filename.startswith(STATE):
            way.append(_place(at))  # its own methods: it is their caller that has the lock, or has not
            at = at.f_back
        if at.f_code.co_filename.startswith(f"{OURS}/"):
            self.unlocked[f"{what} at {' < '.join((*way, _place(at)))}"] += 1


def _place(frame: FrameType) -> str:
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} {frame.f_code.co_name}"


def _used(base: type, watch: Watch) -> type:
    """That container, looking at the lock whenever it is used."""

    def method(name: str) -> Callable[..., Any]:
        plain = getattr(base, name)

        def used(self: Any, *args: Any, **named: Any) -> Any:
            watch.touched(f"a {base.__name__} of Group")
            return plain(self, *args, **named)

        return used

    names = {
        name
        for name in vars(base)
        if callable(getattr(base, name))
        and (not name.startswith("__") or name in {"__contains__", "__iter__", "__len__", "__getitem__", "__setitem__"})
    }
    operators = {name for name in vars(base) if name.strip("_") in {"or", "and", "sub", "ror", "rand", "rsub", "ior"}}
    return type(f"Used{base.__name__}", (base,), {name: method(name) for name in names | operators})


def _fields(kind: type, names: frozenset[str], watch: Watch) -> dict[str, Any]:
    """What the class gets for the time of the watch."""
    reads, writes = kind.__getattribute__, kind.__setattr__
    used: Mapping[type, type] = {set: _used(set, watch), dict: _used(dict, watch)} if kind is Group else {}

    def read(self: Any, name: str) -> Any:
        if name in names:
            watch.touched(f"{kind.__name__}.{name}", self)
        return reads(self, name)  # type: ignore[call-arg]

    def write(self: Any, name: str, value: Any) -> None:
        if name in names:
            watch.touched(f"{kind.__name__}.{name}", self)
        kept = used.get(type(value))
        writes(self, name, kept(value) if kept is not None else value)  # type: ignore[call-arg]

    return {"__getattribute__": read, "__setattr__": write}


@contextmanager
def watched() -> Iterator[Watch]:
    """Around all that there is of the worlds whose managers are made in it."""
    watch, make = Watch(), PodGroupManager.__init__

    def made(self: PodGroupManager, *args: Any, **named: Any) -> None:
        make(self, *args, **named)
        watch.made(self)

    with ExitStack() as patched:
        patched.enter_context(patch.object(PodGroupManager, "__init__", made))
        for kind, names in guarded_fields().items():
            for name, method in _fields(kind, names, watch).items():
                patched.enter_context(patch.object(kind, name, method, create=True))
        yield watch

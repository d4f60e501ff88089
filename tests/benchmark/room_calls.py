"""What the way of a gang of three costs inside coscheduling, from its pods' creation to its bindings: calls for each member, those of its
plan by themselves, and how many lines the room has.

Counts calls of named functions, so the figures are the same on every machine. Comprehensions, generators and lambdas
belong to the function that uses them. What is bounded, and why: docs/design/0061.
Version e9a7eca took 1,093 calls in 45 files for a gated gang, 846 for a plain one, without preemption.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import CO_GENERATOR
from pathlib import Path
from types import CodeType, FrameType

import extender.plugins.coscheduling as room
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import group, members
from tests.unit.plugins.coscheduling.preempting import Preempting

ROOM = str(Path(room.__file__).parent)
PLAN = "GangSetPlanning.plan"
MEMBERS = 3
MOST_FOR_A_MEMBER = {"gated": 390, "plain": 300}  # calls outside of the plan
MOST_FOR_THE_PLAN = 335
MOST_LINES_OF_A_FILE = 330


class Calls:
    """Every call of a function of the room; those among them that go from one file of it to another, and those of the plan."""

    def __init__(self) -> None:
        self.functions: Counter[tuple[str, str]] = Counter()
        self.across = 0
        self.of_plan = 0
        self.plans = 0
        self._in_plan = False

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        code = frame.f_code
        file = code.co_filename
        if event not in ("call", "return") or not file.startswith(ROOM) or _is_part(code):
            return
        if code.co_qualname == PLAN:
            self._in_plan = event == "call"
            self.plans += self._in_plan
        if event == "return":
            return
        self.of_plan += self._in_plan
        self.functions[file, code.co_qualname] += 1
        caller = frame.f_back.f_code.co_filename if frame.f_back is not None else ""
        if caller != file and caller.startswith(ROOM):
            self.across += 1

    @property
    def total(self) -> int:
        return sum(self.functions.values())

    @property
    def files(self) -> set[str]:
        return {file for file, _ in self.functions}

    @contextmanager
    def counted(self) -> Iterator[None]:
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)


def _is_part(code: CodeType) -> bool:
    """Of the function that it stands in; of a generator each step would be one more call."""
    return code.co_name.startswith("<") or bool(code.co_flags & CO_GENERATOR)


def start_a_gang(*, gated: bool) -> Calls:
    """As in production, preemption hears of each pod too."""
    kube = Preempting(World([node(f"n{number}") for number in range(4)]))
    kube.apply(group(minimum=MEMBERS))
    kube.run()
    calls = Calls()
    with calls.counted():
        kube.create(*members(MEMBERS, gated=gated))
        kube.run()
    if len(kube.running()) != MEMBERS:
        raise RuntimeError("the gang has not started")
    return calls


def by_package(lines: Counter[str], files: Counter[str]) -> Iterator[str]:
    for package, count in lines.most_common():
        yield f"    {package}: {count} lines in {files[package]} files"


def lines_of_files() -> dict[str, int]:
    """By path in the room."""
    found = (path for path in Path(ROOM).rglob("*.py") if path.name != "__init__.py")
    return {str(path.relative_to(ROOM)): len(path.read_text().splitlines()) for path in found}


def run() -> None:
    for name, gated in (("gated", True), ("plain", False)):
        calls = start_a_gang(gated=gated)
        outside = (calls.total - calls.of_plan) / MEMBERS
        print(
            f"  {name} gang of {MEMBERS}: {outside:.0f} calls for each member outside of the plan (at most {MOST_FOR_A_MEMBER[name]}), "
            f"{calls.of_plan} of the plan (at most {MOST_FOR_THE_PLAN}); {calls.total} together, {calls.across} of them across a file, "
            f"in {len(calls.functions)} functions of {len(calls.files)} files",
            flush=True,
        )
    known = lines_of_files()
    lines, files = Counter[str](), Counter[str]()
    for path, count in known.items():
        package = path.split("/")[0] if "/" in path else "the top"
        lines[package] += count
        files[package] += 1
    longest = max(known, key=known.__getitem__)
    print(
        f"  {sum(known.values())} lines in {len(known)} files; the longest, {longest}, has {known[longest]} of {MOST_LINES_OF_A_FILE}"
    )
    print("\n".join(by_package(lines, files)), flush=True)

"""What became of the mutants: which survived, and which of these are no fault of the tests, since they change nothing.

equivalent.toml lists those, each with the reason; one that it lists and that is not there any more is an error.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

EQUIVALENT = Path(__file__).with_name("equivalent.toml")
SURVIVED = frozenset({"survived", "no tests", "suspicious"})
NOT_COUNTED = frozenset({"skipped"})


@dataclass(frozen=True, slots=True)
class Mutant:
    """name: mutmut's. file: its path. removed, added: the lines that differ, without their indentation."""

    name: str
    file: str
    removed: str
    added: str
    diff: str


@dataclass(frozen=True, slots=True)
class Equivalent:
    """A change that no test can see, wherever in the file the line stands."""

    file: str
    removed: str
    added: str
    reason: str

    def is_of(self, mutant: Mutant) -> bool:
        return (self.file, self.removed, self.added) == (mutant.file, mutant.removed, mutant.added)


def equivalents() -> list[Equivalent]:
    """An entry of the file may list several changes of one line."""
    entries = tomllib.loads(EQUIVALENT.read_text()).get("mutant", [])
    return [
        Equivalent(entry["file"], entry["removed"], added, entry["reason"])
        for entry in entries
        for added in entry["added"]
    ]


def statuses(tree: Path) -> dict[str, str]:
    """Mutant -> what became of it."""
    pairs = (line.strip().rpartition(": ") for line in _mutmut(tree, "results", "--all", "true").splitlines())
    return {name: status for name, _, status in pairs if name}


def survivors(tree: Path, found: dict[str, str]) -> list[Mutant]:
    return [_mutant(tree, name) for name, status in found.items() if status in SURVIVED]


def _mutant(tree: Path, name: str) -> Mutant:
    diff = _mutmut(tree, "show", name).splitlines()
    body = [line for line in diff if line[:1] in "+-@ " and not line.startswith(("+++", "---"))]
    file = next((line.removeprefix("--- ").split()[0] for line in diff if line.startswith("--- ")), "")
    removed, added = ("\n".join(line[1:].strip() for line in body if line[0] == sign) for sign in "-+")
    return Mutant(name, file, removed, added, "\n".join(line for line in body if not line.startswith("@@")))


def _mutmut(tree: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "mutmut", *arguments]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True, check=True).stdout


@dataclass(frozen=True, slots=True)
class Score:
    """Of one file. equivalent: left out of the rest."""

    file: str
    mutants: int
    survived: int
    equivalent: int

    def __str__(self) -> str:
        counted = self.mutants - self.equivalent
        killed = counted - self.survived
        percent = f"{100 * killed / counted:.1f} %" if counted else "-"
        return f"{self.file}: {killed} of {counted} die, {percent}; {self.equivalent} equivalent"


def scores(files: Sequence[str], found: dict[str, str], left: Sequence[Mutant], same: Sequence[Mutant]) -> list[Score]:
    """left: those that survived and count; same: those that change nothing."""
    modules = {file.removesuffix(".py").replace("/", "."): file for file in files}
    counted = [name for name, status in found.items() if status not in NOT_COUNTED]
    total = Counter(modules.get(name.rpartition(".")[0], "") for name in counted)
    lived, equal = Counter(each.file for each in left), Counter(each.file for each in same)
    return [Score(file, total[file], lived[file], equal[file]) for file in files]

"""`python -m tests.mutation.by_hand`: applies each change of by_hand.toml and faults.toml in a copy of the tree, one at a time, and says
which its test does not see. With numbers it takes the changes of those faults of docs/reliability.md alone, with words those that speak
of one of them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.mutation.tree import copy_tree

LISTS = (Path(__file__).with_name("by_hand.toml"), Path(__file__).with_name("faults.toml"))
SECONDS = 300.0


@dataclass(frozen=True)
class Mutation:
    """removed, added: texts; the first is in the file once. test: as pytest takes it; also: others that each fail too. fault: its number in
    docs/reliability.md, or 0. environment: variables for the tests, where it takes what is shipped to see it, as KUBELET_SCALE=1."""

    breaks: str
    file: str
    removed: str
    added: str
    test: str
    fault: int = 0
    also: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def tests(self) -> tuple[str, ...]:
        return (self.test, *self.also)

    def can_be_made(self, tree: Path) -> bool:
        return (tree / self.file).read_text().count(self.removed) == 1

    def is_seen(self, tree: Path) -> bool:
        """Whether each test fails with it; the tree is as before then. Raises ValueError where the code is another by now."""
        if not self.can_be_made(tree):
            raise ValueError(f"{self.file} does not have once: {self.removed}")
        path = tree / self.file
        before = path.read_text()
        path.write_text(before.replace(self.removed, self.added))
        try:
            return all(run_pytest(tree, test, environment=self.environment).returncode == 1 for test in self.tests)
        finally:
            path.write_text(before)

    def is_of(self, words: Sequence[str]) -> bool:
        """Whether one of the words is its fault, or stands in what it says. Without words it is."""
        said = (self.breaks, self.file, *self.tests)
        return not words or any(
            int(word) == self.fault if word.isdigit() else any(word in text for text in said) for word in words
        )


def run_pytest(
    tree: Path, *tests: str, seconds: float = SECONDS, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """These tests in that tree; it ends with 0 where all pass, with 1 where one fails. Raises TimeoutExpired."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--tb=short", *tests]
    variables = {**os.environ, **(environment or {})}
    return subprocess.run(
        command, cwd=tree, env=variables, capture_output=True, text=True, timeout=seconds, check=False
    )


def mutations() -> list[Mutation]:
    return [Mutation(**each) for file in LISTS for each in tomllib.loads(file.read_text())["mutation"]]


def outcome(mutation: Mutation, tree: Path) -> str:
    try:
        return "dies" if mutation.is_seen(tree) else "LIVES"
    except ValueError as error:
        return f"CANNOT BE MADE ({error})"
    except subprocess.TimeoutExpired:
        return f"TAKES LONGER THAN {SECONDS:.0f} s"


def main(words: Sequence[str]) -> int:
    chosen = [each for each in mutations() if each.is_of(words)]
    died = 0
    if not chosen:
        print("no change speaks of that", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy_tree(Path(folder))
        tests = sorted({test for each in chosen for test in each.tests})
        unchanged = run_pytest(Path(folder), *tests, seconds=SECONDS * len(chosen))
        if unchanged.returncode:
            print(f"{unchanged.stdout}a test fails without any change: it would see nothing", file=sys.stderr)
            return 2
        for each in chosen:
            found = outcome(each, Path(folder))
            died += found == "dies"
            print(f"{found}: {each.breaks} ({each.file})", flush=True)
    print(f"{died} of {len(chosen)} die")
    return died != len(chosen)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

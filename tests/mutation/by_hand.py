"""`python -m tests.mutation.by_hand`: applies each change of by_hand.toml in a copy of the tree, and says which its test does not see."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.mutation.tree import copy_tree

LIST = Path(__file__).with_name("by_hand.toml")
SECONDS = 300.0


@dataclass(frozen=True)
class Mutation:
    """removed, added: texts; the first is in the file once. test: as pytest takes it."""

    breaks: str
    file: str
    removed: str
    added: str
    test: str

    def is_seen(self, tree: Path) -> bool:
        """Whether the test fails with it; the tree is as before then. Raises ValueError where the code is another by now."""
        path = tree / self.file
        before = path.read_text()
        if before.count(self.removed) != 1:
            raise ValueError(f"{self.file} does not have once: {self.removed}")
        path.write_text(before.replace(self.removed, self.added))
        try:
            command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", self.test]
            return subprocess.run(command, cwd=tree, capture_output=True, timeout=SECONDS, check=False).returncode == 1
        finally:
            path.write_text(before)


def mutations() -> list[Mutation]:
    return [Mutation(**each) for each in tomllib.loads(LIST.read_text())["mutation"]]


def main() -> int:
    lives = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy_tree(Path(folder))
        for each in mutations():
            try:
                outcome = "dies" if each.is_seen(Path(folder)) else "LIVES"
            except ValueError as error:
                outcome = f"CANNOT BE MADE ({error})"
            print(f"{outcome}: {each.breaks} ({each.file})", flush=True)
            lives += [] if outcome == "dies" else [each]
    print(f"{len(mutations()) - len(lives)} of {len(mutations())} die")
    return bool(lives)


if __name__ == "__main__":
    sys.exit(main())

"""Records what the real plugins' queueing hints say of the cases: `python -m tests.parity.record_hints`, with Go.

The oracle is tests/e2e/hintoracle, built from the modules that tests/e2e/go.mod pins.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.parity.hint_cases import PLUGINS, Json, cases, digest

ANSWERS = Path(__file__).parent / "data" / "hint_answers.json"
E2E = Path(__file__).parent.parent / "e2e"
SEED, COUNT = 20260101, 2000


def asked(made: list[Json]) -> dict[str, str]:
    """By plugin: a `1` for each case that is worth another try, a `0` for each that is not."""
    lines = [json.dumps({"plugin": plugin} | case) for plugin in PLUGINS for case in made]
    oracle = subprocess.run(
        ["go", "run", "./hintoracle"], cwd=E2E, input="\n".join(lines), capture_output=True, text=True, check=True
    )
    answers = ["1" if line == "true" else "0" for line in oracle.stdout.split()]
    if len(answers) != len(lines):
        raise RuntimeError(f"{len(lines)} cases, {len(answers)} answers: {oracle.stderr}")
    return {
        plugin: "".join(answers[index * len(made) : (index + 1) * len(made)]) for index, plugin in enumerate(PLUGINS)
    }


def main() -> None:
    made = cases(SEED, COUNT)
    recorded = {"seed": SEED, "count": COUNT, "digest": digest(made), "answers": asked(made)}
    ANSWERS.write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    main()

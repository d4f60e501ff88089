"""Records what kube-scheduler finds wrong with the configurations: `python -m tests.parity.record_configs`, with Go.

The oracle is tests/e2e/configoracle, built from the modules that tests/e2e/go.mod pins.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.parity.config_cases import CASES

ANSWERS = Path(__file__).parent / "data" / "config_answers.json"
E2E = Path(__file__).parent.parent / "e2e"


def asked() -> dict[str, list[str]]:
    """By case: the mistakes, in the oracle's order."""
    lines = [json.dumps(case) for case in CASES.values()]
    oracle = subprocess.run(
        ["go", "run", "./configoracle"], cwd=E2E, input="\n".join(lines), capture_output=True, text=True, check=True
    )
    answers = [json.loads(line) for line in oracle.stdout.splitlines()]
    return dict(zip(CASES, answers, strict=True))


def main() -> None:
    ANSWERS.write_text(json.dumps(asked(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

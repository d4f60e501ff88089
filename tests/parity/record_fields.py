"""Records the fields of the Go types that we read, and which Go writes as null: `python -m tests.parity.record_fields`, with Go.

The oracle is tests/e2e/fieldoracle, built from the modules that tests/e2e/go.mod pins.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

FIELDS = Path(__file__).parent / "data" / "go_fields.json"
E2E = Path(__file__).parent.parent / "e2e"


def main() -> None:
    done = subprocess.run(["go", "run", "./fieldoracle"], cwd=E2E, capture_output=True, text=True, check=True)
    FIELDS.write_text(json.dumps(json.loads(done.stdout), indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()

"""`gang-extender demo` as a newcomer starts it: the whole story, and it ends by itself."""

from __future__ import annotations

import subprocess
import sys


def test_the_demo_tells_its_story_and_ends() -> None:
    command = [sys.executable, "-m", "extender.cli.main", "demo"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=55)
    assert done.returncode == 0, done.stdout + done.stderr
    story = [
        "refused: pre-filter pod nginx-0 cannot find enough sibling pods, current pods number: 2, minMember of group: 3",
        "held until its gang is complete",
        "All three run",
        "deny: minMember of 4 does not fit: Insufficient cpu",
        "batch-3 on node-",
    ]
    told = iter(done.stdout.splitlines())
    missing = [part for part in story if not any(part in line for line in told)]
    assert missing == [], done.stdout

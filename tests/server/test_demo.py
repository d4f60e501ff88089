"""`gang-extender demo` as a newcomer starts it: the whole story, and it ends by itself, or when it is not wanted any more."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.request

from tests.documented import PROJECT

COMMAND = [sys.executable, "-m", "extender.cli.main", "demo"]
CLOSED, INTERRUPTED = 141, 130
SECONDS = 55.0
CALL = PROJECT / "docs" / "curl" / "filter.json"


def test_the_demo_tells_its_story_and_ends() -> None:
    done = subprocess.run(COMMAND, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    story = [
        "refused: pre-filter pod nginx-0 cannot find enough sibling pods, current pods number: 2, minMember of group: 3",
        "held until its gang is complete",
        "All three run",
        "deny: minMember of 6 does not fit: Insufficient cpu",
        "batch-5 on node-",
        "POST /preempt     urgent-",
        "the gang batch is evicted, all of it",
        "urgent-2 on node-",
        "no single rack takes it: Insufficient cpu",
        "solver-2 on node-",
        "Where to look next:",
    ]
    told = iter(done.stdout.splitlines())
    missing = [part for part in story if not any(part in line for line in told)]
    assert missing == [], done.stdout
    for gang in ("urgent", "solver"):
        assert len(set(re.findall(rf"  {gang}-. on node-. \(rack (.)\)", done.stdout))) == 1, done.stdout


def test_a_demo_that_goes_on_serving_says_where() -> None:
    """On the ports of README.md where they are free, which other tests may have taken."""
    with subprocess.Popen([*COMMAND, "--keep"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        last = next(line for line in iter(process.stdout.readline, "") if line.startswith("Still serving on"))
        verbs, page = re.findall(r"http://[\w.:/]+\w", last)
        with urllib.request.urlopen(page, timeout=SECONDS) as answer:
            assert "text/html" in answer.headers["Content-Type"]
        request = urllib.request.Request(f"{verbs}/filter", CALL.read_bytes(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            assert json.load(answer)["Error"] == ""
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 0


def test_the_demo_ends_when_its_reader_leaves() -> None:
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert b"gang-extender serves filter" in process.stdout.readline()
        process.stdout.close()
        assert process.wait(SECONDS) == CLOSED
        assert process.stderr.read() == b""


def test_an_interrupted_demo_ends_quietly() -> None:
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert b"gang-extender serves filter" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == INTERRUPTED
        assert process.stderr.read() == b""

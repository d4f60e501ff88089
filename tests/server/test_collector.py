"""The collector of cycles looks through young objects at all times, and through all of them only once the cluster has been listed.

In a process of its own: what is frozen stays so.
"""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc
from extender.server import collector

def looked_through_all(more):
    before = gc.get_stats()[2]["collections"]
    kept = [[] for _ in range(more)]
    return gc.get_stats()[2]["collections"] > before

gc.collect()
collector.expect_lists()
young = gc.get_stats()[0]["collections"]
print(looked_through_all(4_000_000), gc.get_stats()[0]["collections"] > young)
listed = [[] for _ in range(1000)]
collector.keep_what_was_listed()
print(gc.get_freeze_count() >= 1000, looked_through_all(4_000_000))
"""


def test_nothing_stops_for_long_while_the_cluster_is_listed() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == ["False True", "True True"]

"""What it costs that plain members of a gang without room are parked: each hears why, and then there is silence.

Counts, of the real kube-scheduler's calls and of the patches that its watch shows; what they mean for CPU and waits is in
docs/design/0012-parked-plain-pods.md.
"""

from __future__ import annotations

from collections import Counter

from tests.e2e.cluster import Cluster
from tests.e2e.pair import Pair
from tests.e2e.test_gated_gangs import CPU

MEMBERS = 8
CHANGES = (
    6  # of a pod: created, told the number, our condition when it is woken, told the cause; twice for the last two
)
ATTEMPTS = (
    2 * CHANGES
)  # kube-scheduler tries a pod again for every patch, its own too, and at once where no other pod waits


def filter_calls(programs: Pair) -> int:
    return int(programs.extender.metric("gang_extender_request_duration_seconds_count"))


def test_members_without_room_are_told_why_and_then_none_is_asked_about_or_patched(
    cluster: Cluster, module_programs: Pair
) -> None:
    """The first are refused while their gang is created, for its number, and are told of the room once it is complete."""
    before = filter_calls(module_programs)
    cluster.node("node-1", cpu="4")
    cluster.pod_group("web", min_member=MEMBERS)
    names = [f"web-{number}" for number in range(MEMBERS)]
    for name in names:
        cluster.pod(name, group="web", requests=CPU)
    for name in names:
        cluster.recorder.await_message(name, "minMember of 8 does not fit: Insufficient cpu", within=10)
    cluster.recorder.settle(quiet=3.0)
    changes = Counter(change.pod.name for change in cluster.recorder.history())
    assert max(changes.values()) <= CHANGES, changes
    calls = filter_calls(module_programs)
    assert calls - before <= ATTEMPTS * MEMBERS
    cluster.recorder.settle(quiet=2.0)
    assert filter_calls(module_programs) == calls, "a parked pod is asked about again without an event"

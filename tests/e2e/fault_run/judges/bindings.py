"""No Binding is written after its call was answered or given up, nor for a node that a newer call of the pod has replaced.

The API servers' audit logs against the calls of verbs. A commit that had begun when its caller hung up, or called anew, is carried to its
end. Not judged: a write that lay on the extender's line, or was to a server that stood still; nor one that was forbidden, which wrote
nothing, and whose body the audit log does not have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tests.e2e.fault_run.judges.leases import EXTENDER
from tests.e2e.fault_run.record import Line, Past

ARRIVAL_SECONDS = 1.0  # between the decision to write and the write
COMMIT_SECONDS = 3.0  # from the first Binding of a gang to its last, on a busy machine
FORBIDDEN = 403


def late_bindings(past: Past) -> list[str]:
    return [
        f"the extender of {replica} wrote a Binding of {write['name']} {wrong}"
        for replica, write, wrong in wrong_bindings(past)
        if not past.excuses.of_a_write(replica, write["at"])
    ]


def wrong_bindings(past: Past) -> Iterator[tuple[str, Line, str]]:
    """The replica, the write, and what is wrong with it, excused or not."""
    calls: defaultdict[tuple[str, str], list[Line]] = defaultdict(list)
    for call in past.calls:
        if call["verb"] == "bind":
            calls[call["replica"], call.get("uid", "")].append(call)
    for write in past.audit():
        replica = write["writer"].removesuffix(EXTENDER)
        if replica == write["writer"] or write["subresource"] != "binding" or write["code"] == FORBIDDEN:
            continue
        of_the_pod = sorted(calls[replica, write["uid"]], key=lambda call: float(call["began"]))
        wrong = _wrong(write, of_the_pod)
        if wrong:
            yield replica, write, wrong


def _wrong(write: Line, calls: Sequence[Line]) -> str:
    """calls: of the pod, the oldest first."""
    begun = [call for call in calls if call["began"] <= write["at"] + ARRIVAL_SECONDS]
    if not begun:
        return "without a call"
    of_the_node = [call for call in begun if write["node"] in ("", call["node"])]
    if not of_the_node:
        return f"to {write['node']}, for which there was no call"
    call = of_the_node[-1]
    newer = [each["began"] for each in begun if each["began"] > call["began"]]
    if newer and write["at"] > min(newer) + COMMIT_SECONDS:
        return f"{write['at'] - min(newer):.2f} s after a newer call for another node"
    late = write["at"] - call["ended"]
    if call["status"] and late > ARRIVAL_SECONDS:
        return f"{late:.2f} s after its call was answered"
    if not call["status"] and late > COMMIT_SECONDS:
        return f"{late:.2f} s after its caller had hung up"
    return ""

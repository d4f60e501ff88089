"""Only the replica that holds the Lease writes: the API servers' audit logs against every version of the Lease.

Not judged: what may have been on its way for long, over a line or to a server that stood still. No client can take that back.
"""

from __future__ import annotations

from bisect import bisect_right

from tests.e2e.fault_run.record import Past
from tests.e2e.history import outside

LEASE = "gang-scheduler"
ARRIVAL_SECONDS = 1.0  # between the decision to write and the write, and between the Lease and the record of it
WRITES = ("create", "update", "patch", "delete")
OF_PODS = ("pods", "podgroups")
EXTENDER = "-extender"


def writes_without_the_lease(past: Past) -> list[str]:
    moments, holders = [], []
    for at, kind, lease in past.objects("leases"):
        if lease["metadata"]["name"] == LEASE and kind != "DELETED":
            moments.append(at)
            holders.append(str(lease["spec"].get("holderIdentity") or "").partition("_")[0])
    late = past.spans(late=True)
    found = []
    for call in past.audit():
        writer = call["writer"].removesuffix(EXTENDER)
        if writer == call["writer"] or call["verb"] not in WRITES or call["resource"] not in OF_PODS:
            continue
        first = bisect_right(moments, call["at"] - ARRIVAL_SECONDS) - 1
        last = bisect_right(moments, call["at"] + ARRIVAL_SECONDS)
        between = holders[max(0, first) : last]
        if between and writer not in between and outside(late, call["at"] - 0.001, call["at"]):
            what = "/".join(each for each in (call["resource"], call["subresource"]) if each)
            found.append(f"the extender of {writer} had {call['verb']} {what} {call['name']}, and {between[-1]} led")
    return found

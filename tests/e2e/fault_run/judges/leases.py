"""Only the replica that holds the Lease writes: the API servers' audit logs against every version of the Lease.

Not judged: a write of a replica whose own line was held, or whose program or server stood still. No client can take that back. Nor
one within the Lease's duration after its kube-scheduler gave it up, where no watch could tell its extender of that. Nor one that its
API server refused after a fault of that server: one that has just begun to serve knows no roles yet, and for one that stood still the
pod may have gone, so that both refuse what has lain with them since before.
"""

from __future__ import annotations

from tests.e2e.fault_run.record import Past

ARRIVAL_SECONDS = 1.0  # between the decision to write and the write, and between the Lease and the record of it
REFUSED = range(400, 500)
WRITES = ("create", "update", "patch", "delete")
OF_PODS = ("pods", "podgroups")
EXTENDER = "-extender"


def writes_without_the_lease(past: Past) -> list[str]:
    found = []
    for call in past.audit():
        writer = call["writer"].removesuffix(EXTENDER)
        if writer == call["writer"] or call["verb"] not in WRITES or call["resource"] not in OF_PODS:
            continue
        if call["code"] in REFUSED and past.excuses.of_a_refused_write(writer, call["at"]):
            continue
        led = past.leaders.between(call["at"] - ARRIVAL_SECONDS, call["at"] + ARRIVAL_SECONDS)
        excused = past.excuses.of_a_write(writer, call["at"]) or past.excuses.of_an_ended_lease(writer, call["at"])
        if writer not in led and not excused:
            what = "/".join(each for each in (call["resource"], call["subresource"]) if each)
            found.append(
                f"the extender of {writer} had {call['verb']} {what} {call['name']}, and {' and '.join(sorted(led)) or 'no replica'} led"
            )
    return found

"""Every call of a verb is answered before its httpTimeout, as shipped, where no fault of its own programs and line excuses it.

Times in which the rig stood still do not count.
"""

from __future__ import annotations

from tests.e2e.control_plane import shipped_configuration
from tests.e2e.fault_run.record import Past
from tests.e2e.history import outside

VERBS = ("filter", "prioritize", "preempt", "bind")


def late_answers(past: Past) -> list[str]:
    limits = _limits()
    found = []
    for call in past.calls:
        took, limit = call["ended"] - call["began"], limits.get(call["verb"], 5.0)
        limit = limit if call["status"] else limit - 0.1
        late = took > limit and outside(past.pauses, call["began"], call["ended"]) > limit
        if late and not past.excuses.of_an_answer(call["replica"], call["began"], call["ended"]):
            found.append(f"{call['replica']}: {call['verb']} of {call.get('pod', '')} took {took:.2f} s")
    return found


def _limits() -> dict[str, float]:
    return {
        verb: float(entry["httpTimeout"].removesuffix("s"))
        for entry in shipped_configuration()["extenders"]
        for verb in VERBS
        if f"{verb}Verb" in entry
    }

"""Every call of a verb is answered before its httpTimeout of the shipped configuration, outside of the spans in which a fault excuses."""

from __future__ import annotations

from tests.e2e.control_plane import shipped_configuration
from tests.e2e.fault_run.record import Past
from tests.e2e.history import outside

VERBS = ("filter", "prioritize", "preempt", "bind")


def late_answers(past: Past) -> list[str]:
    limits = _limits()
    found = []
    for call in past.calls:
        took = outside(past.spans(), call["began"], call["ended"])
        hung_up = not call["status"] and took > limits.get(call["verb"], 0.0) - 0.1
        if took > limits.get(call["verb"], 5.0) or hung_up:
            found.append(f"{call['replica']}: {call['verb']} of {call.get('pod', '')} took {took:.2f} s")
    return found


def _limits() -> dict[str, float]:
    return {
        verb: float(entry["httpTimeout"].removesuffix("s"))
        for entry in shipped_configuration()["extenders"]
        for verb in VERBS
        if f"{verb}Verb" in entry
    }

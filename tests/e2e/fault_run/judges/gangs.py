"""All or nothing, and what annotations promise, outside of the spans in which a fault excuses."""

from __future__ import annotations

from tests.e2e.fault_run.promises import Story, broken_promises
from tests.e2e.fault_run.record import Past
from tests.e2e.fault_run.wishes import ONCE_SATISFIED, Wish
from tests.e2e.history import violations

MINE = ("default", "other")  # namespaces of the gangs that are judged; those of hostile tenants are theirs


def fractions(past: Past) -> list[str]:
    known = _wishes(past)
    history = [change for change in past.history if change.pod.name.partition("/")[0] in MINE]
    return violations(
        history,
        {key: wish.min_member for key, wish in known.items()},
        {},
        ended=past.outcome["ended"],
        excused=past.outcome["excused"],
        loose=[key for key, wish in known.items() if wish.policy == ONCE_SATISFIED],
        excused_spans=past.spans(),
    )


def promises(past: Past) -> list[str]:
    excused, ended = frozenset(past.outcome["excused"]), past.outcome["ended"]
    story = Story(past.history, past.outcome["labels"], excused, 5.0, ended, past.spans())
    return broken_promises(story, _wishes(past))


def _wishes(past: Past) -> dict[str, Wish]:
    return {key: Wish(**{**each, "groups": frozenset(each["groups"])}) for key, each in past.outcome["wishes"].items()}

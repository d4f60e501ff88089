"""All judges of a fault run by name, and what they say of one that is on disk. Used by `run` and by `make faults CHECK=`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tests.e2e.fault_run.judges.bindings import late_bindings
from tests.e2e.fault_run.judges.books import wrong_books
from tests.e2e.fault_run.judges.calls import late_answers
from tests.e2e.fault_run.judges.gangs import fractions, promises
from tests.e2e.fault_run.judges.health import errors, frequent_lists, growth, tracebacks
from tests.e2e.fault_run.judges.leases import writes_without_the_lease
from tests.e2e.fault_run.judges.nodes import overcommitted, unfit_nodes
from tests.e2e.fault_run.judges.starts import needless_victims, waiting_although_they_fit
from tests.e2e.fault_run.record import Past, lines


def holes(past: Past) -> list[str]:
    """What the others say rests on the versions of the objects, and is worth nothing where these end before the run."""
    return [line["why"] for line in lines(past.folder, "holes")]


LEAST_SHARE = {"gangs": 0.4, "answers": 0.4}


def enough(past: Past) -> list[str]:
    """A run of which too little was judged says nothing."""
    return [
        f"{what} were judged in {past.shares[what]:.0%} of the time, and {least:.0%} is the least"
        for what, least in LEAST_SHARE.items()
        if past.shares[what] < least
    ]


def judges_of(found: Iterable[str]) -> set[str]:
    """The names of those that have said something. How much was judged is no fault of the program."""
    return {said.partition(":")[0] for said in found} - {"enough was judged"}


def told_shares(past: Past) -> str:
    return "judged: " + ", ".join(f"{what} {share:.0%} of the time" for what, share in past.shares.items())


Judge = Callable[[Past], list[str]]

JUDGES: Mapping[str, Judge] = {
    "the record is whole": holes,
    "enough was judged": enough,
    "no gang is a fraction": fractions,
    "what annotations promise": promises,
    "no node over its room": overcommitted,
    "bound only to a node that is fit": unfit_nodes,
    "only the leader writes": writes_without_the_lease,
    "answers in time": late_answers,
    "no Binding after its call": late_bindings,
    "what fits does not wait": waiting_although_they_fit,
    "every eviction is needed": needless_victims,
    "no unexpected error": errors,
    "no traceback": tracebacks,
    "memory and descriptors do not grow": growth,
    "lists are rare": frequent_lists,
    "the books are right": wrong_books,
}


def judge(past: Past) -> list[str]:
    """A sentence each. Raises ValueError where the folder holds no run that got to its end."""
    return [f"{name}: {said}" for name, judged in JUDGES.items() for said in judged(past)]

"""What each extender has in its books when all is calm, against the API: gangs, slots, holds, its cache.

Reads what `run` has asked both replicas for: the rules of bookkeeping.py in the process itself, and the pages /debug/gangs and
/debug/cache?against=api. No lost event, no slot and no hold may be left of all that has happened.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tests.e2e.api import Json
from tests.e2e.fault_run.judges.gangs import MINE
from tests.e2e.fault_run.record import Past, lines
from tests.e2e.history import seen

BOUND = "Bound"


def wrong_books(past: Past) -> list[str]:
    return [
        f"the extender of {line['replica']}: {said}" for line in lines(past.folder, "books") for said in _wrong(line)
    ]


def _wrong(line: Mapping[str, Any]) -> Iterator[str]:
    if line["wrong"] is None or line["gangs"] is None or line["cache"] is None:
        yield "did not say what is in its books"
        return
    yield from line["wrong"]
    yield from _of_the_cache(line["cache"])
    pods = {pod["metadata"]["uid"]: pod for pod in line["pods"]}
    for gang in line["gangs"]:
        yield from _of_a_gang(gang, pods, leads=line["leads"])
    yield from _missing(line["gangs"], pods)


def _of_the_cache(cache: Json) -> Iterator[str]:
    if cache["unanswered"]:
        yield f"its cache could not be held against the API: {cache['unanswered']}"
    elif cache["differs"]:
        yield f"its cache is not as the API is: nodes {cache['ofNodes']}, pods {cache['ofPods']}"


def _of_a_gang(gang: Json, pods: Mapping[str, Json], *, leads: bool) -> Iterator[str]:
    key = gang["group"]
    members = {f"{key.partition('/')[0]}/{each['name']}" for each in gang["members"]}
    for member in gang["members"]:
        pod = pods.get(member["uid"])
        if pod is None:
            yield f"{key}: {member['name']} is a member, and is not there"
        elif bool(pod["spec"].get("nodeName")) != (member["state"] == BOUND):
            yield f"{key}: {member['name']} is {member['state']}, and its node is {pod['spec'].get('nodeName')}"
    for slot in gang["slots"]:
        if slot["pod"] and slot["pod"] not in members:
            yield f"{key}: a slot on {slot['node']} is for {slot['pod']}, which is no member"
    if gang["held"] or gang["ending"]:
        yield f"{key}: {gang['held']} calls are held, {gang['ending']} are ending"
    if gang["slots"] and not leads:
        yield f"{key}: has {len(gang['slots'])} slots, and another leads"


def _missing(gangs: Iterable[Json], pods: Mapping[str, Json]) -> Iterator[str]:
    """Of the gangs that are judged."""
    known = {member["uid"] for gang in gangs for member in gang["members"]}
    for uid, pod in pods.items():
        now = seen(pod)
        of_a_gang = now.group and now.name.partition("/")[0] in MINE and not (now.finished or now.leaving)
        if of_a_gang and uid not in known:
            yield f"{now.group}: {now.name} is there, and is no member"

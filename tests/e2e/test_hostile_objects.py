"""Hundreds of hostile pods and PodGroups, as the real API server lets them in: others are scheduled beside them, and each gang
that cannot be read says why; so too after a restart of the extender that finds them all there.

Of the keys and fields that the program reads: tests/hostile.py. The times are printed; the limits here are for a busy machine.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from urllib3.exceptions import ProtocolError

from extender.client.interface import POD_GROUPS, PODS
from extender.plugins.coscheduling.spec import keys
from tests.e2e import api as paths
from tests.e2e.api import Json, Refused
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import SCHEDULER_NAME
from tests.e2e.extender import Extender
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually
from tests.hostile import ALL_FIELDS, ALL_KEYS, NUMBERS, OTHERS, TEXTS, Hostile, of_field, of_key

NAMESPACE = "hostile"
NO_MEANING = ("\x00", "a\nb", "\u202e", "9" * 12_000, "[" * 100_000)  # for no key that asks for something
SEEN_WITHIN = 90.0  # seconds until kube-scheduler has tried all of them


def nonsense() -> Iterator[Hostile]:
    """Of each annotation that says something of a gang, on a PodGroup and on pods: what no parser may take."""
    for number, (key, kind) in enumerate(ALL_KEYS):
        if key in keys.ASKING or key in (keys.KOORDINATOR_NAME, keys.KOORDINATOR_MIN_AVAILABLE):
            for which, value in enumerate(NO_MEANING):
                yield from of_key(key, kind, value, f"nonsense-{number}-{which}")


def anything(seed: int) -> Iterator[Hostile]:
    """Values of all kinds in all keys and fields of pods and PodGroups."""
    draw = random.Random(seed)
    for number, (key, kind) in enumerate(ALL_KEYS):
        for which in range(4):
            yield from of_key(key, kind, draw.choice(TEXTS), f"key-{number}-{which}")
    for number, (resource, place, _) in enumerate(ALL_FIELDS):
        if resource in (PODS, POD_GROUPS):
            for which, value in enumerate((draw.choice(TEXTS), draw.choice(NUMBERS), draw.choice(OTHERS))):
                yield from of_field(resource, place, value, f"field-{number}-{which}")


def let_in(cluster: Cluster, hostile: Iterator[Hostile]) -> list[Hostile]:
    """What of it the API server takes."""
    found = []
    for each in hostile:
        if each.resource not in (PODS, POD_GROUPS) or not each.possible:
            continue
        with suppress(Refused, ProtocolError):  # of the latter more warnings came back than Python takes headers
            create(cluster, each)
            found.append(each)
    return found


def create(cluster: Cluster, each: Hostile) -> None:
    document: Json = dict(each.document)
    if each.resource is PODS:
        spec = document.get("spec")
        if isinstance(spec, dict):
            document["spec"] = {"schedulerName": SCHEDULER_NAME, **spec}
        cluster.api.create(paths.PODS.format(namespace=NAMESPACE), {**document, "kind": "Pod", "apiVersion": "v1"})
    else:
        kind = {"kind": "PodGroup", "apiVersion": POD_GROUPS.api_version}
        cluster.api.create(paths.POD_GROUPS.format(namespace=NAMESPACE), {**document, **kind})


def untold(cluster: Cluster, hostile: list[Hostile]) -> list[str]:
    """Of gangs that ask for nonsense: those of which neither the PodGroup's condition nor the pod's message names the key."""
    groups = texts(cluster.api.items(paths.POD_GROUPS.format(namespace=NAMESPACE)), "Scheduled")
    pods = texts(cluster.recorder.pods(), "PodScheduled")
    return [
        f"{each} {name}"
        for each in hostile
        if (name := each.document["metadata"]["name"])
        and each.where not in (groups if each.resource is POD_GROUPS else pods).get(name, "")
    ]


def texts(objects: list[Json], condition: str) -> dict[str, str]:
    """By name, the message of that condition."""
    return {
        each["metadata"]["name"]: known.get("message", "")
        for each in objects
        for known in each.get("status", {}).get("conditions", [])
        if known["type"] == condition and each["metadata"]["namespace"] == NAMESPACE
    }


def livez(extender: Extender) -> float:
    """Seconds until /livez is answered."""
    began = time.monotonic()
    assert extender.ops("/livez") == (200, "ok")
    return time.monotonic() - began


def time_others(cluster: Cluster, extender: Extender, what: str) -> None:
    """A single pod and a gang of two are bound, and /livez is answered, beside all the rest."""
    slowest = livez(extender)
    began = time.monotonic()
    cluster.pod(f"single-{what}")
    cluster.recorder.await_bound(f"single-{what}", within=30)
    single, began = time.monotonic() - began, time.monotonic()
    slowest = max(slowest, livez(extender))
    cluster.pod_group(f"honest-{what}", min_member=2)
    members = [f"honest-{what}-{number}" for number in range(2)]
    for name in members:
        cluster.pod(name, group=f"honest-{what}")
    cluster.recorder.await_bound(*members, within=30)
    gang = time.monotonic() - began
    slowest = max(slowest, livez(extender))
    calls = extender.metric("gang_extender_request_duration_seconds_count")
    mean = 1000 * extender.metric("gang_extender_request_duration_seconds_sum") / calls
    print(
        f"{what}: single pod bound in {single:.2f} s, gang of two in {gang:.2f} s, /livez in {slowest:.3f} s at most",
        end="",
    )
    print(f"; {calls:.0f} calls of {mean:.1f} ms")


@pytest.mark.timeout(400)
def test_others_are_scheduled_beside_hostile_objects_and_each_says_what_is_wrong(
    cluster: Cluster, tmp_path: Path, programs: list[Any]
) -> None:
    cluster.judged = True  # of hostile pods nothing can be said; of the others below
    seed = random.randrange(2**32)
    print("seed", seed)
    for number in range(3):
        cluster.node(f"node-{number}", cpu="640", pods=2000)
    cluster.namespace(NAMESPACE)
    pair = Pair.of(cluster.plane, tmp_path)
    programs.extend(pair)
    pair.start()
    wrong = let_in(cluster, nonsense())
    others = let_in(cluster, anything(seed))
    print(f"{len(wrong)} objects of gangs that ask for nonsense, {len(others)} with any value")
    assert len(wrong) > 100
    assert len(others) > 100
    time_others(cluster, pair.extender, "present")

    pair.extender.kill()
    pair.extender.start()
    time_others(cluster, pair.extender, "restarted")

    eventually(lambda: not untold(cluster, wrong), within=SEEN_WITHIN, what="each says what is wrong with it")
    assert "unexpected error" not in pair.extender.log()
    assert "Traceback" not in pair.extender.log()
    assert [each for each in cluster.violations() if "honest" in each] == []

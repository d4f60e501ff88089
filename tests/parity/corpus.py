"""The parity corpus: clusters, and what the real Go plugins of kube-scheduler 1.36.3 answered for them; how answers compare.

data/scenarios.json.gz and expected.json.gz are the corpus as it was given; data/fresh.json.gz is recorded by record_fresh.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

Json = dict[str, Any]
DATA = Path(__file__).parent / "data"


def read(name: str) -> list[Json]:
    with gzip.open(DATA / name) as file:
        loaded: list[Json] = json.load(file)
    return loaded


def scenarios() -> list[tuple[Json, Json]]:
    return list(zip(read("scenarios.json.gz"), read("expected.json.gz"), strict=True))


def fresh() -> list[tuple[Json, Json]]:
    """Scenarios of our own making, recorded by record_fresh."""
    return [(each["scenario"], each["expected"]) for each in read("fresh.json.gz")]


SETS = frozenset({"reasons", "bestSet", "chosenSet"})


def comparable(answer: Json) -> Json:
    """Sets sorted, and only whether preemption takes a node: it is one of several equals."""
    sorted_sets: Json = _with_sets(answer)
    preemption = sorted_sets.get("preemption")
    if preemption is None:
        return sorted_sets
    post_filter = {**preemption["postFilter"], "nominatedNode": bool(preemption["postFilter"]["nominatedNode"])}
    return {**sorted_sets, "preemption": {**preemption, "postFilter": post_filter}}


def _with_sets(value: Any) -> Any:
    """Lists in which the order means nothing, sorted."""
    if isinstance(value, dict):
        return {k: sorted(v) if k in SETS and v else _with_sets(v) for k, v in value.items()}
    return [_with_sets(item) for item in value] if isinstance(value, list) else value


def node_is_of_the_best(preemption: Json) -> bool:
    """The one that preemption took. Of more nodes than are dry-run, which ones are is up to a random offset."""
    node = preemption["postFilter"]["nominatedNode"]
    few = len(preemption["potentialNodes"]) <= preemption["numCandidates"]
    return not node or node in (preemption["chosenSet"] if few else preemption["potentialNodes"])

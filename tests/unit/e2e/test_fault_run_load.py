"""A fault run has as much of everything in the end as after some minutes: what grows with it would hide what grows in the extender."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

from tests.e2e.api import Json
from tests.e2e.fault_run.load import MOST_SINGLES, too_many_singles
from tests.e2e.fault_run.nodes import MOST, Nodes


def single(number: int, **metadata: Any) -> Json:
    made = f"2026-01-01T00:{number:02}:00Z"
    return {"metadata": {"namespace": "default", "name": f"single{number}", "creationTimestamp": made, **metadata}}


def test_the_oldest_single_pods_go_for_another() -> None:
    pods = [single(number) for number in reversed(range(MOST_SINGLES + 1))]
    assert too_many_singles(pods) == ["single0", "single1"]


def test_single_pods_that_go_are_none_too_many() -> None:
    pods = [single(number) for number in range(MOST_SINGLES - 1)]
    assert too_many_singles([*pods, single(50, deletionTimestamp="2026-01-01T01:00:00Z")]) == []


def test_others_of_that_name_stay() -> None:
    assert too_many_singles([single(number, namespace="hostile") for number in range(2 * MOST_SINGLES)]) == []


def test_there_are_never_more_nodes_than_that() -> None:
    there: set[str] = set()
    cluster: Any = SimpleNamespace(
        node=lambda name, **_: there.add(name),
        all_pods=list,
        api=SimpleNamespace(delete=lambda path: there.remove(path.rpartition("/")[2])),
    )
    provisioner: Any = SimpleNamespace(reach=lambda name: None)
    nodes = Nodes(cluster, provisioner, random.Random(1), lambda line: None)
    seen = []
    for _ in range(3 * MOST):
        nodes.add()
        seen.append(len(there))
    assert max(seen) == MOST

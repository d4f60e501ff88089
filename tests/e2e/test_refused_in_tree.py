"""kube-scheduler knows a rule that the extender is not told of: an addedAffinity in its own configuration.

Planned places are refused then; the gang ends on the nodes that kube-scheduler accepts, whole, or it waits, holds nothing,
and says in kube-scheduler's words why.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import SCHEDULER_NAME, ControlPlane
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually
from tests.e2e.test_gated_gangs import gang

POOL = {"example.com/pool": "gangs"}
BOTH = pytest.mark.parametrize("gated", [pytest.param(True, id="gated"), pytest.param(False, id="plain")])
QUOTE = "kube-scheduler says: "
ANYWHERE = "anywhere"  # a profile of the same kube-scheduler that knows no such rule
ENFORCED = "node(s) didn't match scheduler-enforced node affinity"


def with_added_affinity(config: dict[str, Any]) -> None:
    ((key, value),) = POOL.items()
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}]
    args = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "NodeAffinityArgs",
        "addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}},
    }
    (profile,) = config["profiles"]
    config["profiles"].append({**profile, "schedulerName": ANYWHERE})
    profile["pluginConfig"] = [*profile.get("pluginConfig", []), {"name": "NodeAffinity", "args": args}]


@pytest.fixture(scope="module")
def module_programs(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    settings = {"schedulerNames": [SCHEDULER_NAME, ANYWHERE]}
    folder = tmp_path_factory.mktemp("pair")
    with Pair.of(plane, folder, change=with_added_affinity, settings=settings).running() as pair:
        yield pair


def nodes(cluster: Cluster, refused: int, accepted: int) -> None:
    """A member each. By their names those that kube-scheduler refuses come first."""
    for number in range(refused):
        cluster.node(f"a-{number}", cpu="1")
    for number in range(accepted):
        cluster.node(f"b-{number}", cpu="1", labels=POOL)


@BOTH
def test_the_gang_ends_whole_on_the_nodes_that_kube_scheduler_accepts(
    cluster: Cluster, module_programs: Pair, gated: bool
) -> None:
    nodes(cluster, refused=5, accepted=3)
    cluster.pod_group("train", min_member=3)
    names = gang(cluster, "train", 3, gated=gated)
    cluster.recorder.await_bound(*names, within=15)
    bound_to = {change.pod.node for change in cluster.recorder.history()} - {""}
    assert bound_to == {"b-0", "b-1", "b-2"}
    assert module_programs.extender.metric("gang_extender_plan_refuted_total") > 0


@BOTH
def test_where_they_are_too_few_nothing_stays_held_and_kube_scheduler_is_quoted(
    cluster: Cluster, module_programs: Pair, gated: bool
) -> None:
    nodes(cluster, refused=4, accepted=2)
    cluster.pod_group("train", min_member=3)
    names = gang(cluster, "train", 3, gated=gated)

    def told() -> bool:
        reason, message = cluster.condition_of_group("train")
        return reason == "RefutedByScheduler" and QUOTE in message and ENFORCED in message

    eventually(told, within=30, what="the condition quotes kube-scheduler")
    eventually(lambda: module_programs.extender.held() == 0, within=5, what="nothing is held")
    status, page = module_programs.extender.ops("/gangs/default/train")
    assert (status, QUOTE in page, ENFORCED in page) == (200, True, True)
    assert cluster.recorder.bound() == set()

    cluster.node("b-new", cpu="1", labels=POOL)
    cluster.recorder.await_bound(*names, within=30)


@BOTH
def test_no_pod_is_kept_out_for_a_gang_that_no_node_is_for(
    cluster: Cluster, module_programs: Pair, gated: bool
) -> None:
    """kube-scheduler refuses every member before the extender is asked about any."""
    nodes(cluster, refused=2, accepted=0)
    cluster.pod_group("train", min_member=2)
    names = gang(cluster, "train", 2, gated=gated)
    eventually(
        lambda: cluster.condition_of_group("train")[0] == "RefutedByScheduler", within=15, what="the group says why"
    )
    for number in range(2):
        cluster.pod(f"other-{number}", requests={"cpu": "1"}, scheduler_name=ANYWHERE)
    cluster.recorder.await_bound("other-0", "other-1", within=10)
    for number in range(2):
        cluster.node(f"b-{number}", cpu="1", labels=POOL)
    cluster.recorder.await_bound(*names, within=20)

"""After etcd was restored: each owner makes anew what it had made since the snapshot, and deletes again what it had deleted.

As controllers and kubelets do by themselves, and people by hand. Used by `load`.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from tests.e2e import api as paths
from tests.e2e.api import Json, Refused
from tests.e2e.cluster import Cluster
from tests.e2e.fault_run.admission import held_back
from tests.e2e.fault_run.budgets import ALL_BUDGETS, Budget
from tests.e2e.fault_run.kinds import Gang
from tests.e2e.fault_run.nodes import Nodes

AT_ONCE = 8
Key = tuple[str, str]  # namespace, name


def put_right(
    cluster: Cluster, nodes: Nodes, gangs: Sequence[Gang], over: Sequence[Gang], budgets: Sequence[Budget]
) -> None:
    """gangs: those that are to be there; over: those that are not. Their pods first and several at a time: each call may take seconds,
    and until then such a gang is a fraction."""
    pods = {_key(pod): pod for pod in cluster.api.items(paths.ALL_PODS)}
    back = [(gang, names) for gang in over if (names := _members(gang, pods))]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in pool.map(lambda each: _delete(cluster, *each), back):
            pass
    nodes.put_right()
    groups = {_key(group) for group in cluster.api.items(paths.ALL_POD_GROUPS)}
    for gang in over:
        if (gang.namespace, gang.name) in groups:
            cluster.delete_pod_group(gang.name, namespace=gang.namespace)
    for gang in gangs:
        there = _members(gang, pods)
        _delete(cluster, gang, there - gang.pods.keys())
        if (gang.namespace, gang.name) not in groups:
            gang.make_group(cluster)
        for name in gang.pods.keys() - there:
            gang.make_member(cluster, gang.pods[name], name)
        gang.queued = gang.queued or any(held_back(pods[gang.namespace, name]) for name in there)
    ended = {(gang.namespace, gang.name) for gang in over}
    for namespace, name in {_key(budget) for budget in cluster.api.items(ALL_BUDGETS)} & ended:
        Budget(namespace, name, {}).remove(cluster.api)
    for budget in budgets:
        with suppress(Refused):  # it is there
            budget.make(cluster.api)


def _key(item: Json) -> Key:
    return item["metadata"]["namespace"], item["metadata"]["name"]


def _members(gang: Gang, pods: dict[Key, Json]) -> set[str]:
    return {
        name
        for (namespace, name), pod in pods.items()
        if namespace == gang.namespace and pod["metadata"].get("labels", {}).get("gang") == gang.name
    }


def _delete(cluster: Cluster, gang: Gang, names: set[str]) -> None:
    for name in names:
        with suppress(Refused):
            cluster.delete_pod(name, namespace=gang.namespace, grace=gang.grace)

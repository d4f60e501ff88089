"""The cluster when a pod waits although it fits: what helps to see why.

Used by `load`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.e2e import api as paths
from tests.e2e.cluster import Cluster
from tests.e2e.fault_run.wishes import priority_of
from tests.e2e.history import seen


def describe(found: Sequence[str], cluster: Cluster, page: Callable[[str], str], say: Callable[[str], None]) -> None:
    """What there is, and what the extender that leads says of it. page: its page of that path."""
    for line in found:
        namespace, _, name = line.partition(":")[0].rpartition(" ")[2].partition("/")
        say(page(f"/gangs/{namespace}/{name}"))
    for node in cluster.api.items(paths.NODES) if found else ():
        name, spec = node["metadata"]["name"], node["spec"]
        off = " (cordoned)" if spec.get("unschedulable") else " (tainted)" if spec.get("taints") else ""
        cpu = node["status"]["allocatable"]["cpu"]
        pods = [pod for pod in cluster.all_pods() if seen(pod).node == name and not seen(pod).finished]
        there = [f"{pod['metadata']['name']}:{seen(pod).requests['cpu']}:{priority_of([pod])}" for pod in pods]
        say(f"{name}{off}, {cpu} cpu, {node['metadata']['labels']}: {', '.join(there)}")

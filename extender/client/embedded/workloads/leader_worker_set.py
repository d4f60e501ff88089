"""Pods of a LeaderWorkerSet: a leader for each replica, and its workers, with the keys that the preset `lws` of groupSources reads.

LWS: pkg/controllers/{leaderworkerset,pod}_controller.go, pkg/webhooks/pod_webhook.go
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from extender.client.embedded.workloads.built_in import ordered_pod
from extender.client.embedded.workloads.workload import After, Made, Workload

PREFIX = "leaderworkerset.sigs.k8s.io/"
EXCLUSIVE = f"{PREFIX}exclusive-topology"


def leader_worker_set(workload: Workload) -> Iterator[Made]:
    template = workload.spec.section("leaderWorkerTemplate")
    workers = template.section("workerTemplate")
    leaders = template.section("leaderTemplate") if "leaderTemplate" in template.value else workers
    size = template.number("size", least=1)
    if workload.has(EXCLUSIVE):
        workload.warn(f"the annotation {EXCLUSIVE} is not simulated: replicas may share a domain")
    ready_first = workload.spec.text("startupPolicy") == "LeaderReady"
    for replica in range(workload.spec.number("replicas")):
        name = f"{workload.name}-{replica}"
        key = hashlib.sha1(f"{workload.namespace}/{name}".encode(), usedforsecurity=False).hexdigest()
        labels = {"name": workload.name, "group-index": str(replica), "group-key": key}
        labels = {PREFIX + label: value for label, value in labels.items()}
        annotations = {f"{PREFIX}size": str(size)}
        index = f"{PREFIX}worker-index"
        leader = ordered_pod(
            workload, workload.name, leaders, replica, labels={**labels, index: "0"}, annotations=annotations
        )
        yield leader
        of_workers = {**annotations, f"{PREFIX}leader-name": name}
        after = After((leader.key,)) if ready_first else None
        for worker in range(1, size):
            indexed = {**labels, index: str(worker)}
            yield ordered_pod(workload, name, workers, worker, labels=indexed, annotations=of_workers, after=after)

"""Pods of a JobSet: its Jobs', with the labels that it puts on them, in the order that dependsOn or startupPolicy asks for.

JobSet: pkg/controllers/jobset_controller.go (constructJob, labelAndAnnotateObject, reconcileReplicatedJobs)
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from extender.client.embedded.workloads.built_in import job_pods
from extender.client.embedded.workloads.section import Section
from extender.client.embedded.workloads.workload import After, Made, Workload

PREFIX = "jobset.sigs.k8s.io/"
_ALL = ""  # no group has this name
EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"


def jobset(workload: Workload) -> Iterator[Made]:
    if workload.suspended():
        return iter(())
    replicated = [ReplicatedJob(each) for each in workload.spec.sections("replicatedJobs")]
    if workload.has(EXCLUSIVE) or any(
        EXCLUSIVE in each.job.section("metadata").texts("annotations") for each in replicated
    ):
        workload.warn(f"the annotation {EXCLUSIVE} is not simulated: its Jobs may share a domain")
    if any("scheduling" in each.job.section("spec").value for each in replicated):
        workload.warn("spec.scheduling of its Jobs makes no PodGroup: that is left to JobSet, and is not simulated")
    in_order = workload.spec.section("startupPolicy").text("startupPolicyOrder") == "InOrder"
    return jobs_of(workload, replicated, in_order=in_order)


@dataclass(slots=True)
class ReplicatedJob:
    """One of `spec.replicatedJobs`. made: the pods that it has by now. more_labels: of its pods, besides JobSet's."""

    section: Section
    more_labels: Mapping[str, str] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.section.text("name")

    @property
    def replicas(self) -> int:
        return self.section.number("replicas")

    @property
    def group(self) -> str:
        return self.section.text("groupName", "default")

    @property
    def job(self) -> Section:
        return self.section.section("template")

    def waits_for(self, by_name: Mapping[str, ReplicatedJob]) -> After | None:
        """By dependsOn. Of several the last counts for whether they have to end."""
        needed = self.section.sections("dependsOn")
        missing = [each for each in needed if each.text("name") not in by_name]
        if missing:
            raise missing[0].error(".name", f"no replicated job of that name comes before: {missing[0].text('name')!r}")
        pods = tuple(key for each in needed for key in by_name[each.text("name")].made)
        return After(pods, any(each.text("status") == "Complete" for each in needed)) if needed else None


def jobs_of(workload: Workload, replicated: Sequence[ReplicatedJob], *, in_order: bool) -> Iterator[Made]:
    total = sum(each.replicas for each in replicated)
    of_group: Counter[str] = Counter()
    for each in replicated:
        of_group[each.group] += each.replicas
    earlier: dict[str, ReplicatedJob] = {}
    first: Counter[str] = Counter()  # the index of the next Job, of all and of each group
    before: ReplicatedJob | None = None
    for each in replicated:
        after = After(tuple(before.made)) if in_order and before is not None else each.waits_for(earlier)
        common = {
            "jobset-name": workload.name,
            "jobset-uid": workload.owner["uid"],
            "replicatedjob-name": each.name,
            "restart-attempt": "0",
            "replicatedjob-replicas": str(each.replicas),
            "global-replicas": str(total),
            "group-name": each.group,
            "group-replicas": str(of_group[each.group]),
        }
        for index in range(each.replicas):
            name = f"{workload.name}-{each.name}-{index}"
            own = {
                "job-index": str(index),
                "job-global-index": str(first[_ALL] + index),
                "job-group-index": str(first[each.group] + index),
                "job-key": hashlib.sha1(f"{workload.namespace}/{name}".encode(), usedforsecurity=False).hexdigest(),
            }
            keys = {PREFIX + key: value for key, value in {**common, **own}.items()}
            yield from _pods_of_job(workload, each, name, keys, after)
        first.update({_ALL: each.replicas, each.group: each.replicas})
        earlier[each.name] = before = each


def _pods_of_job(
    workload: Workload, replicated: ReplicatedJob, name: str, keys: Mapping[str, str], after: After | None
) -> Iterator[Made]:
    for made in job_pods(
        workload,
        name,
        replicated.job.section("spec"),
        labels={**keys, **replicated.more_labels},
        annotations=keys,
        completion_mode="Indexed",
        after=after,
    ):
        replicated.made.append(made.key)
        yield made

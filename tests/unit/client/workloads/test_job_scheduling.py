"""The PodGroup of Kubernetes 1.37 that the Job controller makes of spec.scheduling; CronJobs, whose Jobs have it too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from extender.api.codec import DecodeError
from extender.client.interface import IN_TREE_POD_GROUPS
from tests.unit.client.workloads.conftest import Cluster

Load = Callable[[str], Cluster]
POD = "template: {spec: {containers: [{name: c}]}}"


def job(scheduling: str, *more: str, parallelism: int = 3, template: str = POD) -> str:
    fields = [f"parallelism: {parallelism}", f"scheduling: {{{scheduling}}}", *more, template]
    return f"apiVersion: batch/v1\nkind: Job\nmetadata: {{name: train}}\nspec: {{{', '.join(fields)}}}\n"


def cron_job(spec: str, more: str = "schedule: 0 2 * * *") -> str:
    head = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: nightly}\n"
    return f"{head}spec: {{{more}, jobTemplate: {{spec: {{{spec}}}}}}}\n"


def group_of(cluster: Cluster) -> Any:
    [group] = cluster.api.list_page(IN_TREE_POD_GROUPS).items
    return group


@pytest.mark.parametrize(
    ("policy", "minimum"),
    [
        pytest.param("schedulingPolicy: {gang: {}}", 3, id="parallelism, if nothing is said"),
        pytest.param("schedulingPolicy: {gang: {minCount: 2}}", 2, id="fewer"),
        pytest.param("schedulingPolicy: {basic: {}}", None, id="each on its own"),
        pytest.param("disruptionMode: {single: {}}", None, id="without a policy each on its own too"),
    ],
)
def test_a_job_has_a_pod_group_that_its_pods_name(load: Load, policy: str, minimum: int | None) -> None:
    cluster = load(job(policy))
    group = group_of(cluster)
    gang = group.spec.scheduling_policy.gang
    assert (gang.min_count if gang is not None else None) == minimum
    named = [pod.spec.scheduling_group for pod in cluster.pods.values()]
    assert {each.pod_group_name for each in named if each is not None} == {group.metadata.name}
    assert [(owner.kind, owner.name) for owner in group.metadata.owner_references] == [("Job", "train")]
    assert cluster.loaded.misspelt == []


def test_what_the_job_asks_for_goes_to_the_pod_group(load: Load) -> None:
    spec = group_of(
        load(
            job(
                "schedulingPolicy: {gang: {}}, schedulingConstraints: {topology: [{key: rack}]}, disruptionMode: {all: {}}"
            )
        )
    ).spec
    assert [each.key for each in spec.scheduling_constraints.topology] == ["rack"]
    assert spec.disruption_mode.all is not None


def test_a_job_without_it_has_none(load: Load) -> None:
    cluster = load("apiVersion: batch/v1\nkind: Job\nmetadata: {name: train}\nspec: {parallelism: 2}\n")
    assert cluster.loaded.created == {"Pod": 2}


def test_beside_a_group_of_the_template_s_own_it_does_not_count(load: Load) -> None:
    own = "template: {spec: {schedulingGroup: {podGroupName: mine}, containers: [{name: c}]}}"
    cluster = load(job("schedulingPolicy: {gang: {}}", template=own))
    assert cluster.loaded.created == {"Pod": 3}
    assert "spec.scheduling does not count beside schedulingGroup" in cluster.loaded.warnings[0]


def test_a_template_of_a_workload_object_is_not_simulated_and_said(load: Load) -> None:
    text = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j, annotations: {scheduling.k8s.io/group-template-name: w}}\nspec: {}\n"
    assert "group-template-name is not simulated" in load(text).loaded.warnings[0]


def test_one_run_of_a_cron_job_is_simulated(load: Load) -> None:
    cluster = load(cron_job(f"parallelism: 2, scheduling: {{schedulingPolicy: {{gang: {{}}}}}}, {POD}"))
    assert [name.rsplit("-", 1)[0] for name in cluster.pods] == ["nightly-0"] * 2
    owners = {owner.name for pod in cluster.pods.values() for owner in pod.metadata.owner_references}
    assert owners == {"nightly-0"}
    assert group_of(cluster).spec.scheduling_policy.gang.min_count == 2
    assert cluster.loaded.misspelt == []


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(cron_job(POD, "suspend: true"), id="the CronJob"),
        pytest.param(cron_job(f"suspend: true, {POD}"), id="its Jobs"),
    ],
)
def test_a_suspended_one_has_no_pods_and_a_warning_says_so(load: Load, text: str) -> None:
    cluster = load(text)
    assert cluster.loaded.created == {}
    assert "it is suspended" in cluster.loaded.warnings[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(
            job("schedulingPolicy: {gang: {minCount: 4}}"),
            ".scheduling.schedulingPolicy.gang.minCount: 4 is more than parallelism, which is 3", id="more than there are",
        ),
        pytest.param(
            job("schedulingPolicy: {gang: {minCount: 0}}"), ".scheduling.schedulingPolicy.gang.minCount: a number of 1",
            id="none",
        ),
        pytest.param(
            job("schedulingPolicy: {gang: {}, basic: {}}"), ".scheduling.schedulingPolicy: exactly one of", id="both"
        ),
        pytest.param(job("schedulingPolicy: gang"), ".scheduling.schedulingPolicy: an object is wanted", id="a text"),
        pytest.param(cron_job("parallelism: 2147483648"), ".jobTemplate.spec.parallelism: 2147483648 is more", id="many"),
        pytest.param(
            "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: x}\nspec: {}\n", ".jobTemplate.spec: Required value",
            id="a CronJob of nothing",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(load: Load, text: str, said: str) -> None:
    with pytest.raises(DecodeError) as failed:
        load(text)
    assert f"objects.yaml:1: $.spec{said}" in str(failed.value)

"""Which step of its job a member is, and what of the members that are missing is plain by it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from extender.api.metav1 import Condition
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.spec.sources.steps import Rest, Step, rest_of, started_early, step_of
from tests.objects import make_pod

REPLICATED_JOB, JOBS = "jobset.sigs.k8s.io/replicatedjob-name", "jobset.sigs.k8s.io/global-replicas"


@pytest.mark.parametrize(
    ("labels", "step"),
    [
        pytest.param({"jobset.sigs.k8s.io/replicatedjob-name": "dataset-initializer"}, Step.INITIALIZER, id="JobSet"),
        pytest.param({"trainer.kubeflow.org/trainjob-ancestor-step": "model-initializer"}, Step.INITIALIZER, id="step"),
        pytest.param({REPLICATED_JOB: "node"}, None, id="a trainer's node"),
        pytest.param({REPLICATED_JOB: "node", JOBS: "1"}, None, id="a trainer's node, of its only Job"),
        pytest.param({REPLICATED_JOB: "node", JOBS: "2"}, Step.NODE, id="a trainer's node beside another Job"),
        pytest.param({REPLICATED_JOB: "node", JOBS: "many"}, None, id="a number of Jobs that is none"),
        pytest.param({REPLICATED_JOB: "ps", JOBS: "2"}, None, id="a Job that is no trainer's"),
        pytest.param({"training.kubeflow.org/job-role": "worker"}, Step.WORKER, id="MPI's worker"),
        pytest.param({"mpi-job-role": "worker"}, Step.WORKER, id="MPI's worker, the older label"),
        pytest.param({"training.kubeflow.org/job-role": "launcher"}, None, id="MPI's launcher"),
        pytest.param({"training.kubeflow.org/replica-type": "worker"}, None, id="PyTorchJob's worker"),
        pytest.param({"spark-role": "driver"}, Step.DRIVER, id="Spark's driver"),
        pytest.param({"spark-role": "executor"}, None, id="Spark's executor"),
        pytest.param({"spark-role": "driver" * 50_000}, None, id="a label that is too long"),
        pytest.param({}, None, id="no label"),
    ],
)
def test_the_step_of_a_member(labels: Mapping[str, str], step: Step | None) -> None:
    assert step_of(make_pod().name("p").labels(labels).obj()) == step


@pytest.mark.parametrize(
    ("steps", "members", "missing", "ended", "rest"),
    [
        pytest.param({Step.INITIALIZER: 2}, 2, 3, 0, Rest(0, 3), id="initializers: all others come later"),
        pytest.param({Step.INITIALIZER: 1}, 1, 4, 1, Rest(1, 3), id="one of two has ended"),
        pytest.param({}, 0, 5, 2, Rest(2, 0), id="both have ended, and no node is there"),
        pytest.param({}, 2, 3, 2, Rest(2, 0), id="a node is missing: it is waited for"),
        pytest.param({}, 3, 2, 2, Rest(2, 0), id="all nodes are there"),
        pytest.param({Step.INITIALIZER: 1}, 2, 3, 0, Rest(0, 0), id="a member of no step beside an initializer"),
        pytest.param({Step.INITIALIZER: 7}, 7, -2, 0, Rest(0, 0), id="more than minMember"),
        pytest.param({Step.WORKER: 2}, 2, 1, 0, Rest(0, 1), id="all workers: the launcher comes later"),
        pytest.param({Step.WORKER: 1}, 1, 2, 0, Rest(0, 0), id="a worker is missing"),
        pytest.param({Step.WORKER: 2}, 3, 1, 0, Rest(0, 0), id="the launcher is there, a worker is missing"),
        pytest.param({Step.DRIVER: 1}, 1, 1, 0, Rest(0, 0), id="minMember is more than the driver"),
        pytest.param({}, 2, 1, 0, Rest(0, 0), id="a plain gang"),
        pytest.param({}, 2, 1, 9, Rest(1, 0), id="more have ended than are missing"),
    ],
)
def test_what_is_plain_of_the_rest(
    steps: Mapping[Step, int], members: int, missing: int, ended: int, rest: Rest
) -> None:
    assert rest_of(steps, members, missing, ended) == rest


@pytest.mark.parametrize(
    ("members", "missing", "ended", "jobs_after", "rest"),
    [
        pytest.param(2, 1, 0, 1, Rest(0, 1), id="all nodes: the launcher comes later"),
        pytest.param(1, 2, 0, 1, Rest(0, 0), id="a node is missing"),
        pytest.param(3, 2, 2, 0, Rest(2, 0), id="the initializers have ended, and there is no other Job"),
        pytest.param(2, 3, 2, 0, Rest(2, 0), id="so they have, and a node is missing"),
        pytest.param(3, 3, 2, 1, Rest(2, 1), id="so they have, and the launcher comes later"),
        pytest.param(2, 4, 2, 1, Rest(2, 0), id="so they have, and a node and the launcher are missing"),
        pytest.param(3, 2, 0, 2, Rest(0, 0), id="nothing is known of the initializers"),
        pytest.param(3, 1, 0, 2, Rest(0, 0), id="two other Jobs, and one member is missing"),
    ],
)
def test_nodes_of_a_train_job(members: int, missing: int, ended: int, jobs_after: int, rest: Rest) -> None:
    assert rest_of({Step.NODE: members}, members, missing, ended, jobs_after) == rest


def test_what_a_condition_says_is_read_again() -> None:
    texts = {
        messages.started_in_part(2, 5, initializers=True): 2,
        messages.complete_at_last(2, 5): 2,
        messages.started_in_part(2, 3, initializers=False): 0,
        messages.complete(3): 0,
        "9" * 100_000: 0,
        "": 0,
    }
    for text, number in texts.items():
        assert (
            started_early(
                [Condition("Other", message="7 initializers of minMember 9"), Condition("Scheduled", message=text)]
            )
            == number
        )
    assert started_early([]) == 0

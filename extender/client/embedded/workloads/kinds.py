"""The kinds of which pods are made, and by which controller.

`load` asks it for each object that no controller has seen yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from extender.client.embedded.workloads import built_in, kubeflow
from extender.client.embedded.workloads.jobset import jobset
from extender.client.embedded.workloads.leader_worker_set import leader_worker_set
from extender.client.embedded.workloads.ray_cluster import ray_cluster
from extender.client.embedded.workloads.ray_job import ray_job, ray_service
from extender.client.embedded.workloads.spark import spark_application
from extender.client.embedded.workloads.trainer import train_job
from extender.client.embedded.workloads.volcano_job import volcano_job
from extender.client.embedded.workloads.workload import Made, Workload

BUILT_IN: Mapping[tuple[str, str], Callable[[Workload], Iterator[Made]]] = {
    ("apps/v1", "Deployment"): built_in.deployment,
    ("apps/v1", "ReplicaSet"): built_in.replica_set,
    ("apps/v1", "StatefulSet"): built_in.stateful_set,
    ("batch/v1", "Job"): built_in.job,
    ("batch/v1", "CronJob"): built_in.cron_job,
}
CONTROLLERS: Mapping[tuple[str, str], Callable[[Workload], Iterator[Made]]] = {
    **BUILT_IN,
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): jobset,
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"): leader_worker_set,
    ("ray.io/v1", "RayCluster"): ray_cluster,
    ("ray.io/v1", "RayJob"): ray_job,
    ("ray.io/v1", "RayService"): ray_service,
    ("sparkoperator.k8s.io/v1beta2", "SparkApplication"): spark_application,
    ("trainer.kubeflow.org/v1alpha1", "TrainJob"): train_job,
    ("batch.volcano.sh/v1alpha1", "Job"): volcano_job,
    **kubeflow.KINDS,
}
"""apiVersion and kind -> what makes its pods."""

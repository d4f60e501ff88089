"""Pods and PodGroups as spark-operator and a Spark driver make them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.api.codec import DecodeError
from extender.client.interface import VOLCANO_POD_GROUPS
from tests.unit.client.workloads.conftest import Cluster

Load = Callable[[str], Cluster]
APP = """\
apiVersion: sparkoperator.k8s.io/v1beta2
kind: SparkApplication
metadata: {name: pi, labels: {team: a, kueue.x-k8s.io/queue-name: q}}
spec: {%s}
"""
GANG = "batchScheduler: gang-scheduler"
MI = 2**20


def app(*fields: str) -> str:
    return APP % ", ".join(fields)


def asked(cluster: Cluster, name: str) -> tuple[int, int]:
    """milliCPU and MiB that the Spark container asks for; of a pod that is there, or that comes later."""
    later = {each.object["metadata"]["name"]: each.object for each in cluster.loaded.later}
    if name in later:
        requests = later[name]["spec"]["containers"][0]["resources"]["requests"]
        cpu, memory = requests["cpu"], requests["memory"]
        return int(cpu[:-1]) if cpu.endswith("m") else int(cpu) * 1000, int(memory.removesuffix("Mi"))
    found = cluster.pods[name].spec.containers[0].resources.requests
    return found["cpu"].milli_value, found["memory"].value // MI


def executors(cluster: Cluster) -> list[str]:
    return list(cluster.later)


def test_a_driver_makes_its_executors_once_it_runs(load: Load) -> None:
    cluster = load(app(GANG, "executor: {instances: 3}"))
    assert list(cluster.pods) == ["pi-driver"]
    assert list(cluster.later.values()) == [("default/pi-driver",)] * 3
    driver = cluster.pods["pi-driver"]
    assert (driver.labels["spark-role"], driver.spec.scheduler_name) == ("driver", "gang-scheduler")
    assert driver.labels["team"] == "a"
    assert "kueue.x-k8s.io/queue-name" not in driver.labels
    assert driver.metadata.controller is not None
    assert (driver.metadata.controller.kind, driver.metadata.controller.name) == ("SparkApplication", "pi")
    made = [each.object for each in cluster.loaded.later]
    assert [each["metadata"]["labels"]["spark-role"] for each in made] == ["executor"] * 3
    assert {each["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] for each in made} == {"pi-pg"}
    assert {each["metadata"]["ownerReferences"][0]["name"] for each in made} == {"pi-driver"}


@pytest.mark.parametrize(
    ("fields", "driver", "executor"),
    [
        pytest.param([], (1000, 1408), (1000, 1408), id="1g and 384Mi unless it says otherwise"),
        pytest.param(["type: Python"], (1000, 1433), (1000, 1433), id="a language beside the JVM has 40 per cent more"),
        pytest.param(["memoryOverheadFactor: '0.5'"], (1000, 1536), (1000, 1536), id="a factor of its own"),
        pytest.param(
            ["driver: {cores: 2, memory: 4g, memoryOverhead: 1g}"], (2000, 5120), (1000, 1408), id="a driver of its own"
        ),
        pytest.param(
            ["executor: {cores: 4, coreRequest: 500m, memory: '2048'}"], (1000, 1408), (500, 2432), id="less than cores"
        ),
        pytest.param(
            ["type: Python", "sparkConf: {spark.executor.pyspark.memory: 1g, spark.executor.memory: 2gb}"],
            (1000, 1433), (1000, 3891), id="Python beside the JVM",
        ),
        pytest.param(
            ["sparkConf: {spark.memory.offHeap.enabled: 'true', spark.memory.offHeap.size: '1073741824'}"],
            (1000, 1408), (1000, 2432), id="memory off the heap",
        ),
        pytest.param(["driver: {memory: 2Gi}"], (1000, 2432), (1000, 1408), id="a unit that Spark has not"),
    ],
)  # fmt: skip
def test_what_its_pods_ask_for(load: Load, fields: list[str], driver: object, executor: object) -> None:
    cluster = load(app(*fields))
    assert asked(cluster, "pi-driver") == driver
    assert asked(cluster, executors(cluster)[0]) == executor


def test_a_unit_that_spark_has_not_is_said_once(load: Load) -> None:
    [warning] = load(app("executor: {instances: 9, memory: 2Gi}")).loaded.warnings
    assert "memory: 2Gi: Spark knows no unit" in warning


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        pytest.param([], 1, id="one, if nothing is said"),
        pytest.param(["sparkConf: {spark.executor.instances: '3'}"], 3, id="by sparkConf"),
        pytest.param(
            ["executor: {instances: 2}", "sparkConf: {spark.executor.instances: '3'}"], 2, id="the field comes first"
        ),
        pytest.param(["dynamicAllocation: {enabled: true, minExecutors: 2, maxExecutors: 9}"], 2, id="the least of them"),
        pytest.param(["dynamicAllocation: {enabled: true, initialExecutors: 4, minExecutors: 2}"], 4, id="the first"),
        pytest.param(["dynamicAllocation: {enabled: true}"], 0, id="none before there is work"),
        pytest.param(["dynamicAllocation: {enabled: false}", "executor: {instances: 2}"], 2, id="switched off"),
        pytest.param(["executor: {instances: 0}"], 0, id="none"),
    ],
)  # fmt: skip
def test_how_many_executors_there_are_at_first(load: Load, fields: list[str], count: int) -> None:
    assert len(executors(load(app(*fields)))) == count


@pytest.mark.parametrize(
    ("fields", "resources"),
    [
        pytest.param(
            ["driver: {cores: 1, memory: 1Gi}", "executor: {cores: 2, instances: 2, memory: 2Gi, memoryOverhead: 1Gi}"],
            {"cpu": "5", "memory": "7516192768"}, id="quantities of Kubernetes count",
        ),
        pytest.param(
            ["driver: {memory: 4g}", "executor: {instances: 2, memory: 512m}"], {"cpu": "3", "memory": "1024m"},
            id="those of Spark are another size, or none",
        ),
        pytest.param(
            ["driver: {coreRequest: 100m}", "executor: {instances: 2, coreRequest: 100m}"], {"cpu": "1200m"},
            id="a driver's coreRequest does not count",
        ),
        pytest.param(["sparkConf: {spark.executor.instances: '5'}"], {"cpu": "3"}, id="two, whatever sparkConf says"),
    ],
)  # fmt: skip
def test_minresources_are_what_the_operator_reads(load: Load, fields: list[str], resources: dict[str, str]) -> None:
    minimum, found, _ = load(app(GANG, *fields)).group("pi-pg")
    assert (minimum, found) == (1, resources)


def test_without_a_batch_scheduler_it_is_no_gang(load: Load) -> None:
    cluster = load(app("driver: {schedulerName: mine}"))
    assert cluster.loaded.created == {"Pod": 1}
    assert cluster.pods["pi-driver"].spec.scheduler_name == "mine"


def test_for_volcano_there_is_its_own_pod_group(load: Load) -> None:
    options = "batchSchedulerOptions: {queue: q, priorityClassName: high}"
    cluster = load(app("batchScheduler: volcano", options, "executor: {instances: 2}"))
    [group] = cluster.api.list_page(VOLCANO_POD_GROUPS).items
    assert (group.metadata.name, group.spec.min_member, group.spec.queue) == ("spark-pi-pg", 1, "q")
    assert group.spec.priority_class_name == "high"
    assert {name: str(amount) for name, amount in group.spec.min_resources.items()} == {
        "cpu": "3", "memory": str(3 * 1408 * MI),
    }  # fmt: skip
    driver = cluster.pods["pi-driver"]
    assert driver.metadata.annotations["scheduling.k8s.io/group-name"] == "spark-pi-pg"
    assert driver.spec.scheduler_name == "volcano"


def test_a_pod_template_and_the_fields_beside_it_are_merged(load: Load) -> None:
    template = (
        "template: {metadata: {annotations: {a: b}}, spec: {nodeSelector: {x: y}, containers: [{name: side}, "
        "{name: spark-kubernetes-driver, resources: {requests: {ephemeral-storage: 1Gi}}}]}}"
    )
    more = "nodeSelector: {pool: cpu}, tolerations: [{key: spot}], gpu: {name: nvidia.com/gpu, quantity: 1}, coreLimit: 1200m"
    pod = load(app("nodeSelector: {zone: z}", f"driver: {{{template}, {more}}}")).pods["pi-driver"]
    assert pod.spec.node_selector == {"x": "y", "zone": "z", "pool": "cpu"}
    assert [each.key for each in pod.spec.tolerations] == ["spot"]
    assert [each.name for each in pod.spec.containers] == ["side", "spark-kubernetes-driver"]
    resources = pod.spec.containers[1].resources
    assert sorted(resources.requests) == ["cpu", "ephemeral-storage", "memory", "nvidia.com/gpu"], (
        "a limit is a request"
    )
    assert (resources.limits["cpu"].milli_value, str(resources.limits["nvidia.com/gpu"])) == (1200, "1")
    assert pod.metadata.annotations["a"] == "b"


def test_volumes_that_are_mounted_go_with_the_pod(load: Load) -> None:
    volumes = "volumes: [{name: a, persistentVolumeClaim: {claimName: data}}, {name: b, emptyDir: {}}]"
    pod = load(app(volumes, "driver: {volumeMounts: [{name: a, mountPath: /a}]}")).pods["pi-driver"]
    assert [volume.name for volume in pod.spec.volumes] == ["a"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        pytest.param(["suspend: true"], "it is suspended", id="suspended"),
        pytest.param(["mode: client"], "the mode client is not simulated", id="a driver that is no pod"),
    ],
)
def test_what_is_not_simulated_is_said(load: Load, fields: list[str], said: str) -> None:
    cluster = load(app(*fields))
    assert cluster.pods == {}
    assert said in cluster.loaded.warnings[0]


@pytest.mark.parametrize(
    ("field", "said"),
    [
        pytest.param("driver: {memory: lots}", ".driver.memory: a size as 512m or 4g is wanted, got 'lots'", id="a size"),
        pytest.param("driver: {memory: -1g}", ".driver.memory: a size as", id="below 0"),
        pytest.param("driver: {memory: 1.5g}", ".driver.memory: a size as", id="a fraction"),
        pytest.param("driver: {memory: 512}", ".driver.memory: a text is wanted, got 512", id="a number"),
        pytest.param("driver: {memory: 99999999999p}", ".driver.memory: more than any node can have", id="far too much"),
        pytest.param(
            "driver: {memory: 8000p, memoryOverhead: 8000p}", ".driver.memory: with its overhead it is more", id="too much"
        ),
        pytest.param("driver: {cores: 0}", ".driver.cores: a number from 1 to", id="no cores"),
        pytest.param("driver: {cores: x}", ".driver.cores: a number from 1 to", id="a text for cores"),
        pytest.param("driver: {coreRequest: many}", ".driver.coreRequest: ", id="no quantity"),
        pytest.param("executor: {instances: -1}", ".executor.instances: a number of 0 or more", id="too few"),
        pytest.param("executor: {instances: 2147483648}", ".executor.instances: 2147483648 is more", id="too many"),
        pytest.param(
            "sparkConf: {spark.executor.instances: '2147483648'}",
            ".sparkConf.spark.executor.instances: a number up to 150000", id="too many by sparkConf",
        ),
        pytest.param("sparkConf: {spark.executor.instances: 3}", ": a text is wanted, got 3", id="a number in sparkConf"),
        pytest.param("memoryOverheadFactor: nan", ".memoryOverheadFactor: a fraction", id="no number"),
        pytest.param("memoryOverheadFactor: '1e400'", ".memoryOverheadFactor: a fraction", id="endless"),
        pytest.param("type: Rust", ".type: one of Java, Scala, Python, R is wanted, got 'Rust'", id="a language"),
        pytest.param("driver: {tolerations: [x]}", ".driver.tolerations[0]: an object is wanted", id="no toleration"),
        pytest.param("driver: x", ".driver: an object is wanted, got 'x'", id="no driver"),
        pytest.param("dynamicAllocation: {enabled: 'yes'}", ".dynamicAllocation.enabled: true or false", id="yes"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(load: Load, field: str, said: str) -> None:
    with pytest.raises(DecodeError) as failed:
        load(app(GANG, field))
    assert f"objects.yaml:1: $.spec{said}" in str(failed.value) or (said in str(failed.value) and said[0] == ":")

"""The API server as it is: nulls in what it sends, restarts during which it refuses everything, an etcd that was restored."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import api as paths
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import ControlPlane
from tests.e2e.extender import Extender
from tests.e2e.faulty_connection import FaultyConnection
from tests.e2e.node_objects import node_status
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually

RESTARTS = 3
FOLLOWED_SECONDS = 60.0


def served(extender: Extender) -> set[str]:
    """The kinds that are watched, and not taken for absent."""
    return set(re.findall(r'gang_extender_cache_age_seconds\{resource="([^"]+)"\}', extender.ops("/metrics")[1]))


def nodes_seen(extender: Extender) -> int:
    found = re.search(r'scheduler_cache_size\{type="nodes"\} (\d+)', extender.ops("/metrics")[1])
    return int(found[1]) if found else -1


def gang(cluster: Cluster, name: str, size: int, **requests: str) -> list[str]:
    cluster.pod_group(name, min_member=size)
    return [
        cluster.pod(f"{name}-{number}", group=name, requests=requests) and f"{name}-{number}" for number in range(size)
    ]


def test_a_node_with_an_image_without_names_takes_gangs(cluster: Cluster, module_programs: Pair) -> None:
    cluster.node("node-1", cpu="2")
    cluster.node("node-2", cpu="2")
    assert cluster.api.get(f"{paths.NODES}/node-1")["status"]["images"][1]["names"] is None
    first, second = (cluster.api.get(f"{paths.CSI_NODES}/node-{number}")["spec"]["drivers"] for number in (1, 2))
    assert (first, second[0]["topologyKeys"]) == (None, None)
    cluster.recorder.await_bound(*gang(cluster, "g", 4, cpu="1"), within=5)
    assert "cannot be read" not in module_programs.extender.log()


def test_a_node_that_gets_an_image_without_names_goes_on_taking_gangs(cluster: Cluster, module_programs: Pair) -> None:
    cluster.node("node-1", cpu="4")
    cluster.recorder.await_bound(*gang(cluster, "before", 2, cpu="1"), within=5)
    status = node_status("node-1", {"cpu": "4", "memory": "256Gi", "pods": "110"})
    cluster.api.patch(f"{paths.NODES}/node-1/status", {"status": {"images": [{"names": None}, *status["images"]]}})
    cluster.recorder.await_bound(*gang(cluster, "after", 2, cpu="1"), within=5)
    assert "cannot be read" not in module_programs.extender.log()


@pytest.fixture
def own_plane(plane: ControlPlane, tmp_path: Path) -> Iterator[ControlPlane]:
    """A control plane of the test's own, which it may stop, and take back in time."""
    made = ControlPlane(plane.binaries, tmp_path / "plane")
    try:
        made.start()
        Cluster(made).install_crd()
        yield made
    finally:
        made.stop()


DEEP = """
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "deep", "managedFields": [
  {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": %s}
]}, "spec": {"containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10"}]}}"""


@pytest.mark.timeout(120)
def test_a_pod_that_is_nested_deeper_than_python_goes_keeps_no_other_from_its_node(
    own_plane: ControlPlane, tmp_path: Path
) -> None:
    """Neither while the extender runs nor at its start. The API server takes it; Python's own JSON, which the stories read by, does not."""
    cluster = Cluster(own_plane)
    cluster.node("node-1")
    deep = DEEP % ('{"f:a":' * 5000 + "{}" + "}" * 5000)

    def single(name: str) -> None:
        cluster.pod(name)
        path = f"{paths.PODS.format(namespace='default')}/{name}"
        eventually(lambda: own_plane.api().get(path)["spec"].get("nodeName"), within=20, what=f"{name} is bound")

    with Pair.of(own_plane, tmp_path / "pair").running() as pair:
        single("before")
        assert own_plane.api().send(paths.PODS.format(namespace="default"), deep.encode()) == 201
        single("beside")
        pair.extender.kill()
        pair.extender.start()
        single("after")
        assert "cannot be read" not in pair.extender.log()


@pytest.mark.timeout(300)
def test_restarts_during_which_everything_is_forbidden_empty_no_informer(
    own_plane: ControlPlane, tmp_path: Path
) -> None:
    cluster = Cluster(own_plane)
    line = FaultyConnection(own_plane.server, own_plane.ca_file, seed=1).start()
    try:
        with Pair.of(own_plane, tmp_path / "pair", server=line.url).running() as pair:
            cluster.node("node-1")
            eventually(lambda: nodes_seen(pair.extender) == 1, within=10, what="the node is seen")
            before = served(pair.extender)
            for _ in range(RESTARTS):
                _restart(own_plane, line, pair.extender)
            eventually(lambda: served(pair.extender) == before, within=30, what=f"all of {before} is served")
            assert nodes_seen(pair.extender) == 1
            cluster.recorder.start()
            cluster.recorder.await_bound(*gang(cluster, "g", 3), within=30)
            cluster.recorder.stop()
    finally:
        line.stop()


def _restart(plane: ControlPlane, line: FaultyConnection, extender: Extender) -> None:
    """Back it forbids all reads until each kind was refused."""
    plane.apiserver.kill()
    line.cut()
    line.forbid()
    plane.apiserver.start()
    plane.apiserver.await_ready(plane.api().ready)
    kinds = len(served(extender))

    def enough() -> bool:
        assert nodes_seen(extender) == 1, "nothing that was seen is gone meanwhile"
        return len(line.forbidden) >= kinds

    eventually(enough, within=40, what=f"{kinds} kinds were refused", every=0.2)
    line.allow()


@pytest.mark.timeout(300)
def test_an_etcd_that_was_restored_to_an_older_version_is_followed(own_plane: ControlPlane, tmp_path: Path) -> None:
    """Without its Lease's informer every verb would be refused as well: the pair elects its leader as shipped."""
    cluster = Cluster(own_plane)
    folder, saved = own_plane.folder / "etcd", tmp_path / "saved"
    pair = Pair.of(own_plane, tmp_path / "pair", as_shipped=True)
    try:
        cluster.node("stays")
        _stop(own_plane)
        shutil.copytree(folder, saved)
        _start(own_plane)
        pair.start()
        cluster.node("lost")
        eventually(lambda: nodes_seen(pair.extender) == 2, within=30, what="both nodes are seen")
        for number in range(2000):  # more versions than a start of the API server makes
            cluster.api.patch(f"{paths.NODES}/stays", {"metadata": {"annotations": {"number": str(number)}}})

        pair.scheduler.stop()
        _stop(own_plane)
        shutil.rmtree(folder)
        shutil.copytree(saved, folder)
        _start(own_plane)

        took = eventually(lambda: nodes_seen(pair.extender) == 1, within=FOLLOWED_SECONDS, what="the lost node is gone")
        print(f"followed after {took:.1f} s")
        pair.scheduler.start()
        cluster.recorder.start()
        cluster.recorder.await_bound(*gang(cluster, "g", 3), within=FOLLOWED_SECONDS)
        cluster.recorder.stop()
        assert 'reason="behind"' in pair.extender.ops("/metrics")[1]
    finally:
        pair.stop()


def _stop(plane: ControlPlane) -> None:
    plane.apiserver.stop()
    plane.etcd.stop()


def _start(plane: ControlPlane) -> None:
    plane.etcd.start()
    plane.apiserver.start()
    plane.apiserver.await_ready(plane.api().ready)

"""Two versions, or two configurations, at once: what a rollout does, and what its way back does, with members held and pods coming."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import MANIFESTS, Scheduler
from tests.e2e.extender import Extender
from tests.e2e.intercepting_proxy import InterceptingProxy
from tests.e2e.pair import Pair
from tests.e2e.previous_version import run_from, unpack
from tests.e2e.processes import eventually
from tests.e2e.test_held_binds import GROUP, NAMES, hold_two, let_in
from tests.e2e.test_two_replicas import LEASE, holder, own_host_name

Programs = list[Extender | Scheduler]


@dataclass(frozen=True)
class Version:
    """settings: of extender.yaml, where they differ from what is shipped."""

    previous: bool = False
    settings: dict[str, Any] = field(default_factory=dict)


@pytest.fixture
def proxy() -> Iterator[InterceptingProxy]:
    proxy = InterceptingProxy().start()
    yield proxy
    proxy.stop()


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("previous"))


def replica(
    name: str, version: Version, previous: Path, cluster: Cluster, proxy: InterceptingProxy, folder: Path
) -> Pair:
    """Not started."""
    (folder / name).mkdir()
    pair = Pair.of(cluster.plane, folder / name, as_shipped=True, settings=version.settings, change=proxy.put_in_front)
    if version.previous:
        run_from(previous, pair.extender)
    for each in pair:
        each.program.command[:0] = own_host_name(name)
    return pair


def gangs(cluster: Cluster, name: str, count: int = 3) -> list[str]:
    """Of two members each, and as many single pods; nothing is awaited."""
    names = []
    for index in range(count):
        cluster.pod_group(f"{name}-{index}", min_member=2)
        for member in ("a", "b"):
            names.append(f"{name}-{index}-{member}")
            cluster.pod(names[-1], group=f"{name}-{index}")
        names.append(f"{name}-{index}-single")
        cluster.pod(names[-1])
    return names


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(Version(previous=True), Version(), id="upgrade"),
        pytest.param(Version(), Version(previous=True), id="rollback"),
        pytest.param(
            Version(), Version(settings={"packing": "mostEven", "bindTimeoutSeconds": 90}), id="a changed configuration"
        ),
    ],
)
def test_a_replica_is_replaced_by_one_of_another_version(
    before: Version,
    after: Version,
    previous: Path,
    cluster: Cluster,
    proxy: InterceptingProxy,
    tmp_path: Path,
    programs: Programs,
) -> None:
    """Two members of a gang are held as the leader is told to end, and other gangs come all the while. Each starts whole, once."""
    cluster.killed = True
    if holder(cluster):
        cluster.api.delete(LEASE)
    old = replica("old", before, previous, cluster, proxy, tmp_path)
    programs.extend(old.start())
    eventually(lambda: holder(cluster) == "old", within=15, what="the old one leads")
    cluster.node("node-2", labels={"pool": "others"})
    running = gangs(cluster, "running")
    cluster.recorder.await_bound(*running, within=20)
    hold_two(cluster, proxy, old.extender)
    new = replica("new", after, previous, cluster, proxy, tmp_path)
    programs.extend(new.start())
    assert new.extender.ops("/readyz")[0] == 200
    assert new.extender.metric("gang_extender_leading") == 0
    coming = gangs(cluster, "coming")
    old.scheduler.stop()
    old.extender.terminate(within=8)  # the calls that it holds are let go at once: a drain would last ten seconds
    assert not cluster.recorder.bound() & set(NAMES), "those that were held are let go, none is bound alone"
    eventually(lambda: new.extender.metric("gang_extender_leading") == 1, within=10, what="the new one leads")
    later = gangs(cluster, "later")
    let_in(cluster, proxy)
    cluster.recorder.await_bound(*NAMES, *coming, *later, within=40)
    assert new.extender.planned(GROUP) >= 1
    assert "unexpected error" not in new.extender.log()
    assert "unexpected error" not in old.extender.log()


@pytest.mark.parametrize(
    ("crd_is_previous", "program_is_previous"),
    [
        pytest.param(True, False, id="the definition of before, the program of now"),
        pytest.param(False, True, id="the definition of now, the program of before"),
    ],
)
def test_a_gang_starts_and_says_so_by_a_definition_of_another_version(
    crd_is_previous: bool,
    program_is_previous: bool,
    previous: Path,
    cluster: Cluster,
    proxy: InterceptingProxy,
    tmp_path: Path,
    programs: Programs,
) -> None:
    if holder(cluster):
        cluster.api.delete(LEASE)
    cluster.install_crd((previous / "manifests" if crd_is_previous else MANIFESTS) / "crd")
    try:
        pair = replica("only", Version(previous=program_is_previous), previous, cluster, proxy, tmp_path)
        programs.extend(pair.start())
        cluster.node("node-1", cpu="2")
        cluster.pod_group("web", min_member=2)
        cluster.pod_group("large", min_member=2)
        for name in ("web-a", "web-b"):
            cluster.pod(name, group="web", requests={"cpu": "1"})
        cluster.recorder.await_bound("web-a", "web-b", within=20)
        for name in ("large-a", "large-b"):
            cluster.pod(name, group="large", requests={"cpu": "2"})
        eventually(
            lambda: (cluster.verdict_on_group("web")[0], cluster.verdict_on_group("large")[0]) == ("True", "False"),
            within=15,
            what="both conditions are written",
        )
    finally:
        cluster.install_crd()

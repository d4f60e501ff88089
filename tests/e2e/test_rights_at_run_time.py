"""Rights that the running extender loses and gets back: it says which, schedules what it still may, and goes on by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import EXTENDER_ALONE, EXTENDER_USER, ControlPlane, Scheduler
from tests.e2e.extender import Extender
from tests.e2e.link import Link
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually
from tests.e2e.test_manifests import bind_roles_to_the_extender_alone, is_forbidden


def await_rights(plane: ControlPlane, *, given: bool) -> None:
    alone = plane.api(EXTENDER_ALONE)
    eventually(lambda: is_forbidden(alone, "/api/v1/nodes") is not given, within=10, what=f"rights are given: {given}")


@pytest.fixture
def link(cluster: Cluster) -> Iterator[Link]:
    made = Link(cluster.plane.port).start()
    yield made
    made.stop()


def test_rights_that_are_taken_away_and_given_back(
    cluster: Cluster, link: Link, tmp_path: Path, programs: list[Extender | Scheduler]
) -> None:
    """Watches are checked when they begin: the link ends them, so that this one need not wait for their half a minute."""
    plane = cluster.plane
    bind_roles_to_the_extender_alone(plane)
    await_rights(plane, given=True)
    pair = Pair.of(plane, tmp_path, token=EXTENDER_ALONE, server=f"https://127.0.0.1:{link.port}")
    programs.extend(pair.start())
    cluster.node("node-1")
    cluster.pod("before")
    cluster.recorder.await_bound("before", within=10)
    plane.kubectl("delete", "clusterrolebinding", EXTENDER_USER)
    await_rights(plane, given=False)
    link.cut()
    eventually(
        lambda: 'nodes is forbidden: User "gang-extender-alone"' in pair.extender.ops("/readyz?verbose")[1],
        within=30,
        what="the right that is missing is named",
    )
    cluster.pod("meanwhile")
    cluster.recorder.await_message("meanwhile", "forbidden", within=10)
    assert pair.extender.ops("/livez")[0] == 200
    bind_roles_to_the_extender_alone(plane)
    cluster.recorder.await_bound("meanwhile", within=60)
    eventually(
        lambda: "forbidden" not in pair.extender.ops("/readyz?verbose")[1],
        within=60,
        what="nothing is missing any more",
    )

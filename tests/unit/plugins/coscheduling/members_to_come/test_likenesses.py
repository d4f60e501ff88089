"""What stands for members that are still to be made: of which rank, of which role, and as large as which."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import structs

from extender.api import corev1
from extender.plugins.coscheduling.members_to_come.likenesses import likenesses
from extender.plugins.coscheduling.spec.roles import ROLE_LABEL
from extender.plugins.coscheduling.state.quorum import Needs
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, members

INDEX = "batch.kubernetes.io/job-completion-index"


@pytest.fixture
def kube(world: Callable[..., World]) -> KubeScheduler:
    return KubeScheduler(world([node("n0", "8")], early_start=True))


def with_rank(pod: corev1.Pod, rank: int) -> corev1.Pod:
    labels = {**pod.metadata.labels, INDEX: str(rank)}
    return structs.replace(pod, metadata=structs.replace(pod.metadata, labels=labels))


def test_the_missing_ranks_are_those_of_the_likenesses(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=5))
    kube.create(*(with_rank(each, 2 * number) for number, each in enumerate(members(2))))
    manager = kube.plugin.manager
    found = likenesses(manager, manager.groups["default/g"], Needs(3))
    assert [each.pod.labels[INDEX] for each in found] == ["1", "3", "4"]
    assert len({each.pod.uid for each in found}) == 3


def test_the_likenesses_are_of_the_roles_that_are_missing(kube: KubeScheduler) -> None:
    """Each like the newest of its role, those beyond the minima like the newest of all. An annotation says a role as well."""
    kube.apply(group(minimum=6, roles="leader=2,worker=3"))
    kube.create(member("w", annotations={ROLE_LABEL: "worker"}), member("leader", role="leader", cpu=2))
    manager = kube.plugin.manager
    known = manager.groups["default/g"]
    found = likenesses(manager, known, Needs(5, (("leader", 1), ("worker", 3))), [known.members["default/w"].info])
    said = [(each.pod.labels[ROLE_LABEL], each.requests.milli_cpu) for each in found]
    assert said == [("leader", 2000), ("worker", 1000), ("worker", 1000), ("leader", 2000)]

"""Volumes in plans: all nodes at once equals node by node, and a disk that one member gets is taken for the others."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, cast

import pytest

from extender.api import corev1, storagev1
from extender.api.codec import convert
from extender.backend.cache.cache import Cache
from extender.backend.cache.snapshot import Snapshot
from extender.config.plugin_args import VolumeBindingArgs
from extender.framework.columnar import table_of
from extender.framework.cycle_state import CycleState
from extender.framework.pod_info import PodInfo
from extender.framework.runtime.framework import Framework
from extender.plugins.coscheduling import planner
from extender.plugins.judge import FrameworkJudge
from extender.plugins.planned_volumes import PlannedVolumeBinding
from extender.plugins.volume_binding.matching import SELECTED_NODE
from extender.plugins.volume_binding.plugin import promise_volumes
from tests.fakes.planning import judge_with_volumes
from tests.objects import make_node, make_pod
from tests.unit.plugins.storage import (
    FAST,
    LOCAL,
    StorageHandle,
    affinity,
    allowed,
    make_capacity,
    make_claim,
    make_class,
    make_csi_node,
    make_driver,
    make_volume,
)

DRIVER = "csi.example.com"
LIMITED = "limited"
SELECTOR = {"required": {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In"}]}]}}


def cluster(nodes: int) -> Snapshot:
    """Three zones; every node its own hostname."""
    cache = Cache()
    for i in range(nodes):
        labels = {"host": f"n{i}", "zone": f"z{i % 3}"}
        cache.add_node(make_node().name(f"n{i}").labels(labels).capacity(cpu="4", pods="20").obj())
    return cache.snapshot()


def disk(name: str, *hosts: str, **more: Any) -> corev1.PersistentVolume:
    return make_volume(name, storage_class=LOCAL, spec={"nodeAffinity": affinity("host", *hosts)}, **more)


def member(name: str, *claims: str) -> corev1.Pod:
    pod = make_pod().name(name).uid(name).namespace("default").req(cpu="1")
    for claim in claims:
        pod = pod.pvc(claim)
    return pod.obj()


def judge_of(objects: Sequence[Any], snapshot: Snapshot, *, known: bool = True) -> FrameworkJudge:
    return judge_with_volumes(StorageHandle(objects).lister, snapshot, known=known)


def places(
    objects: Sequence[Any], pods: Sequence[corev1.Pod], snapshot: Snapshot, *, known: bool = True
) -> list[str] | planner.NoPlacement:
    members = [PodInfo(pod) for pod in pods]
    request = planner.Request(members, len(members), clock=lambda: 0.0)
    found = planner.plan(snapshot, request, judge_of(objects, snapshot, known=known))
    return found if isinstance(found, planner.NoPlacement) else [found.nodes[pod.uid] for pod in pods]


@pytest.mark.parametrize("size", [6, 40], ids=["few nodes, one by one", "many, by columns"])
def test_each_member_is_sent_to_a_disk_of_its_own(size: int) -> None:
    hosts = [f"n{i}" for i in (1, 3, 5)]
    objects = [make_class(LOCAL), *(disk(f"disk-{host}", host) for host in hosts)]
    objects += [make_claim(f"c{i}", storage_class=LOCAL) for i in range(3)]
    found = places(objects, [member(f"p{i}", f"c{i}") for i in range(3)], cluster(size))
    assert isinstance(found, list)
    assert sorted(found) == hosts


def test_a_disk_that_several_nodes_reach_is_promised_once() -> None:
    """Both nodes of zone z0 have passed for all: the second member has to go to the other zone."""
    zoned = [
        make_volume(f"v-{zone}", storage_class=LOCAL, spec={"nodeAffinity": affinity("zone", zone)})
        for zone in ("z0", "z1")
    ]
    objects = [make_class(LOCAL), *zoned, *(make_claim(f"c{i}", storage_class=LOCAL) for i in range(2))]
    found = places(objects, [member(f"p{i}", f"c{i}") for i in range(2)], cluster(40))
    assert isinstance(found, list)
    assert {int(name[1:]) % 3 for name in found} == {0, 1}


def test_too_few_disks_place_no_member_and_the_verdict_names_them() -> None:
    objects = [make_class(LOCAL), disk("d", "n1"), *(make_claim(f"c{i}", storage_class=LOCAL) for i in range(2))]
    found = places(objects, [member(f"p{i}", f"c{i}") for i in range(2)], cluster(20))
    assert isinstance(found, planner.NoPlacement)
    assert "node(s) didn't find available persistent volumes to bind" in found.reason


def test_where_volumes_are_not_known_plans_are_made_without_them() -> None:
    found = places([], [member("p", "not-known")], cluster(20), known=False)
    assert isinstance(found, list)


def test_members_of_a_stateful_set_whose_claims_make_each_unlike_any_other() -> None:
    claims = [make_claim(f"c{i}", storage_class=FAST) for i in range(64)]
    objects = [make_class(FAST, DRIVER), *claims]
    found = places(objects, [member(f"p{i}", f"c{i}") for i in range(64)], cluster(200))
    assert isinstance(found, list), found.reason


@pytest.mark.parametrize(("modes", "fits"), [(["ReadWriteMany"], True), (["ReadWriteOncePod"], False)])
def test_a_claim_that_members_share(modes: list[str], fits: bool) -> None:
    """One that a single pod may use keeps the gang from ever starting."""
    volume = make_volume("v", modes=modes)
    objects = [volume, make_claim("c", bound_to="v", modes=modes)]
    found = places(objects, [member(f"p{i}", "c") for i in range(2)], cluster(20))
    assert isinstance(found, list) is fits
    if isinstance(found, planner.NoPlacement):
        assert "ReadWriteOncePod access mode already in-use" in found.reason


RWX = ["ReadWriteMany"]


def shared(*volumes: corev1.PersistentVolume) -> list[Any]:
    """A claim without a volume, of a class that waits for its first consumer."""
    return [make_class(LOCAL), *volumes, make_claim("c", storage_class=LOCAL, modes=RWX)]


@pytest.mark.parametrize("size", [6, 40], ids=["few nodes, one by one", "many, by columns"])
@pytest.mark.parametrize(
    ("objects", "members", "hosts"),
    [
        pytest.param(
            shared(make_volume("nfs", storage_class=LOCAL, modes=RWX)), 3, None, id="a volume that all nodes reach"
        ),
        pytest.param(shared(disk("d", "n1", modes=RWX)), 3, {"n1"}, id="a disk of one node"),
        pytest.param(
            shared(disk("d1", "n1", modes=RWX), disk("d2", "n2", modes=RWX)),
            4,
            1,
            id="two disks, of which one is taken",
        ),
        pytest.param(
            shared(disk("d1", "n1", modes=RWX), disk("d2", "n2", modes=RWX)), 6, 0, id="one disk's node holds four only"
        ),
    ],
)
def test_members_that_share_an_unbound_claim_go_where_its_volume_can_be_reached(
    objects: list[Any], members: int, hosts: set[str] | int | None, size: int
) -> None:
    """The volume that the first member gets is the claim's, and so the others' too. hosts: these, or so many."""
    found = places(objects, [member(f"p{i}", "c") for i in range(members)], cluster(size))
    if hosts == 0:
        assert isinstance(found, planner.NoPlacement)
        return
    assert isinstance(found, list), found.reason
    if hosts is not None:
        assert (set(found) == hosts) if isinstance(hosts, set) else (len(set(found)) == hosts)


def test_the_volume_of_a_shared_claim_is_no_other_claims() -> None:
    objects = [*shared(disk("d", "n1", modes=RWX)), make_claim("other", storage_class=LOCAL)]
    found = places(objects, [member("p0", "c"), member("p1", "c"), member("q", "other")], cluster(6))
    assert isinstance(found, planner.NoPlacement)


@pytest.mark.parametrize(
    ("modes", "times"),
    [
        pytest.param(RWX, 1, id="not where several pods may use it"),
        pytest.param(["ReadWriteOncePod"], 2, id="where one pod has to have it to itself"),
    ],
)
def test_pre_filter_runs_anew_for_a_member_that_comes_with_the_same_claim(
    modes: list[str], times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For each of 512 members with one dataset it took longer than a plan has."""
    runs: list[Any] = []
    run = Framework.run_pre_filter_plugins

    def counted(*args: Any) -> Any:
        runs.append(args)
        return run(*args)

    monkeypatch.setattr(Framework, "run_pre_filter_plugins", counted)
    snapshot = cluster(2)
    objects = [make_volume("v", modes=modes), make_claim("c", bound_to="v", modes=modes)]
    trial = judge_of(objects, snapshot).begin(member("p", "c"), snapshot)
    node, sibling = snapshot.list()[0].clone(), PodInfo(member("q", "c"))
    node.add_pod(sibling)
    trial.add_pods([(sibling, node, {})])
    assert trial.filter(node).success is (times == 1)
    assert len(runs) == times


@pytest.mark.parametrize("size", [6, 40], ids=["few nodes, one by one", "many, by columns"])
@pytest.mark.parametrize(
    "source",
    [
        pytest.param({"iscsi": {"iqn": "iqn.2001-04.com.example:x"}}, id="iscsi"),
        pytest.param({"rbd": {"monitors": ["a"], "image": "i"}}, id="rbd"),
        pytest.param({"gcePersistentDisk": {"pdName": "d"}}, id="GCE"),
        pytest.param({"awsElasticBlockStore": {"volumeID": "d"}}, id="AWS"),
    ],
)
def test_members_that_write_to_one_disk_go_each_to_its_own_node(source: dict[str, Any], size: int) -> None:
    """VolumeRestrictions: both went to one node, where kube-scheduler refuses the second."""
    pods = [make_pod().name(f"p{i}").uid(f"p{i}").req(cpu="1").volume("disk", **source).obj() for i in range(3)]
    found = places([], pods, cluster(size))
    assert isinstance(found, list), found.reason
    assert len(set(found)) == 3


def test_disks_of_the_tree_count_for_the_limits_of_the_driver_that_has_them_now() -> None:
    nodes = [make_csi_node(f"n{i}", cinder_csi_openstack_org=1) for i in range(6)]
    disks = [{"cinder": {"volumeID": f"d{i}"}} for i in range(2)]
    pods = [
        make_pod().name(f"p{i}").uid(f"p{i}").req(cpu="1").volume("v", **disk).obj() for i, disk in enumerate(disks)
    ]
    found = places(nodes, pods, cluster(6))
    assert isinstance(found, list), found.reason
    assert len(set(found)) == 2


def with_ephemeral(name: str) -> corev1.Pod:
    """Its claim is name-data."""
    template = {"spec": {"storageClassName": LOCAL, "resources": {"requests": {"storage": "1Gi"}}}}
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    spec = {
        "containers": [container],
        "volumes": [{"name": "data", "ephemeral": {"volumeClaimTemplate": template}}],
    }
    return convert({"metadata": {"name": name, "uid": name, "namespace": "default"}, "spec": spec}, corev1.Pod)


@pytest.mark.parametrize("size", [6, 40], ids=["few nodes, one by one", "many, by columns"])
def test_members_with_equal_ephemeral_volumes_go_each_to_its_own(size: int) -> None:
    """The first one's volume was looked at for all: a gang whose volumes were made on several nodes never started."""
    hosts = {"p0": "n1", "p1": "n3", "p2": "n5"}
    objects: list[Any] = [make_class(LOCAL)]
    for name, host in hosts.items():
        objects += [disk(f"disk-{name}", host)]
        objects += [make_claim(f"{name}-data", storage_class=LOCAL, bound_to=f"disk-{name}", owner=name)]
    assert places(objects, [with_ephemeral(name) for name in hosts], cluster(size)) == list(hosts.values())


def test_ephemeral_volumes_that_are_still_to_be_made_tell_no_members_apart() -> None:
    """Else each of 512 members would be judged on every node."""
    owners = [f"p{number}" for number in range(3)]
    claims = [make_claim(f"{name}-data", storage_class=LOCAL, owner=name) for name in owners]
    sent = make_claim("q-data", storage_class=LOCAL, owner="q", annotations={SELECTED_NODE: "n1"})
    judge = judge_of([make_class(LOCAL, DRIVER), *claims, sent], cluster(1))
    assert len({judge.ties(with_ephemeral(name)) for name in owners}) == 1
    assert len({judge.ties(with_ephemeral(name)) for name in ("p0", "q", "without a claim")}) == 3


def published_for(name: str, topology: Any, capacity: str = "10Gi") -> storagev1.CSIStorageCapacity:
    value = {"storageClassName": FAST, "nodeTopology": topology, "capacity": capacity}
    return convert({"metadata": {"name": name, "namespace": "default"}, **value}, storagev1.CSIStorageCapacity)


Story = tuple[list[Any], list[str]]


def stories() -> list[Any]:
    """(objects, the pod's claims)."""
    chance = random.Random(5)
    spread = [disk(f"d{i}", *(f"n{chance.randrange(40)}" for _ in range(i % 3))) for i in range(20)]
    anywhere = [make_volume("w", storage_class=LOCAL)]
    unbound, second = make_claim("c", storage_class=LOCAL), make_claim("c2", storage_class=LOCAL)
    local, fast = make_class(LOCAL), make_class(FAST, DRIVER)
    zonal = make_class(LIMITED, DRIVER, allowedTopologies=allowed("zone", "z1"))
    published = [make_driver(DRIVER, storage_capacity=True), make_capacity("cap", FAST, "z2", "10Gi")]
    two_sizes = [make_claim("c", storage_class=FAST), make_claim("c2", storage_class=FAST, size="20Gi")]
    by_host = [published_for(f"h{i}", {"matchLabels": {"host": f"n{i}"}}, f"{i}Gi") for i in range(40)]
    named = [
        published_for("both", {"matchLabels": {"host": "n4", "zone": "z1"}}),
        published_for("in", {"matchExpressions": [{"key": "host", "operator": "In", "values": ["n7", "n8"]}]}),
        published_for("nowhere", None),
    ]
    fast_disk = make_volume("d", storage_class=FAST, zone="z0")
    bound = [disk("d", "n1", "n2", "n7"), make_claim("c", bound_to="d", storage_class=LOCAL)]
    in_tree = make_volume("d", spec={"awsElasticBlockStore": {"volumeID": "v"}, "nodeAffinity": affinity("zone", "z1")})
    rows: dict[str, Story] = {
        "disks here and there": ([local, unbound, *spread], ["c"]),
        "a disk that all nodes reach": ([local, unbound, *anywhere], ["c"]),
        "no disk at all": ([local, unbound], ["c"]),
        "disks too small": ([local, make_claim("c", storage_class=LOCAL, size="2Gi"), *spread], ["c"]),
        "a disk of another class": ([local, unbound, make_volume("o", storage_class="other")], ["c"]),
        "a disk meant for another claim": (
            [local, unbound, disk("d", "n1", claim={"namespace": "default", "name": "other"})],
            ["c"],
        ),
        "a disk meant for this claim": (
            [local, unbound, *spread, disk("d", "n1", claim={"namespace": "default", "name": "c"})],
            ["c"],
        ),
        "two claims": ([local, unbound, second, *spread], ["c", "c2"]),
        "a new volume, anywhere": ([fast, make_claim("c", storage_class=FAST)], ["c"]),
        "a new volume, in one zone": ([zonal, make_claim("c", storage_class=LIMITED)], ["c"]),
        "a new volume where there is capacity": ([fast, *published, make_claim("c", storage_class=FAST)], ["c"]),
        "new volumes where there is capacity for both": (
            [fast, *published, *by_host, *two_sizes],
            ["c", "c2"],
        ),
        "capacity that several labels and expressions name": ([fast, published[0], *named, two_sizes[0]], ["c"]),
        "no capacity at all": ([fast, published[0], two_sizes[0]], ["c"]),
        "capacity for a new volume, or a disk": ([fast, *published, two_sizes[0], fast_disk], ["c"]),
        "a new volume on the selected node": (
            [fast, make_claim("c", storage_class=FAST, annotations={SELECTED_NODE: "n3"})],
            ["c"],
        ),
        "a bound claim": (bound, ["c"]),
        "a bound claim whose volume is gone": (bound[1:], ["c"]),
        "a bound claim on a volume of the tree": ([in_tree, make_claim("c", bound_to="d")], ["c"]),
        "a bound claim and one that waits": ([local, second, *spread, *bound], ["c", "c2"]),
        "a volume that names nodes": (
            [make_volume("d", spec={"nodeAffinity": SELECTOR}), make_claim("c", bound_to="d")],
            ["c"],
        ),
    }
    return [pytest.param(*story, id=name) for name, story in rows.items()]


TO_OTHERS = {f"default/of-{name}": name for name in ("d1", "d2", "d4")}


@pytest.mark.parametrize("promised", [{}, TO_OTHERS], ids=["", "some promised"])
@pytest.mark.parametrize(("objects", "claims"), stories())
def test_all_nodes_at_once_equals_node_by_node(objects: list[Any], claims: list[str], promised: dict[str, str]) -> None:
    snapshot, pod, state = cluster(40), member("p", *claims), CycleState()
    plugin = PlannedVolumeBinding(VolumeBindingArgs(), cast("Any", StorageHandle(objects)))
    plugin.pre_filter(state, pod, snapshot.list())
    if promised:
        promise_volumes(state, promised)
    table = table_of(snapshot)
    assert table is not None
    verdicts = plugin.filter_columns(state, pod, table)
    exact = [plugin.filter(state, pod, node) for node in table.nodes]
    if verdicts is not None:
        codes = [0] * len(table) if verdicts.codes is None else verdicts.codes.tolist()
        assert [verdicts.statuses[code - 1] if code else None for code in codes] == [
            None if status.success else status for status in exact
        ]


def test_the_common_cases_do_have_columns() -> None:
    common = {"disks here and there", "a new volume, anywhere", "a bound claim", "a new volume where there is capacity"}
    answered = set()
    for row in stories():
        objects, claims = row.values
        snapshot, pod, state = cluster(40), member("p", *claims), CycleState()
        plugin = PlannedVolumeBinding(VolumeBindingArgs(), cast("Any", StorageHandle(objects)))
        plugin.pre_filter(state, pod, snapshot.list())
        table = table_of(snapshot)
        assert table is not None
        if plugin.filter_columns(state, pod, table) is not None:
            answered.add(row.id)
    assert common <= answered

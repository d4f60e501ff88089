"""The doctor on a cluster: what it lacks, and what runs in it beside us."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from extender.client.embedded import EmbeddedAPI
from extender.client.errors import ForbiddenError, NotFoundError
from extender.client.interface import LEASES, NODES, POD_GROUPS, PODS, ResourceType
from extender.config.findings import Finding
from extender.config.load import load_extender_configuration
from extender.config.plugin_args import CoschedulingArgs
from extender.config.types import ExtenderConfiguration, KubeSchedulerProfile
from extender.doctor import cluster, pods
from tests.documented import PROJECT

CONFIGURATION = load_extender_configuration(PROJECT / "manifests/sidecar/extender.yaml")
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
ACCOUNT = "system:serviceaccount:kube-system:gang-scheduler"
Json = dict[str, Any]


class Asked(EmbeddedAPI):
    """Remembers which rights were asked for. without: those that are missing, as in `patch pods/status`. Its clock stands still."""

    def __init__(self, *without: str) -> None:
        super().__init__()
        self.asked: set[tuple[str, str]] = set()
        self.users: set[str] = set()
        self._without = without

    def may(self, verb: str, resource: ResourceType[Any], subresource: str = "", **of: str) -> bool:
        rule = f"{resource.plural}/{subresource}" if subresource else resource.plural
        self.asked.add((verb, f"{resource.group} {rule}"))
        self.users.add(of["user"])
        return f"{verb} {rule}" not in self._without

    def server_time(self) -> datetime | None:
        return NOW


def pod(api: EmbeddedAPI, name: str, group: str, scheduler: str) -> None:
    body: Json = {
        "metadata": {"name": name, "namespace": "default", "labels": {"scheduling.x-k8s.io/pod-group": group}},
        "spec": {"schedulerName": scheduler, "containers": [{"name": "c"}]},
    }
    api.create(PODS, body, "default")


def lease(api: EmbeddedAPI, renewed: datetime, *, seconds: int = 15) -> None:
    spec = {
        "holderIdentity": "node-7_1",
        "leaseDurationSeconds": seconds,
        "renewTime": renewed.isoformat().replace("+00:00", "Z"),
    }
    api.create(LEASES, {"metadata": {"name": "gang-scheduler", "namespace": "kube-system"}, "spec": spec})


def found(api: EmbeddedAPI, configuration: ExtenderConfiguration = CONFIGURATION) -> list[str]:
    return [f"{each.severity.value} {each.code} {each.field}" for each in findings(api, configuration)]


def findings(api: EmbeddedAPI, configuration: ExtenderConfiguration = CONFIGURATION) -> list[Finding]:
    return list(cluster.examine(api, configuration, "kubeconfig", ACCOUNT, lambda: NOW))


@pytest.fixture
def api() -> EmbeddedAPI:
    well = Asked()
    lease(well, NOW - timedelta(seconds=2))
    return well


def test_nothing_is_wrong_with_a_cluster_that_has_all(api: EmbeddedAPI) -> None:
    assert found(api) == []


def test_the_rights_that_are_asked_for_are_those_of_the_manifests() -> None:
    api = Asked()
    found(api)
    assert api.asked == {rule for file in ("rbac", "preemption") for rule in _rules(file)} - BESIDE
    assert api.users == {ACCOUNT}


def test_in_tree_groups_want_the_rights_of_their_overlay() -> None:
    profile = KubeSchedulerProfile(plugin_config={"Coscheduling": CoschedulingArgs(in_tree_pod_groups=True)})
    api, without = Asked(), Asked()
    found(api, replace(CONFIGURATION, profiles=(profile,)))
    found(without)
    assert api.asked - without.asked == set(_rules("in-tree-groups"))


def test_pods_that_are_woken_by_annotation_want_the_right_of_its_overlay() -> None:
    api, without = Asked(), Asked()
    found(api, replace(CONFIGURATION, wake_by="annotation"))
    found(without, replace(CONFIGURATION, wake_by="status"))
    assert api.asked - without.asked == set(_rules("wake-by-annotation"))


BESIDE = {("create", "storage.k8s.io csistoragecapacities"), ("patch", "storage.k8s.io csistoragecapacities")}
"""The bell: it is rung where there is the right."""


def _rules(overlay: str) -> Iterator[tuple[str, str]]:
    (file,) = (
        file
        for file in sorted((PROJECT / "manifests" / overlay).glob("*.yaml"))
        if file.name in ("extender.yaml", "role.yaml")
    )
    for document in yaml.safe_load_all(file.read_text()):
        for rule in document.get("rules", ()):
            for kind in rule["resources"]:
                yield from ((verb, f"{rule['apiGroups'][0]} {kind}") for verb in rule["verbs"])


@pytest.mark.parametrize(
    ("without", "expected"),
    [
        ("create pods/binding", "error MissingRight pods/binding"),
        ("patch pods/status", "error MissingRight pods/status"),
        ("watch nodes", "error MissingRight nodes"),
        ("patch podgroups/status", "warning MissingRight podgroups.scheduling.x-k8s.io/status"),
        ("list csinodes", "warning MissingRight csinodes.storage.k8s.io"),
        ("get leases", "error MissingRight leases.coordination.k8s.io"),
        ("delete pods", "info MissingRight pods"),
    ],
)
def test_a_right_that_is_missing_is_named(without: str, expected: str) -> None:
    api = Asked(without)
    lease(api, NOW)
    assert found(api) == [expected]
    (only,) = findings(api)
    assert only.message.startswith(f"{ACCOUNT} may not {without.split()[0]}")


def test_the_crd_is_not_there(monkeypatch: pytest.MonkeyPatch, api: EmbeddedAPI) -> None:
    listed = EmbeddedAPI.list_page

    def list_page(self: EmbeddedAPI, resource: ResourceType[Any], **more: Any) -> Any:
        if resource is POD_GROUPS:
            raise NotFoundError("the server could not find the requested resource")
        return listed(self, resource, **more)

    monkeypatch.setattr(EmbeddedAPI, "list_page", list_page)
    assert found(api) == ["warning NoPodGroups podgroups.scheduling.x-k8s.io"]


def test_what_may_not_be_asked_is_said_and_the_rest_examined(monkeypatch: pytest.MonkeyPatch, api: EmbeddedAPI) -> None:
    def refused(self: EmbeddedAPI, *args: Any, **more: Any) -> Any:
        raise ForbiddenError("pods is forbidden")

    monkeypatch.setattr(EmbeddedAPI, "list_page", refused)
    kinds = ("podgroups.scheduling.x-k8s.io", "mutatingadmissionpolicies.admissionregistration.k8s.io", "pods")
    assert found(api) == [f"info NotExamined {kind}" for kind in kinds]


@pytest.mark.parametrize(
    ("seconds_ago", "expected"),
    [
        pytest.param(15, [], id="the last moment"),
        pytest.param(40, ["error LeaseExpired leases kube-system/gang-scheduler"], id="no leader"),
        pytest.param(-3, [], id="a holder whose clock may be two seconds ahead"),
        pytest.param(-5, ["warning ClocksDiffer leases kube-system/gang-scheduler"], id="a clock that is ahead"),
        pytest.param(-12, ["error ClocksDiffer leases kube-system/gang-scheduler"], id="by more than renewDeadline"),
    ],
)
def test_the_lease(seconds_ago: float, expected: list[str]) -> None:
    api = Asked()
    lease(api, NOW - timedelta(seconds=seconds_ago))
    assert found(api) == expected


def test_no_kube_scheduler_has_ever_led() -> None:
    assert found(Asked()) == ["error NoLease leases kube-system/gang-scheduler"]


def test_members_that_name_another_scheduler(api: EmbeddedAPI) -> None:
    """A gang that is split is worse than one that another scheduler has whole; a pod of no group is none of our business."""
    pod(api, "a-0", "split", "gang-scheduler")
    pod(api, "a-1", "split", "default-scheduler")
    pod(api, "a-2", "split", "gang-schduler")
    pod(api, "b-0", "forgotten", "default-scheduler")
    pod(api, "c-0", "well", "gang-scheduler")
    pod(api, "d-0", "", "default-scheduler")
    split, forgotten = findings(api)
    assert (split.severity.value, split.field) == ("error", "group default/split")
    assert "1 of default-scheduler, 1 of gang-schduler; served here: gang-scheduler" in split.message
    assert (forgotten.severity.value, forgotten.field) == ("warning", "group default/forgotten")


def test_a_cluster_full_of_strangers_is_a_few_lines(api: EmbeddedAPI) -> None:
    for number in range(pods.GROUPS_SHOWN + 3):
        pod(api, f"p-{number}", f"g-{number:02}", "default-scheduler")
    told = findings(api)
    assert len(told) == pods.GROUPS_SHOWN + 1
    assert told[-1].message == "3 more groups have pods of other schedulers"


def test_an_extender_for_every_scheduler_has_no_strangers(api: EmbeddedAPI) -> None:
    pod(api, "a-0", "g", "default-scheduler")
    assert found(api, ExtenderConfiguration()) == []


def test_nothing_is_written(api: EmbeddedAPI) -> None:
    """No object has a new version."""
    pod(api, "a-0", "g", "gang-scheduler")
    before = _versions(api)
    found(api)
    assert _versions(api) == before


def _versions(api: EmbeddedAPI) -> list[str]:
    return [
        api.list_page(PODS).resource_version,
        api.list_page(NODES).resource_version,
        api.list_page(LEASES).resource_version,
    ]


def labelled(api: EmbeddedAPI, name: str, labels: Json, annotations: Json | None = None, image: str = "") -> None:
    metadata = {"name": name, "namespace": "default", "labels": labels, "annotations": annotations or {}}
    spec = {"schedulerName": "gang-scheduler", "containers": [{"name": "c", "image": image}]}
    api.create(PODS, {"metadata": metadata, "spec": spec}, "default")


@pytest.mark.parametrize(
    ("labels", "annotations", "expected"),
    [
        pytest.param({"job": "train"}, {}, ["warning KeyNotRead job"], id="a label of one's own"),
        pytest.param({}, {"pod-group": "train"}, ["warning KeyNotRead pod-group"], id="an annotation"),
        pytest.param(
            {"kueue.x-k8s.io/pod-group-name": "any"},
            {},
            ["warning KeyNotRead kueue.x-k8s.io/pod-group-name"],
            id="Kueue's, which a preset reads",
        ),
        pytest.param({"app": "train-0"}, {}, [], id="another value"),
        pytest.param({"scheduling.x-k8s.io/pod-group": "train"}, {}, [], id="the label that counts"),
        pytest.param({"app": "train", "scheduling.x-k8s.io/pod-group": "train"}, {}, [], id="beside that label"),
    ],
)
def test_a_key_that_names_a_gang_and_is_not_read(
    api: EmbeddedAPI, labels: Json, annotations: Json, expected: list[str]
) -> None:
    api.create(POD_GROUPS, {"metadata": {"name": "train"}, "spec": {"minMember": 2}}, "default")
    labelled(api, "a", labels, annotations)
    assert found(api) == expected


def test_a_key_that_is_read_is_said_with_what_to_add(api: EmbeddedAPI) -> None:
    for name in ("a", "b"):
        labelled(api, name, {"kueue.x-k8s.io/pod-group-name": "g"})
    (only,) = findings(api)
    assert only.message == "2 pods, as default/a, have a gang of kueue there, and start singly: the key is not read"
    assert only.fix == "add `{preset: kueue}` to groupSources in the arguments of Coscheduling"


@pytest.mark.parametrize(
    ("manager", "image", "said"),
    [
        pytest.param("controller-manager", "", "written by controller-manager", id="by what it has written"),
        pytest.param(
            "",
            "registry.k8s.io/scheduler-plugins/controller:v0.35.0",
            "nothing written yet; its pods: default/a",
            id="by its image",
        ),
        pytest.param("gang-extender", "nginx", "", id="none"),
    ],
)
def test_another_controller_of_pod_groups(api: EmbeddedAPI, manager: str, image: str, said: str) -> None:
    owned = [{"manager": manager, "subresource": "status", "fieldsV1": {"f:status": {"f:phase": {}}}}]
    metadata = {"name": "train", "managedFields": owned if manager else []}
    api.create(POD_GROUPS, {"metadata": metadata, "spec": {"minMember": 2}}, "default")
    labelled(api, "a", {}, image=image)
    told = [each for each in findings(api) if each.code == "OtherController"]
    assert [said in each.message for each in told] == [True] * bool(said)
    assert not any(each.is_wrong for each in told)

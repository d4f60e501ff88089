"""A cluster is examined without a file of the extender: what it is installed with is found there, or that is said."""

from __future__ import annotations

import json
from typing import Any

import pytest

from extender.api import codec
from extender.client.embedded import EmbeddedAPI
from extender.client.errors import ForbiddenError
from extender.client.interface import Page
from extender.config.effective import effective
from extender.config.load import load_extender_configuration, read_extender_configuration
from extender.config.types import NamespacedName
from extender.doctor import cluster, installed
from extender.doctor.admission import CONFIG_MAPS
from extender.doctor.configuration import examine_documents
from tests.documented import PROJECT
from tests.unit.doctor.test_cluster import ACCOUNT, CONFIGURATION, NOW, Asked, lease, pod

SHIPPED = PROJECT / "manifests/sidecar"
LABELS = {"app.kubernetes.io/part-of": "gang-extender"}
LEASE = NamespacedName("kube-system", "gang-scheduler")


def config_map(api: EmbeddedAPI, name: str, created: str, **files: str) -> None:
    metadata = {"name": name, "namespace": "kube-system", "labels": LABELS, "creationTimestamp": created}
    data = {key.replace("_", "-") + ".yaml": text for key, text in files.items()}
    api.create(CONFIG_MAPS, {"metadata": metadata, "data": data}, "kube-system")


def shipped(file: str, old: str = "", new: str = "") -> str:
    return (SHIPPED / file).read_text().replace(old, new)


class Mounting(EmbeddedAPI):
    """mounted: the ConfigMap that a pod mounts."""

    def __init__(self, mounted: str) -> None:
        super().__init__()
        self._pod = {"spec": {"volumes": [{"name": "tmp", "emptyDir": {}}]}}
        if mounted:
            self._pod["spec"]["volumes"].append({"name": "config", "configMap": {"name": mounted}})

    def list_page(self, resource: Any, **of: Any) -> Any:
        if resource is installed.MOUNTS:
            return Page([codec.decode(json.dumps(self._pod).encode(), installed.Mounts)], "1")
        return super().list_page(resource, **of)


def test_both_files_are_those_of_the_config_map_with_its_lines() -> None:
    api = EmbeddedAPI()
    config_map(
        api,
        "gang-scheduler-config-1",
        "2026-01-01T00:00:00Z",
        extender=shipped("extender.yaml"),
        kube_scheduler=shipped("kube-scheduler.yaml", "ignorable: false", "ignorable: true"),
    )
    found = installed.find(api, "kube-system")
    examined = examine_documents(found.kube_scheduler, found.extender)
    assert examined.ours is not None
    assert examined.ours.read == CONFIGURATION
    assert {(each.code, each.file) for each in examined.findings} == {
        ("Ignorable", "configmap/kube-system/gang-scheduler-config-1/kube-scheduler.yaml")
    }
    assert all(each.line for each in examined.findings)


@pytest.mark.parametrize(
    ("mounted", "expected"),
    [
        pytest.param("gang-scheduler-config-old", "old", id="settings that were taken back: the older one is mounted"),
        pytest.param("", "new", id="none is mounted: the newest"),
    ],
)
def test_of_several_config_maps_the_one_in_use_counts(mounted: str, expected: str) -> None:
    api = Mounting(mounted)
    for name, month in (("old", "01"), ("new", "02")):
        text = shipped("extender.yaml", "- gang-scheduler", f"- {name}")
        config_map(api, f"gang-scheduler-config-{name}", f"2026-{month}-01T00:00:00Z", extender=text)
    document = installed.find(api, "kube-system").extender
    assert document is not None
    assert read_extender_configuration(document()).scheduler_names == (expected,)


def test_the_files_of_two_installations_are_no_pair() -> None:
    api = Mounting("gang-extender-config-1")
    config_map(api, "gang-extender-config-1", "2026-01-01T00:00:00Z", extender=shipped("extender.yaml"))
    beside = shipped("kube-scheduler.yaml")
    config_map(
        api, "gang-scheduler-config-1", "2026-02-01T00:00:00Z", extender=shipped("extender.yaml"), kube_scheduler=beside
    )
    found = installed.find(api, "kube-system")
    assert found.extender is not None
    assert found.extender().file == "configmap/kube-system/gang-extender-config-1/extender.yaml"
    assert found.kube_scheduler is None


def test_what_an_extender_says_it_runs_with_reads_as_its_file() -> None:
    page = json.dumps({"configuration": effective(CONFIGURATION), "findings": []}).encode()
    document = installed.of_page("http://127.0.0.1:8889", lambda path: (200, page))
    assert document is not None
    assert effective(read_extender_configuration(document())) == effective(CONFIGURATION)
    assert installed.of_page("http://127.0.0.1:8889", lambda path: (404, b"")) is None


class Unreadable(EmbeddedAPI):
    def list_page(self, resource: Any, **of: Any) -> Any:
        raise ForbiddenError(f"{resource} is forbidden")


@pytest.mark.parametrize(
    ("api", "why"),
    [
        pytest.param(EmbeddedAPI(), "kube-system has no ConfigMap with the label", id="no ConfigMap"),
        pytest.param(Unreadable(), "configmaps is forbidden", id="ConfigMaps that may not be read"),
    ],
)
def test_why_no_configuration_is_known_is_told(api: EmbeddedAPI, why: str) -> None:
    found = installed.find(api, "kube-system")
    assert (found.extender, why in found.why) == (None, True)


def test_without_a_configuration_what_needs_none_is_examined_and_the_rest_is_said_not_to_be() -> None:
    """A pod with another scheduler's name may be well: which are ours is not known. The Lease is the one that is named."""
    api = Asked("list nodes")
    pod(api, "a-0", "train", "gang-schduler")
    found = list(
        cluster.examine(api, None, "kubeconfig", ACCOUNT, lambda: NOW, lease=LEASE, why="nothing is installed")
    )
    assert [f"{each.severity.value} {each.code} {each.field}" for each in found] == [
        "info NotExamined ",
        "error MissingRight nodes",
        "error NoLease leases kube-system/gang-scheduler",
    ]
    assert "nothing is installed" in found[0].message
    lease(api, NOW)
    found = list(cluster.examine(api, None, "kubeconfig", ACCOUNT, lambda: NOW, lease=LEASE))
    assert [each.code for each in found] == ["NotExamined", "MissingRight"]


def test_a_lease_that_is_named_is_looked_at_in_place_of_the_file_s() -> None:
    api = Asked()
    lease(api, NOW)
    other = NamespacedName("gangs", "gang-scheduler")
    ours = load_extender_configuration(SHIPPED / "extender.yaml")
    found = list(cluster.examine(api, ours, "kubeconfig", ACCOUNT, lambda: NOW, lease=other))
    assert [f"{each.code} {each.field}" for each in found] == ["NoLease leases gangs/gang-scheduler"]

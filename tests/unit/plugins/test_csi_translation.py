"""In-tree volumes as CSI volumes. Kubernetes: k8s.io/csi-translation-lib"""

from __future__ import annotations

from typing import Any

import pytest

from extender.api import corev1
from extender.api.codec import to_builtins
from extender.plugins.csi_translation import (
    BETA_REGION,
    BETA_ZONE,
    REGION,
    ZONE,
    CSIVolume,
    TranslationError,
    csi_volume,
    in_tree_plugin,
    migrated_on_node,
    with_csi_topology,
)
from tests.unit.plugins.storage import affinity, make_csi_node, make_volume

GCE = {"gcePersistentDisk": {"pdName": "disk"}}
AWS = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
EBS_ZONE = "topology.ebs.csi.aws.com/zone"


@pytest.mark.parametrize(
    ("source", "labels", "expected"),
    [
        pytest.param(
            GCE, {}, ("pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/disk"), id="GCE, no zone"
        ),
        pytest.param(
            GCE, {ZONE: "z"}, ("pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/z/disks/disk"), id="GCE, a zone"
        ),
        pytest.param(
            GCE,
            {BETA_ZONE: "us-east1-a__us-east1-b"},
            ("pd.csi.storage.gke.io", "projects/UNSPECIFIED/regions/us-east1/disks/disk"),
            id="GCE, a region",
        ),
        pytest.param(AWS, {}, ("ebs.csi.aws.com", "vol-1"), id="AWS, the ID alone"),
        pytest.param(
            {"awsElasticBlockStore": {"volumeID": "aws://zone/vol-2"}},
            {},
            ("ebs.csi.aws.com", "vol-2"),
            id="AWS, as a URL",
        ),
        pytest.param({"cinder": {"volumeID": "c"}}, {}, ("cinder.csi.openstack.org", "c"), id="Cinder"),
        pytest.param(
            {"azureDisk": {"diskName": "d", "diskURI": "/uri", "kind": "Managed"}},
            {},
            ("disk.csi.azure.com", "/uri"),
            id="Azure disk",
        ),
        pytest.param({"portworxVolume": {"volumeID": "p"}}, {}, ("pxd.portworx.com", "p"), id="Portworx"),
    ],
)
def test_driver_and_handle(source: dict[str, Any], labels: dict[str, str], expected: tuple[str, str]) -> None:
    volume = make_volume("v", spec=source, labels=labels)
    assert csi_volume(volume.spec, volume.metadata.labels) == CSIVolume(*expected)


@pytest.mark.parametrize(
    ("source", "labels", "text"),
    [
        pytest.param(GCE, {ZONE: "a__b"}, "unexpected format", id="GCE: zones that name no region"),
        pytest.param(GCE, {ZONE: "us-east1-a__us-west1-b"}, "multiple or no regions", id="GCE: two regions"),
        pytest.param(
            {"azureDisk": {"diskName": "d", "diskURI": "u", "kind": "Dedicated"}}, {}, "not supported", id="Azure kind"
        ),
        pytest.param({"vsphereVolume": {"volumePath": "p"}}, {}, "could not find", id="vSphere"),
    ],
)
def test_not_to_be_translated(source: dict[str, Any], labels: dict[str, str], text: str) -> None:
    volume = make_volume("v", spec=source, labels=labels)
    with pytest.raises(TranslationError, match=text):
        csi_volume(volume.spec, volume.metadata.labels)


def _expressions(volume: corev1.PersistentVolume) -> Any:
    found = to_builtins(volume.spec.node_affinity)
    return found and [term["matchExpressions"] for term in found["required"]["nodeSelectorTerms"]]


@pytest.mark.parametrize(
    ("spec", "labels", "expected"),
    [
        pytest.param(
            {**AWS, "nodeAffinity": affinity(ZONE, "a")},
            {},
            [[{"key": EBS_ZONE, "operator": "In", "values": ["a"]}]],
            id="a zone in the affinity becomes the driver's",
        ),
        pytest.param(
            {**AWS, "nodeAffinity": affinity(BETA_ZONE, "a")},
            {},
            [[{"key": EBS_ZONE, "operator": "In", "values": ["a"]}]],
            id="so does one of the first generation",
        ),
        pytest.param(
            AWS,
            {ZONE: "b__a"},
            [[{"key": EBS_ZONE, "operator": "In", "values": ["a", "b"]}]],
            id="without affinity the labels count",
        ),
        pytest.param(
            {**AWS, "nodeAffinity": affinity(BETA_REGION, "r")},
            {BETA_ZONE: "a"},
            [
                [
                    {"key": REGION, "operator": "In", "values": ["r"]},
                    {"key": EBS_ZONE, "operator": "In", "values": ["a"]},
                ]
            ],
            id="a region of the first generation gets its present name, and the zone is added",
        ),
        pytest.param(AWS, {}, None, id="nothing known, nothing asked"),
        pytest.param(
            {"portworxVolume": {"volumeID": "p"}, "nodeAffinity": affinity(ZONE, "a")},
            {},
            [[{"key": ZONE, "operator": "In", "values": ["a"]}]],
            id="a driver without topology leaves it alone",
        ),
    ],
)
def test_topology(spec: dict[str, Any], labels: dict[str, str], expected: Any) -> None:
    volume = make_volume("v", spec=spec, labels=labels)
    plugin = in_tree_plugin(volume.spec)
    assert plugin is not None
    assert _expressions(with_csi_topology(volume, plugin)) == expected


def test_a_node_says_which_plugins_it_has_migrated() -> None:
    plugin = in_tree_plugin(make_volume("v", spec=AWS).spec)
    assert plugin is not None
    assert migrated_on_node(plugin, make_csi_node("n", migrated="kubernetes.io/gce-pd,kubernetes.io/aws-ebs"))
    assert not migrated_on_node(plugin, make_csi_node("n", migrated="kubernetes.io/gce-pd"))
    assert not migrated_on_node(plugin, make_csi_node("n"))
    assert not migrated_on_node(plugin, None)

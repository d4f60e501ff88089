"""Which volume fits a claim. Kubernetes: k8s.io/component-helpers/storage/volume/pv_helpers_test.go"""

from __future__ import annotations

from typing import Any

import pytest

from extender.api import corev1
from extender.plugins.volume_binding.matching import (
    BOUND_BY_CONTROLLER,
    bind_volume_to_claim,
    find_matching_volume,
    node_affinity_matches,
)
from tests.objects import make_node
from tests.unit.plugins.storage import affinity, make_claim, make_volume

CLAIM = make_claim("c", storage_class="local", size="5Gi")
NODE = make_node().name("n").label("zone", "a").obj()
MINE = {"namespace": "default", "name": "c"}
OTHERS = {"namespace": "default", "name": "d", "uid": "uid-d"}


def _volume(name: str = "v", size: str = "10Gi", **more: Any) -> corev1.PersistentVolume:
    return make_volume(name, storage_class=more.pop("storage_class", "local"), size=size, **more)


@pytest.mark.parametrize(
    ("volumes", "expected"),
    [
        pytest.param([_volume()], "v", id="it fits"),
        pytest.param([], None, id="there are none"),
        pytest.param([_volume(size="4Gi")], None, id="too small"),
        pytest.param(
            [_volume("a", "20Gi"), _volume("b", "6Gi"), _volume("c", "7Gi")], "b", id="the smallest that fits"
        ),
        pytest.param([_volume(storage_class="other")], None, id="of another class"),
        pytest.param([_volume(phase="Released")], None, id="not available"),
        pytest.param([_volume(zone="a")], "v", id="its zone is the node's"),
        pytest.param([_volume(zone="b")], None, id="in another zone"),
        pytest.param([_volume(modes=["ReadOnlyMany"])], None, id="other access modes"),
        pytest.param([_volume(modes=["ReadOnlyMany", "ReadWriteOnce"])], "v", id="more access modes"),
        pytest.param([_volume(spec={"volumeMode": "Block"})], None, id="a block device"),
        pytest.param([_volume(spec={"volumeAttributesClassName": "x"})], None, id="other attributes"),
        pytest.param([_volume(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})], None, id="being deleted"),
        pytest.param([_volume(claim=OTHERS)], None, id="meant for another claim"),
        pytest.param(
            [_volume("a", "6Gi"), _volume("b", "20Gi", claim=MINE, phase="Pending")],
            "b",
            id="meant for this claim: before any that fits better",
        ),
        pytest.param(
            [_volume("a", "6Gi"), _volume("b", "20Gi", claim=MINE, zone="b")],
            None,
            id="meant for this claim, but not on this node: no other will do",
        ),
        pytest.param([_volume(claim={**MINE, "uid": "uid-c"})], "v", id="meant for this very claim, by UID as well"),
        pytest.param([_volume(claim={**MINE, "uid": "old"})], None, id="meant for an earlier claim of the name"),
    ],
)
def test_find(volumes: list[corev1.PersistentVolume], expected: str | None) -> None:
    found = find_matching_volume(CLAIM, volumes, NODE)
    assert (found.metadata.name if found else None) == expected


def test_a_selector_looks_at_the_labels() -> None:
    claim = make_claim("c", storage_class="local", spec={"selector": {"matchLabels": {"disk": "fast"}}})
    volumes = [_volume("a"), _volume("b", labels={"disk": "fast"})]
    found = find_matching_volume(claim, volumes, NODE)
    assert found is not None
    assert found.metadata.name == "b"


def test_excluded_volumes_are_not_chosen_twice() -> None:
    assert find_matching_volume(CLAIM, [_volume("a")], NODE, {"a"}) is None


def test_the_annotation_of_old_names_the_class() -> None:
    beta = "volume.beta.kubernetes.io/storage-class"
    claim = make_claim("c", storage_class="other", annotations={beta: "local"})
    assert find_matching_volume(claim, [_volume()], NODE) is not None
    assert find_matching_volume(claim, [_volume(annotations={beta: "other"})], NODE) is None


def test_node_affinity_knows_labels_alone() -> None:
    by_name = affinity("x", "y")
    by_name["required"]["nodeSelectorTerms"] = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
    ]
    assert not node_affinity_matches(_volume(spec={"nodeAffinity": by_name}), NODE)
    assert node_affinity_matches(_volume(spec={"nodeAffinity": {}}), NODE)
    assert not node_affinity_matches(_volume(spec={"nodeAffinity": {"required": {"nodeSelectorTerms": []}}}), NODE)


def test_a_free_volume_is_bound_by_the_controller() -> None:
    bound = bind_volume_to_claim(_volume(), CLAIM)
    assert bound.spec.claim_ref == corev1.ClaimReference("PersistentVolumeClaim", "v1", "c", "default", "uid-c", "1")
    assert bound.metadata.annotations == {BOUND_BY_CONTROLLER: "yes"}


def test_a_volume_meant_for_the_claim_by_its_user_gets_the_uid_only() -> None:
    bound = bind_volume_to_claim(_volume(claim=MINE), CLAIM)
    assert bound.spec.claim_ref is not None
    assert bound.spec.claim_ref.uid == "uid-c"
    assert bound.metadata.annotations == {}


def test_a_volume_bound_to_the_claim_stays_as_it_is() -> None:
    volume = _volume(claim={**MINE, "uid": "uid-c"})
    assert bind_volume_to_claim(volume, CLAIM) is volume

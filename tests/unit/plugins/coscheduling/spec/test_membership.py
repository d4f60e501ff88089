"""Which group a pod is of: the first of its keys that names one, in the order of the sources."""

from __future__ import annotations

import pytest

from extender.api import corev1
from extender.api.schedulingv1alpha1 import POD_GROUP_LABEL
from extender.config.group_sources import PRESETS
from extender.config.plugin_args import CoschedulingArgs, GroupSource
from extender.plugins.coscheduling.spec.membership import GroupLabels, GroupRef
from extender.plugins.coscheduling.spec.pod_group import GroupSpec, spec_of_labels
from tests.objects import make_pod

OWN = GroupSource(
    "own", group_annotation="example.com/job", min_member_label="example.com/size", role_label="example.com/role"
)
LABELS = GroupLabels.of(CoschedulingArgs(group_sources=(*PRESETS.values(), OWN)))
LWS = {"leaderworkerset.sigs.k8s.io/group-key": "5c1f"}
SIZE = {"leaderworkerset.sigs.k8s.io/size": "4"}
KUEUE = {"kueue.x-k8s.io/pod-group-name": "sample"}
COUNT = {"kueue.x-k8s.io/pod-group-total-count": "2"}
VOLCANO = {"scheduling.k8s.io/group-name": "podgroup-1", "scheduling.volcano.sh/group-min-member": "3"}
KOORDINATOR = {"gang.scheduling.koordinator.sh/name": "k", "gang.scheduling.koordinator.sh/min-available": "5"}
LIGHT = {"pod-group.scheduling.sigs.k8s.io/name": "l", "pod-group.scheduling.sigs.k8s.io/min-available": "2"}


def pod(labels: dict[str, str], annotations: dict[str, str], scheduler: str = "gang-scheduler") -> corev1.Pod:
    made = make_pod().namespace("default").name("p").uid("p").labels(labels).scheduler_name(scheduler)
    for key, value in annotations.items():
        made = made.annotation(key, value)
    return made.obj()


@pytest.mark.parametrize(
    ("labels", "annotations", "key", "minimum", "source"),
    [
        pytest.param(LWS, SIZE, "default/5c1f", "4", "lws", id="a replica of a LeaderWorkerSet"),
        pytest.param(KUEUE, COUNT, "default/sample", "2", "kueue", id="a pod group of Kueue"),
        pytest.param({}, VOLCANO, "default/podgroup-1", "3", "volcano", id="Volcano's annotations"),
        pytest.param({"example.com/size": "2"}, {"example.com/job": "j"}, "default/j", "2", "own", id="own keys"),
        pytest.param(
            {**KUEUE, **LWS}, {**COUNT, **SIZE}, "default/5c1f", "4", "lws", id="the first that is configured"
        ),
        pytest.param(LWS, {**SIZE, **KOORDINATOR}, "default/5c1f", "4", "lws", id="before Koordinator's annotations"),
        pytest.param({**LWS, **LIGHT}, SIZE, "default/l", "2", "lightweight", id="after the two labels"),
        pytest.param({**LWS, POD_GROUP_LABEL: "g"}, SIZE, "default/g", "", "", id="after a PodGroup"),
        pytest.param({}, KOORDINATOR, "default/k", "5", "koordinator", id="Koordinator's annotations"),
        pytest.param(LWS, {}, "default/5c1f", "", "lws", id="a name without its minimum is a group all the same"),
    ],
)
def test_the_first_source_that_names_a_group_decides(
    labels: dict[str, str], annotations: dict[str, str], key: str, minimum: str, source: str
) -> None:
    ref = LABELS.group_of(pod(labels, annotations))
    assert ref is not None
    assert (ref.key, ref.min_available, ref.source.name if ref.source else "") == (key, minimum, source)
    assert ref.lightweight == bool(source)


@pytest.mark.parametrize(
    ("labels", "annotations"),
    [
        pytest.param({"app": "web"}, {"a": "b"}, id="no key at all"),
        pytest.param({}, SIZE, id="a minimum without a name"),
        pytest.param({}, LWS, id="a label's key as an annotation"),
        pytest.param({"pod-group.scheduling.sigs.k8s.io/name": "l"}, {}, id="half of the pair of labels"),
    ],
)
def test_other_pods_are_of_no_group(labels: dict[str, str], annotations: dict[str, str]) -> None:
    assert LABELS.group_of(pod(labels, annotations)) is None


def test_without_configuration_such_keys_name_no_group() -> None:
    assert GroupLabels().group_of(pod({**LWS, **KUEUE}, {**SIZE, **COUNT})) is None


def test_of_a_configured_source_only_pods_of_our_schedulers_are_members() -> None:
    labels = LABELS.serving(lambda each: each.spec.scheduler_name == "gang-scheduler")
    assert labels.group_of(pod(LWS, SIZE)) is not None
    assert labels.group_of(pod(LWS, SIZE, "default-scheduler")) is None
    assert labels.group_of(pod({POD_GROUP_LABEL: "g"}, {}, "default-scheduler")) == GroupRef("default/g")


def spec_by(labels: dict[str, str], annotations: dict[str, str]) -> GroupSpec:
    made = pod(labels, annotations)
    ref = LABELS.group_of(made)
    assert ref is not None
    return spec_of_labels(ref.key, [(made, ref)])


@pytest.mark.parametrize(
    ("labels", "annotations", "wrong"),
    [
        pytest.param(
            LWS,
            {"leaderworkerset.sigs.k8s.io/size": "many"},
            "group default/5c1f is invalid: annotation leaderworkerset.sigs.k8s.io/size: Invalid value: 'many': must be",
            id="a size that is no number",
        ),
        pytest.param(
            LWS,
            {},
            "group default/5c1f is invalid: annotation leaderworkerset.sigs.k8s.io/size: Required value",
            id="no size",
        ),
        pytest.param(
            {"kueue.x-k8s.io/pod-group-name": "a b"},
            COUNT,
            "label kueue.x-k8s.io/pod-group-name: Invalid value: 'a b': must be a name",
            id="a name that is none",
        ),
        pytest.param(
            {"example.com/size": "0"},
            {"example.com/job": "j"},
            "group default/j is invalid: label example.com/size: Invalid value: '0': must be a number",
            id="no member",
        ),
    ],
)
def test_a_bad_value_is_told_by_its_key(labels: dict[str, str], annotations: dict[str, str], wrong: str) -> None:
    assert spec_by(labels, annotations).invalid.startswith(wrong)


def test_the_source_says_where_roles_are_unless_the_gang_does() -> None:
    named, roles = {"example.com/job": "j"}, {"gang-extender.dev/roles": "ps=1,worker=2"}
    spec = spec_by({"example.com/size": "3"}, {**named, **roles})
    assert (spec.min_member, spec.roles.label) == (3, "example.com/role")
    spec = spec_by({"example.com/size": "3"}, {**named, **roles, "gang-extender.dev/role-label": "r"})
    assert spec.roles.label == "r"

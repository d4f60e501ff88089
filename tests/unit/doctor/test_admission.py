"""The doctor on the admission policies of the manifests: as they are shipped, and with one thing changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from extender.client.embedded import EmbeddedAPI
from extender.client.interface import ResourceType
from extender.config.load import load_extender_configuration
from extender.config.plugin_args import CoschedulingArgs, GroupSource
from extender.config.types import ExtenderConfiguration, KubeSchedulerProfile
from extender.doctor import admission
from extender.doctor.questions import Questions
from tests.documented import PROJECT

KINDS: dict[str, ResourceType[Any]] = {
    kind.kind: kind
    for kind in (
        admission.MUTATING,
        admission.MUTATING_BINDINGS,
        admission.VALIDATING,
        admission.VALIDATING_BINDINGS,
        admission.CONFIG_MAPS,
    )
}
ACCOUNT = "system:serviceaccount:kube-system:gang-scheduler"
SHIPPED = load_extender_configuration(PROJECT / "manifests/sidecar/extender.yaml")
Json = dict[str, Any]
Change = Callable[[Json], object]


class Cluster(EmbeddedAPI):
    """The account may patch pods where the overlay of the gate is applied."""

    may_patch = True

    def may(self, verb: str, resource: ResourceType[Any], subresource: str = "", **of: str) -> bool:
        assert (verb, str(resource), subresource, of["user"]) == ("patch", "pods", "", ACCOUNT)
        return self.may_patch


def applied(change: Change | None = None, *overlays: str) -> Cluster:
    """change: of each object; one that it answers True to is left out."""
    api = Cluster()
    for overlay in overlays or ("gate", "scheduler-name"):
        for file in sorted((PROJECT / "manifests" / overlay).glob("*.yaml")):
            for document in yaml.safe_load_all(file.read_text()):
                kind = KINDS.get(document["kind"])
                if kind is not None and (change is None or change(document) is not True):
                    api.create(kind, document, document["metadata"].get("namespace", ""))
    return api


def found(api: EmbeddedAPI, configuration: ExtenderConfiguration = SHIPPED) -> list[str]:
    ask = Questions(api, configuration, "kubeconfig", ACCOUNT)
    return [f"{each.severity.value} {each.code} {each.field}" for each in admission.examine(ask)]


def without(kind: str, name: str) -> Change:
    return lambda it: it["kind"] == kind and it["metadata"]["name"] == name


def setting(name: str, field: str, value: str) -> Change:
    def change(it: Json) -> None:
        if it["kind"] == "ConfigMap" and it["metadata"]["name"] == name:
            it["data"][field] = value

    return change


def renamed_gate(kind: str) -> Change:
    """In one policy alone."""

    def change(it: Json) -> None:
        if it["kind"] == kind:
            it["spec"] = yaml.safe_load(yaml.safe_dump(it["spec"]).replace("scheduling.x-k8s.io/gang", "example.com/g"))

    return change


GATE, NAMES = admission.GATE, admission.NAMES


def test_nothing_is_wrong_with_what_is_shipped() -> None:
    assert found(applied()) == []


def test_nothing_is_said_of_overlays_that_are_not_applied() -> None:
    assert found(applied(lambda it: True)) == []


def test_the_guard_of_the_wake_annotation_will_do() -> None:
    assert (
        found(applied(without("ValidatingAdmissionPolicy", "gang-extender-gates"), "gate", "wake-by-annotation")) == []
    )


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(
            without("MutatingAdmissionPolicyBinding", GATE), f"warning PolicyNotInForce {GATE}", id="no binding"
        ),
        pytest.param(without("MutatingAdmissionPolicy", GATE), f"warning PolicyNotInForce {GATE}", id="no policy"),
        pytest.param(without("ConfigMap", GATE), f"warning PolicyNotInForce {GATE}", id="no settings"),
        pytest.param(
            setting(GATE, "schedulerNames", "gang-scheduler\nbatch\n"),
            f"error GatedNotServed {GATE}: schedulerNames",
            id="another scheduler's pods are gated",
        ),
        pytest.param(
            setting(GATE, "groupLabels", "scheduling.x-k8s.io/pod-group\nleaderworkerset.sigs.k8s.io/group-key\n"),
            f"error GatedNoMember {GATE}: groupLabels",
            id="pods that are no members are gated",
        ),
        pytest.param(
            setting(GATE, "groupAnnotations", "example.com/gang"),
            f"error GatedNoMember {GATE}: groupAnnotations",
            id="by an annotation likewise",
        ),
        pytest.param(
            setting(GATE, "schedulingGroup", "true"),
            f"error GatedNoMember {GATE}: schedulingGroup",
            id="by spec.schedulingGroup likewise",
        ),
        pytest.param(
            renamed_gate("MutatingAdmissionPolicy"), f"error GateDiffers {GATE}", id="the policy sets another gate"
        ),
        pytest.param(
            renamed_gate("ValidatingAdmissionPolicy"),
            "error GateDiffers gang-extender-gates",
            id="the guard lets another gate be taken off",
        ),
        pytest.param(
            without("ValidatingAdmissionPolicyBinding", "gang-extender-gates"),
            "warning NoGuard pods",
            id="the guard is not bound",
        ),
        pytest.param(
            setting(NAMES, "schedulerName", "gangs"),
            f"error NamedNotServed {NAMES}: schedulerName",
            id="pods are given a name that is not served",
        ),
        pytest.param(
            setting(NAMES, "schedulingGate", "example.com/g"),
            f"error GateDiffers {NAMES}: schedulingGate",
            id="with a gate that is not ours",
        ),
    ],
)
def test_one_mistake_is_one_finding(change: Change, expected: str) -> None:
    assert found(applied(change)) == [expected]


def test_gates_that_may_not_be_taken_off() -> None:
    api = applied()
    api.may_patch = False
    assert found(api) == ["error MissingRight pods"]


def test_what_the_configuration_counts_may_be_gated() -> None:
    args = CoschedulingArgs(
        in_tree_pod_groups=True, group_sources=(GroupSource("lws", "leaderworkerset.sigs.k8s.io/group-key"),)
    )
    profile = KubeSchedulerProfile(plugin_config={"Coscheduling": args})
    ours = ExtenderConfiguration(scheduler_names=("gang-scheduler",), profiles=(profile,))

    def change(it: Json) -> None:
        if it["metadata"]["name"] == GATE and it["kind"] == "ConfigMap":
            it["data"]["groupLabels"] += "leaderworkerset.sigs.k8s.io/group-key\n"
            it["data"]["schedulingGroup"] = "true"

    assert found(applied(change), ours) == []

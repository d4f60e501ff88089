"""The doctor on kinds of groups that the configuration asks for: served or not, in which version, and to be read by the account."""

from __future__ import annotations

from typing import Any

import pytest

from extender.client.embedded import EmbeddedAPI
from extender.client.errors import ForbiddenError
from extender.client.interface import IN_TREE_POD_GROUPS, IN_TREE_POD_GROUPS_1_36, VOLCANO_POD_GROUPS, ResourceType
from extender.config.findings import Finding
from extender.config.group_sources import PRESETS
from extender.config.plugin_args import CoschedulingArgs
from extender.config.types import ExtenderConfiguration, KubeSchedulerProfile
from extender.doctor import group_kinds
from extender.doctor.questions import Questions

NEW, OLD, VOLCANO = IN_TREE_POD_GROUPS, IN_TREE_POD_GROUPS_1_36, VOLCANO_POD_GROUPS
IN_TREE = CoschedulingArgs(in_tree_pod_groups=True)
SOURCES = CoschedulingArgs(group_sources=(PRESETS["kueue"], PRESETS["volcano"]))


class Serving(EmbeddedAPI):
    """Without some kinds. others: versions that are served of each group. without: verbs that the account may not."""

    def __init__(self, *absent: ResourceType[Any], others: tuple[str, ...] = (), without: tuple[str, ...] = ()) -> None:
        super().__init__(absent=absent)
        self._others, self._without = others, without

    def served_versions(self, group: str) -> tuple[str, ...]:
        return self._others

    def may(self, verb: str, resource: ResourceType[Any], subresource: str = "", **of: str) -> bool:
        return verb not in self._without


def findings(api: EmbeddedAPI, args: CoschedulingArgs) -> list[Finding]:
    profile = KubeSchedulerProfile(plugin_config={"Coscheduling": args})
    ask = Questions(api, ExtenderConfiguration(profiles=(profile,)), "kubeconfig", "the-account")
    return list(group_kinds.examine(ask))


def found(api: EmbeddedAPI, args: CoschedulingArgs) -> list[str]:
    return [f"{each.severity.value} {each.code} {each.field}" for each in findings(api, args)]


@pytest.mark.parametrize(
    ("api", "args", "expected"),
    [
        pytest.param(Serving(), IN_TREE, [], id="both versions are served"),
        pytest.param(Serving(OLD), IN_TREE, [], id="the newer is"),
        pytest.param(Serving(NEW), IN_TREE, [], id="the older is"),
        pytest.param(Serving(NEW, OLD), IN_TREE, ["error GroupsNotServed inTreePodGroups"], id="neither is"),
        pytest.param(Serving(NEW, OLD), CoschedulingArgs(), [], id="neither is, nor asked for"),
        pytest.param(Serving(), SOURCES, [], id="Volcano's kind is served"),
        pytest.param(Serving(VOLCANO), CoschedulingArgs(), [], id="Volcano's is not, nor asked for"),
        pytest.param(
            Serving(VOLCANO), SOURCES, ["info GroupsNotServed groupSources[1]"], id="no Volcano in the cluster"
        ),
        pytest.param(
            Serving(VOLCANO, others=("v1alpha1",)),
            SOURCES,
            ["warning GroupsNotServed groupSources[1]"],
            id="Volcano's kind in another version",
        ),
        pytest.param(
            Serving(without=("watch",)),
            SOURCES,
            ["warning MissingRight groupSources[1]"],
            id="Volcano's kind may not be watched",
        ),
    ],
)
def test_kinds_that_the_configuration_asks_for(api: EmbeddedAPI, args: CoschedulingArgs, expected: list[str]) -> None:
    assert found(api, args) == expected


def test_the_versions_that_are_read_and_those_that_are_served_are_named() -> None:
    (only,) = findings(Serving(NEW, OLD, others=("v1", "v1alpha1")), IN_TREE)
    assert only.message.startswith("podgroups of scheduling.k8s.io are not served in v1beta1 or v1alpha2")
    assert "versions of that group that are served: v1, v1alpha1" in only.message


def test_a_right_that_is_missing_is_named_with_the_account_and_the_overlay() -> None:
    (only,) = findings(Serving(without=("list", "watch")), SOURCES)
    assert only.message.startswith("the-account may not list, watch podgroups.scheduling.volcano.sh")
    assert only.fix == "kubectl apply -k manifests/volcano-groups"


def test_a_kind_that_we_may_not_list_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: EmbeddedAPI, *args: Any, **more: Any) -> Any:
        raise ForbiddenError("podgroups is forbidden")

    monkeypatch.setattr(EmbeddedAPI, "list_page", refused)
    assert found(Serving(), IN_TREE) == []

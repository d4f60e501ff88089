"""Our own configuration file."""

from __future__ import annotations

from pathlib import Path

import pytest

from extender.config.load import load_extender_configuration as load
from extender.config.plugin_args import CoschedulingArgs
from extender.config.types import ExtenderConfiguration, NamespacedName, Packing, PluginRef, TopologyLevel
from tests.unit.config.conftest import Write, mistakes

HEAD = "apiVersion: gang-extender.dev/v1alpha1\nkind: ExtenderConfiguration\n"
ROOT = Path(__file__).parents[3]


def test_an_empty_file_is_the_defaults(write: Write) -> None:
    assert load(write(HEAD)) == ExtenderConfiguration()


def test_the_file_of_the_manifests_is_read() -> None:
    configuration = load(ROOT / "manifests/sidecar/extender.yaml")
    assert configuration.scheduler_names == ("gang-scheduler",)
    assert configuration.leader_lease == NamespacedName("kube-system", "gang-scheduler")


def test_a_full_file_is_read(write: Write) -> None:
    path = write(
        """\
        apiVersion: gang-extender.dev/v1alpha1
        kind: ExtenderConfiguration
        schedulerNames: [a, b]
        leaderLease: kube-system/a
        bindTimeoutSeconds: 90
        percentageOfNodesToScore: 100
        topology: [topology.kubernetes.io/zone, {name: rack, nodeLabel: example.com/rack}]
        packing: mostEven
        gangVictims: surplusOnly
        shadowAfterSeconds: 1.5
        shadowMaxSeconds: 60
        shadowMaxNodesPercent: 10
        profiles:
          - schedulerName: a
            plugins:
              score: {enabled: [{name: NodeResourcesFit, weight: 2}]}
            pluginConfig:
              - name: Coscheduling
                args: {permitWaitingTimeSeconds: 10, podGroupLabels: [my/group]}
          - schedulerName: b
        """
    )
    configuration = load(path)
    a, b = configuration.profiles
    assert configuration == ExtenderConfiguration(
        scheduler_names=("a", "b"),
        leader_lease=NamespacedName("kube-system", "a"),
        bind_timeout_seconds=90,
        percentage_of_nodes_to_score=100,
        profiles=(a, b),
        topology=(TopologyLevel("zone", "topology.kubernetes.io/zone"), TopologyLevel("rack", "example.com/rack")),
        packing=Packing.MOST_EVEN,
        gang_victims="surplusOnly",
        shadow_after_seconds=1.5,
        shadow_max_seconds=60,
        shadow_max_nodes_percent=10,
    )
    assert a.plugin_config["Coscheduling"] == CoschedulingArgs(10, pod_group_labels=("my/group",))
    assert a.plugins.at("score").enabled == (PluginRef("NodeResourcesFit", 2),)
    assert PluginRef("Coscheduling") in a.plugins.multi_point.enabled
    assert b.plugin_config["Coscheduling"] == CoschedulingArgs()


@pytest.mark.parametrize(
    ("scheduler_names", "served"),
    [
        pytest.param((), True, id="no names: every pod is ours"),
        pytest.param(("a", "b"), True, id="one of the names"),
        pytest.param(("b",), False, id="another scheduler's"),
    ],
)
def test_which_pods_are_ours(scheduler_names: tuple[str, ...], served: bool) -> None:
    assert ExtenderConfiguration(scheduler_names).serves("a") is served


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "the file is empty"), ("null\n", "the file is empty"), ("- a\n- b\n", "must be a mapping, not a list")],
    ids=["nothing", "null", "a list"],
)
def test_a_file_that_is_no_mapping_is_told_as_such(write: Write, text: str, said: str) -> None:
    assert mistakes(load, write(text)) == [f"1: {said}"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("null", "null"),
        ("", "null"),
        ("1", "an integer"),
        ("1.5", "a number"),
        ("true", "a bool"),
        ("[a]", "a list"),
        ("{a: b}", "a mapping"),
        ("!!binary YQ==", "binary data"),
    ],
)
def test_what_is_no_text_is_named_in_words_of_yaml(write: Write, name: str, kind: str) -> None:
    path = write(f"{HEAD}schedulerNames:\n- a\n- {name}\n")
    assert mistakes(load, path) == [f"5: schedulerNames[1]: must be a string, not {kind}"]


def test_every_mistake_is_said_at_once_with_its_line(write: Write) -> None:
    path = write(
        """\
        apiVersion: gang-extender.dev/v1
        kind: Extender
        schedulerNames: [a, a, "", 1]
        leaderLease: gang-scheduler
        leaderService: gang-extender
        leaseDurationSeconds: 1
        bindTimeoutSeconds: 5
        topology: ["not a label"]
        gangVictims: all
        shadowAfterSeconds: -1
        shadowMaxSeconds: .nan
        shadowMaxNodesPercent: 200
        schedulerName: a
        profiles:
          - schedulerName: a
            plugins: {multiPoint: {disabled: [{name: Coscheduling}]}}
            pluginConfig:
              - name: Coscheduling
                args: {permitWaitingTime: 1, podGroupBackoffSeconds: -1}
        """
    )
    assert mistakes(load, path) == [
        '1: apiVersion: Invalid value: "gang-extender.dev/v1": must be gang-extender.dev/v1alpha1',
        '2: kind: Invalid value: "Extender": must be ExtenderConfiguration',
        '3: schedulerNames[1]: Duplicate value: "a"',
        "3: schedulerNames[2]: Required value",
        "3: schedulerNames[3]: must be a string, not an integer",
        '4: leaderLease: Invalid value: "gang-scheduler": must be namespace/name',
        '5: leaderService: Invalid value: "gang-extender": must be namespace/name',
        "6: leaseDurationSeconds: Invalid value: 1: not in valid range [3, 300]",
        "7: bindTimeoutSeconds: Invalid value: 5: must be between 10 and 3600",
        '8: topology[0]: Invalid value: "not a label": name part must be 1 to 63 letters, digits, '
        "'-', '_' or '.', and begin and end with a letter or a digit",
        '9: gangVictims: Unsupported value: "all": supported values: "wholeOrSurplus", "surplusOnly", "any"',
        "10: shadowAfterSeconds: Invalid value: -1: must be between 0 and 86400",
        "11: shadowMaxSeconds: Invalid value: nan: must be between 0 and 86400",
        "12: shadowMaxNodesPercent: Invalid value: 200: not in valid range [0, 100]",
        "13: schedulerName: unknown field",
        "16: profiles[0].plugins: Coscheduling must stay enabled at multiPoint",
        "19: profiles[0].pluginConfig[0].args.permitWaitingTime: unknown field",
        "19: profiles[0].pluginConfig[0].args.podGroupBackoffSeconds: Invalid value: -1: not in valid range [0, 3600]",
    ]

"""KubeSchedulerConfiguration files. kube-scheduler: validation_test.go, cmd/kube-scheduler/app/options"""

from __future__ import annotations

from pathlib import Path

import pytest

from extender.config.kube_scheduler import load_kube_scheduler_configuration as load
from extender.config.plugin_args import InterPodAffinityArgs, NodeResourcesFitArgs
from extender.config.types import ExtenderConfig, ExtenderTLSConfig, KubeSchedulerConfiguration, PluginRef
from tests.unit.config.conftest import Write, mistakes

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
ROOT = Path(__file__).parents[3]


def test_an_empty_file_is_kube_schedulers_defaults(write: Write) -> None:
    configuration = load(write(HEAD))
    profile = configuration.profiles[0]
    assert configuration == KubeSchedulerConfiguration((profile,))
    assert profile.scheduler_name == "default-scheduler"
    assert len(profile.plugins.multi_point.enabled) == 20
    assert profile.plugin_config["InterPodAffinity"] == InterPodAffinityArgs()


def test_the_file_of_the_manifests_is_read() -> None:
    configuration = load(ROOT / "manifests/sidecar/kube-scheduler.yaml")
    assert configuration.percentage_of_nodes_to_score == 10
    assert [extender.bind_verb for extender in configuration.extenders] == ["", "bind"]


def test_a_full_file_is_read(write: Write) -> None:
    path = write(
        """\
        apiVersion: kubescheduler.config.k8s.io/v1
        kind: KubeSchedulerConfiguration
        parallelism: 4
        percentageOfNodesToScore: 50
        podInitialBackoffSeconds: 2
        podMaxBackoffSeconds: 20
        leaderElection: {leaderElect: false}
        clientConnection: {qps: 10, burst: 20, kubeconfig: /etc/kubeconfig}
        enableProfiling: false
        profiles:
          - schedulerName: one
            percentageOfNodesToScore: 70
            plugins:
              multiPoint:
                enabled: [{name: TaintToleration, weight: 7}, {name: Mine}]
                disabled: [{name: ImageLocality}]
              score:
                disabled: [{name: "*"}]
                enabled: [{name: NodeResourcesFit, weight: 5}]
            pluginConfig:
              - name: InterPodAffinity
                args: {hardPodAffinityWeight: 3}
              - name: Mine
                args: {anything: goes}
          - schedulerName: two
        extenders:
          - urlPrefix: https://a
            filterVerb: filter
            prioritizeVerb: prioritize
            weight: 2
            enableHTTPS: true
            httpTimeout: 1m30s
            nodeCacheCapable: true
            ignorable: true
            managedResources: [{name: example.com/gpu, ignoredByScheduler: true}, {name: example.com/fpga}]
            tlsConfig: {serverName: a, caFile: /ca.pem, certData: YQ==}
        """
    )
    configuration = load(path)
    one, two = configuration.profiles
    assert (one.scheduler_name, one.percentage_of_nodes_to_score) == ("one", 70)
    assert (two.scheduler_name, two.percentage_of_nodes_to_score) == ("two", None)
    enabled = one.plugins.multi_point.enabled
    assert enabled[4] == PluginRef("TaintToleration", 7)
    assert enabled[-1] == PluginRef("Mine")
    assert PluginRef("ImageLocality", 1) not in enabled
    assert one.plugins.at("score").enabled == (PluginRef("NodeResourcesFit", 5),)
    assert one.plugin_config["InterPodAffinity"] == InterPodAffinityArgs(3)
    assert one.plugin_config["Mine"] == {"anything": "goes"}
    ignored = NodeResourcesFitArgs(ignored_resources=frozenset({"example.com/gpu"}))
    assert one.plugin_config["NodeResourcesFit"] == two.plugin_config["NodeResourcesFit"] == ignored
    assert configuration.extenders == (
        ExtenderConfig(
            url_prefix="https://a",
            filter_verb="filter",
            prioritize_verb="prioritize",
            weight=2,
            enable_https=True,
            http_timeout_seconds=90,
            node_cache_capable=True,
            managed_resources=frozenset({"example.com/gpu", "example.com/fpga"}),
            ignored_by_scheduler=frozenset({"example.com/gpu"}),
            ignorable=True,
            tls=ExtenderTLSConfig(server_name="a", ca_file="/ca.pem", cert_data=b"a"),
        ),
    )
    assert (configuration.parallelism, configuration.percentage_of_nodes_to_score) == (4, 50)
    assert (configuration.pod_initial_backoff_seconds, configuration.pod_max_backoff_seconds) == (2, 20)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", ['1: apiVersion: Invalid value: "": must be kubescheduler.config.k8s.io/v1'], id="no version"),
        pytest.param("null", ["1: the file is empty"], id="nothing at all"),
        pytest.param("# a comment\n", ["1: the file is empty"], id="comments alone"),
        pytest.param("- a", ["1: must be a mapping, not a list"], id="a list"),
        pytest.param("a", ["1: must be a mapping, not a string"], id="a word"),
        pytest.param(
            "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n",
            [
                '1: apiVersion: Invalid value: "kubescheduler.config.k8s.io/v1beta3": '
                "the version was dropped: write kubescheduler.config.k8s.io/v1"
            ],
            id="a beta version",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Policy\npredicates: []\n",
            ["2: kind: Policy was dropped with kube-scheduler 1.23: write a profile's plugins instead"],
            id="a Policy",
        ),
        pytest.param(
            HEAD + "algorithmSource: {provider: DefaultProvider}\n",
            [
                "3: algorithmSource: provider and Policy sources were dropped with kube-scheduler 1.23: "
                "write a profile's plugins"
            ],
            id="a provider",
        ),
    ],
)
def test_what_is_no_configuration_of_this_version_is_refused(write: Write, text: str, expected: list[str]) -> None:
    if text == "":
        text = "kind: KubeSchedulerConfiguration\n"
    assert mistakes(load, write(text)) == expected


@pytest.mark.parametrize(
    ("qps", "expected"),
    [
        pytest.param("many", ["3: clientConnection.qps: must be a number, not a string"], id="a word"),
        pytest.param("true", ["3: clientConnection.qps: must be a number, not a bool"], id="a bool"),
        pytest.param("[1]", ["3: clientConnection.qps: must be a number, not a list"], id="a list"),
        pytest.param(
            ".nan", ["3: clientConnection.qps: Invalid value: nan: must be a number of 32 bits"], id="not a number"
        ),
        pytest.param(
            "1e39", ["3: clientConnection.qps: Invalid value: 1e+39: must be a number of 32 bits"], id="too large"
        ),
        pytest.param("1e2", None, id="a number to Go's YAML"),
        pytest.param("-1", None, id="negative: no limit"),
        pytest.param("12.5", None, id="a fraction"),
        pytest.param("null", None, id="the default"),
    ],
)
def test_the_rate_of_calls_is_a_number(write: Write, qps: str, expected: list[str] | None) -> None:
    path = write(f"{HEAD}clientConnection: {{qps: {qps}}}\n")
    if expected is None:
        load(path)
    else:
        assert mistakes(load, path) == expected


def test_every_mistake_is_said_at_once_with_its_line(write: Write) -> None:
    path = write(
        """\
        apiVersion: kubescheduler.config.k8s.io/v1
        kind: KubeSchedulerConfiguration
        parallelism: 0
        parallelism: 1
        percentageOfNodesToScore: 101
        podInitialBackoffSeconds: 20
        podMaxBackoffSeconds: 10
        unknown: 1
        leaderElection: {leaseDuration: 5s, renewDeadline: 10s, resourceLock: endpoints}
        clientConnection: {burst: -1}
        profiles:
          - plugins:
              filtr: {}
              score: {enabled: [{name: EBSLimits}, {weight: 1}]}
              placementScore: {enabled: [{name: PodGroupPodsCount}]}
            pluginConfig:
              - {name: NodeAffinity, args: {addedAfinity: {}}}
              - {name: NodeAffinity}
          - schedulerName: a
            percentageOfNodesToScore: -1
            plugins: {queueSort: {enabled: [{name: Other}]}}
          - schedulerName: a
        extenders:
          - prioritizeVerb: p
            bindVerb: b
            managedResources: [{name: cpu}, {name: example.com/a}, {name: example.com/a}]
          - bindVerb: b
            weight: one
            httpTimeout: 10
            tlsConfig: {keyData: "!"}
        """
    )
    gone = "the plugin is gone: NodeVolumeLimits does its work"
    assert mistakes(load, path) == [
        "4: parallelism: Duplicate key",
        "4: parallelism: Invalid value: 0: should be an integer value greater than zero",
        "5: percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
        "7: podMaxBackoffSeconds: Invalid value: 10: must be greater than or equal to PodInitialBackoffSeconds",
        "8: unknown: unknown field",
        '9: leaderElection.leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline`',
        '9: leaderElection.resourceLock: Invalid value: "endpoints": resourceLock value must be "leases"',
        "10: clientConnection.burst: Invalid value: -1: must be non-negative",
        "12: profiles[0].schedulerName: Required value",
        "13: profiles[0].plugins.filtr: unknown field",
        f'14: profiles[0].plugins.score.enabled[0]: Invalid value: "EBSLimits": {gone}',
        "14: profiles[0].plugins.score.enabled[1].name: Required value",
        "15: profiles[0].plugins.placementScore: not supported: placing pod groups is behind an alpha feature gate of "
        "kube-scheduler",
        "17: profiles[0].pluginConfig[0].args.addedAfinity: unknown field",
        '18: profiles[0].pluginConfig[1]: Duplicate value: "NodeAffinity"',
        "20: profiles[1].percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]",
        "21: profiles[1].plugins.queueSort: must be the same for all profiles",
        "22: profiles[2].schedulerName: Duplicate value: profiles[1].schedulerName",
        '23: extenders: Invalid value: "found 2 extenders implementing bind": only one extender can implement bind',
        "24: extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
        '26: extenders[0].managedResources[0].name: Invalid value: "cpu": is an invalid extended resource name',
        '26: extenders[0].managedResources[2].name: Invalid value: "example.com/a": '
        "duplicate extender managed resource name",
        "28: extenders[1].weight: must be an integer, not a string",
        "29: extenders[1].httpTimeout: must be a duration such as 30s, not an integer",
        "30: extenders[1].tlsConfig.keyData: must be base64",
    ]

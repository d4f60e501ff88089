"""The doctor on files that do not fit together: each mistake alone in files that are right otherwise."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from extender.config.findings import Finding
from extender.doctor.configuration import examine
from extender.plugins import registry
from tests.documented import PROJECT

SHIPPED = [
    file.parent
    for file in sorted((PROJECT / "manifests").rglob("kube-scheduler.yaml"))
    if "kind: KubeSchedulerConfiguration" in file.read_text()
]
KUBE_SCHEDULER, OURS = "kube-scheduler.yaml", "extender.yaml"


class Files:
    """Shipped files, with one text of them replaced by another."""

    def __init__(
        self, folder: Path, kube_scheduler: str = f"sidecar/{KUBE_SCHEDULER}", ours: str = f"sidecar/{OURS}"
    ) -> None:
        self._folder = folder
        for name, source in ((KUBE_SCHEDULER, kube_scheduler), (OURS, ours)):
            (folder / name).write_text((PROJECT / "manifests" / source).read_text())

    def replace(self, name: str, old: str, new: str) -> None:
        text = (self._folder / name).read_text()
        assert old in text
        (self._folder / name).write_text(text.replace(old, new, 1))

    def found(self) -> list[Finding]:
        return list(examine(self._folder / KUBE_SCHEDULER, self._folder / OURS).findings)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda folder: f"{folder.parent.name} {folder.name}")
def test_nothing_is_wrong_with_what_is_shipped(folder: Path) -> None:
    """Apart from kube-scheduler the extender's file stays in the cluster: only the other one is for the nodes."""
    ours = folder if (folder / OURS).exists() else folder.parent
    assert examine(folder / KUBE_SCHEDULER, ours / OURS).findings == ()


CERTIFICATE = (
    "      certFile: /etc/kubernetes/gang-extender/tls.crt\n      keyFile: /etc/kubernetes/gang-extender/tls.key\n"
)
CERTIFICATE_DATA = "      certData: YQ==\n      keyData: YQ==\n"
AUTHORITY = "      caFile: /etc/kubernetes/gang-extender/ca.crt\n"
TLS = (
    "    tlsConfig: # certificates are read again when their files change; a new CA needs a restart of kube-scheduler\n"
)
LEASE = "leaderLease: kube-system/gang-extender\n"
APART = [
    (
        "no CA",
        KUBE_SCHEDULER,
        AUTHORITY,
        "",
        "error UnverifiedServer extenders[0].tlsConfig",
    ),
    (
        "any server is believed",
        KUBE_SCHEDULER,
        AUTHORITY,
        "      insecure: true\n",
        "error UnverifiedServer extenders[0].tlsConfig",
    ),
    (
        "the system's roots",
        KUBE_SCHEDULER,
        f"    enableHTTPS: true\n{TLS}{CERTIFICATE}{AUTHORITY}",
        f"    tlsConfig:\n{CERTIFICATE}",
        "warning SystemRoots extenders[0].tlsConfig",
    ),
    (
        "a CA, and any server is believed",
        KUBE_SCHEDULER,
        AUTHORITY,
        AUTHORITY + "      insecure: true\n",
        "error RefusedAtStart extenders[0].tlsConfig.insecure",
    ),
    (
        "no client certificate",
        KUBE_SCHEDULER,
        CERTIFICATE,
        "",
        "error NoClientCertificate extenders[0].tlsConfig",
    ),
    (
        "a client certificate without its key",
        KUBE_SCHEDULER,
        "      keyFile: /etc/kubernetes/gang-extender/tls.key\n",
        "",
        "error NoClientCertificate extenders[0].tlsConfig",
    ),
    (
        "a client certificate that cannot be renewed",
        KUBE_SCHEDULER,
        CERTIFICATE,
        CERTIFICATE_DATA,
        "warning CertificateInFile extenders[0].tlsConfig",
    ),
    ("one Lease for both", OURS, LEASE, "leaderLease: kube-system/kube-scheduler\n", "error SharedLease leaderLease"),
    (
        "a Service without a Lease",
        OURS,
        LEASE,
        "",
        "error InvalidConfiguration leaderLease",
    ),
    (
        "loopback in place of the Service",
        KUBE_SCHEDULER,
        "https://gang-extender.kube-system.svc\n    bind",
        "https://127.0.0.1:8888\n    bind",
        "error NotTheService extenders[1].urlPrefix",
    ),
]


@pytest.mark.parametrize(("name", "old", "new", "expected"), [pytest.param(*case[1:], id=case[0]) for case in APART])
def test_one_mistake_of_the_extender_apart_from_kube_scheduler(
    tmp_path: Path, name: str, old: str, new: str, expected: str
) -> None:
    files = Files(tmp_path, "service/nodes/kube-scheduler.yaml", "service/extender.yaml")
    files.replace(name, old, new)
    assert expected in [f"{each.severity.value} {each.code} {each.field}" for each in files.found()]


@pytest.mark.parametrize(
    ("https", "tls", "told"),
    [
        pytest.param("    enableHTTPS: true\n", "", "(enableHTTPS is set, and no `caFile`)", id="no CA"),
        pytest.param("    enableHTTPS: true\n", "      insecure: true\n", "(`insecure` is set)", id="insecure"),
        pytest.param("", "      insecure: true\n", "(`insecure` is set)", id="insecure without enableHTTPS"),
        pytest.param("", "", "unless an authority of kube-scheduler's system has signed", id="neither"),
    ],
)
def test_which_servers_kube_scheduler_believes(tmp_path: Path, https: str, tls: str, told: str) -> None:
    files = Files(tmp_path, "service/nodes/kube-scheduler.yaml", "service/extender.yaml")
    files.replace(KUBE_SCHEDULER, f"    enableHTTPS: true\n{TLS}", f"{https}    tlsConfig:\n")
    files.replace(KUBE_SCHEDULER, AUTHORITY, tls)
    (found,) = files.found()
    assert told in found.message


ENTRY = "  - urlPrefix: http://127.0.0.1:8888\n"
FIRST = ENTRY + "    filterVerb: filter"
BIND = ENTRY + "    bindVerb: bind"
SAMPLE = "percentageOfNodesToScore: 10\n"
SERVED = "  - schedulerName: gang-scheduler\n"
BIND_TIMEOUT = "bindVerb: bind\n    httpTimeout: 120s"
CASES = [
    ("the bind entry has no verb", KUBE_SCHEDULER, "bindVerb: bind", "weight: 1", "error NoBindVerb extenders[0]"),
    ("no filter", KUBE_SCHEDULER, "    filterVerb: filter\n", "", "error NoFilterVerb extenders[0]"),
    ("no preempt", KUBE_SCHEDULER, "    preemptVerb: preempt\n", "", "warning NoPreemptVerb extenders[0]"),
    ("no prioritize", KUBE_SCHEDULER, "    prioritizeVerb: prioritize\n", "", "warning NoPrioritizeVerb extenders[0]"),
    (
        "a verb that is not served",
        KUBE_SCHEDULER,
        "filterVerb: filter",
        "filterVerb: filters",
        "error UnknownVerb extenders[0].filterVerb",
    ),
    ("ignorable", KUBE_SCHEDULER, "ignorable: false", "ignorable: true", "error Ignorable extenders[0].ignorable"),
    (
        "nodeCacheCapable left out",
        KUBE_SCHEDULER,
        "    nodeCacheCapable: true\n",
        "",
        "error NotNodeCacheCapable extenders[0].nodeCacheCapable",
    ),
    (
        "only for GPUs",
        KUBE_SCHEDULER,
        "    weight: 1\n",
        "    weight: 1\n    managedResources: [{name: nvidia.com/gpu}]\n",
        "error ManagedResources extenders[0].managedResources",
    ),
    (
        "questions that may take a minute",
        KUBE_SCHEDULER,
        "httpTimeout: 5s",
        "httpTimeout: 1m",
        "warning LongTimeout extenders[0].httpTimeout",
    ),
    (
        "questions that have no time for a plan",
        KUBE_SCHEDULER,
        "httpTimeout: 5s",
        "httpTimeout: 1999ms",
        "warning ShortTimeout extenders[0].httpTimeout",
    ),
    (
        "a negative timeout of questions",
        KUBE_SCHEDULER,
        "httpTimeout: 5s",
        "httpTimeout: -5s",
        "error NoTimeout extenders[0].httpTimeout",
    ),
    (
        "a negative timeout of bind",
        KUBE_SCHEDULER,
        BIND_TIMEOUT,
        BIND_TIMEOUT.replace("120", "-5"),
        "error NoTimeout extenders[1].httpTimeout",
    ),
    (
        "a Lease that is not renewed in time",
        KUBE_SCHEDULER,
        "retryPeriod: 250ms",
        "leaseDuration: 3s\n  renewDeadline: 2s",
        "error RefusedAtStart leaderElection.renewDeadline",
    ),
    *[
        (
            f"gangs without {point}",
            OURS,
            "percentageOfNodesToScore: 10\n",
            "percentageOfNodesToScore: 10\nprofiles: [{schedulerName: gang-scheduler, plugins: "
            f"{{{point}: {{disabled: [{{name: {name}}}]}}}}}}]\n",
            f"error InvalidConfiguration profiles[0].plugins.{point}.disabled",
        )
        for point, name in [("permit", "Coscheduling"), ("preFilter", "'*'")]
    ],
    (
        "a weight that is a text",
        KUBE_SCHEDULER,
        "weight: 1",
        "weight: '1'",
        "error InvalidConfiguration extenders[0].weight",
    ),
    (
        "the ops port",
        KUBE_SCHEDULER,
        FIRST,
        FIRST.replace("8888", "8889"),
        "warning OpsPort extenders[0].urlPrefix",
    ),
    (
        "another machine without TLS",
        KUBE_SCHEDULER,
        BIND,
        BIND.replace("127.0.0.1", "10.0.0.7"),
        "error UnprotectedVerbs extenders[1].urlPrefix",
    ),
    ("a path", KUBE_SCHEDULER, BIND, BIND.replace("8888", "8888/v1"), "error PathInAddress extenders[1].urlPrefix"),
    ("no URL", KUBE_SCHEDULER, BIND, BIND.replace("http://127", "127"), "error InvalidAddress extenders[1].urlPrefix"),
    *[
        (
            f"an address with {what}",
            KUBE_SCHEDULER,
            BIND,
            BIND.replace("http://127.0.0.1:8888", f'"http://127.0.0.1:8888{more}"'),
            "error InvalidAddress extenders[1].urlPrefix",
        )
        for what, more in [
            ("a query", "?a=b"),
            ("an empty query", "?"),
            ("a fragment", "#bind"),
            ("a blank", " "),
            ("a line end", "\\n"),
            ("a control character", "/\\x7f"),
        ]
    ],
    (
        "half an address",
        KUBE_SCHEDULER,
        BIND,
        BIND.replace("127.0.0.1", "[::1"),
        "error InvalidAddress extenders[1].urlPrefix",
    ),
    (
        "the plugin beside the extender",
        KUBE_SCHEDULER,
        "  - schedulerName: gang-scheduler\n",
        "  - {schedulerName: gang-scheduler, plugins: {permit: {enabled: [{name: Coscheduling}]}}}\n",
        "error TwoCoschedulers profiles[0].plugins",
    ),
    (
        "samples differ",
        OURS,
        "percentageOfNodesToScore: 10",
        "percentageOfNodesToScore: 50",
        "warning SampleDiffers percentageOfNodesToScore",
    ),
    (
        "the extender would hold longer than kube-scheduler waits",
        KUBE_SCHEDULER,
        BIND_TIMEOUT,
        BIND_TIMEOUT.replace("120", "60"),
        "error BindTimeoutDiffers extenders[1].httpTimeout",
    ),
    (
        "kube-scheduler waits longer than it needs",
        KUBE_SCHEDULER,
        BIND_TIMEOUT,
        BIND_TIMEOUT.replace("120s", "5m"),
        "info BindTimeoutDiffers extenders[1].httpTimeout",
    ),
    (
        "a plugin that does not exist",
        OURS,
        SAMPLE,
        SAMPLE + "profiles: [{plugins: {filter: {enabled: [{name: NodeName}, {name: NodResourcesFit}]}}}]\n",
        "error UnknownPlugin profiles[0].plugins.filter.enabled[1].name",
    ),
    (
        "arguments of a plugin that is not enabled",
        OURS,
        SAMPLE,
        SAMPLE + "profiles: [{pluginConfig: [{name: CoScheduling, args: {permitWaitingTimeSeconds: 30}}]}]\n",
        "warning UnusedArguments profiles[0].pluginConfig[0].name",
    ),
    *[
        (
            f"no bind plugin in {name}",
            name,
            old,
            new % "{bind: {disabled: [{name: DefaultBinder}]}}",
            "error IncompleteProfile profiles[0].plugins.bind",
        )
        for name, old, new in [
            (KUBE_SCHEDULER, SERVED, "  - {schedulerName: gang-scheduler, plugins: %s}\n"),
            (OURS, SAMPLE, SAMPLE + "profiles: [{schedulerName: gang-scheduler, plugins: %s}]\n"),
        ]
    ],
    (
        "no queue sort",
        KUBE_SCHEDULER,
        SERVED,
        "  - {schedulerName: gang-scheduler, plugins: {queueSort: {disabled: [{name: '*'}]}}}\n",
        "error IncompleteProfile profiles[0].plugins.queueSort",
    ),
    ("no Lease", OURS, "leaderLease: kube-system/gang-scheduler", "", "warning NoLeaderLease leaderLease"),
    (
        "no leader election",
        KUBE_SCHEDULER,
        "leaderElect: true",
        "leaderElect: false",
        "error NoLeaderElection leaderElection.leaderElect",
    ),
    ("another Lease", OURS, "leaderLease: kube-system/", "leaderLease: default/", "error LeaseDiffers leaderLease"),
    (
        "one name more in ours",
        OURS,
        "  - gang-scheduler",
        "  - gang-scheduler\n  - batch",
        "warning NoProfile schedulerNames[1]",
    ),
    (
        "one profile more in theirs",
        KUBE_SCHEDULER,
        "  - schedulerName: gang-scheduler\n",
        "  - schedulerName: gang-scheduler\n  - schedulerName: batch\n",
        "error SchedulerNotServed profiles[1].schedulerName",
    ),
    (
        "a mistake that kube-scheduler refuses too",
        KUBE_SCHEDULER,
        "weight: 1",
        "weight: 0",
        "error InvalidConfiguration extenders[0].weight",
    ),
    (
        "a mistake in ours",
        OURS,
        "bindTimeoutSeconds: 120",
        "bindTimeoutSeconds: never",
        "error InvalidConfiguration bindTimeoutSeconds",
    ),
]


@pytest.mark.parametrize(("name", "old", "new", "expected"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_one_mistake_is_one_finding(files: Files, name: str, old: str, new: str, expected: str) -> None:
    files.replace(name, old, new)
    found = [f"{each.severity.value} {each.code} {each.field}" for each in files.found()]
    # Of a file that is refused it is said that it was not held against the other.
    assert found == [expected, *(["info NotExamined "] if "InvalidConfiguration" in expected else [])]


def test_more_than_a_tenth_of_the_nodes_will_do_too_where_both_files_say_so(files: Files) -> None:
    for name in (KUBE_SCHEDULER, OURS):
        files.replace(name, "percentageOfNodesToScore: 10", "percentageOfNodesToScore: 100")
    assert files.found() == []


PROFILE = "  - {schedulerName: gang-scheduler, percentageOfNodesToScore: %d}\n"
OUR_PROFILE = "profiles:\n" + PROFILE % 100


@pytest.mark.parametrize(
    ("top", "profiles", "ours", "expected"),
    [
        pytest.param("", PROFILE % 10, "", [], id="a profile's own is what the extender believes"),
        pytest.param(SAMPLE, PROFILE % 100, "", ["percentageOfNodesToScore"], id="a profile's own comes first"),
        pytest.param(SAMPLE, PROFILE % 100, OUR_PROFILE, [], id="profiles of both say the same"),
        pytest.param(
            SAMPLE,
            PROFILE % 50,
            OUR_PROFILE,
            ["profiles[0].percentageOfNodesToScore"],
            id="the extender's profile counts",
        ),
    ],
)
def test_samples_are_compared_by_profile(files: Files, top: str, profiles: str, ours: str, expected: list[str]) -> None:
    files.replace(KUBE_SCHEDULER, SAMPLE, top)
    files.replace(KUBE_SCHEDULER, "  - schedulerName: gang-scheduler\n", profiles)
    files.replace(OURS, SAMPLE, SAMPLE + ours)
    assert [(each.code, each.field) for each in files.found()] == [("SampleDiffers", field) for field in expected]


def test_a_profile_with_a_small_sample_of_its_own_is_named(files: Files) -> None:
    files.replace(KUBE_SCHEDULER, "  - schedulerName: gang-scheduler\n", PROFILE % 9)
    found = [(each.code, each.field) for each in files.found()]
    assert found == [
        ("SampleOfNodes", "profiles[0].percentageOfNodesToScore"),
        ("SampleDiffers", "percentageOfNodesToScore"),
    ]


def test_the_sample_of_a_profile_that_is_not_served_is_not_compared(files: Files) -> None:
    files.replace(
        KUBE_SCHEDULER,
        "  - schedulerName: gang-scheduler\n",
        "  - schedulerName: gang-scheduler\n  - {schedulerName: batch, percentageOfNodesToScore: 100}\n",
    )
    assert [each.code for each in files.found()] == ["SchedulerNotServed"]


def test_profiles_with_the_number_from_the_top_are_one_finding(files: Files) -> None:
    files.replace(KUBE_SCHEDULER, SAMPLE, "percentageOfNodesToScore: 50\n")
    two = "  - schedulerName: gang-scheduler\n  - schedulerName: batch\n"
    files.replace(KUBE_SCHEDULER, "  - schedulerName: gang-scheduler\n", two)
    files.replace(OURS, "  - gang-scheduler\n", "  - gang-scheduler\n  - batch\n")
    (found,) = files.found()
    assert found.message == "kube-scheduler has 50 (percentageOfNodesToScore), and the extender believes 10"


def test_a_finding_says_the_line_and_what_to_write(files: Files) -> None:
    files.replace(KUBE_SCHEDULER, "ignorable: false", "ignorable: true")
    (found,) = files.found()
    lines = Path(found.file).read_text().splitlines()
    assert lines[found.line - 1].strip().startswith("ignorable: true")
    assert found.fix == "write `ignorable: false`"


def test_a_bind_call_that_is_cut_short_and_differs_is_said_twice(files: Files) -> None:
    files.replace(KUBE_SCHEDULER, BIND_TIMEOUT, BIND_TIMEOUT.replace("120s", "5s"))
    assert [each.code for each in files.found()] == ["ShortBindTimeout", "BindTimeoutDiffers"]


def test_one_entry_for_all_verbs_has_the_wrong_timeout_for_some(files: Files) -> None:
    files.replace(
        KUBE_SCHEDULER, "    weight: 1\n    httpTimeout: 5s", "    weight: 1\n    bindVerb: bind\n    httpTimeout: 120s"
    )
    files.replace(KUBE_SCHEDULER, BIND, ENTRY.replace("8888", "9999"))
    assert [each.code for each in files.found()] == ["SharedTimeout"]


def test_without_extenders_nothing_else_is_said_of_them(files: Files) -> None:
    files.replace(KUBE_SCHEDULER, "extenders:\n", "extenders: []\n")
    text = (Path(files.found()[0].file)).read_text()
    Path(files.found()[0].file).write_text(text[: text.index("extenders: []")] + "extenders: []\n")
    assert [each.code for each in files.found()] == ["NoExtender"]


DISABLED = "multiPoint: {disabled: [{name: '*'}]%s}%s"
NO_QUEUE_SORT = (
    'only one queue sort plugin required for profile with scheduler name "gang-scheduler", but got 0',
    "profiles[0].plugins.multiPoint",
)
NO_BINDER = (
    'at least one bind plugin is needed for profile with scheduler name "gang-scheduler"',
    "profiles[0].plugins.multiPoint",
)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param(("", ""), [NO_QUEUE_SORT, NO_BINDER], id="all are disabled"),
        pytest.param((", enabled: [{name: PrioritySort}]", ""), [NO_BINDER], id="one is enabled anew"),
        pytest.param(
            (", enabled: [{name: PrioritySort}]", ", bind: {enabled: [{name: DefaultBinder}]}"),
            [],
            id="one at its own point",
        ),
        pytest.param((", enabled: [{name: Theirs}]", ""), [], id="a plugin that may have the points"),
    ],
)
def test_a_profile_of_kube_scheduler_sorts_its_queue_and_binds(
    files: Files, more: tuple[str, str], expected: list[tuple[str, str]]
) -> None:
    files.replace(KUBE_SCHEDULER, SERVED, f"  - {{schedulerName: gang-scheduler, plugins: {{{DISABLED % more}}}}}\n")
    assert [(each.message, each.field) for each in files.found()] == expected


def test_plugins_are_those_that_are_installed(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    files.replace(OURS, SAMPLE, SAMPLE + "profiles: [{plugins: {filter: {enabled: [{name: Theirs}]}}}]\n")
    assert [each.message for each in files.found()] == ['plugin "Theirs" does not exist']
    theirs = EntryPoint("Theirs", "builtins:object", registry.ENTRY_POINTS)
    monkeypatch.setattr(registry, "entry_points", lambda *, group: (theirs,))
    assert files.found() == []


@pytest.mark.parametrize("profile", ["null", "{plugins: null, pluginConfig: null}", "{plugins: {filter: null}}"])
def test_a_null_in_a_profile_is_what_is_not_there(files: Files, profile: str) -> None:
    files.replace(OURS, SAMPLE, f"{SAMPLE}profiles: [{profile}]\n")
    assert files.found() == []


def test_a_plugin_that_does_not_load_is_said(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    files.replace(OURS, SAMPLE, SAMPLE + "profiles: [{schedulerName: gang-scheduler}]\n")
    theirs = EntryPoint("Theirs", "no_such_module:x", registry.ENTRY_POINTS)
    monkeypatch.setattr(registry, "entry_points", lambda *, group: (theirs,))
    (found,) = files.found()
    assert (found.code, 'plugin "Theirs" does not load from no_such_module:x' in found.message) == (
        "UnknownPlugin",
        True,
    )


def test_another_extender_beside_ours_is_not_judged(files: Files) -> None:
    other = "  - {urlPrefix: https://cache.example.com, filterVerb: filter, ignorable: true}\n"
    files.replace(KUBE_SCHEDULER, "extenders:\n", "extenders:\n" + other)
    assert files.found() == []


OTHER = "  - {urlPrefix: http://other:1234, filterVerb: filter, ignorable: true}\n"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param("    bindVerb: bind\n", "", [("NoBindVerb", "extenders[1]")], id="its bindVerb is missing"),
        pytest.param(
            "    filterVerb: filter\n    prioritizeVerb: prioritize\n    preemptVerb: preempt\n    weight: 1\n",
            "    preemptVerb: preempt\n",
            [("NoFilterVerb", "extenders[1]"), ("NoPrioritizeVerb", "extenders[1]")],
            id="it filters not",
        ),
    ],
)
def test_findings_are_about_our_entry_beside_another(
    files: Files, old: str, new: str, expected: list[tuple[str, str]]
) -> None:
    files.replace(KUBE_SCHEDULER, "extenders:\n", "extenders:\n" + OTHER)
    files.replace(KUBE_SCHEDULER, old, new)
    assert [(each.code, each.field) for each in files.found()] == expected


@pytest.mark.parametrize(
    "address", ["https://gang-extender.kube-system.svc", "https://10.0.0.7:8443"], ids=["the Service", "by preempt"]
)
def test_an_entry_apart_from_kube_scheduler_is_known_as_ours(tmp_path: Path, address: str) -> None:
    files = Files(tmp_path, "service/nodes/kube-scheduler.yaml", "service/extender.yaml")
    files.replace(KUBE_SCHEDULER, "extenders:\n", "extenders:\n" + OTHER)
    for _ in range(2):
        files.replace(KUBE_SCHEDULER, "https://gang-extender.kube-system.svc\n", "ADDRESS\n")
    for _ in range(2):
        files.replace(KUBE_SCHEDULER, "ADDRESS", address)
    files.replace(KUBE_SCHEDULER, "    bindVerb: bind\n", "")
    assert [(each.code, each.field) for each in files.found()] == [("NoBindVerb", "extenders[1]")]


def test_one_file_alone_is_examined_too(files: Files, tmp_path: Path) -> None:
    files.replace(KUBE_SCHEDULER, "ignorable: false", "ignorable: true")
    assert [each.code for each in examine(tmp_path / KUBE_SCHEDULER, None).findings] == ["Ignorable"]
    assert examine(None, tmp_path / OURS).findings == ()


@pytest.mark.parametrize(
    ("timeout", "fix"),
    [("5s", "write `httpTimeout: 2m0s`"), ("2h", "write `bindTimeoutSeconds: 3600` in ")],
)
def test_what_is_to_be_written_for_the_timeout_of_bind_is_not_refused(files: Files, timeout: str, fix: str) -> None:
    files.replace(KUBE_SCHEDULER, BIND_TIMEOUT, BIND_TIMEOUT.replace("120s", timeout))
    (found,) = (each for each in files.found() if each.code == "BindTimeoutDiffers")
    assert found.fix.startswith(fix)

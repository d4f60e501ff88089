"""The mistakes of setting up a cluster, each made with the files and the cluster of the manifests, and what the doctor says of it.

A row is a mistake in words; several changes at once are several findings.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme

from extender.cli.main import main
from extender.client.embedded import EmbeddedAPI
from extender.client.interface import POD_GROUPS
from extender.config.load import load_extender_configuration
from extender.doctor import cluster
from tests.documented import PROJECT
from tests.fakes.api_server import Answer, FakeAPIServer
from tests.unit.doctor.test_cluster import ACCOUNT, Asked, labelled, lease, pod

THEIRS, OURS = "kube-scheduler.yaml", "extender.yaml"
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
BIND_ENTRY = """  - urlPrefix: http://127.0.0.1:8888
    bindVerb: bind
    httpTimeout: 120s
    nodeCacheCapable: true
    ignorable: false
"""
ONE_ENTRY = "preemptVerb: preempt\n    bindVerb: bind"
Changes = list[tuple[str, str, str]]
"""File, what stands there, what is written in its place."""


def told(folder: Path, changes: Changes, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    """By the command, as programs read it."""
    texts = {name: (PROJECT / "manifests/sidecar" / name).read_text() for name in (THEIRS, OURS)}
    for name, old, new in changes:
        assert old in texts[name], old
        texts[name] = texts[name].replace(old, new)
    for name, text in texts.items():
        (folder / name).write_text(text)
    files = ["--kube-scheduler-config", str(folder / THEIRS), "--config", str(folder / OURS)]
    code = main(["doctor", *files, "-o", "json"])
    return code, [each["code"] for each in json.loads(capsys.readouterr().out)]


def extenders() -> str:
    """The whole of `extenders:` as it is shipped."""
    text = (PROJECT / "manifests/sidecar" / THEIRS).read_text()
    lines = text.splitlines(keepends=True)
    start = lines.index("extenders:\n")
    rest = [index for index in range(start + 1, len(lines)) if not lines[index].startswith((" ", "#"))]
    return "".join(lines[start : rest[0] if rest else len(lines)])


BIND_VERB = "    bindVerb: bind\n"
FILES = [
    pytest.param(
        [(THEIRS, "    nodeCacheCapable: true\n", "")], ["NotNodeCacheCapable"] * 2, id="nodeCacheCapable missing"
    ),
    pytest.param(
        [(THEIRS, "httpTimeout: 120s", "httpTimeout: 2ms")],
        ["ShortBindTimeout", "BindTimeoutDiffers"],
        id="httpTimeout of bind far too short",
    ),
    pytest.param(
        [(THEIRS, BIND_ENTRY, ""), (THEIRS, "preemptVerb: preempt", ONE_ENTRY)],
        ["SharedTimeout", "ShortBindTimeout", "BindTimeoutDiffers"],
        id="one entry with 5 s for all",
    ),
    pytest.param([(THEIRS, BIND_VERB, "    weight: 1\n")], ["NoBindVerb"], id="no bind entry"),
    pytest.param([(THEIRS, "EXTENDERS", "")], ["NoExtender"], id="no extenders at all"),
    pytest.param([(THEIRS, "ignorable: false", "ignorable: true")], ["Ignorable"] * 2, id="ignorable: true"),
    pytest.param(
        [(THEIRS, "percentageOfNodesToScore: 10", "")],
        ["SampleOfNodes", "SampleDiffers"],
        id="percentageOfNodesToScore left out",
    ),
    pytest.param(
        [(THEIRS, "127.0.0.1:8888", "127.0.0.1:8889")], ["OpsPort"] * 2, id="the ops port in place of the verbs'"
    ),
    pytest.param([(THEIRS, "127.0.0.1:8888", "127.0.0.1:8887")], ["OtherPort"] * 2, id="a wrong port of the verbs"),
    pytest.param(
        [(THEIRS, "leaderElect: true", "leaderElect: false")],
        ["NoLeaderElection"],
        id="leaderLease without leader election",
    ),
    pytest.param(
        [(OURS, "  - gang-scheduler", "  - gangs")],
        ["SchedulerNotServed", "NoProfile"],
        id="schedulerNames that do not match the profile",
    ),
    pytest.param(
        [
            (
                OURS,
                "bindTimeoutSeconds: 120",
                "bindTimeoutSeconds: never\nmaxHeldBinds: 0\nwakeBy: bell\npacking: tight",
            ),
            (OURS, "percentageOfNodesToScore: 10", "percentageOfNodesToScore: 101\nungateRefused: maybe"),
            (OURS, "leaderLease: kube-system/gang-scheduler", "leaderLease: gang-scheduler\nschedulerName: gang"),
        ],
        ["InvalidConfiguration"] * 8 + ["NotExamined"],
        id="extender.yaml wrong, eight times over",
    ),
]


@pytest.mark.parametrize(("changes", "expected"), FILES)
def test_a_mistake_in_the_files(
    changes: Changes, expected: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = [(name, extenders() if old == "EXTENDERS" else old, new) for name, old, new in changes]
    code, codes = told(tmp_path, whole, capsys)
    assert sorted(codes) == sorted(expected)
    assert code == (0 if set(codes) == {"OtherPort"} else 1)


def a_typo(api: EmbeddedAPI) -> None:
    pod(api, "a-0", "train", "gang-scheduler")
    pod(api, "a-1", "train", "gang-schduler")


CLUSTER = [
    pytest.param(Asked(), lambda api: None, [], id="nothing is wrong"),
    pytest.param(Asked("list nodes"), lambda api: None, ["MissingRight nodes"], id="a list that is not granted"),
    pytest.param(
        Asked("patch pods/status", "create events"),
        lambda api: None,
        ["MissingRight pods/status", "MissingRight events.events.k8s.io"],
        id="patches of status, and events, not granted",
    ),
    pytest.param(
        Asked("create pods/binding"), lambda api: None, ["MissingRight pods/binding"], id="bindings not granted"
    ),
    pytest.param(Asked(), a_typo, ["ForeignScheduler group default/train"], id="a typo in schedulerName"),
    pytest.param(
        Asked(),
        lambda api: pod(api, "a-0", "train", "default-scheduler"),
        ["ForeignScheduler group default/train"],
        id="schedulerName forgotten",
    ),
    pytest.param(
        Asked(),
        lambda api: labelled(api, "a", {"pod-group.scheduling.x-k8s.io": "train"}),
        ["KeyNotRead pod-group.scheduling.x-k8s.io"],
        id="an old label of the group",
    ),
    pytest.param(
        Asked(),
        lambda api: labelled(api, "a", {}, {"scheduling.volcano.sh/group-min-member": "2", "gang": "train"}),
        ["KeyNotRead gang"],
        id="annotations of another system",
    ),
]


@pytest.mark.parametrize(("api", "mistake", "expected"), CLUSTER)
def test_a_mistake_in_the_cluster(
    api: EmbeddedAPI, mistake: Callable[[EmbeddedAPI], None], expected: list[str]
) -> None:
    lease(api, NOW)
    api.create(POD_GROUPS, {"metadata": {"name": "train"}, "spec": {"minMember": 2}}, "default")
    mistake(api)
    ours = load_extender_configuration(PROJECT / "manifests/sidecar" / OURS)
    found = cluster.examine(api, ours, "kubeconfig", ACCOUNT, lambda: NOW)
    assert [f"{each.code} {each.field}" for each in found] == expected


KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "{url}"}}}}]
users: [{{name: u, user: {{token: secret}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: x
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("a: [", "kubeconfig {file}:2", id="malformed"),
        pytest.param(
            KUBECONFIG.replace(
                'server: "{url}"', 'server: "https://127.0.0.1:1", certificate-authority: gone.pem'
            ).format(),
            "gone.pem: No such file or directory",
            id="a CA that is absent",
        ),
    ],
)
def test_a_kubeconfig_that_cannot_be_read(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(text)
    assert main(["doctor", "--kubeconfig", str(file)]) == 2
    assert said.format(file=file) in capsys.readouterr().err
    assert main(["doctor", "--kubeconfig", str(file), "-o", "json"]) == 1
    (only,) = json.loads(capsys.readouterr().out)
    assert (only["code"], said.format(file=file) in only["message"]) == ("Unreachable", True)


def test_a_kubeconfig_that_is_absent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "gone.yaml"
    assert main(["doctor", "--kubeconfig", str(file)]) == 2
    assert f"{file}" in capsys.readouterr().err
    assert main(["doctor", "--kubeconfig", str(file), "-o", "json"]) == 1
    (only,) = json.loads(capsys.readouterr().out)
    assert (only["code"], str(file) in only["message"]) == ("Unreachable", True)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param(Answer(401, {"message": "Unauthorized"}), "Unauthorized", id="a token that is not known"),
        pytest.param(None, "refused", id="nothing listens there"),
    ],
)
def test_a_cluster_that_does_not_answer(
    answer: Answer | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = FakeAPIServer()
    if answer is None:
        server.stop()
    else:
        server.lists += [answer] * 10
        server.others += [answer] * 100
    file = tmp_path / "kubeconfig"
    file.write_text(KUBECONFIG.format(url=server.url))
    try:
        assert main(["doctor", "--kubeconfig", str(file), "-o", "json"]) == 1
    finally:
        if answer is not None:
            server.stop()
    (only,) = json.loads(capsys.readouterr().out)
    assert (only["code"], only["file"]) == ("Unreachable", str(file))
    assert said in only["message"]


def test_a_cluster_of_another_authority(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    trustme.CA().cert_pem.write_to_path(tmp_path / "ca.crt")
    server, file = FakeAPIServer(context), tmp_path / "kubeconfig"
    text = KUBECONFIG.format(url=server.url)
    file.write_text(text.replace("{server:", "{certificate-authority: ca.crt, server:"))
    try:
        assert main(["doctor", "--kubeconfig", str(file), "-o", "json"]) == 1
    finally:
        server.stop()
    (only,) = json.loads(capsys.readouterr().out)
    assert (only["code"], "certificate verify failed" in only["message"]) == ("Unreachable", True)

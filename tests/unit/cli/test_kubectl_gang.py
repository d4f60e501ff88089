"""`kubectl gang` against a leader that it finds by its Lease and reaches through the API server, on the embedded cluster."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import trustme
import yaml

from extender.cli import kubeconfig_flags, output
from extender.cli.main import kubectl_gang, main
from extender.cli.schema import schema
from extender.client.connection import Connection
from extender.client.interface import POD_GROUPS
from extender.client.kubeconfig import KubeconfigFiles
from tests.documented import PROJECT
from tests.fakes.port_forwarding import PortForwarding
from tests.unit.cli import leading as leaders
from tests.unit.cli.leading import LEASE, OPS_PORT, POD, QUOTAS, Leading

Ask = Callable[..., str]


@pytest.fixture
def leader(tmp_path: Path) -> Iterator[Leading]:
    """Two racks of two nodes: a gang of two runs, one of nine waits."""
    with leaders.leading(tmp_path) as made:
        bench = made.bench
        for number in range(4):
            bench.node(f"n{number}", cpu="4", labels={"example.com/rack": f"r{number // 2}"})
        bench.pod_group("runs", 2)
        for number in range(2):
            bench.pod(f"runs-{number}", "runs", cpu="3", node=f"n{number}", priority=1)
        bench.pod_group("waits", 9)
        waiting = [bench.pod(f"waits-{number}", "waits", cpu="2") for number in range(9)]
        assert not bench.filter(waiting[0], "n0", "n1", "n2", "n3").node_names
        bench.flush()
        yield made


@pytest.fixture
def ask(leader: Leading, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ask:
    """What a command prints that succeeds. By $KUBECONFIG, as kubectl."""
    monkeypatch.setenv("KUBECONFIG", str(leader.kubeconfig))

    def asked(*arguments: str) -> str:
        code = kubectl_gang(list(arguments))
        out, err = capsys.readouterr()
        assert (code, err) == (0, ""), err
        return out

    return asked


INTEGRATIONS = PROJECT / "manifests" / "examples" / "integrations"


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_list_shows_the_namespace_s_gangs_those_that_wait_first(ask: Ask) -> None:
    heads, waits, runs = rows(ask("list"))
    assert heads == ["LINE", "GROUP", "PHASE", "REASON", "BOUND", "MEMBERS", "FOR"]
    assert waits[:5] == ["1", "default/waits", "Denied", "InsufficientResources", "0/9"]
    assert runs[:4] == ["default/runs", "Bound", "-", "2/2"]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        pytest.param([], ["default/waits", "default/runs"], id="the context's namespace, which is the default one"),
        pytest.param(["-n", "team-a"], [], id="another"),
        pytest.param(["-A"], ["default/waits", "default/runs"], id="all"),
        pytest.param(["-n", "team-a", "-A"], ["default/waits", "default/runs"], id="all, in spite of a namespace"),
    ],
)
def test_which_gangs_are_listed(ask: Ask, arguments: list[str], names: list[str]) -> None:
    assert ask("list", "-o", "name", *arguments).split() == names
    assert [
        f"{each['namespace']}/{each['name']}" for each in json.loads(ask("list", "-o", "json", *arguments))
    ] == names


def test_the_namespace_is_the_context_s(leader: Leading, ask: Ask) -> None:
    leaders.kubeconfig(leader.kubeconfig.parent, leader.api.url, namespace="team-a")
    assert ask("list") == "no gangs in namespace team-a\n"
    assert "default/waits: Denied" in ask("explain", "default/waits")


def test_a_namespace_without_gangs_is_named(ask: Ask) -> None:
    assert ask("list", "-n", "nope") == ask("explain", "-n", "nope") == "no gangs in namespace nope\n"


def test_a_wide_list_says_what_is_missing(ask: Ask) -> None:
    wide = ask("list", "-o", "wide")
    assert re.search(r"MISSING +MESSAGE\n1 +default/waits .* cpu [0-9]+ +minMember", wide)
    assert "minMember of 9 does not fit: Insufficient cpu" in wide


def test_explain_says_why_and_what_would_do(ask: Ask) -> None:
    text = ask("explain", "waits")
    assert text.startswith("default/waits: Denied")
    assert "4 of 9 members would find a place; cpu runs out first: 10 more needed" in text
    assert "minMember 4 instead of 9" in text
    assert yaml.safe_load(ask("explain", "waits", "-o", "yaml"))["gang"]["name"] == "waits"


def test_why_says_it_of_a_pod(ask: Ask) -> None:
    text = ask("why", "waits-3")
    assert text.startswith("pod default/waits-3: Pending, on no node, of scheduler default-scheduler\n")
    assert "default/waits: Denied" in text
    assert ask("why", "default/runs-0").startswith("pod default/runs-0: Pending, on n0, of scheduler")


def test_why_of_a_pod_of_no_gang(leader: Leading, ask: Ask) -> None:
    leader.bench.pod("lone", node="n3", cpu="1")
    assert "it is of no gang" in ask("why", "lone")


def test_whatif_says_where_a_gang_would_go(ask: Ask) -> None:
    text = ask("whatif", "--members", "2", "--requests", "cpu=4", "--topology-required", "rack")
    assert text.startswith("default/what-if: fits now\n")
    assert "within       r1" in text
    assert [row[:2] for row in rows(text)[-2:]] == [["n2", "1"], ["n3", "1"]]


def test_whatif_says_what_is_missing_and_whose_room_it_would_take(ask: Ask) -> None:
    text = ask("whatif", "--members", "4", "--requests", "cpu=4", "--priority-class", "high")
    assert text.startswith("default/what-if: does not fit\n")
    assert "at priority 1000" in text
    assert "2 of 4 members would find a place; cpu runs out first: 8 more needed" in text
    assert "default/runs-0 on n0 (priority 1, with its gang default/runs)" in text
    assert "2 more nodes with cpu 4, like n0" in text


@pytest.mark.parametrize(
    ("arguments", "priority"),
    [
        pytest.param([], 5, id="the cluster's default"),
        pytest.param(["--priority-class", "system-node-critical"], 2_000_001_000, id="one of Kubernetes' own"),
        pytest.param(["--priority", "-3"], -3, id="a number"),
    ],
)
def test_the_priority_of_what_is_asked_about(ask: Ask, arguments: list[str], priority: int) -> None:
    asked = json.loads(ask("whatif", "--members", "1", "--requests", "cpu=1", "-o", "json", *arguments))
    assert asked["gangs"][0]["priority"] == priority


def test_whatif_of_a_manifest(ask: Ask, tmp_path: Path) -> None:
    template = {
        "metadata": {"labels": {"scheduling.x-k8s.io/pod-group": "train"}},
        "spec": {
            "priorityClassName": "high",
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "4"}}}],
        },
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": {"parallelism": 2, "completions": 2, "template": template},
    }
    group = {
        "apiVersion": POD_GROUPS.api_version,
        "kind": "PodGroup",
        "metadata": {"name": "train"},
        "spec": {"minMember": 2},
    }
    file = tmp_path / "train.yaml"
    file.write_text(yaml.safe_dump_all([group, job]))
    asked = json.loads(ask("whatif", "-f", str(file), "-o", "json"))["gangs"]
    assert [(each["groups"], each["fits"], each["priority"]) for each in asked] == [(["default/train"], True, 1000)]


def test_drain_says_which_gangs_fall_below_and_where_they_go(ask: Ask) -> None:
    text = ask("drain", "n0")
    assert text.startswith("node n0: 1 gang on it, 1 would fall below minMember\n")
    assert rows(text)[-1] == ["default/runs", "1", "1/2", "below", "1", "to", "n2"]
    assert ask("drain", "n3").startswith("node n3: 0 gangs on it, 0 would fall below minMember")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["explain", "other"], "no group default/other is known; `kubectl gang explain` lists those that are"),
        (["why", "other"], "no pod default/other is known"),
        (["drain", "n9"], "no node n9 is known"),
    ],
    ids=["a gang", "a pod", "a node"],
)
def test_what_is_not_there(
    leader: Leading, capsys: pytest.CaptureFixture[str], arguments: list[str], text: str
) -> None:
    assert kubectl_gang([*arguments, "--kubeconfig", str(leader.kubeconfig)]) == 1
    out, err = capsys.readouterr()
    assert (out, err.startswith(f"kubectl gang: {text}")) == ("", True), err


@pytest.mark.parametrize(
    ("objects", "arguments", "code", "text"),
    [
        pytest.param({LEASE: leaders.lease("")}, [], 1, "no kube-scheduler holds the Lease", id="no leader"),
        pytest.param(
            {LEASE: leaders.lease("../../x_1")}, [], 1, "which is no kube-scheduler", id="a holder of no name"
        ),
        pytest.param({}, ["--lease", "kube-system/other"], 1, "--lease NAMESPACE/NAME names another", id="no Lease"),
        pytest.param({}, ["--lease", "other"], 2, "--lease other: wanted NAMESPACE/NAME", id="half a Lease"),
        pytest.param(
            {LEASE: (403, {"kind": "Status", "code": 403, "message": "leases is forbidden"})},
            [],
            1,
            "leases is forbidden; --server URL names an extender to ask",
            id="no right to read it",
        ),
        pytest.param(
            {f"{POD}/portforward": (403, {"kind": "Status", "code": 403, "message": "pods/portforward is forbidden"})},
            [],
            1,
            "no extender answers at port 8889 of pod kube-system/gang-scheduler-7d9-abcde: pods/portforward is forbidden",
            id="no right to forward",
        ),
        pytest.param({}, ["--ops-port", "1"], 1, "connection refused", id="another port"),
        pytest.param(
            {LEASE: leaders.lease("master-1_7"), "/api/v1/namespaces/kube-system/pods": {"metadata": {}, "items": []}},
            [],
            1,
            "master-1 holds the Lease, and in kube-system there is neither a pod of that name nor one",
            id="a holder without a pod",
        ),
    ],
)
def test_why_the_leader_cannot_be_asked(
    leader: Leading,
    capsys: pytest.CaptureFixture[str],
    objects: dict[str, Any],
    arguments: list[str],
    code: int,
    text: str,
) -> None:
    leader.api.objects.update(objects)
    assert kubectl_gang(["list", "--kubeconfig", str(leader.kubeconfig), *arguments]) == code
    out, err = capsys.readouterr()
    assert (out, text in err, err.count("\n")) == ("", True, 1), err


def test_a_kube_scheduler_on_the_network_of_its_node_is_found_by_that(leader: Leading, ask: Ask) -> None:
    """A static pod: its host name is the node's, its own name another."""
    container = {"name": "extender", "ports": [{"containerPort": OPS_PORT}]}
    pods = [
        {"metadata": {"name": "kube-proxy-x"}, "spec": {"containers": [{"name": "proxy"}]}},
        {"metadata": {"name": "kube-scheduler-master-1"}, "spec": {"containers": [container]}},
    ]
    leader.api.objects[LEASE] = leaders.lease("master-1_7")
    leader.api.objects["/api/v1/namespaces/kube-system/pods"] = {"metadata": {}, "items": pods}
    assert "default/waits" in ask("list")
    assert any("/pods/kube-scheduler-master-1/portforward?" in each for each in leader.api.asked)
    assert any("spec.nodeName%3Dmaster-1" in each for each in leader.api.asked)


def test_an_address_is_asked_without_a_cluster(
    leader: Leading, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    for program in (main, kubectl_gang):
        assert program(["list", "-o", "name", "--server", leader.ops]) == 0
        assert capsys.readouterr().out.split() == ["default/waits", "default/runs"]
    assert leader.api.asked == []
    assert kubectl_gang(["whatif", "--members", "1", "--server", leader.ops]) == 0
    assert "fits now" in capsys.readouterr().out


def test_a_token_that_is_refused_is_read_again(leader: Leading, ask: Ask) -> None:
    """Once for the Lease; the tunnel is opened with the new one."""
    leader.api.tokens = {"new"}
    file = leader.kubeconfig.parent / "token"
    file.write_text("new")
    text = leaders.kubeconfig(leader.kubeconfig.parent, leader.api.url, token="old").read_text()
    leader.kubeconfig.write_text(text.replace("token: old", f"tokenFile: {file}"))
    assert "default/waits" in ask("list")


def test_a_list_that_is_watched_shows_what_has_changed(
    leader: Leading, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pauses: list[int] = []

    def pause() -> None:
        pauses.append(len(pauses))
        if len(pauses) == 2:
            leader.bench.pod_group("young", 3)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(output, "pause", pause)
    assert kubectl_gang(["list", "-w", "--kubeconfig", str(leader.kubeconfig)]) == 130
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[1 if "waits" in line else 0] for line in shown[1:]][:2] == ["default/waits", "default/runs"]
    assert shown[3].split()[0] == "default/young"
    assert len(shown) == 4


@pytest.mark.parametrize("arguments", [["why", "waits-0"], ["explain", "waits"]], ids=" ".join)
def test_one_thing_that_is_watched_is_shown_again_when_it_changes(
    leader: Leading, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    pauses: list[int] = []

    def pause() -> None:
        pauses.append(len(pauses))
        if len(pauses) == 2:
            leader.bench.pod("waits-9", "waits", cpu="2")
        if len(pauses) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(output, "pause", pause)
    assert kubectl_gang([*arguments, "-w", "--kubeconfig", str(leader.kubeconfig)]) == 130
    shown = capsys.readouterr().out
    assert (shown.count("default/waits: "), shown.count("waits-9")) == (2, 1)


def test_wide_shows_all_members(leader: Leading, ask: Ask) -> None:
    for number in range(9, 50):
        leader.bench.pod(f"waits-{number}", "waits", cpu="2")
    for command in (["explain", "waits"], ["why", "waits-0"]):
        assert "... and 10 more: -o wide has all" in ask(*command)
        assert "waits-49" in ask(*command, "-o", "wide")
    for command in (["whatif", "--members", "2"], ["drain", "n0"]):
        assert ask(*command, "-o", "wide") == ask(*command)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["whatif"], "whatif: wanted --members N, or -f FILE"),
        (["whatif", "--members", "0"], "whatif: --members 0: wanted 1 to 10000"),
        (["whatif", "--members", "2", "--requests", "cpu"], "whatif: --requests cpu: wanted each NAME=VALUE once"),
        (
            ["whatif", "--members", "2", "--requests", "cpu=much"],
            "whatif: --requests cpu=much: quantity 'much': wanted a number, with a suffix of Kubernetes or without: 4, ",
        ),
        (
            ["whatif", "-f", f"{INTEGRATIONS}/leaderworkerset.yaml"],
            f"kubectl gang: {INTEGRATIONS}/leaderworkerset.yaml:2: Pod default/inference-0: the pod is of no gang: the key "
            "leaderworkerset.sigs.k8s.io/group-key counts only with `groupSources: [{preset: lws}]`",
        ),
        (
            ["whatif", "--members", "2", "--priority-class", "low"],
            "whatif: --priority-class low: no such PriorityClass",
        ),
        (["whatif", "--members", "2", "-f", "x.yaml"], "whatif: --members says of members"),
        (["whatif", "-f", "no-such-file.yaml"], "no-such-file.yaml: No such file or directory"),
        (["explain", "a/b/c"], "a/b/c: wanted NAMESPACE/NAME"),
        (["explain", "../metrics"], "kubectl gang: '..' is no name: wanted one that is not empty, `.` or `..`"),
        (["explain", "default/.."], "kubectl gang: '..' is no name"),
        (["explain", ""], "kubectl gang: the name is empty: wanted NAMESPACE/NAME"),
        (["why", "."], "kubectl gang: '.' is no name"),
        (["why", ""], "kubectl gang: the name is empty: wanted NAMESPACE/NAME"),
        (["drain", ""], "kubectl gang: '' is no name"),
        (["drain", ".."], "kubectl gang: '..' is no name"),
        (["drain", "no/de"], "kubectl gang: drain: no/de: a node is in no namespace, and no name of one has a /"),
        (["list", "--server", "nowhere"], "--server nowhere: wanted a URL"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_wrong_use_names_the_flag(
    leader: Leading, capsys: pytest.CaptureFixture[str], arguments: list[str], text: str
) -> None:
    assert kubectl_gang([*arguments, "--kubeconfig", str(leader.kubeconfig)]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1), err
    assert text in err


def test_a_name_that_is_none_is_told_before_any_extender_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert kubectl_gang(["drain", "", "--server", "http://127.0.0.1:1"]) == 2
    assert "'' is no name" in capsys.readouterr().err


def test_a_manifest_that_makes_no_pod(leader: Leading, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "group.yaml"
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}))
    assert kubectl_gang(["whatif", "-f", str(file), "--kubeconfig", str(leader.kubeconfig)]) == 2
    assert "no pod is made by what is in it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("gangs", ["list"]),
        ("gang", ["explain", "waits"]),
        ("gang", ["explain", "runs"]),
        ("pod", ["why", "waits-0"]),
        ("whatif", ["whatif", "--members", "9", "--requests", "cpu=3"]),
        ("drain", ["drain", "n0"]),
    ],
    ids=lambda each: each if isinstance(each, str) else " ".join(each),
)
def test_what_programs_read_is_as_its_schema_says(ask: Ask, name: str, arguments: list[str]) -> None:
    jsonschema.validate(json.loads(ask(*arguments, "-o", "json")), schema(name))


@pytest.mark.parametrize(
    "arguments",
    [
        ["list"],
        ["list", "-A"],
        ["explain", "waits"],
        ["why", "waits-0"],
        ["whatif", "--members", "1"],
        ["drain", "n0"],
    ],
    ids=" ".join,
)
def test_json_is_indented_and_ends_its_last_line(ask: Ask, arguments: list[str]) -> None:
    text = ask(*arguments, "-o", "json")
    assert text == json.dumps(json.loads(text), indent=2) + "\n"


def test_the_doctor_examines_the_extender_that_leads(
    leader: Leading, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API server here knows nothing of what the doctor asks a cluster: that is an error of its own."""
    connections: list[KubeconfigFiles] = []
    connect = kubeconfig_flags.connect

    def counted(files: KubeconfigFiles, context: str) -> Connection:
        connections.append(files)
        return connect(files, context)

    monkeypatch.setattr(kubeconfig_flags, "connect", counted)
    file = str(PROJECT / "manifests" / "sidecar" / "extender.yaml")
    arguments = ["doctor", "--kubeconfig", str(leader.kubeconfig), "--config", file, "-o", "json"]
    assert kubectl_gang(arguments) == 1
    pod = "port 8889 of pod kube-system/gang-scheduler-7d9-abcde"
    said = {finding["field"]: finding["message"] for finding in json.loads(capsys.readouterr().out)}
    assert len(connections) == 1
    assert said["schedulerNames"] == f"the extender at {pod} runs with another value"
    leader.api.objects[LEASE] = leaders.lease("")
    assert kubectl_gang(arguments) == 1
    none = [finding for finding in json.loads(capsys.readouterr().out) if finding["code"] == "NoAnswer"]
    assert [(each["field"], "holds the Lease" in each["message"]) for each in none] == [
        ("kube-system/gang-scheduler", True)
    ]


def test_the_doctor_takes_the_configuration_of_the_extender_that_leads(
    leader: Leading, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is neither --config nor a ConfigMap."""

    def not_known() -> list[str]:
        assert kubectl_gang(["doctor", "--kubeconfig", str(leader.kubeconfig), "-o", "json"]) == 1
        found = json.loads(capsys.readouterr().out)
        return [each["message"] for each in found if each["code"] == "NotExamined" and not each["field"]]

    assert not_known() == []
    leader.api.objects[LEASE] = leaders.lease("")
    (message,) = not_known()
    assert "kube-system has no ConfigMap" in message


GANG = {
    "namespace": "team-a",
    "name": "train",
    "phase": "Bound",
    "since": "2026-01-01T00:00:00Z",
    "reason": "",
    "message": "",
    "minMember": 1,
    "members": {"bound": 1},
}


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[PortForwarding]:
    """Beyond loopback, by TLS and token. ca.pem: what has signed its certificate; token: the one that is known."""
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    (tmp_path / "token").write_text("known\n")
    made = PortForwarding(context)
    made.tokens = {"known"}
    made.objects["/gangs"] = [GANG]
    yield made
    made.stop()


def test_a_tenant_asks_pages_by_its_token(
    pages: PortForwarding, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trusting = ["--server", pages.url, "--certificate-authority", str(tmp_path / "ca.pem")]
    assert kubectl_gang(["list", "-n", "team-a", *trusting, "--token-file", str(tmp_path / "token"), "-o", "name"]) == 0
    assert capsys.readouterr().out == "team-a/train\n"
    assert pages.asked == ["/gangs?namespace=team-a"]
    assert kubectl_gang(["list", "-n", "team-a", *trusting]) == 1
    assert capsys.readouterr().err == f"kubectl gang: {pages.url}: Unauthorized\n"
    pages.objects["/gangs"] = (403, {"kind": "Status", "code": 403, "message": "podgroups is forbidden"})
    assert kubectl_gang(["list", *trusting, "--token-file", str(tmp_path / "token")]) == 1
    assert capsys.readouterr().err == f"kubectl gang: {pages.url}: podgroups is forbidden\n"


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        pytest.param([], 1, "CERTIFICATE_VERIFY_FAILED", id="a certificate of an unknown authority"),
        pytest.param(
            ["--certificate-authority", "no-such-file"], 2, "no-such-file: No such file", id="no such authority"
        ),
        pytest.param(["--token-file", "no-such-file"], 2, "no-such-file: No such file", id="no such token"),
        pytest.param(
            ["--server", "http://127.0.0.1:1", "--token-file", "x"],
            2,
            "--token-file: is for --server https://...",
            id="a token is not sent in the clear",
        ),
    ],
)
def test_what_a_token_is_not_sent_to(
    pages: PortForwarding, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, text: str
) -> None:
    assert kubectl_gang(["list", "--server", pages.url, *arguments]) == code
    assert text in capsys.readouterr().err
    assert pages.asked == []


def test_whatif_says_what_a_quota_would_refuse(leader: Leading, ask: Ask) -> None:
    of_class = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}
    hard = {"pods": "1", "requests.cpu": "20"}
    leader.api.objects[QUOTAS] = {
        "metadata": {},
        "items": [
            {
                "metadata": {"name": "high", "namespace": "default"},
                "spec": {"hard": hard, "scopeSelector": of_class},
                "status": {"hard": hard, "used": {"requests.cpu": "12"}},
            }
        ],
    }
    asked = ("whatif", "--members", "3", "--requests", "cpu=3")
    assert "quota" not in ask(*asked)
    text = ask(*asked, "--priority-class", "high")
    assert "  quota        default/high would refuse the pods: pods: 3 wanted, 1 of 1 left\n" in text
    assert "default/high would refuse the pods: requests.cpu: 9 wanted, 8 of 20 left\n" in text
    refusals = json.loads(ask(*asked, "--priority-class", "high", "-o", "json"))["quotas"]
    assert [each["resource"] for each in refusals] == ["pods", "requests.cpu"]


def test_quotas_that_the_caller_may_not_see_are_said_to_be_unknown(leader: Leading, ask: Ask) -> None:
    del leader.api.objects[QUOTAS]
    text = ask("whatif", "--members", "2", "--requests", "cpu=1")
    assert text.startswith("default/what-if: fits now")
    assert "quota        of default not known: " in text

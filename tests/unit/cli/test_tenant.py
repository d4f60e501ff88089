"""A tenant: pages by the token of its kubeconfig's context, and what PodGroup.status says where it reaches no page."""

from __future__ import annotations

import json
import ssl
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from extender.cli import at_address
from extender.cli.main import kubectl_gang, main
from tests.fakes.port_forwarding import PortForwarding
from tests.unit.cli import leading as leaders

GANG = {
    "namespace": "team-a",
    "name": "train",
    "phase": "Bound",
    "since": "2026-01-01T00:00:00Z",
    "reason": "",
    "message": "",
}
PAGE = [{**GANG, "minMember": 1, "members": {"bound": 1}}]
POD_GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/team-a/podgroups"


@dataclass
class Tenant:
    """pages: beyond loopback, with TLS and tokens. api: the API server of the kubeconfig. trusting: the flags for the pages."""

    folder: Path
    pages: PortForwarding
    api: PortForwarding
    trusting: list[str]

    def kubeconfig(self, **user: Any) -> None:
        file = leaders.kubeconfig(self.folder, self.api.url, namespace="team-a")
        written = yaml.safe_load(file.read_text())
        written["users"][0]["user"] = user
        file.write_text(yaml.safe_dump(written))


@pytest.fixture
def tenant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tenant]:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    pages, api = PortForwarding(context), PortForwarding()
    try:
        pages.tokens, pages.objects["/gangs"] = {"known"}, PAGE
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig.yaml"))
        made = Tenant(
            tmp_path, pages, api, ["--server", pages.url, "--certificate-authority", str(tmp_path / "ca.pem")]
        )
        made.kubeconfig()
        yield made
    finally:
        pages.stop()
        api.stop()


def test_the_context_s_token_and_namespace_are_those_of_the_pages(
    tenant: Tenant, capsys: pytest.CaptureFixture[str]
) -> None:
    tenant.kubeconfig(token="known")
    assert kubectl_gang(["list", "-o", "name", *tenant.trusting]) == 0
    assert capsys.readouterr().out == "team-a/train\n"
    assert tenant.pages.asked == ["/gangs?namespace=team-a"]


def test_the_context_s_plugin_is_asked_again_where_its_token_is_refused(
    tenant: Tenant, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin, answer = (
        tenant.folder / "plugin",
        {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"},
    )
    old, new = (json.dumps({**answer, "status": {"token": token}}) for token in ("old", "known"))
    plugin.write_text(f"#!/bin/sh\n[ -e {plugin}.ran ] && echo '{new}' || echo '{old}'\ntouch {plugin}.ran\n")
    plugin.chmod(stat.S_IRWXU)
    tenant.kubeconfig(exec={"apiVersion": answer["apiVersion"], "command": str(plugin), "interactiveMode": "Never"})
    assert kubectl_gang(["list", "-o", "name", *tenant.trusting]) == 0
    assert capsys.readouterr().out == "team-a/train\n"
    assert len(tenant.pages.asked) == 2


@pytest.mark.parametrize(
    ("program", "user", "arguments"),
    [
        pytest.param(main, {"token": "known"}, [], id="gang-extender, which has no context unless one is named"),
        pytest.param(kubectl_gang, {"username": "u", "password": "p"}, [], id="a password is for the API server"),
        pytest.param(kubectl_gang, {"token": "known"}, ["--token-file", "other"], id="a file comes before it"),
    ],
)
def test_what_is_not_sent_to_pages(
    tenant: Tenant,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    program: Any,
    user: dict[str, Any],
    arguments: list[str],
) -> None:
    monkeypatch.chdir(tenant.folder)
    Path("other").write_text("other")
    tenant.kubeconfig(**user)
    assert program(["list", "-o", "json", *tenant.trusting, *arguments]) == 1
    assert "Unauthorized" in capsys.readouterr().err


def test_no_token_is_sent_without_tls(tenant: Tenant, capsys: pytest.CaptureFixture[str]) -> None:
    tenant.kubeconfig(token="known")
    tenant.api.tokens = {"known"}
    assert kubectl_gang(["list", "-o", "json", "--server", tenant.api.url]) == 1
    assert "Unauthorized" in capsys.readouterr().err


def test_the_server_is_that_of_the_environment(
    tenant: Tenant, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant.kubeconfig(token="known")
    monkeypatch.setenv(at_address.VARIABLE, tenant.pages.url)
    assert kubectl_gang(["list", "-o", "name", *tenant.trusting[2:]]) == 0
    assert capsys.readouterr().out == "team-a/train\n"
    assert kubectl_gang(["list", "-o", "json", "--server", tenant.api.url]) == 1
    assert f"{tenant.api.url} does not show /gangs" in capsys.readouterr().err


def pod_group(name: str, **status: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "team-a", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"metadata": metadata, "spec": {"minMember": 8}, "status": status}


WAITS = pod_group(
    "waits",
    phase="Pending",
    bound="0/8",
    position=2,
    missing={"cpu": "4"},
    wouldFit="minMember 4 instead of 8",
    conditions=[
        {
            "type": "Scheduled",
            "status": "False",
            "reason": "InsufficientResources",
            "message": "minMember of 8 does not fit: Insufficient cpu",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ],
)
LOST = pod_group(
    "lost",
    phase="Running",
    bound="7/8",
    nodes="n[1-7]",
    conditions=[
        {"type": "Scheduled", "status": "True", "reason": "GangScheduled"},
        {"type": "Degraded", "status": "True", "reason": "BelowMinMember", "message": "7 of minMember 8 have a node"},
    ],
)
FORBIDDEN = (403, {"kind": "Status", "code": 403, "message": "leases is forbidden"})


@pytest.fixture
def without_pages(tenant: Tenant) -> Tenant:
    """It may read its PodGroups, and no Lease."""
    tenant.api.objects[leaders.LEASE] = FORBIDDEN
    tenant.api.objects[POD_GROUPS] = {"metadata": {}, "items": [LOST, WAITS]}
    tenant.api.objects[f"{POD_GROUPS}/waits"] = WAITS
    return tenant


SAID = "kubectl gang: no page can be asked: this is what PodGroup.status says\n"


def test_a_list_falls_back_to_the_status_of_pod_groups(
    without_pages: Tenant, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kubectl_gang(["list", "-o", "wide"]) == 0
    out, err = capsys.readouterr()
    heads, waits, lost = (line.split() for line in out.splitlines())
    assert heads == ["LINE", "GROUP", "PHASE", "REASON", "BOUND", "FOR", "MISSING", "MESSAGE"]
    assert waits[:5] == ["2", "team-a/waits", "Pending", "InsufficientResources", "0/8"]
    assert waits[6:10] == ["cpu", "4", "minMember", "of"]
    assert lost[:4] == ["team-a/lost", "Running", "BelowMinMember", "7/8"]
    assert ("leases is forbidden" in err, err.endswith(SAID)) == (True, True)


def test_an_explanation_falls_back_likewise(without_pages: Tenant, capsys: pytest.CaptureFixture[str]) -> None:
    assert kubectl_gang(["explain", "waits"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("team-a/waits: Pending for ")
    for line in (
        "  reason       InsufficientResources",
        "               minMember of 8 does not fit: Insufficient cpu",
        "  bound        0/8",
        "  in line      2",
        "  short        cpu 4",
        "  would fit    minMember 4 instead of 8",
    ):
        assert line in out.splitlines()
    assert err.endswith(SAID)


def test_a_namespace_without_pod_groups_says_so(without_pages: Tenant, capsys: pytest.CaptureFixture[str]) -> None:
    without_pages.api.objects[POD_GROUPS] = {"metadata": {}, "items": []}
    assert kubectl_gang(["list"]) == 0
    assert capsys.readouterr().out == "no PodGroups in namespace team-a\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["list", "-o", "json"],
        ["list", "-w"],
        ["explain", "waits", "-o", "yaml"],
        ["why", "waits-0"],
        ["explain", "gone"],
    ],
    ids=" ".join,
)
def test_what_no_status_says_fails_as_ever(
    without_pages: Tenant, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert kubectl_gang(arguments) == 1
    out, err = capsys.readouterr()
    assert (out, "leases is forbidden" in err, err.count("\n")) == ("", True, 1)


def test_pages_that_are_out_of_reach_are_fallen_back_from_too(
    without_pages: Tenant, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kubectl_gang(["list", "-n", "team-a", "--server", "http://127.0.0.1:1"]) == 0
    out, err = capsys.readouterr()
    assert "team-a/waits" in out
    assert "no extender answers at http://127.0.0.1:1" in err


def test_a_group_that_the_extender_does_not_know_is_not_looked_for_elsewhere(
    without_pages: Tenant, capsys: pytest.CaptureFixture[str]
) -> None:
    without_pages.kubeconfig(token="known")
    without_pages.pages.objects["/gangs/team-a/waits"] = (404, {"Error": "no such group"})
    assert kubectl_gang(["explain", "waits", *without_pages.trusting]) == 1
    assert capsys.readouterr().err.startswith("kubectl gang: no group team-a/waits is known")


def test_gang_extender_with_none_listening_says_what_else_it_asks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(at_address, "SERVER", "http://127.0.0.1:1")
    assert main(["list"]) == 1
    assert capsys.readouterr().err == (
        "gang-extender: no extender answers at http://127.0.0.1:1: Connection refused; --server URL names an extender elsewhere, "
        "--kubeconfig FILE or --context NAME the cluster whose leader is asked\n"
    )

"""A program that a kubeconfig names gives our credentials: run when that is needed, its faults told with its own words."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from extender.client import exec_plugin
from extender.client.credentials import IdentityError
from extender.client.identity import KubeconfigSource
from tests.unit.client.test_kubeconfig import written

VERSION = "client.authentication.k8s.io/v1"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Plugin:
    """A program that does what `script` says, beside a kubeconfig that names it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = NOW
        self.config: dict[str, Any] = {"apiVersion": VERSION, "command": "./plugin", "interactiveMode": "Never"}
        self.answer({"token": "first"})
        file = written(folder, {"server": "https://h", "tls-server-name": "n"}, {"exec": self.config})
        self.source = KubeconfigSource(file, "", {}, lambda: self.now)

    def script(self, python: str) -> None:
        program = self.folder / "plugin"
        program.write_text(
            f"#!{sys.executable}\nimport os, sys\nopen({str(self.folder / 'ran')!r}, 'a').write('x')\n{python}\n"
        )
        program.chmod(0o700)

    def answer(self, status: dict[str, str], **rest: Any) -> None:
        text = json.dumps({"apiVersion": VERSION, "kind": "ExecCredential", "status": status, **rest})
        self.script(f"print({text!r})")

    def configure(self, **changes: Any) -> None:
        written(self.folder, {"server": "https://h", "tls-server-name": "n"}, {"exec": {**self.config, **changes}})

    @property
    def runs(self) -> int:
        return len((self.folder / "ran").read_text())

    def authorization(self, *, refused: bool = False) -> str:
        return self.source.read(refused).authorization


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


def test_its_token_is_kept_until_it_is_refused(plugin: Plugin) -> None:
    assert [plugin.authorization() for _ in range(3)] == ["Bearer first"] * 3
    plugin.answer({"token": "second"})
    assert plugin.authorization() == "Bearer first"
    assert plugin.authorization(refused=True) == "Bearer second"
    assert plugin.runs == 2


def test_its_token_is_kept_until_shortly_before_it_expires(plugin: Plugin) -> None:
    plugin.answer({"token": "first", "expirationTimestamp": "2026-01-01T01:00:00Z"})
    assert plugin.authorization() == "Bearer first"
    plugin.answer({"token": "second", "expirationTimestamp": "2026-01-01T02:00:00Z"})
    plugin.now = NOW + timedelta(minutes=59)
    assert plugin.authorization() == "Bearer first"
    plugin.now = NOW + timedelta(minutes=59, seconds=45)
    assert plugin.authorization() == "Bearer second"


def test_it_is_run_again_where_the_kubeconfig_names_it_otherwise(plugin: Plugin) -> None:
    plugin.script(
        "import json; print(json.dumps({'apiVersion': " + repr(VERSION) + ", 'status': {'token': sys.argv[1]}}))"
    )
    plugin.configure(args=["a"])
    assert plugin.authorization() == "Bearer a"
    plugin.configure(args=["another"])
    assert plugin.authorization() == "Bearer another"


def test_a_certificate_of_its_own_and_a_token_beside_it(plugin: Plugin) -> None:
    plugin.answer({"token": "t", "clientCertificateData": "CERTIFICATE", "clientKeyData": "KEY"})
    found = plugin.source.read(refused=False)
    assert found.authorization == "Bearer t"
    assert found.route.certificate is not None
    assert found.route.key is not None
    assert (found.route.certificate.data, found.route.key.data) == (b"CERTIFICATE", b"KEY")


def test_what_it_is_told(plugin: Plugin) -> None:
    told = plugin.folder / "told"
    plugin.script(
        f"open({str(told)!r}, 'w').write(os.environ['KUBERNETES_EXEC_INFO'] + os.environ['REGION'] + os.environ['HOME'])"
    )
    plugin.configure(env=[{"name": "REGION", "value": "eu"}], provideClusterInfo=True)
    with pytest.raises(IdentityError):
        plugin.authorization()
    info, region = told.read_text().split("}eu")
    cluster = {"server": "https://h", "tls-server-name": "n"}
    wanted = {"apiVersion": VERSION, "kind": "ExecCredential", "spec": {"interactive": False, "cluster": cluster}}
    assert json.loads(info + "}") == wanted
    assert region, "the environment is ours besides"


@pytest.mark.parametrize(
    ("python", "error"),
    [
        pytest.param("sys.exit('not logged in')", "./plugin ended with 1: not logged in", id="it fails"),
        pytest.param("print('nonsense')", "./plugin wrote no ExecCredential: JSON is malformed", id="no JSON"),
        pytest.param("print('[]')", "./plugin wrote no ExecCredential: Expected `object`", id="another kind"),
        pytest.param("print('{\"apiVersion\": \"v2\", \"status\": {}}')", f"./plugin wrote v2, not {VERSION}", id="version"),
        pytest.param(
            f"print('{{\"apiVersion\": \"{VERSION}\", \"status\": {{}}}}')",
            "./plugin wrote neither a token nor a certificate",
            id="nothing",
        ),
        pytest.param(
            f"print('{{\"apiVersion\": \"{VERSION}\", \"status\": {{\"clientKeyData\": \"x\", \"token\": \"t\"}}}}')",
            "./plugin wrote a certificate or a key without the other",
            id="a key alone",
        ),
        pytest.param("import time; time.sleep(60)", "./plugin: not done after 0 s", id="it does not end"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_its_answer(
    plugin: Plugin, monkeypatch: pytest.MonkeyPatch, python: str, error: str
) -> None:
    if "sleep" in python:
        monkeypatch.setattr(exec_plugin, "SECONDS", 0.3)
    plugin.script(python)
    with pytest.raises(IdentityError) as raised:
        plugin.authorization()
    place = f"kubeconfig {plugin.folder / 'kubeconfig'}:19: users[0].user.exec: "
    assert str(raised.value).startswith(place + error)


def test_a_program_that_is_not_there_is_named_with_how_to_get_it(plugin: Plugin) -> None:
    plugin.configure(command="no-such-program", installHint="brew install it")
    with pytest.raises(IdentityError, match=r"no-such-program: not found. brew install it$"):
        plugin.authorization()

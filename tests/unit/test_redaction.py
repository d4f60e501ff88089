"""Planted secrets: what is known for one, what is not, and the outlets by which a text leaves a process.

tests/unit/scheduler/test_secrets.py has those of a running scheduler.
"""

from __future__ import annotations

import base64
import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from extender.api import corev1
from extender.cli.doctor import _as_json
from extender.cli.main import main
from extender.client.credentials import IdentityError
from extender.client.embedded import EmbeddedAPI
from extender.client.errors import ConnectionFailedError
from extender.client.events import Recorder
from extender.doctor import cluster
from extender.redaction import REDACTED, redacted
from extender.server import logs

JWT = ".".join(
    base64.urlsafe_b64encode(part).decode().rstrip("=") for part in (b'{"alg":"none"}', b'{"sub":"mole"}', b"signature")
)
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAmole\nc2VjcmV0bW9sZQ==\n-----END RSA PRIVATE KEY-----"
SECRETS = {
    "a JSON web token": (f"unexpected answer to {JWT}", JWT),
    "a part of one": (f"cut {JWT[: len(JWT) // 2 + 6]}", JWT[: len(JWT) // 2]),
    "a bearer token": ("header Authorization: Bearer mole-4711.secret refused", "mole-4711"),
    "a basic authorization": ("Authorization: Basic bW9sZTptb2xlNDcxMQ==", "bW9sZTptb2xlNDcxMQ"),
    "a key in PEM": (f"cannot load {KEY} from here", "MIIEowIBAAKCAQEAmole"),
    "a key in PEM in one line": (f"cannot load {KEY!r}", "c2VjcmV0bW9sZQ"),
    "a key that was cut": (f"cannot load {KEY[:60]}", "MIIEowIBAAKCAQEAmole"),
    "a key in base64": (
        f"data {base64.b64encode(KEY.encode()).decode()}",
        base64.b64encode(KEY.encode()).decode()[20:60],
    ),
    "a password in a URL": ("no proxy at https://mole:mole4711@proxy.example:3128", "mole4711"),
    "a password in JSON": ('got {"user": "x", "password": "mole 4711"}', "mole 4711"),
    "a token in escaped JSON": (r'got "{\"token\": \"mole4711\"}"', "mole4711"),
    "a token in YAML": ("line 7: token: mole4711mole", "mole4711"),
    "a token of a query": ("GET /x?access_token=mole&y=1", "=mole"),
    "a name with a letter that no lower() makes an s": ("pa\u017f\u017fword=mole4711", "mole4711"),
    "a name in capitals": ("PASSWORD=mole4711", "mole4711"),
    "a client key of a kubeconfig": ("users[0].client-key-data: bW9sZTQ3MTE=", "bW9sZTQ3MTE"),
}


@pytest.fixture(params=[pytest.param(pair, id=name) for name, pair in SECRETS.items()])
def planted(request: pytest.FixtureRequest) -> tuple[str, str]:
    """A text, and what of it is secret."""
    pair: tuple[str, str] = request.param
    assert pair[1] in pair[0].replace(r"\n", "\n")
    return pair


def test_a_secret_is_taken_out_and_the_rest_stays(planted: tuple[str, str]) -> None:
    text, secret = planted
    left = redacted(text)
    assert secret not in left
    assert REDACTED in left
    assert left.partition(REDACTED)[0] == text[: len(left.partition(REDACTED)[0])] != ""
    assert redacted(left) == left


@pytest.mark.parametrize(
    "text",
    [
        "pod bound pod=default/web-0 node=n1",
        "kubeconfig x: users[0].user.token: wanted: a text",
        "not a token: has spaces, line breaks or characters beyond ASCII",
        'secret "my-secret" not found',
        "https://127.0.0.1:6443/api/v1/pods?limit=500",
        "annotation gang-extender.dev/roles: Invalid value: 0",
        "MountVolume.SetUp failed for volume secret: gang-extender-tls",
        "basic auth is off, and so are bearer tokens",
        "eye and eyelid, keyboard.layout",
        "[redacted]",
    ],
)
def test_a_text_without_a_secret_stays_as_it_is(text: str) -> None:
    assert redacted(text) == text


# Outlets: what a text becomes that a caller, a library or the API server has written


def of_log(formatted: str) -> Callable[[str], str]:
    def outlet(text: str) -> str:
        written: list[bytes] = []
        record = logging.LogRecord("extender.a", logging.INFO, __file__, 1, "failed error=%s", (text,), None)
        logs.LineHandler(written.append, formatted).emit(record)
        line = b"".join(written).decode()
        if formatted == logs.JSON:
            assert json.loads(line)["msg"] == "failed"
        return line

    return outlet


def of_traceback(text: str) -> str:
    written: list[bytes] = []
    try:
        raise ValueError(text)
    except ValueError:
        record = logging.LogRecord("extender.a", logging.ERROR, __file__, 1, "failed", (), sys.exc_info())
    logs.LineHandler(written.append, logs.TEXT).emit(record)
    return b"".join(written).decode()


def of_stderr(text: str) -> str:
    written: list[bytes] = []
    before = sys.stderr
    logs.take_stderr(written.append)
    try:
        print(text, file=sys.stderr)
    finally:
        sys.stderr = before
    return b"".join(written).decode()


def of_event(text: str) -> str:
    api = EmbeddedAPI()
    recorder = Recorder(api)
    recorder.start()
    recorder.event(
        corev1.ObjectReference(kind="Pod", namespace="default", name="p", uid="u"), "Warning", "R", "A", text
    )
    assert recorder.flush(10)
    recorder.stop()
    return " ".join(each["note"] for each in api.events())


def of_doctor(text: str) -> str:
    return json.dumps(_as_json(cluster.unreachable("https://mole:mole4711@h", ConnectionFailedError(text))))


OUTLETS: dict[str, Callable[[str], str]] = {
    "a log line": of_log(logs.TEXT),
    "a log line in JSON": of_log(logs.JSON),
    "a traceback in the log": of_traceback,
    "what is printed to stderr": of_stderr,
    "an error of the API": lambda text: str(ConnectionFailedError(text)) + ConnectionFailedError(text).message,
    "an error of a kubeconfig": lambda text: str(IdentityError(text)),
    "an event": of_event,
    "doctor -o json": of_doctor,
}


@pytest.mark.parametrize("outlet", OUTLETS.values(), ids=OUTLETS)
def test_no_outlet_tells_it(outlet: Callable[[str], str], planted: tuple[str, str]) -> None:
    text, secret = planted
    told = outlet(text)
    assert REDACTED in told
    assert secret not in told
    assert "mole4711@" not in told


# Kubeconfigs, as the commands read them

PLUGIN = {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never", "command": "./plugin"}


def kubeconfig(cluster: dict[str, str], user: dict[str, object]) -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1", **cluster}}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
    )


MOLE = "mole4711mole4711"
KUBECONFIGS = {
    "YAML that breaks off in a token": f"users:\n- user: {{token: {MOLE}\n  x",
    "a token that stands twice": f"users: [{{name: u, user: {{token: {MOLE}1, token: {MOLE}}}}}]",
    "a token that is a list": kubeconfig({}, {"token": [MOLE]}),
    "a token of two lines": kubeconfig({}, {"token": f"{MOLE}\n{MOLE}"}),
    "a key that is none": kubeconfig({}, {"client-certificate-data": MOLE, "client-key-data": MOLE}),
    "a server with a password": kubeconfig({"server": f"https://u:{MOLE}@127.0.0.1:1"}, {}),
    "a proxy with a password": kubeconfig({"proxy-url": f"http://u:{MOLE}@127.0.0.1:1"}, {}),
    "a proxy with a password that is no URL": kubeconfig({"proxy-url": f"ftp://u:{MOLE}@127.0.0.1:1"}, {}),
    "user and password, and no server": kubeconfig({}, {"username": "u", "password": MOLE}),
    "a plugin that writes the token to stderr": kubeconfig({}, {"exec": {**PLUGIN, "args": ["stderr"]}}),
    "a plugin that writes the token as no JSON": kubeconfig({}, {"exec": {**PLUGIN, "args": ["text"]}}),
}
PLUGIN_PROGRAM = f"""#!/bin/sh
if [ "$1" = stderr ]; then echo 'refused: {{"token": "{MOLE}"}}' >&2; exit 3; fi
echo 'token={MOLE}'
"""


@pytest.mark.parametrize("text", KUBECONFIGS.values(), ids=KUBECONFIGS)
@pytest.mark.parametrize("command", [["doctor", "-o", "json"], ["explain", "default/train"]], ids=" ".join)
def test_no_command_tells_what_a_kubeconfig_holds(
    command: list[str], text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    (tmp_path / "plugin").write_text(PLUGIN_PROGRAM)
    (tmp_path / "plugin").chmod(0o700)
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert main([*command, "--kubeconfig", str(file)]) != 0
    said = capsys.readouterr()
    assert said.out + said.err
    assert MOLE not in said.out + said.err


def test_no_command_tells_the_password_of_an_address(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--server", f"http://u:{MOLE}@127.0.0.1:1"]) != 0
    said = capsys.readouterr()
    assert MOLE not in said.out + said.err
    assert "127.0.0.1:1" in said.out + said.err

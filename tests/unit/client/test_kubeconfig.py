"""What a kubeconfig says of the API server and of us; what is wrong with one is a line with file, place and reason."""

from __future__ import annotations

import base64
import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from extender.client.credentials import Credentials, IdentityError
from extender.client.identity import Identity, KubeconfigSource, ServiceAccountSource

GOOD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "preferences": {},
    "current-context": "it",
    "contexts": [{"name": "it", "context": {"cluster": "c", "user": "u", "namespace": "n"}}],
    "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1:6443"}}],
    "users": [{"name": "u", "user": {"token": "secret"}}],
}


def written(folder: Path, cluster: Any = None, user: Any = None, **changes: Any) -> Path:
    file = folder / "kubeconfig"
    config = {**GOOD, **changes}
    if cluster is not None:
        config["clusters"] = [{"name": "c", "cluster": cluster}]
    if user is not None:
        config["users"] = [{"name": "u", "user": user}]
    file.write_text(yaml.safe_dump({key: value for key, value in config.items() if value is not ...}, sort_keys=False))
    return file


def read(file: Path, context: str = "", environ: dict[str, str] | None = None) -> Credentials:
    return KubeconfigSource(file, context, environ or {}).read(refused=False)


SERVER = "https://10.0.0.1:6443"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("a: [", ":2: did not find expected node content", id="no YAML"),
        pytest.param("\tx", ":1: found character that cannot start any token", id="a tab"),
        pytest.param("", ":1: current-context: Required value", id="empty"),
        pytest.param("[]", ":1: must be a mapping, not a list", id="a list"),
        pytest.param("nonsense", ":1: must be a mapping, not a string", id="a text"),
        pytest.param("current-context: a\ncurrent-context: b", ":2: current-context: Duplicate key", id="a key twice"),
        pytest.param("clusters: nonsense\ncurrent-context: it", ":2: current-context: Not found: \"it\" in contexts", id="no contexts"),
        pytest.param("current-context: 5", ":1: current-context: must be a string, not an integer", id="a number"),
        pytest.param("current-context: it\ncontexts: {}", ":2: contexts: must be a list, not a mapping", id="no list"),
        pytest.param("current-context: it\ncontexts:\n- name: it", ":3: contexts[0].context.cluster: Required value", id="no cluster"),
        pytest.param(b"\xff\xfe\x00", ": 'utf-8' codec can't decode byte 0xff", id="no text"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_kubeconfig(tmp_path: Path, text: str | bytes, error: str) -> None:
    file = tmp_path / "kubeconfig"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(IdentityError) as raised:
        read(file)
    assert str(raised.value).startswith(f"kubeconfig {file}{error}")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        pytest.param({"current-context": ...}, ":1: current-context: Required value", id="no current-context"),
        pytest.param({"current-context": "x"}, ':4: current-context: Not found: "x" in contexts', id="no such context"),
        pytest.param({"clusters": []}, ':8: contexts[0].context.cluster: Not found: "c" in clusters', id="no cluster"),
        pytest.param({"users": ...}, ':9: contexts[0].context.user: Not found: "u" in users', id="no such user"),
        pytest.param({"cluster": {}}, ":13: clusters[0].cluster.server: Required value", id="no server"),
        pytest.param({"cluster": {"server": ["a"]}}, ":14: clusters[0].cluster.server: must be a string", id="a list"),
        pytest.param(
            {"cluster": {"server": SERVER, "certificate-authority": "gone"}},
            ":15: clusters[0].cluster.certificate-authority: {folder}/gone: No such file or directory",
            id="a CA that is not there",
        ),
        pytest.param(
            {"cluster": {"server": SERVER, "certificate-authority-data": "no base64!"}},
            ":15: clusters[0].cluster.certificate-authority-data: must be base64",
            id="a CA that is no base64",
        ),
        pytest.param(
            {"cluster": {"server": SERVER, "certificate-authority-data": base64.b64encode(b"nothing").decode()}},
            ":15: clusters[0].cluster.certificate-authority-data: no certificate in PEM",
            id="a CA that is no certificate",
        ),
        pytest.param(
            {"cluster": {"server": SERVER, "certificate-authority": "ca", "insecure-skip-tls-verify": True}},
            ":16: clusters[0].cluster.insecure-skip-tls-verify: must not be true where there is a certificate-authority",
            id="a CA that is not looked at",
        ),
        pytest.param(
            {"user": {"client-certificate-data": base64.b64encode(b"x").decode()}},
            ":18: users[0].user.client-certificate-data: no certificate with its key in PEM",
            id="a certificate without a key",
        ),
        pytest.param(
            {"user": {"tokenFile": "."}},
            ":18: users[0].user.tokenFile: {folder}: Is a directory",
            id="a token that is a folder",
        ),
        pytest.param(
            {"user": {"tokenFile": "/dev/null"}}, ":18: users[0].user.tokenFile: empty", id="a token that is empty"
        ),
        pytest.param(
            {"user": {"token": "se\ncret"}},
            ":18: users[0].user.token: not a token",
            id="a token that no header can hold",
        ),
        pytest.param(
            {"cluster": {"server": SERVER, "certificate-authority": "/dev/null"}},
            ":15: clusters[0].cluster.certificate-authority: /dev/null: no certificate in PEM: empty",
            id="an empty CA, with which every authority of the system would be trusted",
        ),
        pytest.param(
            {"user": {"exec": {"apiVersion": "v1"}}},
            ":18: users[0].user.exec.command: Required value",
            id="a plugin without a command",
        ),
        pytest.param(
            {"user": {"exec": {"apiVersion": "v1", "command": "no-such-program"}}},
            ":18: users[0].user.exec: no-such-program: not found",
            id="a plugin that is not installed",
        ),
    ],
)
def test_a_kubeconfig_with_a_mistake(tmp_path: Path, changes: dict[str, Any], error: str) -> None:
    file = written(tmp_path, **changes)
    with pytest.raises(IdentityError) as raised:
        Identity(KubeconfigSource(file, "", {}))
    assert str(raised.value).startswith(f"kubeconfig {file}{error.format(folder=tmp_path)}")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("kind", ["missing", "folder", "unreadable"])
def test_a_file_that_cannot_be_read(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "kubeconfig"
    if kind == "folder":
        file.mkdir()
    if kind == "unreadable":
        file.symlink_to("/proc/1/mem")
        monkeypatch.setattr(Path, "read_text", _denied)
    text = {"missing": "No such file or directory", "folder": "Is a directory", "unreadable": "Permission denied"}[kind]
    with pytest.raises(IdentityError, match=rf"^kubeconfig {file}: {text}$"):
        read(file)


def _denied(path: Path, **options: Any) -> str:
    raise PermissionError(13, "Permission denied", str(path))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("a: [", ":2: did not find expected node content", id="no YAML"),
        pytest.param("", ":1: current-context: Required value", id="empty"),
        pytest.param(None, ": No such file or directory", id="not there"),
    ],
)
def test_serve_ends_with_one_line_and_exit_code_2(tmp_path: Path, text: str | None, error: str) -> None:
    file = tmp_path / "kubeconfig"
    if text is not None:
        file.write_text(text)
    command = [sys.executable, "-m", "extender.cli.main", "serve", "--kubeconfig", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"gang-extender: kubeconfig {file}{error}\n"


@pytest.mark.parametrize(
    ("user", "authorization"),
    [
        pytest.param({"token": "secret"}, "Bearer secret", id="a token"),
        pytest.param({"tokenFile": "token"}, "Bearer of-the-file", id="a file, without its line's end"),
        pytest.param({"token": "secret", "tokenFile": "token"}, "Bearer of-the-file", id="a file wins over a token"),
        pytest.param({"username": "ann", "password": "pass"}, "Basic YW5uOnBhc3M=", id="a name and a password"),
        pytest.param({"token": "secret", "username": "ann"}, "Bearer secret", id="a token wins over a name"),
        pytest.param({}, "", id="nothing"),
        pytest.param(None, "", id="null"),
    ],
)
def test_our_credentials(tmp_path: Path, user: Any, authorization: str) -> None:
    (tmp_path / "token").write_text("of-the-file\n")
    file = written(tmp_path, users=[{"name": "u", "user": user}])
    assert read(file).authorization == authorization


@pytest.mark.parametrize(
    ("cluster", "server", "path", "proxy"),
    [
        pytest.param({"server": "https://h:6443"}, "https://h:6443", "", "http://env:1", id="a host and a port"),
        pytest.param({"server": "https://h/"}, "https://h", "", "http://env:1", id="a slash at the end"),
        pytest.param({"server": "https://h/k8s/c/"}, "https://h", "/k8s/c", "http://env:1", id="a path"),
        pytest.param({"server": "https://[fd00::1]:6443/a"}, "https://[fd00::1]:6443", "/a", "http://env:1", id="IPv6"),
        pytest.param({"server": "h:8080"}, "http://h:8080", "", "", id="no scheme"),
        pytest.param({"server": "h", "insecure-skip-tls-verify": True}, "https://h", "", "http://env:1", id="but TLS"),
        pytest.param({"server": "https://h", "proxy-url": "http://p:3"}, "https://h", "", "http://p:3", id="a proxy"),
        pytest.param({"server": "https://none"}, "https://none", "", "", id="a host that needs no proxy"),
    ],
)
def test_where_the_server_is(tmp_path: Path, cluster: Any, server: str, path: str, proxy: str) -> None:
    environ = {"HTTPS_PROXY": "http://env:1", "NO_PROXY": "none"}
    route = read(written(tmp_path, cluster), environ=environ).route
    assert (route.server, route.path, route.proxy) == (server, path, proxy)


def test_an_auth_provider_that_gives_no_token_says_what_to_use(tmp_path: Path) -> None:
    file = written(tmp_path, users=[{"name": "u", "user": {"auth-provider": {"name": "gcp"}}}])
    with pytest.raises(IdentityError, match=r"auth-provider: .*kubectl 1\.26 dropped .* use an exec plugin$"):
        read(file)


NO_URLS = [
    "ftp://h",
    "https://",
    "https://h:port",
    "https:///path",
    "https://h:99999",
    "https://a..b",
    "https://[::1",
    "::",
]


@pytest.mark.parametrize("url", [*NO_URLS, "socks5://p:1080"])
@pytest.mark.parametrize("key", ["server", "proxy-url"])
def test_a_server_or_proxy_that_is_no_url(tmp_path: Path, key: str, url: str) -> None:
    file = written(tmp_path, {"server": SERVER, key: url})
    with pytest.raises(IdentityError, match=rf"^kubeconfig {file}:\d+: clusters\[0\]\.cluster\.{key}: Invalid value: "):
        Identity.from_kubeconfig(str(file))


def test_a_proxy_of_the_environment_that_is_no_url_is_named(tmp_path: Path) -> None:
    with pytest.raises(IdentityError, match=r"^HTTPS_PROXY .*: http://p:port: "):
        read(written(tmp_path), environ={"HTTPS_PROXY": "p:port"})


# What may stand in any field: other kinds, nothing, what no file, host or header can be, and what is too long to quote.
VALUES: list[Any] = [
    *[5, -1.5, True, None, "", [], {}, [None], ["x"], {"a": None}, {"a": {"b": []}}, float("nan")],
    *[
        "a\0b",
        "a\nb",
        "é",
        "\u2028",
        "\x7f",
        "x" * 5_000,  # a longer one shows no more, and the parser of YAML is slow
        "a" * 300,
        "a=b",
        "%zz",
        "\\",
        "*",
        "::",
        ".a",
        "-----BEGIN",
    ],
    *["https://a b", "https://u:p@h", "~nosuch/x", "empty", ".", "/dev/null", "YQ=", base64.b64encode(b"x").decode()],
]
FIELDS = [
    *[f"clusters.0.cluster.{key}" for key in ("server", "proxy-url", "tls-server-name", "insecure-skip-tls-verify")],
    *[f"clusters.0.cluster.{key}" for key in ("certificate-authority", "certificate-authority-data", "extensions")],
    *[f"users.0.user.{key}" for key in ("token", "tokenFile", "username", "password", "exec", "auth-provider", "as")],
    *[f"users.0.user.{key}{data}" for key in ("client-certificate", "client-key") for data in ("", "-data")],
    *[f"users.0.user.exec.{key}" for key in ("command", "args", "env", "apiVersion", "provideClusterInfo")],
    *[f"users.0.user.exec.env.0.{key}" for key in ("name", "value")],
    *[f"contexts.0.{key}" for key in ("name", "context", "context.cluster", "context.user")],
    *[
        "clusters",
        "clusters.0",
        "clusters.0.name",
        "clusters.0.cluster",
        "users",
        "users.0",
        "users.0.name",
        "users.0.user",
    ],
    *["kind", "apiVersion", "current-context", "contexts", "contexts.0"],
]


@pytest.mark.parametrize("field", FIELDS)
def test_any_value_in_any_field_is_accepted_or_named(tmp_path: Path, field: str) -> None:
    (tmp_path / "empty").write_text("\n")
    wrong = []
    for value in VALUES:
        file = _with(tmp_path, field, value)
        try:
            Identity(KubeconfigSource(file, "", {}))
        except IdentityError as error:
            text = str(error)
            if not text.startswith(f"kubeconfig {file}:") or "\n" in text or len(text) > 700:
                wrong.append((value, text))
    assert wrong == []


def _with(folder: Path, field: str, value: Any) -> Path:
    """The good one, with this in that field; a plugin only where the field is one of it."""
    config = copy.deepcopy(GOOD)
    user = config["users"][0]["user"]
    if "exec" in field:
        config["users"][0]["user"] = user = {
            "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "false"}
        }
        user["exec"]["env"] = [{"name": "A", "value": "b"}]
    elif field.startswith("users.0.user.") and not field.endswith(".token"):
        del user["token"]
    place: Any = config
    *path, last = [int(part) if part.isdigit() else part for part in field.split(".")]
    for part in path:
        place = place[part]
    place[last] = value
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(config, sort_keys=False))
    return file


def test_another_context_than_the_current_one(tmp_path: Path) -> None:
    other = {"name": "other", "context": {"cluster": "c"}}
    file = written(tmp_path, contexts=[*GOOD["contexts"], other])
    assert read(file, "other").authorization == ""
    with pytest.raises(IdentityError, match='Not found: "no such" in contexts'):
        read(file, "no such")


def test_a_kubeconfig_that_was_written_anew_counts(tmp_path: Path) -> None:
    source = KubeconfigSource(written(tmp_path), "", {})
    assert source.read(refused=False).authorization == "Bearer secret"
    written(tmp_path, {"server": "https://elsewhere"}, {"token": "another"})
    found = source.read(refused=False)
    assert (found.authorization, found.route.server) == ("Bearer another", "https://elsewhere")


def test_the_pod_s_own_credentials(tmp_path: Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443", "HTTPS_PROXY": "p:1"}
    source = ServiceAccountSource(tmp_path, environ)
    (tmp_path / "ca.crt").write_text("of the cluster")
    (tmp_path / "token").write_text("first\n")
    found = source.read(refused=False)
    assert (found.route.server, found.authorization, found.route.proxy) == (
        "https://[fd00::1]:443",
        "Bearer first",
        "http://p:1",
    )
    (tmp_path / "token").write_text("second")
    assert source.read(refused=False).authorization == "Bearer second"


@pytest.mark.parametrize(
    ("environ", "files", "error"),
    [
        pytest.param({}, {}, "KUBERNETES_SERVICE_HOST and .* are not set; .*--kubeconfig FILE", id="not in a pod"),
        pytest.param(
            {"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "1"}, {}, "ca.crt: No such", id="no CA"
        ),
        pytest.param(
            {"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "1"},
            {"ca.crt": "x", "token": " \n"},
            "token: empty",
            id="an empty token",
        ),
    ],
)
def test_outside_of_a_cluster(tmp_path: Path, environ: dict[str, str], files: dict[str, str], error: str) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(IdentityError, match=f"^not in a cluster: .*{error}"):
        ServiceAccountSource(tmp_path, environ).read(refused=False)

"""What the program relies on in libraries beyond their documentation: each name once, with its reason, and bounded versions.

A new use turns the first test red, a version of a library that has a name no more, or gives it other parameters, the second.
tests/private_names.py says what is found, and how.
"""

from __future__ import annotations

import configparser
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.private_names import parameters, resolve, uses

ROOT = Path(__file__).parents[2]
PYTHON = "python"


@dataclass(frozen=True)
class Reliance:
    """of: a class or module. names: each with the parameters of a function, as `self, data`; empty for an attribute."""

    file: str
    library: str
    of: str
    why: str
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def dotted(self) -> dict[str, str]:
        return {f"{self.of}.{name}": shape for name, shape in self.names.items()} or {self.of: ""}


def attributes(*names: str) -> dict[str, str]:
    return dict.fromkeys(names, "")


WORKER = "gunicorn.workers.ggevent.GeventWorker"
RELIANCES = [
    Reliance(
        "cli/completion.py",
        PYTHON,
        "argparse.ArgumentParser",
        "every option of a command, and of the commands below it, is given what completes it",
        attributes("_actions"),
    ),
    Reliance("cli/completion.py", PYTHON, "argparse._SubParsersAction", "likewise"),
    Reliance(
        "cli/completion.py",
        "argcomplete",
        "argcomplete.finders.CompletionFinder",
        "opens no file descriptor 9, which is another's in our process",
        {"_init_debug_stream": "self"},
    ),
    Reliance(
        "client/connections.py",
        PYTHON,
        "http.client.HTTPResponse",
        "headers of an answer are read without the parser for mail (docs/design/0013-cpu-per-pod.md)",
        {"begin": "self", "_read_status": "self", "_check_close": "self"}
        | attributes("fp", "version", "code", "status", "reason", "headers", "msg")
        | attributes("chunked", "chunk_left", "length", "will_close"),
    ),
    Reliance(
        "client/connections.py",
        "urllib3",
        "urllib3.connection.HTTPConnection",
        "a request goes out in one piece, and the socket is rarely looked at (docs/design/0013-cpu-per-pod.md)",
        {
            "request": "self, method, url, body, headers, chunked, preload_content, decode_content, enforce_content_length",
            "send": "self, data",
        }
        | attributes("is_connected", "response_class", "sock", "host", "port"),
    ),
    Reliance(
        "client/connections.py",
        "urllib3",
        "urllib3.HTTPConnectionPool",
        "pools make connections of our class, and lend them to calls that go past the rest of urllib3",
        {
            "_get_conn": "self, timeout",
            "_put_conn": "self, conn",
            "_validate_conn": "self, conn",
            "_new_conn": "self",
            "_prepare_proxy": "self, conn",
            "urlopen": "self, method, url, body, headers, retries, redirect, assert_same_host, timeout, pool_timeout, release_conn,"
            " chunked, body_pos, preload_content, decode_content, response_kw",
        }
        | attributes("ConnectionCls", "host", "port", "proxy", "scheme"),
    ),
    Reliance(
        "client/connections.py",
        "urllib3",
        "urllib3.HTTPSConnectionPool",
        "pools make connections of our class",
        attributes("ConnectionCls"),
    ),
    Reliance(
        "client/watch_stream.py",
        "urllib3",
        "urllib3.HTTPResponse",
        "shuts the socket down: closing alone would not wake the thread that reads it",
        attributes("_connection"),
    ),
    Reliance(
        "config/yaml_file.py",
        "PyYAML",
        "yaml.SafeLoader",
        "walks the nodes of a document, for the lines of its fields",
        {
            "check_node": "self",
            "get_node": "self",
            "flatten_mapping": "self, node",
            "construct_object": "self, node, deep",
        },
    ),
    Reliance("server/logs.py", PYTHON, "_queue.SimpleQueue", "the native one, also where gevent has patched `queue`"),
    Reliance(
        "server/certificate_ends.py",
        PYTHON,
        "_ssl",
        "reads a certificate that is no CA's, which `ssl` itself does not",
        {"_test_decode_cert": "path"},
    ),
    Reliance("server/worker.py", PYTHON, "_thread", "starts the thread that writes the log beside the event loop"),
    Reliance(
        "server/serve.py",
        "gunicorn",
        "gunicorn.arbiter.Arbiter",
        "no signal starts a second worker beside the first",
        attributes("log")
        | dict.fromkeys(("handle_hup", "handle_ttin", "handle_ttou", "handle_usr2", "handle_winch"), "self"),
    ),
    Reliance(
        "server/serve.py",
        "gunicorn",
        "gunicorn.glogging.Logger",
        "gunicorn's own lines take the way of all others",
        {"setup": "self, cfg", "error_log": ""},
    ),
    Reliance(
        "server/heartbeat.py",
        "gunicorn",
        "gunicorn.workers.base",
        "its worker makes a heartbeat that is in no folder, and the next two are what it is",
        attributes("WorkerTmp"),
    ),
    Reliance(
        "server/heartbeat.py",
        "gunicorn",
        "gunicorn.workers.workertmp.WorkerTmp",
        "likewise",
        attributes("_tmp"),
    ),
    Reliance(
        "server/worker.py",
        "gunicorn",
        WORKER,
        "deadlines for each connection, its own accepting and draining, and nothing after a request that was not read",
        dict.fromkeys(("init_process", "load_wsgi", "run", "notify", "timeout_ctx"), "self")
        | dict.fromkeys(("handle_exit", "handle_quit", "handle_abort"), "self, sig, frame")
        | {"handle": "self, listener, client, addr", "handle_request": "self, listener_name, req, sock, addr"}
        | attributes("PIPE", "alive", "cfg", "ppid", "sockets", "tmp", "wsgi"),
    ),
    Reliance(
        "server/known_heads.py",
        "gunicorn",
        "gunicorn.http.message.Request",
        "a head that came before is not parsed again (docs/design/0058-lean-plumbing.md)",
        {"parse": "self, unreader"}
        | attributes(
            "method", "uri", "path", "query", "fragment", "version", "headers", "scheme", "must_close", "body"
        ),
    ),
    Reliance(
        "server/known_heads.py",
        "gunicorn",
        "gunicorn.http.wsgi",
        "its environ is not made again",
        {"create": "req, sock, client, server, cfg, response_class, response_args", "Response": ""},
    ),
    Reliance(
        "server/worker.py",
        "gunicorn",
        "gunicorn.http.parser.RequestParser",
        "makes requests of our class",
        attributes("mesg_class"),
    ),
    Reliance(
        "server/worker.py",
        "gunicorn",
        "gunicorn.util",
        "answers of one second share their date",
        {"http_date": "timestamp"},
    ),
    Reliance(
        "server/worker.py",
        "gunicorn",
        "gunicorn.workers.base_async.AsyncWorker",
        "GeventWorker's own handle would take the timeouts off",
        {"handle": "self, listener, client, addr"},
    ),
]
DECLARED = {(each.file, name) for each in RELIANCES for name in (each.of, *each.dotted)}


def test_every_use_is_declared() -> None:
    names = {(file, name.rpartition(".")[2]) for file, name in DECLARED}
    found = uses(ROOT / "extender")
    unknown = {
        use for use in found if use not in DECLARED and not (use[1][:2] == "?." and (use[0], use[1][2:]) in names)
    }
    assert sorted(unknown) == []


@pytest.mark.parametrize("reliance", RELIANCES, ids=lambda each: f"{each.of} in {each.file}")
def test_the_installed_version_still_has_it(reliance: Reliance) -> None:
    assert {name: parameters(resolve(name)) for name in reliance.dotted} == reliance.dotted


@pytest.mark.parametrize("reliance", RELIANCES, ids=lambda each: f"{each.of} in {each.file}")
def test_it_is_still_used(reliance: Reliance) -> None:
    text = (ROOT / "extender" / reliance.file).read_text(encoding="utf-8")
    assert [name for name in reliance.dotted if not re.search(rf"\b{name.rpartition('.')[2]}\b", text)] == []


@pytest.mark.parametrize("library", sorted({each.library for each in RELIANCES} - {PYTHON}))
def test_its_versions_are_bounded(library: str) -> None:
    """Python's own are tried by the matrix of versions in CI."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    required = setup["options"]["install_requires"] + setup["options.extras_require"]["server"]
    [line] = [line for line in required.split() if re.match(rf"{library}\b", line)]
    assert re.search(r"<\d", line), line


@pytest.mark.parametrize(
    ("source", "found"),
    [
        pytest.param("import gevent._util", {"gevent._util"}, id="a private module"),
        pytest.param("from urllib3.util import _x", {"urllib3.util._x"}, id="a private name"),
        pytest.param(
            "from gunicorn.util import getcwd", {"gunicorn.util.getcwd"}, id="a library without documentation"
        ),
        pytest.param("def f(pool): return pool._queue", {"?._queue"}, id="an attribute of an object"),
        pytest.param("def f(a): return getattr(a, '_sock', None)", {"?._sock"}, id="by its name"),
        pytest.param(
            "class A:\n def __init__(self): self._a = 1\n def f(self, b): return self._a + b._a", set(), id="our own"
        ),
        pytest.param(
            "import http.client\nclass A(http.client.HTTPConnection):\n def connect(self): self._tunnel()",
            {"http.client.HTTPConnection.connect", "http.client.HTTPConnection._tunnel"},
            id="a subclass of what is no base",
        ),
        pytest.param(
            "import logging\nclass A(logging.Handler):\n def emit(self, record): self._closed = False",
            {"logging.Handler._closed"},
            id="a subclass of a base",
        ),
    ],
)
def test_what_is_found(tmp_path: Path, source: str, found: set[str]) -> None:
    (tmp_path / "it.py").write_text(source)
    assert {name for _, name in uses(tmp_path)} == found

"""On a laptop: what asks the leader needs none of the packages that the server needs, and loads little."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest

from extender.cli.main import KUBECTL_GANG, OF_SERVER
from tests.documented import PROJECT
from tests.unit.cli import leading as leaders
from tests.unit.cli.leading import Leading

SCRIPT = """
import json, sys
for name in json.loads(sys.argv[1]):
    sys.modules[name] = None
from extender.cli.main import kubectl_gang, main
code = (main if sys.argv[2] == "gang-extender" else kubectl_gang)(sys.argv[3:])
print(json.dumps(sorted(name for name, module in sys.modules.items() if module is not None)), file=sys.stderr)
sys.exit(code)
"""
HEAVY = {
    "asyncio",
    "concurrent.futures",
    "extender.client.informer",
    "extender.metrics",
    "http.server",
    "jsonschema",
    "multiprocessing",
    "prometheus_client",
    "rich",
    "sqlite3",
    "unittest",
    "wsgiref",
    "xml.etree.ElementTree",
}
"""What costs tens of milliseconds, and no command needs."""
MOST_MODULES = {"version": 200, "completion": 210, "whatif": 380, "doctor": 380}
ELSE = 350


@pytest.fixture(scope="module")
def leader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Leading]:
    with leaders.leading(tmp_path_factory.mktemp("leader")) as made:
        made.bench.node("n0")
        made.bench.pod_group("g", 2)
        made.bench.pod("g-0", "g")
        yield made


def run(*arguments: str, program: str = "kubectl-gang") -> tuple[int, str, str]:
    command = [sys.executable, "-c", SCRIPT, json.dumps(sorted(OF_SERVER)), program, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False, cwd=PROJECT)
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["list"],
        ["list", "-A", "-o", "wide"],
        ["explain", "g", "-o", "yaml"],
        ["why", "g-0"],
        ["whatif", "--members", "2", "--requests", "cpu=1"],
        ["whatif", "-f", "manifests/examples/lightweight/workers.yaml"],
        ["drain", "n0"],
        ["completion", "bash"],
        ["version"],
    ],
    ids=" ".join,
)
def test_a_command_runs_without_the_server_s_packages(leader: Leading, arguments: list[str]) -> None:
    named = [] if arguments[0] in ("completion", "version") else ["--kubeconfig", str(leader.kubeconfig)]
    code, out, err = run(*arguments, *named)
    assert (code, bool(out)) == (0, True), err
    loaded = set(json.loads(err))
    check_light(arguments[0], loaded)


def check_light(command: str, loaded: set[str]) -> None:
    assert not loaded & HEAVY
    assert len(loaded) < MOST_MODULES.get(command, ELSE), len(loaded)


@pytest.mark.parametrize("asked", ["--server", "--kubeconfig"])
def test_so_does_the_doctor_of_an_extender_and_of_a_cluster(leader: Leading, asked: str) -> None:
    """The API server here knows nothing of what the doctor asks a cluster: it finds faults."""
    code, out, err = run("doctor", asked, leader.ops if asked == "--server" else str(leader.kubeconfig))
    assert (code, bool(out)) == (1 if asked == "--kubeconfig" else code, True), err
    check_light("doctor", set(json.loads(err)))


def test_every_command_is_tried() -> None:
    tried = {"list", "explain", "why", "whatif", "drain", "doctor", "completion", "version"}
    assert tried == set(KUBECTL_GANG.commands)


def test_the_doctor_runs_without_them_too() -> None:
    files = [
        "--kube-scheduler-config",
        "manifests/sidecar/kube-scheduler.yaml",
        "--config",
        "manifests/sidecar/extender.yaml",
    ]
    code, out, err = run("doctor", *files)
    assert (code, out) == (0, "nothing is wrong\n"), err
    check_light("doctor", set(json.loads(err)))


@pytest.mark.parametrize("command", ["serve", "simulate docs/simulate/nodes.yaml"])
def test_what_needs_them_says_how_to_have_them(command: str) -> None:
    code, out, err = run(*command.split(), program="gang-extender")
    assert (code, out) == (1, "")
    first = err.splitlines()[0]
    assert first.startswith("gang-extender: this needs the package ")
    assert first.endswith(": pip install 'gang-extender[server]'")


def _setup() -> Any:
    parser = ConfigParser()
    parser.read(PROJECT / "setup.cfg")
    return parser


def test_the_extra_has_what_the_message_says() -> None:
    """greenlet and werkzeug come with gevent and flask."""
    extra = _setup()["options.extras_require"]["server"].split()
    names = {each.partition("[")[0].partition(">")[0] for each in extra} | {"greenlet", "werkzeug", "gevent"}
    assert names == OF_SERVER


def test_every_command_of_kubectl_gang_is_a_light_one() -> None:
    assert not {"serve", "demo", "simulate", "evaluate"} & set(KUBECTL_GANG.commands)


@pytest.mark.parametrize("file", ["Dockerfile", "Makefile"])
def test_what_installs_the_server_installs_the_extra(file: str) -> None:
    """`dev` brings it, and requirements.txt is what the extra asks for."""
    text = Path(PROJECT / file).read_text()
    assert "requirements.txt" in text or "'.[dev]'" in text

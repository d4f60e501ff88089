"""`gang-extender serve` with files that it cannot begin with: one line on stderr that names the file, and exit code 2."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.processes import free_port

COMMAND = [sys.executable, "-W", "error", "-m", "extender.cli.main", "serve"]
SECONDS = 30.0
KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1", %s}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: %s
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(KUBECONFIG % ("certificate-authority: /none", "x"), "/none", id="a CA that is not there"),
        pytest.param(KUBECONFIG % ("certificate-authority-data: bm9uZQ==", "x"), "certificate", id="a CA that is none"),
        pytest.param(
            KUBECONFIG % ("insecure-skip-tls-verify: false", "y"),
            'Not found: "y" in contexts',
            id="a context that is not there",
        ),
        pytest.param("", "current-context: Required value", id="an empty file"),
        pytest.param("\0\1\2", "unacceptable character #x0000", id="a binary"),
        pytest.param(
            (KUBECONFIG % ("", "x")).replace('"https://127.0.0.1:1"', "5"),
            "cluster.server: must be a string",
            id="server: 5",
        ),
        pytest.param(
            KUBECONFIG % ('proxy-url: "http://p:port"', "x"), "cluster.proxy-url: Invalid value", id="no URL of a proxy"
        ),
    ],
)
def test_a_kubeconfig_that_is_no_use(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(text)
    ports = [f"--port={free_port()}", f"--ops-port={free_port()}"]
    done = subprocess.run(
        [*COMMAND, "--kubeconfig", str(file), *ports], capture_output=True, text=True, check=False, timeout=SECONDS
    )
    assert done.returncode == 2, done.stderr
    [line] = done.stderr.splitlines()
    assert line.startswith("gang-extender: ")
    assert str(file) in line
    assert said in line


@pytest.mark.parametrize(
    ("name", "said"),
    [
        pytest.param("", "--kubeconfig: the name of the file is empty", id="none, as of a variable that is not set"),
        pytest.param("/", "kubeconfig /: Is a directory", id="a directory"),
        pytest.param(
            "~no-such-user/config", "kubeconfig ~no-such-user/config: Could not determine home", id="no such user"
        ),
    ],
)
def test_a_kubeconfig_s_name_that_is_no_file(name: str, said: str) -> None:
    done = subprocess.run(
        [*COMMAND, "--kubeconfig", name], capture_output=True, text=True, check=False, timeout=SECONDS
    )
    assert done.returncode == 2, done.stderr
    [line] = done.stderr.splitlines()
    assert line.startswith(f"gang-extender: {said}")


def test_kinds_of_a_cluster_file_that_are_not_known_are_named(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    job = "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: j}}"
    file.write_text(f"{{apiVersion: v1, kind: Node, metadata: {{name: n}}}}\n---\n{job}\n")
    command = [*COMMAND, "--cluster", str(file), f"--port={free_port()}", f"--ops-port={free_port()}"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "not known here: 1 kubeflow.org/v1 PyTorchJob" in process.stderr.readline()
        process.terminate()
        process.wait(SECONDS)


@pytest.mark.parametrize("option", ["--config", "--cluster"])
def test_a_file_that_is_not_there(option: str) -> None:
    ports = [f"--port={free_port()}", f"--ops-port={free_port()}"]
    command = [*COMMAND, option, "no-such-file", *ports]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert (done.returncode, done.stderr) == (2, "gang-extender: no-such-file: No such file or directory\n")


def test_a_context_is_of_a_kubeconfig(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text("{apiVersion: v1, kind: Node, metadata: {name: n}}")
    command = [*COMMAND, "--cluster", str(file), "--context", "lab"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert (done.returncode, done.stderr) == (2, "gang-extender: --context: of a kubeconfig; not with --cluster\n")


@pytest.mark.parametrize("named", [True, False], ids=["$KUBECONFIG is set", "it is not"])
def test_outside_of_a_pod_the_file_that_is_not_read_is_named(tmp_path: Path, named: bool) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("KUBE", "KUBERNETES_"))}
    if named:
        environment["KUBECONFIG"] = str(tmp_path / "kubeconfig")
    ports = [f"--port={free_port()}", f"--ops-port={free_port()}"]
    done = subprocess.run(
        [*COMMAND, *ports], capture_output=True, text=True, check=False, timeout=SECONDS, env=environment
    )
    assert (done.returncode, "not in a cluster" in done.stderr) == (2, True), done.stderr
    assert ("$KUBECONFIG is set" in done.stderr and "--kubeconfig FILE" in done.stderr) == named


@pytest.mark.parametrize(
    ("plugins", "said"),
    [
        pytest.param(
            "{filter: {enabled: [{name: NodResourcesFit}]}}",
            'filter.enabled[0].name: plugin "NodResourcesFit" does not exist',
            id="a plugin that does not exist",
        ),
        pytest.param(
            "{bind: {disabled: [{name: DefaultBinder}]}}",
            'bind: at least one bind plugin is needed for profile with scheduler name "default-scheduler"',
            id="no bind plugin",
        ),
    ],
)
def test_a_profile_that_cannot_be_built_is_told_before_anything_listens(
    tmp_path: Path, plugins: str, said: str
) -> None:
    config, cluster = tmp_path / "extender.yaml", tmp_path / "cluster.yaml"
    cluster.write_text("{apiVersion: v1, kind: Node, metadata: {name: n}}")
    head = "apiVersion: gang-extender.dev/v1alpha1\nkind: ExtenderConfiguration\n"
    config.write_text(f"{head}profiles:\n- {{plugins: {plugins}}}\n")
    ports = [f"--port={free_port()}", f"--ops-port={free_port()}"]
    command = [*COMMAND, "--config", str(config), "--cluster", str(cluster), *ports]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert (done.returncode, done.stderr) == (2, f"gang-extender: {config}:4: profiles[0].plugins.{said}\n")

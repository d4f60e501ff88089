"""`gang-extender doctor`: what it prints, and its exit code. What it finds is in tests/unit/doctor."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from extender.cli.doctor import _lines
from extender.cli.main import main
from extender.cli.terminal import PLAIN, Terminal
from extender.config.findings import Finding, Severity
from tests.documented import PROJECT

SHIPPED = PROJECT / "manifests/sidecar/kube-scheduler.yaml"


@pytest.fixture
def ignorable(tmp_path: Path) -> Path:
    file = tmp_path / "kube-scheduler.yaml"
    file.write_text(SHIPPED.read_text().replace("ignorable: false", "ignorable: true", 1))
    return file


def test_a_finding_has_its_place_and_what_to_do(ignorable: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--kube-scheduler-config", str(ignorable)]) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert re.fullmatch(
        rf"error: {re.escape(str(ignorable))}:\d+: extenders\[0\]\.ignorable: .* starts in part \(Ignorable\)", first
    )
    assert second == "  write `ignorable: false`"


def test_json_has_a_field_for_each_part(ignorable: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--kube-scheduler-config", str(ignorable), "-o", "json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)
    assert list(found) == ["severity", "code", "file", "line", "field", "message", "fix"]
    assert (found["severity"], found["code"], found["field"]) == ("error", "Ignorable", "extenders[0].ignorable")


def test_the_worst_comes_first_then_by_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "kube-scheduler.yaml"
    text = SHIPPED.read_text().replace("percentageOfNodesToScore: 10", "").replace("127.0.0.1:8888", "127.0.0.1:8887")
    file.write_text(text.replace("ignorable: false", "ignorable: true"))
    assert main(["doctor", "--kube-scheduler-config", str(file), "-o", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [each["severity"] for each in found] == ["error", "error", "warning", "info", "info"]
    assert [each["line"] for each in found[:2]] == sorted(each["line"] for each in found[:2])


def test_what_is_only_good_to_know_is_no_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "extender.yaml"
    file.write_text((PROJECT / "manifests/sidecar/extender.yaml").read_text().replace(": 120", ": 60"))
    assert main(["doctor", "--kube-scheduler-config", str(SHIPPED), "--config", str(file)]) == 0
    assert capsys.readouterr().out.startswith("info: ")


@pytest.mark.parametrize("shown_on", [PLAIN, Terminal(80)], ids=["a pipe", "a terminal"])
def test_what_a_tenant_wrote_is_text_that_a_terminal_does_not_obey(shown_on: Terminal) -> None:
    """The API server lets any text be a spec.schedulerName."""
    name = "x\x1b[2J\x07\nnothing is wrong"
    found = Finding(Severity.WARNING, "OtherScheduler", f"pod {name}", 0, name, f"names {name}", f"write {name}")
    lines = list(_lines([found], shown_on))
    assert all(line.isprintable() for line in lines)
    assert r"\x1b[2J\x07\n" in "".join(lines)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(
            [],
            "doctor: wanted one or more of --kube-scheduler-config FILE, --config FILE, --kubeconfig FILE, --server URL",
            id="nothing to examine",
        ),
        pytest.param(["--config", "no-such-file"], "no-such-file: No such file or directory", id="no such file"),
        pytest.param(
            ["--kubeconfig", "no-such-file"],
            "kubeconfig no-such-file: No such file or directory",
            id="no such kubeconfig",
        ),
        pytest.param(["--kubeconfig", ""], "--kubeconfig: the name of the file is empty", id="an unset variable"),
        pytest.param(
            ["--context", "lab"],
            "--context lab: there is no kubeconfig: set $KUBECONFIG, or name one by --kubeconfig FILE",
            id="a context of no kubeconfig",
        ),
        pytest.param(["--config", "/"], "/: Is a directory", id="a folder"),
    ],
)
def test_wrong_use(
    arguments: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    assert main(["doctor", *arguments]) == 2
    assert capsys.readouterr() == ("", f"gang-extender: {said}\n")


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        pytest.param([], True, id="no file: the cluster of $KUBECONFIG"),
        pytest.param(["--context", "lab"], True, id="a context of it"),
        pytest.param(["--config", str(PROJECT / "manifests/sidecar/extender.yaml")], False, id="files need no cluster"),
    ],
)
def test_the_cluster_is_that_of_kubectl(
    arguments: list[str],
    asked: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    file = tmp_path / "config"
    file.write_text(
        "current-context: lab\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "contexts: [{name: lab, context: {cluster: c}}]\n"
    )
    monkeypatch.setenv("KUBECONFIG", str(file))
    assert main(["doctor", *arguments]) == int(asked)
    assert (str(file) in capsys.readouterr().out) is asked


def test_the_page_has_every_code() -> None:
    files = [*(PROJECT / "extender/doctor").glob("*.py"), PROJECT / "extender/scheduler/observed_settings.py"]
    source = "".join(file.read_text() for file in files)
    codes = set(re.findall(r'(?:ERROR|WARNING|INFO|severity), "(\w+)"', source))
    codes.add("MissingRight")
    codes |= {f"No{verb}Verb" for verb in ("Filter", "Prioritize", "Preempt", "Bind")}
    listed = set(re.findall(r"^\| `(\w+)` \|", (PROJECT / "docs/doctor.md").read_text(), re.MULTILINE))
    assert listed == codes

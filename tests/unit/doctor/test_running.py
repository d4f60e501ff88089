"""The doctor on a running extender: what it says of itself, and whether it runs with the file that was given."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from extender.cli.main import main
from extender.config.effective import effective
from extender.config.load import load_extender_configuration
from tests.documented import PROJECT
from tests.fakes.extender import FakeExtender

SHIPPED = PROJECT / "manifests/sidecar/extender.yaml"
WRONG = {
    "severity": "error",
    "code": "NotNodeCacheCapable",
    "file": "",
    "line": 0,
    "field": "extenders[].nodeCacheCapable",
    "message": "kube-scheduler sends whole nodes in place of names (filter): every pod waits",
    "fix": "write `nodeCacheCapable: true`",
}


@pytest.fixture
def listener() -> Iterator[FakeExtender]:
    fake = FakeExtender()
    page = {"configuration": effective(load_extender_configuration(SHIPPED)), "findings": []}
    fake.pages = {"/readyz": "[+]informer-pods ok\nreadyz check passed\n", "/configuration": page}
    yield fake
    fake.stop()


def found(
    listener: FakeExtender, capsys: pytest.CaptureFixture[str], *, config: Path = SHIPPED
) -> tuple[int, list[str]]:
    code = main(["doctor", "--config", str(config), "--server", listener.url, "-o", "json"])
    told = json.loads(capsys.readouterr().out)
    return code, [f"{each['severity']} {each['code']} {each['field']}".strip() for each in told]


def test_nothing_is_wrong(listener: FakeExtender, capsys: pytest.CaptureFixture[str]) -> None:
    assert found(listener, capsys) == (0, [])


def test_what_it_sees_itself_is_told_with_its_address(
    listener: FakeExtender, capsys: pytest.CaptureFixture[str]
) -> None:
    listener.pages["/configuration"]["findings"] = [WRONG]
    assert main(["doctor", "--server", listener.url, "-o", "json"]) == 1
    assert json.loads(capsys.readouterr().out) == [{**WRONG, "file": listener.url}]


def test_a_check_that_fails_is_told(listener: FakeExtender, capsys: pytest.CaptureFixture[str]) -> None:
    listener.pages["/readyz"] = "[+]informer-pods ok\n[-]informer-nodes failed: forbidden\nreadyz check failed\n"
    assert found(listener, capsys) == (1, ["error NotReady informer-nodes"])


def test_a_file_that_was_changed_since_the_start(
    listener: FakeExtender, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    changed = tmp_path / "extender.yaml"
    changed.write_text(SHIPPED.read_text().replace("bindTimeoutSeconds: 120", "bindTimeoutSeconds: 90"))
    assert found(listener, capsys, config=changed) == (1, ["warning ConfigurationDiffers bindTimeoutSeconds"])


def test_another_file_altogether_is_a_few_lines(
    listener: FakeExtender, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    listener.pages["/configuration"]["configuration"] = {f"field{number}": number for number in range(40)}
    _, told = found(listener, capsys)
    assert (len(told), told[-1]) == (21, "warning ConfigurationDiffers")


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        pytest.param("/configuration", None, id="the verbs' port, or another program"),
        pytest.param("/configuration", ["something"], id="JSON of another program"),
        pytest.param("/configuration", "text", id="no JSON"),
    ],
)
def test_what_is_no_extender(
    listener: FakeExtender, capsys: pytest.CaptureFixture[str], path: str, answer: object
) -> None:
    listener.pages[path] = answer
    assert found(listener, capsys) == (1, ["error NoAnswer"])


def test_nothing_listens(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--server", "http://127.0.0.1:1", "-o", "json"]) == 1
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["code"], told["file"]) == ("NoAnswer", "http://127.0.0.1:1")


def test_a_url_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--server", "localhost:8889"]) == 2
    assert "--server localhost:8889: wanted a URL" in capsys.readouterr().err

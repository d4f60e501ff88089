"""Where a question goes wrong, in the words of the command that asked it."""

from __future__ import annotations

import io
import os
import sys

import pytest

from extender.cli.whatif import located, of_files

QUESTION = {
    "podGroups": [{"metadata": {"name": "g", "namespace": "a"}}],
    "pods": [{"metadata": {"name": "p"}}, {"metadata": {"name": "q", "namespace": "a"}}],
}
PLACES = {("Pod", "default", "p"): "x.yaml:7", ("PodGroup", "a", "g"): "x.yaml:1"}


@pytest.mark.parametrize(
    ("message", "told"),
    [
        pytest.param("no - at `$.pods[0]`", "x.yaml:7: Pod default/p: no", id="a pod"),
        pytest.param(
            "no - at `$.podGroups[0].metadata.name`", "x.yaml:1: PodGroup a/g: metadata.name: no", id="a field"
        ),
        pytest.param("no - at `$.pods[1]`", "whatif: Pod a/q: no", id="a pod that is in no file"),
        pytest.param("too many - at `$.pods`", "whatif: too many", id="all pods"),
        pytest.param("no - at `$.pods[2]`", "whatif: no", id="a pod that was not asked about"),
        pytest.param("no JSON", "no JSON", id="something else"),
    ],
)
def test_the_place_is_that_in_the_file(message: str, told: str) -> None:
    assert located(message, QUESTION, PLACES) == told


POD = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c}]}}"


def _names(files: list[str]) -> list[str]:
    return [pod["metadata"]["name"] for pod in of_files(files, {})["pods"]]


def test_a_pipe_is_read_once() -> None:
    """As the shell hands over `<(...)`."""
    reader, writer = os.pipe()
    os.write(writer, POD.encode())
    os.close(writer)
    try:
        assert _names([f"/dev/fd/{reader}"]) == ["p"]
    finally:
        os.close(reader)


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(POD.encode())))
    assert _names(["-"]) == ["p"]

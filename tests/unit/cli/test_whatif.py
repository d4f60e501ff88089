"""Where a question goes wrong, in the words of the command that asked it."""

from __future__ import annotations

import argparse
import io
import os
import sys
from typing import Any

import pytest

from extender.cli.errors import UsageError
from extender.cli.whatif import add_arguments, located, of_files, of_flags

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


def _spec(*flags: str) -> Any:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    parser.set_defaults(finds_leader=False)
    return of_flags(parser.parse_args(["--members", "1", *flags]), {})["pods"][0]["spec"]


def _asked(*flags: str) -> Any:
    return _spec(*flags)["containers"][0]["resources"]


@pytest.mark.parametrize(
    ("requests", "message"),
    [
        ("gpu=8", "no such resource: wanted cpu, memory, ephemeral-storage, or DOMAIN/NAME as in nvidia.com/gpu"),
        ("mem=1Gi", "no such resource"),
        ("nvidia.com/=1", "no such resource"),
        ("cpu=-1", "wanted zero or more"),
        ("nvidia.com/gpu=0.5", "wanted a whole number"),
    ],
)
def test_requests_that_an_api_server_refuses(requests: str, message: str) -> None:
    """The scheduler leaves a native resource that it does not know out of account: the answer would be that all fits."""
    with pytest.raises(UsageError, match=message):
        _asked("--requests", requests)


@pytest.mark.parametrize(
    ("given", "selector"),
    [
        (["zone=a", "pool=b"], {"zone": "a", "pool": "b"}),
        (["zone=a,pool=b", "disk=ssd"], {"zone": "a", "pool": "b", "disk": "ssd"}),
        ([], None),
        ([""], None),
    ],
)
def test_all_node_selectors_count(given: list[str], selector: dict[str, str] | None) -> None:
    assert _spec(*(f"--node-selector={each}" for each in given)).get("nodeSelector") == selector


def test_a_key_of_two_node_selectors_is_refused() -> None:
    with pytest.raises(UsageError, match="--node-selector zone=b: wanted each NAME=VALUE once"):
        _spec("--node-selector=zone=a", "--node-selector=zone=b")


def test_requests_may_be_given_again() -> None:
    requests = {"cpu": "500m", "hugepages-2Mi": "4Mi", "nvidia.com/gpu": "8"}
    assert _asked("--requests", "cpu=500m,hugepages-2Mi=4Mi", "--requests", "nvidia.com/gpu=8") == {
        "requests": requests
    }

"""Which kubeconfig is read where none is named."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from extender.client.kubeconfig_files import find_kubeconfig


def write(file: Path, *contexts: str, current: str = "") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": current,
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": each, "context": {"cluster": "c"}} for each in contexts],
    }
    file.write_text(yaml.safe_dump(document))
    return file


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write(tmp_path / ".kube" / "config", "home", current="home")
    write(tmp_path / "one", "lab", current="lab")
    write(tmp_path / "two", "prod", "lab")
    return tmp_path


@pytest.mark.parametrize(
    ("names", "context", "found"),
    [
        pytest.param(None, "", ".kube/config", id="no variable: that of the home"),
        pytest.param([], "", ".kube/config", id="an empty one: as well"),
        pytest.param(["one"], "", "one", id="the one that it names"),
        pytest.param(["gone"], "", "gone", id="also where it is not there: reading it says so"),
        pytest.param(["gone", "one", "two"], "", "one", id="of several the first with a current context"),
        pytest.param(["two", "one"], "", "one", id="whatever their order"),
        pytest.param(["one", "two"], "prod", "two", id="the one with the context that is wanted"),
        pytest.param(["one", "two"], "none", "one", id="none has it: reading the first says so"),
    ],
)
def test_the_file(home: Path, names: list[str] | None, context: str, found: str) -> None:
    environ: Mapping[str, str] = (
        {} if names is None else {"KUBECONFIG": os.pathsep.join(str(home / name) for name in names)}
    )
    assert find_kubeconfig(context, environ, home) == home / found


def test_there_may_be_none(tmp_path: Path) -> None:
    assert find_kubeconfig("", {}, tmp_path) is None

"""Which kubeconfig is read where none is named, and how several files are read as one."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from extender.client.credentials import IdentityError
from extender.client.identity import KubeconfigSource
from extender.client.kubeconfig import KubeconfigFiles, read_kubeconfig
from extender.client.kubeconfig_files import find_kubeconfig


@pytest.mark.parametrize(
    ("names", "found"),
    [
        pytest.param(None, [".kube/config"], id="no variable: that of the home"),
        pytest.param([], [".kube/config"], id="an empty one: as well"),
        pytest.param(["one"], ["one"], id="the one that it names"),
        pytest.param(["gone"], ["gone"], id="also where it is not there: reading it says so"),
        pytest.param(["gone", "one", "two"], ["gone", "one", "two"], id="all that it names, in their order"),
        pytest.param(["one", "two", "one"], ["one", "two"], id="each once"),
    ],
)
def test_the_files(tmp_path: Path, names: list[str] | None, found: list[str]) -> None:
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").touch()
    environ: Mapping[str, str] = (
        {} if names is None else {"KUBECONFIG": os.pathsep.join(str(tmp_path / name) for name in names)}
    )
    assert find_kubeconfig(environ, tmp_path) == KubeconfigFiles(tuple(tmp_path / name for name in found))


def test_there_may_be_none(tmp_path: Path) -> None:
    assert find_kubeconfig({}, tmp_path) is None


FIELDS = {"contexts": "context", "clusters": "cluster", "users": "user"}


def write(file: Path, current: str = "", **named: Mapping[str, Any]) -> Path:
    """named: contexts, clusters, users, each by its name."""
    file.parent.mkdir(exist_ok=True)
    lists = {
        key: [{"name": name, FIELDS[key]: value} for name, value in values.items()] for key, values in named.items()
    }
    file.write_text(yaml.safe_dump({**({"current-context": current} if current else {}), **lists}, sort_keys=False))
    return file


@pytest.fixture
def files(tmp_path: Path) -> KubeconfigFiles:
    """As people have them: a file for each cluster, and one with their own users."""
    clusters = write(
        tmp_path / "clusters" / "config",
        clusters={"lab": {"server": "https://lab:6443"}, "prod": {"server": "https://prod:6443"}},
        users={"me": {"tokenFile": "token"}},
    )
    contexts = write(
        tmp_path / "contexts",
        "prod",
        contexts={
            "prod": {"cluster": "prod", "user": "me", "namespace": "team-a"},
            "lab": {"cluster": "lab", "user": "me"},
        },
        clusters={"prod": {"server": "https://another:6443", "tls-server-name": "another"}},
        users={"me": {"token": "written-out"}},
    )
    last = write(tmp_path / "last", "lab", contexts={"prod": {"cluster": "lab"}})
    (tmp_path / "clusters" / "token").write_text("of-a-file")
    return KubeconfigFiles((tmp_path / "gone", clusters, contexts, last))


def test_the_first_file_that_names_a_thing_says_all_of_it(files: KubeconfigFiles) -> None:
    found = read_kubeconfig(files)
    assert (found.context, found.namespace, found.server, found.server_name) == (
        "prod",
        "team-a",
        "https://prod:6443",
        "",
    )
    assert read_kubeconfig(files, "lab").server == "https://lab:6443"


def test_a_path_is_relative_to_the_file_in_which_it_stands(files: KubeconfigFiles) -> None:
    assert KubeconfigSource(files, "", {}).read(refused=False).authorization == "Bearer of-a-file"


def test_a_change_of_any_file_is_seen(files: KubeconfigFiles) -> None:
    source = KubeconfigSource(files, "", {})
    assert source.read(refused=False).route.server == "https://prod:6443"
    write(files.paths[0], clusters={"prod": {"server": "https://came-later:6443"}})
    assert source.read(refused=False).route.server == "https://came-later:6443"


@pytest.mark.parametrize(
    ("file", "text", "error"),
    [
        pytest.param(1, "clusters: {}\n", "config:1: clusters: must be a list", id="a list that is none"),
        pytest.param(2, "a: [", "contexts:2: did not find", id="a file that is no YAML"),
        pytest.param(
            2,
            "current-context: x\ncontexts:\n- name: x\n  context: {cluster: nowhere}\n",
            'contexts:4: contexts[0].context.cluster: Not found: "nowhere" in clusters',
            id="a cluster that none of them has",
        ),
        pytest.param(
            2, "current-context: x\n", 'contexts:1: current-context: Not found: "x" in contexts', id="a context"
        ),
    ],
)
def test_a_mistake_is_told_by_the_file_in_which_it_is(files: KubeconfigFiles, file: int, text: str, error: str) -> None:
    files.paths[file].write_text(text)
    with pytest.raises(IdentityError, match=re.escape(error)):
        read_kubeconfig(files)


def test_files_of_which_none_is_there_are_told_by_the_first(tmp_path: Path) -> None:
    with pytest.raises(IdentityError, match=re.escape(f"kubeconfig {tmp_path / 'a'}: No such file")):
        read_kubeconfig(KubeconfigFiles((tmp_path / "a", tmp_path / "b")))


def test_one_that_is_named_is_one_file_whatever_its_name(tmp_path: Path) -> None:
    named = tmp_path / f"of{os.pathsep}mine"
    write(named, "x", contexts={"x": {"cluster": "c"}}, clusters={"c": {"server": "http://c"}})
    assert read_kubeconfig(str(named)).server == "http://c"

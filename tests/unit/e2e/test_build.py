"""Where the control plane's binaries come from, as far as it can be told without building one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.build import PACKAGES, UnavailableError, binaries


def silently(line: str) -> None:
    """Builders say what they do; these tests do not listen."""


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with programs of the right names."""
    for name in PACKAGES:
        (tmp_path / name).touch(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    monkeypatch.delenv("KUBE_SCHEDULER_VERSION", raising=False)
    monkeypatch.delenv("KUBE_APISERVER_VERSION", raising=False)
    return tmp_path


def test_a_folder_that_is_given_is_taken_as_it_is(given: Path) -> None:
    assert binaries(silently).kube_scheduler == given / "kube-scheduler"


def test_a_given_folder_that_lacks_a_program_is_refused_by_name(given: Path) -> None:
    (given / "kubectl").unlink()
    with pytest.raises(UnavailableError, match=r"has no kubectl$"):
        binaries(silently)


def test_without_go_and_without_a_folder_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError, match="Go is not installed"):
        binaries(silently)


@pytest.mark.parametrize("variable", ["KUBE_SCHEDULER_VERSION", "KUBE_APISERVER_VERSION"])
@pytest.mark.parametrize("version", ["1.36", "latest", "../../1.36.3"])
def test_another_release_is_asked_for_by_its_full_version(
    version: str, variable: str, given: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, version)
    with pytest.raises(UnavailableError, match=rf"{variable}={version} is no version like 1\.30\.14"):
        binaries(silently)


@pytest.mark.parametrize("name", ["kube-scheduler", "kube-apiserver"])
def test_one_program_of_another_release_stands_beside_the_others(
    name: str, given: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path_factory.mktemp("cache")
    built = cache / "gang-extender" / "control-plane" / f"{name}-v1.37.2" / name
    built.parent.mkdir(parents=True)
    built.touch(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setenv(f"{name.upper().replace('-', '_')}_VERSION", "v1.37.2")
    found = binaries(silently)
    assert {found.etcd, found.kube_apiserver, found.kube_scheduler, found.kubectl} == {
        *(given / each for each in PACKAGES if each != name),
        built,
    }

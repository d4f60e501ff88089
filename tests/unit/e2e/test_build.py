"""Where the control plane's binaries come from, as far as it can be told without building one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.build import COMPOSITES, PACKAGES, Binaries, UnavailableError, binaries, with_composites


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


@pytest.fixture
def cache(given: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where built programs are kept; none is there, and there is no Go to build one."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CI", raising=False)
    return folder


def _built(cache: Path) -> Path:
    program = cache / "gang-extender" / "control-plane" / f"kube-apiserver-v{COMPOSITES}" / "kube-apiserver"
    program.parent.mkdir(parents=True)
    program.touch(0o755)
    return program


@pytest.mark.parametrize("asked", ["", "1.35.4", "v1.36.3"])
def test_composites_have_the_newer_api_server_where_it_is_built(
    asked: str, given: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = _built(cache)
    monkeypatch.setenv("KUBE_APISERVER_VERSION", asked)
    known = Binaries(given / "etcd", given / "kube-apiserver", given / "kube-scheduler", given / "kubectl")
    found = with_composites(known, silently)
    assert (found.kube_apiserver, found.kube_scheduler) == (newer, given / "kube-scheduler")


@pytest.mark.parametrize(
    ("ci", "why"),
    [
        pytest.param("", "CompositePodGroups are of Kubernetes 1.37", id="not asked for: it costs minutes"),
        pytest.param("true", "Go is not installed", id="continuous integration builds it"),
    ],
)
def test_composites_have_it_built_by_ci_alone(ci: str, why: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", ci)
    with pytest.raises(UnavailableError, match=why):
        with_composites(binaries(silently), silently)


def test_composites_take_an_api_server_that_serves_them_as_it_is(
    given: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = binaries(silently)
    monkeypatch.setenv("KUBE_APISERVER_VERSION", "v1.38.0")
    assert with_composites(known, silently) == known

"""Where the control plane's binaries come from: a folder that is given, or `go build` of the modules pinned in go.mod.

Used by conftest before the first test; `python -m tests.e2e.build` does it by hand. The binaries are kept in a cache
outside of the project, so that they are built once for all checkouts.

KUBEBUILDER_ASSETS      a folder that holds etcd, kube-apiserver, kube-scheduler and kubectl already
KUBE_SCHEDULER_VERSION  another kube-scheduler, such as 1.30.14, beside the same API server
KUBE_APISERVER_VERSION  another API server, such as 1.37.2, beside the same kube-scheduler
CI                      true: the API server for CompositePodGroups too, which is otherwise used where it is built already
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).parent
KUBERNETES = "k8s.io/kubernetes"
VERSION_PACKAGE = "k8s.io/component-base/version"
PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-scheduler": f"{KUBERNETES}/cmd/kube-scheduler",
    "kube-apiserver": f"{KUBERNETES}/cmd/kube-apiserver",
    "kubectl": f"{KUBERNETES}/cmd/kubectl",
}
COMPOSITES = "1.37.2"
"""The API server on which the stories of CompositePodGroups run; that of go.mod does not serve them."""
Say = Callable[[str], None]


class UnavailableError(Exception):
    """There is no control plane here, and none can be built: the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """The paths of the four programs."""

    etcd: Path
    kube_apiserver: Path
    kube_scheduler: Path
    kubectl: Path


def binaries(say: Say) -> Binaries:
    """Finds or builds everything; raises UnavailableError where neither is possible."""
    given = os.environ.get("KUBEBUILDER_ASSETS")
    folder = _given(Path(given)) if given else _built(say)
    apiserver = _other_release("kube-apiserver", say) or folder / "kube-apiserver"
    scheduler = _other_release("kube-scheduler", say) or folder / "kube-scheduler"
    return Binaries(folder / "etcd", apiserver, scheduler, folder / "kubectl")


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() in ("1", "true")


def with_composites(known: Binaries, say: Say) -> Binaries:
    """The same with an API server that serves CompositePodGroups. Raises UnavailableError where it is not built yet, and is not to be."""
    asked = os.environ.get("KUBE_APISERVER_VERSION", "").removeprefix("v")
    if asked and tuple(map(int, asked.split(".")[:2])) >= (1, 37):
        return known
    if not (in_ci() or (_release_folder("kube-apiserver", COMPOSITES) / "kube-apiserver").exists()):
        raise UnavailableError(
            f"CompositePodGroups are of Kubernetes 1.37: KUBE_APISERVER_VERSION={COMPOSITES} or CI=true"
        )
    return replace(known, kube_apiserver=_release("kube-apiserver", COMPOSITES, say))


def _given(folder: Path) -> Path:
    missing = [name for name in PACKAGES if not os.access(folder / name, os.X_OK)]
    if missing:
        raise UnavailableError(f"KUBEBUILDER_ASSETS={folder} has no {', '.join(missing)}")
    return folder


def _built(say: Say) -> Path:
    version = _pinned_version()
    key = hashlib.sha256((HERE / "go.mod").read_bytes() + (HERE / "go.sum").read_bytes()).hexdigest()[:12]
    folder = _cache() / f"v{version}-{key}"
    with _locked(folder, say):
        for name, package in PACKAGES.items():
            _build(HERE, package, folder / name, version, say)
    return folder


def _other_release(name: str, say: Say) -> Path | None:
    """The program of the release that is asked for; None where none is."""
    variable = name.upper().replace("-", "_") + "_VERSION"
    version = os.environ.get(variable, "").removeprefix("v")
    if not version:
        return None
    if not re.fullmatch(r"1\.[0-9]+\.[0-9]+", version):
        raise UnavailableError(f"{variable}={version} is no version like 1.30.14")
    return _release(name, version, say)


def _release_folder(name: str, version: str) -> Path:
    return _cache() / f"{name}-v{version}"


def _release(name: str, version: str, say: Say) -> Path:
    """Its own go.mod says which staging modules must be replaced."""
    folder = _release_folder(name, version)
    with _locked(folder, say):
        if not (folder / name).exists():
            (folder / "go.mod").write_text(_module_for(name, version))
            _build(folder, PACKAGES[name], folder / name, version, say, "-mod=mod")
    return folder / name


def _module_for(name: str, version: str) -> str:
    described = json.loads(_go("mod", "download", "-json", f"{KUBERNETES}@v{version}", cwd=_cache()))
    upstream = json.loads(_go("mod", "edit", "-json", described["GoMod"], cwd=_cache()))
    staging = [each["Old"]["Path"] for each in upstream["Replace"] if each["New"]["Path"].startswith("./staging/")]
    release = "v0." + version.partition(".")[2]
    lines = [f"module gang-extender.dev/{name}-{version.replace('.', '-')}", "", f"go {upstream['Go']}", ""]
    lines += [f"require {KUBERNETES} v{version}", ""]
    lines += [f"replace {path} => {path} {release}" for path in staging]
    return "\n".join(lines) + "\n"


def _pinned_version() -> str:
    pinned = re.search(rf"require {re.escape(KUBERNETES)} v(\S+)", (HERE / "go.mod").read_text())
    if pinned is None:
        raise UnavailableError(f"{HERE / 'go.mod'} requires no {KUBERNETES}")
    return pinned[1]


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "gang-extender" / "control-plane"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def _locked(folder: Path, say: Say) -> Iterator[None]:
    """One builder at a time: the others wait, and find the work done."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"control plane: another process is building in {folder}; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(module: Path, package: str, target: Path, version: str, say: Say, *flags: str) -> None:
    if target.exists():
        return
    _go_command()
    say(f"control plane for Kubernetes {version}: building {target.name}; the first time this takes minutes ...")
    began = time.monotonic()
    minor = version.split(".")[1]
    stamp = f"-X {VERSION_PACKAGE}.gitVersion=v{version} -X {VERSION_PACKAGE}.gitMajor=1 -X {VERSION_PACKAGE}.gitMinor={minor}"
    ldflags = "-s -w" if target.name == "etcd" else f"-s -w {stamp}"
    unfinished = target.with_suffix(".unfinished")
    _go("build", *flags, "-o", str(unfinished), "-ldflags", ldflags, package, cwd=module)
    unfinished.rename(target)
    say(f"control plane for Kubernetes {version}: {target.name} is built, {time.monotonic() - began:.0f} s")


def _go(*arguments: str, cwd: Path) -> str:
    done = subprocess.run([_go_command(), *arguments], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UnavailableError(f"go {' '.join(arguments)} failed:\n{done.stderr[-4000:]}")
    return done.stdout


def _go_command() -> str:
    go = shutil.which("go")
    if go is None:
        raise UnavailableError("Go is not installed, and KUBEBUILDER_ASSETS is not set: https://go.dev/doc/install")
    return go


if __name__ == "__main__":
    try:
        print(binaries(lambda line: print(line, file=sys.stderr, flush=True)).kubectl.parent)
    except UnavailableError as error:
        sys.exit(f"control plane: {error}")

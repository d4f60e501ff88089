"""The programs that the pages' commands call, on a PATH of their own: the real kubectl on the tests' control plane, and stand-ins for what
no test machine has, which check what they are given (tests/documented_commands.py says which and why).

Used by test_documented_commands.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.documented import PROJECT, Block
from tests.e2e.control_plane import ControlPlane

COPIED = (
    "manifests",
    "docs",
    "install.yaml",
    "Dockerfile",
    "pyproject.toml",
    "setup.cfg",
    "constraints.txt",
    "requirements.txt",
    "requirements-build.txt",
    "README.md",
    "LICENSE",
    "build_backend",
    "extender",
)
SECONDS = 120

KUBECTL = """#!/usr/bin/env bash
set -euo pipefail
real() { {kubectl} "$@"; }
words=("$@") pod='' container='' port='' verb=''
for ((i = 0; i < $#; i++)); do
  case ${words[i]} in
    exec | logs | port-forward) verb=${words[i]} pod=${words[i + 1]} port=${words[i + 2]-} ;;
    rollout) verb="rollout ${words[i + 1]}" ;;
    -c) container=${words[i + 1]} ;;
    --) break ;;
  esac
done
containers() { real -n kube-system get pod "${pod#pod/}" -o jsonpath='{.spec.containers[*].name}' | tr ' ' '\\n'; }
ports() { real -n kube-system get pod "${pod#pod/}" -o jsonpath='{.spec.containers[*].ports[*].containerPort}' | tr ' ' '\\n'; }
case $verb in
  exec)
    containers | grep -qx "$container"
    while [ "$1" != -- ]; do shift; done
    shift
    exec "$@" --server {ops} ;;
  logs) containers | grep -qx "$container" ;;
  port-forward) ports | grep -qx "$port" ;;
  'rollout status')
    deployment=${words[-1]}
    observed=$(real -n kube-system get "$deployment" -o jsonpath='{.metadata.generation}')
    wanted=$(real -n kube-system get "$deployment" -o jsonpath='{.spec.replicas}')
    counts="\\"replicas\\":$wanted,\\"updatedReplicas\\":$wanted,\\"readyReplicas\\":$wanted,\\"availableReplicas\\":$wanted"
    real -n kube-system patch "$deployment" --subresource=status --type merge \\
      -p "{\\"status\\":{\\"observedGeneration\\":$observed,$counts}}" >/dev/null
    real "$@" ;;
  *) real "$@" ;;
esac
"""
DOCKER = """#!/usr/bin/env bash
set -euo pipefail
case "$1 $2" in
  'build -t')
    [[ $3 =~ ^[a-z0-9./-]+:[0-9.]+$ && $# = 4 && -f $4/Dockerfile ]]
    grep -E '^COPY [^-]' "$4/Dockerfile" | while read -ra words; do
      for source in "${words[@]:1:${#words[@]}-2}"; do test -e "$4/$source"; done
    done
    echo "$3" > {here}/built ;;
  push*) grep -qx "$2" {here}/built ;;
  *) exit 1 ;;
esac
"""
CURL = """#!/usr/bin/env bash
set -euo pipefail
words=() host=''
for word; do
  case $word in
    *localhost:8889*) words+=("${word/localhost:8889/{ops_host}}") ;;
    https://*) host=${word#https://} host=${host%%/*} words+=("$word") ;;
    *) words+=("$word") ;;
  esac
done
if [ -z "$host" ]; then exec {curl} -f "${words[@]}"; fi
openssl x509 -in "$2" -noout -checkhost "$host" | grep -q 'does match'
[[ $4 =~ ^Authorization:\\ Bearer\\ ey ]]
"""
OPEN = """#!/usr/bin/env bash
exec {here}/curl -so /dev/null "${1/http:/http:}"
"""
KUBEADM = """#!/usr/bin/env bash
set -euo pipefail
[ "$*" = 'init phase control-plane scheduler --config cluster.yaml' ]
patches=$(grep -oP 'directory: \\K[^}]*' cluster.yaml || true)
if [ -z "$patches" ]; then exec cp {here}/generated.yaml {here}/kube-scheduler.yaml; fi
{kubectl} patch --local -f {here}/generated.yaml --type strategic --patch-file "$patches/kube-scheduler+strategic.yaml" -o yaml \\
  > {here}/kube-scheduler.yaml
"""


class Programs:
    """A folder with them, and a copy of the project in which commands are run. ops_url: of the extender that plays the leader's."""

    def __init__(self, plane: ControlPlane, folder: Path, ops_url: str) -> None:
        self.folder, self.project = folder / "programs", folder / "project"
        self.folder.mkdir()
        self._plane = plane
        for name in COPIED:
            (shutil.copytree if (PROJECT / name).is_dir() else shutil.copy)(PROJECT / name, self._made(name))
        bin_ = Path(sys.executable).parent
        (self.project / ".venv").mkdir()
        (self.project / ".venv" / "bin").symlink_to(bin_)
        values = {
            "kubectl": shlex.join([str(plane.binaries.kubectl), f"--kubeconfig={plane.kubeconfig()}"]),
            "ops": ops_url,
            "ops_host": ops_url.removeprefix("http://"),
            "curl": shutil.which("curl") or "curl",
            "here": str(self.folder),
        }
        for name, text in {
            "kubectl": KUBECTL,
            "docker": DOCKER,
            "curl": CURL,
            "open": OPEN,
            "kubeadm": KUBEADM,
        }.items():
            program = self.folder / name
            for key, value in values.items():
                text = text.replace(f"{{{key}}}", value)
            program.write_text(text)
            program.chmod(0o755)
        self._path = f"{self.folder}:{bin_}:{os.environ['PATH']}"

    def _made(self, name: str) -> Path:
        self.project.mkdir(exist_ok=True)
        return self.project / name

    def run(self, *blocks: Block, code: int = 0, moved: Mapping[str, str] | None = None, **variables: str) -> str:
        """What they print, as the lines of one shell that ends at the first failure. moved: path on a page -> path here."""
        lines = "\n".join(block.text for block in blocks)
        for page, here in (moved or {}).items():
            lines = lines.replace(page, here)
        environ = {**os.environ, "PATH": self._path, "KUBECONFIG": str(self._plane.kubeconfig()), **variables}
        done = subprocess.run(
            ["bash", "-eu", "-o", "pipefail", "-c", lines + "\nwait\n"],
            cwd=self.project,
            env=environ,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == code, f"{lines}\n{done.stdout}\n{done.stderr}"
        return done.stdout

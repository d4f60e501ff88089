"""The image's root file system, read-only, as its user, with its environment: by `make image-test`, which builds it.

Used with IMAGE_ROOT=FOLDER, where the image is mounted. It takes root, for mounts and chroot, and no container runtime.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3
import yaml

from tests.e2e.processes import Program, free_port

IMAGE_ROOT = os.environ.get("IMAGE_ROOT", "")
USER = "65532:65532"
ENTER = f"""set -e
root=$1 shared=$2
shift 2
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount --bind "$shared" "$root/mnt"
mount -o remount,bind,ro "$root"
exec chroot --userspec={USER} "$root" env -i PATH=/opt/gang-extender/bin:/usr/bin:/bin PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 "$@"
"""
CLUSTER = [
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "node-1"},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    },
]
pytestmark = pytest.mark.skipif(not IMAGE_ROOT, reason="needs the image's root file system: make image-test")


def within(shared: Path, *command: str) -> list[str]:
    """shared: a folder that the command sees as /mnt."""
    shared.chmod(0o755)
    return ["unshare", "--mount", "sh", "-c", ENTER, "enter", IMAGE_ROOT, str(shared), *command]


def run(shared: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(within(shared, *command), capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """Its parents are the test's user's alone; the mount is not."""
    made = tmp_path / "shared"
    made.mkdir()
    return made


@pytest.fixture
def serving(shared: Path, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The URLs of the verbs and of the ops port."""
    file = shared / "cluster.yaml"
    file.write_text(yaml.safe_dump_all(CLUSTER))
    file.chmod(0o644)
    port, ops = free_port(), free_port()
    command = ["gang-extender", "serve", "--cluster", "/mnt/cluster.yaml", f"--port={port}", f"--ops-port={ops}"]
    program = Program("image", within(shared, *command), tmp_path)
    program.start()
    try:
        program.await_ready(lambda: get(f"http://127.0.0.1:{ops}/readyz") == 200, within=60)
        yield f"http://127.0.0.1:{port}", f"http://127.0.0.1:{ops}"
    finally:
        program.stop()
    assert "Traceback" not in program.log()


def get(url: str) -> int:
    try:
        with urllib3.PoolManager(retries=False, timeout=5) as http:
            return http.request("GET", url).status
    except (urllib3.exceptions.HTTPError, OSError):
        return 0


def test_the_commands_are_there(shared: Path) -> None:
    for command in (["gang-extender", "--version"], ["gang-extender", "serve", "--help"], ["kubectl-gang", "--help"]):
        ended = run(shared, *command)
        assert ended.returncode == 0, ended.stderr


def test_it_has_no_pip_and_its_user_can_write_nowhere(shared: Path) -> None:
    ended = run(shared, "sh", "-c", "id -u; ! touch /tmp/probe 2>/dev/null && ! python -m pip --version 2>/dev/null")
    assert (ended.returncode, ended.stdout) == (0, "65532\n")


def test_it_serves(serving: tuple[str, str]) -> None:
    verbs, ops = serving
    pod = {"metadata": {"name": "p", "uid": "p"}, "spec": {"schedulerName": "gang-scheduler", "containers": []}}
    body = json.dumps({"Pod": pod, "NodeNames": ["node-1"]})
    with urllib3.PoolManager(retries=False, timeout=10) as http:
        answer = http.request("POST", f"{verbs}/filter", body=body)
    assert (answer.status, json.loads(answer.data)["NodeNames"]) == (200, ["node-1"])
    assert get(f"{ops}/livez") == 200

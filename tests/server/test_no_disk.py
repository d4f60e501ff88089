"""The real worker where nothing can be written: a root file system that is read-only, a disk that is full, no home folder."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.conftest import TIMES
from tests.server.service import SOON, Service

READ_ONLY = "mount -o remount,bind,ro /"
FULL = f"""{READ_ONLY}
for folder in /tmp /var/tmp /dev/shm; do
    mount -t tmpfs -o size=4k tmpfs $folder
    dd if=/dev/zero of=$folder/filler bs=4k count=2 2>/dev/null || true
done"""
PROBE = "for folder in / /tmp /var/tmp /dev/shm; do if echo x 2>/dev/null >$folder/probe; then exit 9; fi; done"
ALL_READ_ONLY = f"""{READ_ONLY}
for folder in /tmp /var/tmp /dev/shm; do mount -t tmpfs -o ro tmpfs $folder; done"""


def in_mounts_of_its_own(mounts: str, probe: str) -> list[str]:
    """In front of a command: what it mounts is seen by it alone. Ends with 9 where something can be written all the same."""
    script = f'set -e\nmount --make-rprivate /\n{mounts}\n{probe}\nexec env -u HOME "$@"'
    for unshare in (["unshare", "--mount"], ["unshare", "--user", "--map-root-user", "--mount"]):
        command = [*unshare, "sh", "-c", script, "sh"]
        if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode == 0:
            return command
    pytest.skip("needs mounts of its own: neither root nor user namespaces are to be had here")


@pytest.fixture(
    params=[
        pytest.param((ALL_READ_ONLY, PROBE), id="everything is read-only"),
        pytest.param((FULL, PROBE), id="what can be written is full"),
    ]
)
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Service]:
    made = Service(tmp_path, **TIMES)
    made.program.command[:0] = in_mounts_of_its_own(*request.param)
    try:
        yield made.start()
    finally:
        made.stop()


def test_verbs_and_probes_answer_and_it_ends_as_ever(service: Service) -> None:
    """Its code is where no mount covers it: beside the tests' own folder for temporary files."""
    service.filter()
    assert service.ops("/readyz")[0] == 200
    service.kill_worker()
    service.program.await_ready(lambda: service.ops("/readyz")[0] == 200, within=SOON)
    service.filter()
    service.terminate(within=SOON)
    assert service.returncode == 0
    assert "Traceback" not in service.program.log()

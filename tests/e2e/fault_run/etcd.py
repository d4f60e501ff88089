"""What a fault run does to etcd while all the others run: compaction, no space left, a snapshot that is restored.

Used by `nemesis`. Asks etcd by its HTTP gateway.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import urllib3

from tests.e2e.api import Json
from tests.e2e.fault_run.rig import Rig
from tests.e2e.processes import eventually

READY_SECONDS = 120.0
SMALL_QUOTA = 1024
NOWHERE = "Z2FuZy1leHRlbmRlci1mYXVsdC1ydW4="  # a key that no API server reads


class Etcd:
    """The rig's. ready: returns when the API servers are; it starts those that have ended."""

    def __init__(self, rig: Rig, ready: Callable[[], None]) -> None:
        self._plane = rig.plane
        self._rolled_back = rig.rolled_back
        self._ready = ready

    def compact(self) -> None:
        """Up to now: a watch that resumes from before is told 410."""
        self._ask("/v3/kv/compaction", {"revision": str(self._revision()), "physical": True})

    def fill_quota(self) -> None:
        """Writes fail with NOSPACE."""
        self._restart(f"--quota-backend-bytes={SMALL_QUOTA}")

    def make_room(self) -> None:
        """The alarm is put out member by member, as etcdctl does: for none in particular etcd puts out none."""
        self._restart()
        for alarm in self._alarms():
            self._ask("/v3/maintenance/alarm", {"action": "DEACTIVATE", **alarm})
        assert not self._alarms(), "the alarm is out"
        self._ready()

    def save(self) -> None:
        """A snapshot, of an etcd that stands still for it."""
        self._plane.etcd.stop()
        shutil.rmtree(self._saved, ignore_errors=True)
        shutil.copytree(self._data, self._saved)
        self._restart()
        self._ready()

    def restore(self) -> None:
        """As Kubernetes' documentation has it: no API server runs meanwhile, and no version comes a second time, so that whatever
        watches has to list again (etcdutl's --bump-revision and --mark-compacted)."""
        for server in self._plane.servers:
            server.kill()
        last = self._revision()  # no API server has shown a later one
        self._plane.etcd.stop()
        shutil.rmtree(self._data)
        shutil.copytree(self._saved, self._data)
        self._restart()
        while self._revision() <= last:
            self._ask("/v3/kv/put", {"key": NOWHERE, "value": NOWHERE})
        self.compact()
        self._rolled_back.set()  # owners act as soon as one server answers, and do not wait for the other
        self._ready()

    @property
    def _data(self) -> Path:
        return self._plane.folder / "etcd"

    @property
    def _saved(self) -> Path:
        return self._plane.folder / "etcd-saved"

    def _alarms(self) -> list[Json]:
        found: list[Json] = self._ask("/v3/maintenance/alarm", {"action": "GET"}).get("alarms", [])
        return found

    def _revision(self) -> int:
        return int(self._ask("/v3/kv/range", {"key": "AA=="})["header"]["revision"])

    def _restart(self, *flags: str) -> None:
        etcd = self._plane.etcd
        etcd.stop()
        etcd.command = [*self._plane.etcd_command, *flags]
        etcd.start()
        eventually(self._answers, within=READY_SECONDS, what="etcd answers", every=0.2)

    def _answers(self) -> bool:
        with suppress(urllib3.exceptions.HTTPError, OSError, AssertionError, ValueError):
            return "header" in self._ask("/v3/kv/range", {"key": "AA=="})
        return False

    def _ask(self, path: str, body: Json) -> Json:
        with urllib3.PoolManager(retries=False, timeout=10) as http:
            answer = http.request("POST", f"http://127.0.0.1:{self._plane.etcd_port}{path}", json=body)
            found: Json = answer.json()
            assert answer.status == 200, f"{path}: {found}"
            return found

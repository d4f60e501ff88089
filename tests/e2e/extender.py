"""The extender as users start it, `gang-extender serve`, as a process of its own beside the real kube-scheduler.

Used by conftest and the tests; configured from the very file that manifests/sidecar ships. With EARLY_START=false in the environment
no gang starts early unless a test says so: `make e2e EARLY_START=false` tells all stories that way.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import urllib3
import yaml

from tests.e2e.asked_extender import Books
from tests.e2e.control_plane import MANIFESTS
from tests.e2e.processes import Program, eventually, free_port

SHIPPED_CONFIG = MANIFESTS / "sidecar" / "extender.yaml"
HELD = "gang_extender_held_binds"
STARTS_EARLY = os.environ.get("EARLY_START") != "false"  # where a test does not say
PROGRAM = (sys.executable, "-m", "extender.cli.main")


class Extender:
    """`serve` on two loopback ports that stay the same over restarts."""

    def __init__(
        self,
        folder: Path,
        kubeconfig: Path,
        *,
        as_shipped: bool = False,
        settings: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        flags: Sequence[str] = (),
        program: Sequence[str] = PROGRAM,
        asked: bool = False,
    ) -> None:
        """program: what gang-extender is started by, of another version where one is compared with this. asked: it says what is wrong
        in its books when it is asked."""
        config = yaml.safe_load(SHIPPED_CONFIG.read_text())
        if not as_shipped:
            del config["leaderLease"]  # without leader election there is none to watch
        config.update(settings or {})
        if not STARTS_EARLY:
            _without_early_start(config)
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "extender.yaml"
        file.write_text(yaml.safe_dump(config))
        self.books = Books(folder / "books") if asked else None
        if asked:
            program = (sys.executable, "-m", "tests.e2e.asked_extender", str(folder / "books"))
        self.port, self._ops_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.ops_url = f"http://127.0.0.1:{self._ops_port}"
        command = [*program, "serve", f"--config={file}", f"--kubeconfig={kubeconfig}"]
        command += [f"--port={self.port}", f"--ops-port={self._ops_port}", *flags]
        self.program = Program("extender", command, folder, env)

    def start(self, *, wait: bool = True) -> Extender:
        self.program.start()
        if wait:
            self.await_ready()
        return self

    def await_ready(self) -> None:
        self.program.await_ready(lambda: self.ops("/readyz")[0] == 200, within=30)

    def await_leading(self) -> None:
        """Where it need not ask for a Lease. Gangs that come from now on are taken for gangs that are being made."""
        eventually(lambda: "leading: " in self.log(), within=10, what="it has noticed that it leads")

    def stop(self) -> None:
        self.program.stop()

    def kill(self) -> None:
        self.program.kill()

    def terminate(self, within: float) -> float:
        """SIGTERM, as the kubelet sends it; the seconds until it was gone."""
        self.program.signal(signal.SIGTERM)
        return self.program.wait(within)

    def log(self) -> str:
        return self.program.log()

    def ops(self, path: str) -> tuple[int, str]:
        """Status and body of a probe or page; status 0 for no answer."""
        try:
            with urllib3.PoolManager(retries=False, timeout=10) as http:
                answer = http.request("GET", self.ops_url + path)
                return answer.status, answer.data.decode()
        except (urllib3.exceptions.HTTPError, OSError):
            return 0, ""

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels."""
        status, text = self.ops("/metrics")
        assert status == 200, f"/metrics answered {status}"
        samples = re.findall(rf"^{re.escape(name)}(?:{{[^}}]*}})? (\S+)", text, re.MULTILINE)
        assert samples, f"no metric {name}"
        return sum(float(sample) for sample in samples)

    def held(self) -> int:
        return int(self.metric(HELD))

    def gang(self, group: str) -> Any:
        """The page of the group `namespace/name`; None where the extender does not know it yet."""
        status, page = self.ops(f"/gangs/{group}")
        return json.loads(page) if status == 200 else None

    def places(self, group: str) -> dict[str, str]:
        """Member -> node, empty where it has none, of all that the extender knows of."""
        page = self.gang(group)
        return {each["name"]: each["node"] for each in page["memberList"]} if page else {}

    def planned(self, group: str) -> int:
        """How often the group `namespace/name` got a plan."""
        return self.log().count(f"gang planned group={group} ")


def _without_early_start(config: dict[str, Any]) -> None:
    """In all profiles that do not say whether gangs start early."""
    names = config.get("schedulerNames", ())
    profiles = config.get("profiles") or [{"schedulerName": name} for name in names]
    config["profiles"] = [_profile_without(profile) for profile in profiles]


def _profile_without(profile: Mapping[str, Any]) -> dict[str, Any]:
    given = {each["name"]: each.get("args", {}) for each in profile.get("pluginConfig", ())}
    given["Coscheduling"] = {"earlyStart": False, **given.get("Coscheduling", {})}
    return {**profile, "pluginConfig": [{"name": name, "args": args} for name, args in given.items()]}

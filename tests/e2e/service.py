"""The shape of manifests/service: replicas of the extender behind TLS that elect a leader, and a kube-scheduler that calls their Service.

A link is the Service: each connection goes to the one endpoint that the EndpointSlice has then, and stays there, as kube-proxy's
rules make it. Certificates are made by the very commands of docs/tasks/extender-as-a-service.md. Used by test_service and by
test_gang_stories_over_tls.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tests.documented import PROJECT
from tests.e2e.api import Refused
from tests.e2e.control_plane import ADMIN, MANIFESTS, SCHEDULER_NAME, SIDECAR, ControlPlane, Scheduler
from tests.e2e.extender import Extender
from tests.e2e.link import Link
from tests.e2e.processes import eventually

SERVICE, WAKE = MANIFESTS / "service", MANIFESTS / "wake-by-annotation"
PAGE = (PROJECT / "docs" / "tasks" / "extender-as-a-service.md").read_text()
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/gang-extender"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices"
SLICE = f"{SLICES}/gang-extender-leader"
NAME = "gang-extender.kube-system.svc"


class Certificates:
    """In a folder: ca.crt, and server/ and client/ with tls.crt and tls.key."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._script = re.findall(r"<!-- certificates -->\n```sh\n(.*?)```", PAGE, re.DOTALL)[0]
        self._run(self._script)

    def renew(self, which: str, common_name: str = "", extensions: str = "", *, days: int = 365) -> None:
        """The pair `which`, client or server, moved into place file by file, as the page says; as it was made, but for what is given."""
        line = re.search(rf'^issue {which} (\S+) "(.*)"$', self._script, re.MULTILINE)
        assert line is not None
        function = self._script[self._script.index("issue()") : line.start()].replace("-days 365", f"-days {days}")
        function = function[: function.rindex("}\n") + 2]
        made = self.folder / "made"
        self._run(f'{function}issue made "{common_name or line[1]}" "{extensions or line[2]}"')
        for name in ("tls.crt", "tls.key"):
            (made / name).replace(self.folder / which / name)
        shutil.rmtree(made)

    def _run(self, script: str) -> None:
        subprocess.run(["bash", "-euc", script], cwd=self.folder, check=True, capture_output=True)


class ServiceShape:
    """Nothing runs yet. `replica` starts one, `scheduler` makes the kube-scheduler; stop ends the link."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self._plane, self._folder = plane, folder
        self.certificates = Certificates(folder / "certificates")
        self._ports: dict[str, int] = {}  # the address that an endpoint has -> where that replica is here
        self.link = Link(self._endpoint).start()
        plane.kubectl("apply", "--server-side", "-k", str(SERVICE))
        if not plane.wakes_by_status:  # as docs/compatibility.md says
            plane.kubectl("apply", "--server-side", "-k", str(WAKE))
        self.forget_the_leader()

    def stop(self) -> None:
        self.link.stop()
        self.forget_the_leader()
        if not self._plane.wakes_by_status:
            self._plane.kubectl("delete", "--ignore-not-found", "-k", str(WAKE))
        self._plane.kubectl("apply", "--server-side", "-k", str(MANIFESTS / "sidecar"))

    def forget_the_leader(self) -> None:
        for path in (LEASE, SLICE):
            try:
                self._plane.api().delete(path)
            except Refused as refused:
                if refused.code != 404:
                    raise

    def replica(self, name: str, host_name: list[str], settings: dict[str, Any] | None = None) -> Extender:
        """Not started. host_name: in front of the command, so that each replica has its own, as pods have."""
        address = f"10.9.0.{len(self._ports) + 1}"  # loopback is no address of an endpoint
        files = self.certificates.folder
        args = yaml.safe_load_all((SERVICE / "deployment.yaml").read_text())
        (container,) = next(args)["spec"]["template"]["spec"]["containers"]
        (allowed,) = [flag for flag in container["args"] if flag.startswith("--allowed-client-name=")]
        flags = [f"--tls-cert-file={files}/server/tls.crt", f"--tls-private-key-file={files}/server/tls.key"]
        flags += [f"--client-ca-file={files}/ca.crt", allowed, f"--advertise-address={address}"]
        shipped = yaml.safe_load((SERVICE / "extender.yaml").read_text())
        shipped["schedulerNames"] = [SCHEDULER_NAME]
        extender = Extender(
            self._folder / name,
            self._plane.kubeconfig(SIDECAR),
            as_shipped=True,
            settings={**shipped, **(settings or {})},
            flags=flags,
        )
        extender.program.command[:0] = host_name
        self._ports[address] = extender.port
        return extender

    def scheduler(self, change: Callable[[dict[str, Any]], None] = lambda config: None) -> Scheduler:
        """Not started."""
        shipped = yaml.safe_load((SERVICE / "nodes" / "kube-scheduler.yaml").read_text())
        files = {"certFile": "client/tls.crt", "keyFile": "client/tls.key", "caFile": "ca.crt"}

        def over_tls(config: dict[str, Any]) -> None:
            config["extenders"] = shipped["extenders"]
            for entry in config["extenders"]:
                assert entry["urlPrefix"] == f"https://{NAME}"
                entry["urlPrefix"] = f"https://127.0.0.1:{self.link.port}"  # the resolver here knows no hostAliases
                tls = {key: str(self.certificates.folder / files[key]) for key in entry["tlsConfig"]}
                entry["tlsConfig"] = {**tls, "serverName": NAME}
            change(config)

        return Scheduler(self._plane, self._folder, extender="", token=ADMIN, change=over_tls)

    def leader(self) -> str:
        """The host name in the Lease; empty where there is none."""
        try:
            return str(self._plane.api().get(LEASE)["spec"].get("holderIdentity", "")).partition("_")[0]
        except Refused:
            return ""

    def await_leader(self, name: str, extender: Extender, within: float) -> float:
        """Until it has the Lease, acts by it, and is the endpoint."""

        def leads() -> bool:
            try:
                acts = extender.metric("gang_extender_leading") == 1
            except AssertionError:  # there is no answer
                return False
            return acts and self.leader() == name and self._endpoint() == extender.port

        return eventually(leads, within=within, what=f"{name} leads")

    def _endpoint(self) -> int | None:
        try:
            (endpoint,) = self._plane.api().get(SLICE)["endpoints"]
        except Refused:
            return None
        (address,) = endpoint["addresses"]
        return self._ports.get(address)

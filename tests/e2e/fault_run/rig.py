"""The programs of a fault run, and every line between them, which can be made faulty.

etcd, two API servers, two replicas (a kube-scheduler with its extender, and a kubelet's probes and restarts) that elect a leader:

  kube-scheduler --verbs--> extender --api--> API server (one for each replica) --etcd--> etcd
  kube-scheduler --own--> API server

The extender's side of `verbs` is TLS with a certificate for either end, which the line speaks in kube-scheduler's place, so that it can
read along. The extenders have the rights that manifests/ gives them. Used by `run`, `nemesis` and its acts.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.api import Api
from tests.e2e.asked_extender import Books
from tests.e2e.build import Binaries
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import ADMIN, MANIFESTS, ControlPlane
from tests.e2e.fault_run.certificates import Certificates
from tests.e2e.fault_run.drawn_configuration import DrawnConfiguration
from tests.e2e.fault_run.excuses import AWAY_SECONDS, LEASE_SECONDS
from tests.e2e.fault_run.patient_api import PatientApi
from tests.e2e.fault_run.record import Record
from tests.e2e.fault_run.stderr_pipe import StderrPipe
from tests.e2e.fault_run.verb_calls import VerbCalls
from tests.e2e.fault_run.wall_clock import WallClock
from tests.e2e.fault_run.wishes import TOPOLOGY
from tests.e2e.faulty_connection import FaultyConnection
from tests.e2e.kubelet import Kubelet
from tests.e2e.link import Link
from tests.e2e.pair import Pair
from tests.e2e.processes import Program, eventually, free_port

NAMES = ("first", "second")
ACCOUNT = "system:serviceaccount:kube-system:gang-scheduler"
LEASE_TIMES = {"leaseDuration": f"{LEASE_SECONDS:g}s", "renewDeadline": "5s", "retryPeriod": "1s"}
LONGEST_BACK_OFF = 10.0
OVERLAYS = ("sidecar", "preemption")
AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "resources": [{"group": "events.k8s.io"}, {"group": "", "resources": ["events"]}]},
        # with the node of a Binding, and whether a pod's end is a dry run
        {"level": "Request", "resources": [{"group": "", "resources": ["pods/binding", "pods/eviction"]}]},
        {"level": "Request", "verbs": ["delete"], "resources": [{"group": "", "resources": ["pods"]}]},
        {"level": "Metadata", "verbs": ["create", "update", "patch", "delete", "deletecollection", "list"]},
    ],
}


def token_of(replica: str, program: str, turn: int = 0) -> str:
    """All tokens are the ServiceAccount's; in the audit log the UID of the user tells which replica and program made a call."""
    return f"{replica}-{program}-token-{turn}"


def users() -> list[str]:
    groups = "system:serviceaccounts,system:authenticated"
    return [
        f'{token_of(replica, program, turn)},{ACCOUNT},{replica}-{program},"{groups}"'
        for replica in NAMES
        for program in ("extender", "scheduler")
        for turn in (0, 1)
    ]


class RigPlane(ControlPlane):
    """etcd that waits for its disk, and two API servers, each behind a line to it and with an audit log."""

    def __init__(self, binaries: Binaries, folder: Path, logs: Path) -> None:
        super().__init__(binaries, folder, users=users(), durable=True)
        self._logs = logs
        self.etcd_links = [Link(self.etcd_port) for _ in NAMES]
        ports = (self.port, free_port())
        self.servers = [
            self.server_program(f"kube-apiserver-{name}", port, link.port, self._audit(name))
            for name, port, link in zip(NAMES, ports, self.etcd_links, strict=True)
        ]
        self.ports = ports
        self.apiserver = self.servers[0]
        self.etcd_command = list(self.etcd.command)

    def _audit(self, name: str) -> Sequence[str]:
        policy = self.folder / "audit-policy.yaml"
        self.folder.mkdir(parents=True, exist_ok=True)
        policy.write_text(yaml.safe_dump(AUDIT))
        return (f"--audit-policy-file={policy}", f"--audit-log-path={self._logs / f'audit-{name}.log'}")

    def start(self) -> None:
        for link in self.etcd_links:
            link.start()
        super().start()
        self.servers[1].start()
        self.servers[1].await_ready(self._second_ready)

    def _second_ready(self) -> bool:
        second = Api(f"https://127.0.0.1:{self.ports[1]}", self.ca_file, ADMIN)
        try:
            return second.ready()
        finally:
            second.close()

    def stop(self) -> None:
        self.servers[1].stop()
        super().stop()
        for link in self.etcd_links:
            link.stop()

    def api(self, token: str = ADMIN) -> Api:
        if not self._apis:
            self._apis.append(PatientApi([f"https://127.0.0.1:{port}" for port in self.ports], self.ca_file, token))
        return self._apis[0]


@dataclass
class Replica:
    """line: the HTTP of extender to API server, in front of the link `api`."""

    name: str
    pair: Pair
    kubelet: Kubelet
    line: FaultyConnection
    verbs: Link
    api: Link
    own: Link
    certificates: Certificates
    token_file: Path
    clock: WallClock
    books: Books
    log: StderrPipe  # the extender's

    def programs(self) -> dict[str, Program]:
        return {f"{self.name} {each.program.name}": each.program for each in self.pair}

    def links(self) -> dict[str, Link]:
        kinds = {"verbs": self.verbs, "extender's API": self.api, "kube-scheduler's API": self.own}
        return {f"{self.name} {kind}": link for kind, link in kinds.items()}


class Rig:
    """Everything, from `start` to `stop`. Its cluster's objects are those of all tests."""

    def __init__(
        self, plane: RigPlane, folder: Path, record: Record, seed: int, configuration: DrawnConfiguration
    ) -> None:
        self.plane = plane
        self.record = record
        self.cluster = Cluster(plane)
        self.rolled_back = threading.Event()  # etcd was restored, and its owners have not yet put right what is theirs
        self._undo = ExitStack()
        self.replicas = [
            self._replica(name, port, folder / name, seed, configuration)
            for name, port in zip(NAMES, plane.ports, strict=True)
        ]

    def start(self) -> Rig:
        self.cluster.install_crd()
        for overlay in OVERLAYS:
            self.plane.kubectl("apply", "--server-side", "-k", str(MANIFESTS / overlay))
        self.plane.kubectl("apply", "--server-side", "-f", str(MANIFESTS / "gate" / "role.yaml"))
        for replica in self.replicas:
            for starts in (replica.api, replica.own, replica.verbs, replica.line, replica.log):
                starts.start()
                self._undo.callback(starts.stop)
        for replica in self.replicas:
            self._undo.callback(replica.kubelet.stop)
            replica.kubelet.start()
        eventually(self.leads, within=90, what="a replica leads", every=0.2)
        return self

    def stop(self) -> None:
        self._undo.close()

    def leads(self) -> Replica | None:
        """The replica whose extender says that it leads."""
        return next((each for each in self.replicas if _metric(each, "gang_extender_leading") == 1), None)

    def page(self, path: str) -> str:
        """Of the extender that leads."""
        leader = self.leads()
        return leader.pair.extender.ops(path)[1] if leader else "no extender leads"

    def programs(self) -> dict[str, Program]:
        found: dict[str, Program] = {"etcd": self.plane.etcd}
        for server in self.plane.servers:
            found[server.name] = server
        for replica in self.replicas:
            found |= replica.programs()
        return found

    def links(self) -> dict[str, Link]:
        found = {f"{name} API server's etcd": link for name, link in zip(NAMES, self.plane.etcd_links, strict=True)}
        for replica in self.replicas:
            found |= replica.links()
        return found

    def _replica(self, name: str, port: int, folder: Path, seed: int, configuration: DrawnConfiguration) -> Replica:
        folder.mkdir(parents=True, exist_ok=True)
        api, own = Link(port), Link(port)
        line = FaultyConnection(f"https://127.0.0.1:{api.port}", self.plane.ca_file, seed)
        verbs: list[Link] = []
        certificates = Certificates(folder / "certificates")

        def change(config: dict[str, Any]) -> None:
            config["leaderElection"] |= LEASE_TIMES
            kubeconfig = self.plane.kubeconfig(token_of(name, "scheduler"), f"https://127.0.0.1:{own.port}")
            config["clientConnection"]["kubeconfig"] = str(kubeconfig)
            target = int(config["extenders"][0]["urlPrefix"].rpartition(":")[2])
            tap = partial(VerbCalls, lambda call: self._note_call(name, call))
            verbs.append(Link(target, tap=tap, tls=lambda: certificates.caller))
            for entry in config["extenders"]:
                entry["urlPrefix"] = f"http://127.0.0.1:{verbs[0].port}"
            configuration.of_the_scheduler(config)

        settings: Mapping[str, Any] = {"topology": TOPOLOGY, **configuration.of_the_extender()}
        token_file = folder / "token"
        token_file.write_text(token_of(name, "extender"))
        pair = Pair.of(self.plane, folder, as_shipped=True, settings=settings, server=line.url, change=change)
        _with_token_file(pair, self.plane.kubeconfig(ADMIN, line.url), token_file)
        for each in pair:
            each.program.command[:0] = _own_host_name(name)
        clock, books = WallClock(folder / "asked" / "clock"), Books(folder / "asked")
        command = pair.extender.program.command
        at = command.index("extender.cli.main")
        command[at : at + 1] = ["tests.e2e.fault_run.wall_clock", str(clock.file)]
        command += certificates.flags
        log = StderrPipe(pair.extender.program)
        return Replica(
            name,
            pair,
            Kubelet(pair, LONGEST_BACK_OFF, start_seconds=AWAY_SECONDS),
            line,
            verbs[0],
            api,
            own,
            certificates,
            token_file,
            clock,
            books,
            log,
        )

    def _note_call(self, replica: str, call: Mapping[str, Any]) -> None:
        self.record.note("calls", replica=replica, **call)


def _with_token_file(pair: Pair, kubeconfig: Path, token_file: Path) -> None:
    """As a pod has one, which the kubelet writes anew."""
    config = yaml.safe_load(kubeconfig.read_text())
    config["users"] = [{"name": "user", "user": {"tokenFile": str(token_file)}}]
    kubeconfig.write_text(yaml.safe_dump(config))


def _own_host_name(name: str) -> list[str]:
    """In front of a command: as in a pod, whose containers share a host name that is theirs alone."""
    for unshare in (["unshare", "--uts"], ["unshare", "--user", "--map-root-user", "--uts"]):
        command = [*unshare, "sh", "-c", 'hostname "$0" && exec "$@"', name]
        if subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0:
            return command
    raise OSError("needs a host name for each replica: neither root nor user namespaces are to be had here")


def _metric(replica: Replica, name: str) -> float:
    return samples(replica.pair.extender.ops("/metrics")[1]).get(name, 0.0)


def samples(text: str) -> dict[str, float]:
    """Of the metrics page: name -> the sum over its labels."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            series, _, value = line.rpartition(" ")
            name = series.partition("{")[0]
            found[name] = found.get(name, 0.0) + float(value)
    return found


def of_interest(values: Mapping[str, float]) -> dict[str, float]:
    """What the judges read."""
    names = (
        "process_resident_memory_bytes",
        "process_open_fds",
        "process_start_time_seconds",
        "gang_extender_held_binds",
        "gang_extender_leading",
        "gang_extender_ready",
        "gang_extender_unexpected_errors_total",
        "gang_extender_plugin_errors_total",
        "gang_extender_impossible_transitions_total",
        "gang_extender_log_records_dropped_total",
        "process_cpu_seconds_total",
    )
    return {name: values[name] for name in names if name in values}

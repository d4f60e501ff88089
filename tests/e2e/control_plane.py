"""A real etcd and kube-apiserver on loopback, and the stock kube-scheduler beside them.

conftest starts one ControlPlane for all tests; a Scheduler is started, killed and restarted by those that need it.
The scheduler's configuration is made from the very file that manifests/sidecar ships.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import urllib3
import yaml

from tests.e2e.api import Api
from tests.e2e.build import Binaries
from tests.e2e.processes import Program, free_port

MANIFESTS = Path(__file__).parents[2] / "manifests"
SHIPPED_CONFIG = MANIFESTS / "sidecar" / "kube-scheduler.yaml"
SCHEDULER_NAME = "gang-scheduler"
IN_TREE_API = "scheduling.k8s.io/v1alpha2"  # of kube-scheduler's own PodGroups: alpha, and off by default
WITH_IN_TREE_GROUPS = ("--feature-gates=GenericWorkload=true", f"--runtime-config={IN_TREE_API}=true")

ADMIN = "admin-token"
SIDECAR = "sidecar-token"  # the ServiceAccount that the manifests give the pod
EXTENDER_ALONE = "extender-token"  # a user with the extender's own role and no other
EXTENDER_USER = "gang-extender-alone"
TENANT = "tenant-token"  # a user whose rights a test gives
TENANT_USER = "tenant"
DAEMON_SETS = "daemon-sets-token"  # the controller of DaemonSets
USERS = (
    f'{ADMIN},admin,admin,"system:masters"',
    f'{SIDECAR},system:serviceaccount:kube-system:gang-scheduler,sidecar,"system:serviceaccounts"',
    f"{EXTENDER_ALONE},{EXTENDER_USER},{EXTENDER_USER}",
    f"{TENANT},{TENANT_USER},{TENANT_USER}",
    f"{DAEMON_SETS},system:serviceaccount:kube-system:daemon-set-controller,daemon-sets",
)


def version_of(program: Path) -> tuple[int, int]:
    """Major and minor: `Kubernetes v1.30.14` is (1, 30)."""
    text = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    major, minor, *_ = text.strip().rpartition("v")[2].split(".")
    return int(major), int(minor)


class ControlPlane:
    """etcd and kube-apiserver; the clients and kubeconfig files to reach them. flags: further ones of the API server.

    users: further lines of its token file. durable: etcd waits for the disk, as in production.
    """

    def __init__(
        self,
        binaries: Binaries,
        folder: Path,
        flags: Sequence[str] = (),
        *,
        users: Sequence[str] = (),
        durable: bool = False,
    ) -> None:
        self.binaries = binaries
        self._users = (*USERS, *users)
        self.folder = folder
        self.scheduler_version = version_of(binaries.kube_scheduler)
        self.in_tree_api = ""  # what the API server serves of kube-scheduler's own PodGroups: in_tree_plane
        # else by annotations, and what it wakes serves back-off
        self.wakes_by_status = self.scheduler_version >= (1, 33)
        self.etcd_port, peer_port, self.port = free_port(), free_port(), free_port()
        self.server = f"https://127.0.0.1:{self.port}"
        self.ca_file = folder / "certificates" / "apiserver.crt"  # made by the API server for itself
        fsync = () if durable else ("--unsafe-no-fsync",)
        self.etcd = Program("etcd", [*self._etcd_command(self.etcd_port, peer_port), *fsync], folder)
        self.apiserver = self.server_program("kube-apiserver", self.port, self.etcd_port, flags)
        self._apis: list[Api] = []

    def _etcd_command(self, client: int, peer: int) -> list[str]:
        url, peers = f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"
        return [
            str(self.binaries.etcd),
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
        ]

    def server_program(self, name: str, port: int, etcd: int, flags: Sequence[str] = ()) -> Program:
        """An API server, not started. A second one has the first one's certificate: it is started when that is there."""
        key = self.folder / "service-account.key"
        command = [
            str(self.binaries.kube_apiserver),
            f"--etcd-servers=http://127.0.0.1:{etcd}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--cert-dir={self.folder / 'certificates'}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://kubernetes.default",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--authorization-mode=RBAC",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
        ]
        return Program(name, [*command, *flags], self.folder)

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "tokens.csv").write_text("\n".join(self._users) + "\n")
        key = self.folder / "service-account.key"
        subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
        self.etcd.start()
        self.apiserver.start()
        self.apiserver.await_ready(lambda: self.ca_file.exists() and self.api().ready())

    def stop(self) -> None:
        for api in self._apis:
            api.close()
        self.apiserver.stop()
        self.etcd.stop()

    def api(self, token: str = ADMIN) -> Api:
        if token != ADMIN or not self._apis:
            self._apis.append(Api(self.server, self.ca_file, token))
            return self._apis[-1]
        return self._apis[0]

    def forget_connections(self) -> None:
        """In a forked child: the connections are the parent's."""
        self._apis = []

    def kubeconfig(self, token: str = ADMIN, server: str = "") -> Path:
        """A file for `--kubeconfig`; `server` where a proxy stands in between."""
        server = server or self.server
        file = self.folder / f"kubeconfig-{token}-{server.rpartition(':')[2]}.yaml"
        cluster = {"server": server, "certificate-authority": str(self.ca_file)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "loopback", "cluster": cluster}],
            "users": [{"name": "user", "user": {"token": token}}],
            "contexts": [{"name": "loopback", "context": {"cluster": "loopback", "user": "user"}}],
            "current-context": "loopback",
        }
        file.write_text(yaml.safe_dump(config))
        return file

    def kubectl(self, *arguments: str, stdin: str | None = None, token: str = ADMIN) -> str:
        """Its output; fails with all that it said."""
        command = [str(self.binaries.kubectl), f"--kubeconfig={self.kubeconfig(token)}", *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}\n{done.stdout}{done.stderr}"
        assert "Warning:" not in done.stderr, done.stderr
        return done.stdout


def shipped_configuration() -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load(SHIPPED_CONFIG.read_text())
    return config


class Scheduler:
    """The stock kube-scheduler with the shipped configuration, but for addresses; it may be killed and started again.

    `extender` is the base URL of the verbs, None for a kube-scheduler that has no extender.
    `change` alters the configuration further. `as_shipped` keeps the leader election.
    """

    def __init__(
        self,
        plane: ControlPlane,
        folder: Path,
        *,
        extender: str | None,
        qps: int = 5000,
        token: str = ADMIN,
        as_shipped: bool = False,
        change: Callable[[dict[str, Any]], None] = lambda config: None,
        flags: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
    ) -> None:
        config = shipped_configuration()
        kubeconfig = plane.kubeconfig(token)
        config["clientConnection"] = {"kubeconfig": str(kubeconfig), "qps": qps, "burst": 2 * qps}
        if not as_shipped:
            config["leaderElection"] = {"leaderElect": False}
        for entry in config["extenders"]:
            entry["urlPrefix"] = extender
        if extender is None:
            del config["extenders"]
        change(config)
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "kube-scheduler.yaml"
        file.write_text(yaml.safe_dump(config))
        port = free_port()
        self.url = f"https://127.0.0.1:{port}"
        self._ca_file = plane.ca_file
        command = [
            str(plane.binaries.kube_scheduler),
            f"--config={file}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            # any certificate for 127.0.0.1 does; with one of its own in memory there were nothing to check it against
            f"--tls-cert-file={plane.ca_file}",
            f"--tls-private-key-file={plane.ca_file.with_suffix('.key')}",
            "-v=4",
            *flags,
        ]
        self.program = Program("kube-scheduler", command, folder, env)

    def start(self) -> Scheduler:
        self.program.start()
        self.program.await_ready(self._ready)
        return self

    def kill(self) -> None:
        self.program.kill()

    def stop(self) -> None:
        self.program.stop()

    def log(self) -> str:
        return self.program.log()

    def _ready(self) -> bool:
        try:
            with urllib3.PoolManager(ca_certs=str(self._ca_file), retries=False, timeout=2) as http:
                return http.request("GET", f"{self.url}/healthz").status == 200
        except (urllib3.exceptions.HTTPError, OSError):
            return False

"""Which extender answers a command's question: that of the kube-scheduler that leads, found by its Lease, or the one at an address.

The pages answer loopback only. The leader's are reached by a port-forward through the API server, an address may be that of one's own
`kubectl port-forward`, or of the pod that the command runs in. The commands that show pages ask here.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

from extender.cli import kubeconfig_flags
from extender.cli.at_address import JSON, SECONDS, SERVER, VARIABLE, AtAddress
from extender.cli.errors import NoAnswerError, NotThereError, UsageError

if TYPE_CHECKING:
    from extender.api import corev1
    from extender.client.connection import Connection

LEASE = "kube-system/gang-scheduler"
OPS_PORT = 8889
HOST = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


class Extender(Protocol):
    """where: for messages."""

    @property
    def where(self) -> str: ...

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Status and body. Raises NoAnswerError."""
        ...


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--server",
        default=os.environ.get(VARIABLE) or None,
        metavar="URL",
        help=f"the ops listener of a running extender, such as {SERVER}, in place of the leader's, or its pages beyond it (${VARIABLE})",
    )
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help="for --server https://...: the bearer token, in place of that of the kubeconfig's context",
    )
    parser.add_argument(
        "--certificate-authority", metavar="FILE", help="for --server https://...: what its certificate is signed by"
    )
    kubeconfig_flags.add_arguments(parser, "the cluster whose leader is asked")
    parser.add_argument(
        "--lease", default=LEASE, metavar="NAMESPACE/NAME", help="of the kube-scheduler with the extender (%(default)s)"
    )
    parser.add_argument(
        "--ops-port", type=int, default=OPS_PORT, metavar="PORT", help="of the leader's extender (%(default)s)"
    )


def asks_leader(args: argparse.Namespace) -> bool:
    """`kubectl gang` does unless an address is named; `gang-extender`, which is in the pod too, where a cluster is named."""
    if args.server is not None:
        return False
    return bool(args.finds_leader or args.kubeconfig is not None or args.context or args.lease != LEASE)


@contextmanager
def extender_of(args: argparse.Namespace) -> Iterator[Extender]:
    """Raises UsageError, NoAnswerError."""
    if not asks_leader(args):
        yield AtAddress.of(args)
        return
    with cluster_of(args) as cluster:
        yield extender_in(args, cluster)


def extender_in(args: argparse.Namespace, cluster: Connection | None) -> Extender:
    """By a connection that is there already. cluster: as `named_cluster` has it. Raises UsageError, NoAnswerError."""
    if cluster is None or not asks_leader(args):
        return AtAddress.of(args)
    return Leader.find(cluster, args.lease, args.ops_port)


@contextmanager
def named_cluster(args: argparse.Namespace) -> Iterator[Connection | None]:
    """The cluster whose leader is asked, or that is named beside an address; None for an address alone. Raises UsageError."""
    if not asks_leader(args) and args.kubeconfig is None and not args.context:
        yield None
        return
    with cluster_of(args) as cluster:
        yield cluster


@contextmanager
def cluster_of(args: argparse.Namespace) -> Iterator[Connection]:
    """Raises UsageError where there is no kubeconfig."""
    files = kubeconfig_flags.files_of(args)
    if files is None:
        raise UsageError(
            "there is no kubeconfig: set $KUBECONFIG, name one by --kubeconfig FILE, or an extender by --server URL"
        )
    connection = kubeconfig_flags.connect(files, args.context)
    try:
        yield connection
    finally:
        connection.close()


@dataclass(frozen=True, slots=True)
class Leader:
    """pod: in which the leading kube-scheduler runs, and the extender beside it."""

    cluster: Connection
    namespace: str
    pod: str
    port: int

    @property
    def where(self) -> str:
        return f"port {self.port} of pod {self.namespace}/{self.pod}"

    @classmethod
    def find(cls, cluster: Connection, lease: str, port: int) -> Leader:
        """Raises UsageError, NoAnswerError."""
        from extender.client.errors import ApiError, NotFoundError

        namespace, slash, name = lease.partition("/")
        if not (namespace and slash and name):
            raise UsageError(f"--lease {lease}: wanted NAMESPACE/NAME")
        try:
            host = _holder(cluster, namespace, name)
            return cls(cluster, namespace, _pod_on(cluster, namespace, host, port), port)
        except NotFoundError as error:
            told = "--lease NAMESPACE/NAME names another, --server URL an extender without one"
            raise NoAnswerError(f"the Lease {lease} is not there: {error}; {told}") from error
        except ApiError as error:
            told = "; --server URL names an extender to ask" if error.code == 403 else ""
            raise NoAnswerError(f"the leader by the Lease {lease} cannot be found: {error}{told}") from error

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        from extender.client.errors import ApiError

        headers = {"Content-Type": JSON} if body is not None else {}
        try:
            return self.cluster.call_pod(
                self.namespace, self.pod, self.port, method, path, headers=headers, body=body, seconds=SECONDS
            )
        except ApiError as error:
            raise NoAnswerError(f"no extender answers at {self.where}: {error}") from error


def _holder(cluster: Connection, namespace: str, name: str) -> str:
    """The host name of the kube-scheduler that holds the Lease: its identity is that, `_` and a UUID."""
    from extender.client.interface import LEASES

    identity = cluster.get(LEASES, name, namespace).spec.holder_identity
    if not identity:
        raise NoAnswerError(f"no kube-scheduler holds the Lease {namespace}/{name}: none leads now")
    host, _, _ = identity.rpartition("_")
    if not HOST.fullmatch(host):
        raise NoAnswerError(f"the Lease {namespace}/{name} is held by {identity[:253]!r}, which is no kube-scheduler")
    return host


def _pod_on(cluster: Connection, namespace: str, host: str, port: int) -> str:
    """The pod of that host name; on the host's own network that is the node's name, and the pod is the one there with the port."""
    from extender.client.errors import NotFoundError
    from extender.client.interface import PODS, list_all

    try:
        return cluster.get(PODS, host, namespace).name
    except NotFoundError:
        there = list_all(cluster, PODS, namespace=namespace, field_selector=f"spec.nodeName={host}")
        found = [pod.name for pod in there if _listens(pod, port)]
    if not found:
        raise NoAnswerError(
            f"{host} holds the Lease, and in {namespace} there is neither a pod of that name nor one on a node of that name with a "
            f"container that has port {port}"
        )
    return min(found)


def _listens(pod: corev1.Pod, port: int) -> bool:
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    return any(each.container_port == port for container in containers for each in container.ports)


def path_of(page: str, *names: str) -> str:
    """Of a page on what has these names: each is one segment. Raises UsageError for what would lead to another page, which is no name."""
    for name in names:
        if name in ("", ".", "..") or "/" in name:
            raise UsageError(f"{name!r} is no name: wanted one that is not empty, `.` or `..`, and without a /")
    return "".join(f"/{quote(part, safe='')}" for part in (page, *names))


def answer(extender: Extender, path: str, *, missing: str = "", body: bytes | None = None) -> bytes:
    """The page's JSON. missing: what is said where the extender does not know what is asked about. Raises NoAnswerError, UsageError."""
    status, data = extender.ask("GET" if body is None else "POST", path, body)
    if status == 200 and data[:1] in (b"{", b"["):
        return data
    told = data[:2000].decode(errors="replace").strip()
    if status == 404 and missing and b"no such" in data:
        raise NotThereError(missing)
    if status == 404:
        raise NoAnswerError(f"{extender.where} does not show {path}: pages are on the ops port, and for loopback only")
    if status in (401, 403):
        raise NoAnswerError(f"{extender.where}: {_told_in(data) or told[:200]}")
    if status == 400:
        raise UsageError(_told_in(data) or told)
    if status == 503 and b"not seen the whole cluster" in data:
        raise NoAnswerError(f"nothing is known of gangs yet at {extender.where}; ask again in a moment: {told[:500]}")
    if status == 503:
        raise NoAnswerError(f"{extender.where}: {_told_in(data) or told[:200]}")
    raise NoAnswerError(f"{extender.where}{path} answered {status}: {told[:200]}")


def _told_in(data: bytes) -> str:
    """Our own refusal, or one in the API server's form."""
    import json

    try:
        found = json.loads(data)
        return str(found.get("Error") or found.get("message") or "")
    except (ValueError, AttributeError):
        return ""

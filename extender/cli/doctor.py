"""`gang-extender doctor`: what is wrong with an installation, in its configuration files and in its cluster, and what to do about it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from extender.cli import kubeconfig_flags, output, terminal
from extender.cli.asking import LEASE, OPS_PORT, Leader
from extender.cli.at_address import AtAddress, base_url
from extender.cli.errors import NoAnswerError, UnusableKubeconfigError, UsageError
from extender.cli.terminal import Colour, Terminal, printable

if TYPE_CHECKING:
    from extender.client.connection import Connection
    from extender.client.errors import ApiError
    from extender.client.kubeconfig import KubeconfigFiles
    from extender.config.findings import Finding
    from extender.config.types import NamespacedName
    from extender.doctor.config_files import ExtenderFile
    from extender.doctor.installed import Installed


FIX, FOLDED = 2, 4
"""How far what to do, and what does not fit into the first line, are indented."""

ACCOUNT = "system:serviceaccount:kube-system:gang-scheduler"
"""The user that the pods of the manifests are."""

EXAMPLES = {
    "doctor --kube-scheduler-config kube-scheduler.yaml --config extender.yaml": "both files, before they are applied",
    "doctor --context prod": "a cluster: what is served, which rights are missing",
    "doctor --config extender.yaml --server http://127.0.0.1:8889": "a running extender, and whether it runs with this file",
    "doctor --config extender.yaml --kubeconfig admin.conf -o json": "both, for programs",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kube-scheduler-config", metavar="FILE", help="the KubeSchedulerConfiguration that kube-scheduler runs with"
    )
    parser.add_argument("--config", metavar="FILE", help="the ExtenderConfiguration that the extender runs with")
    kubeconfig_flags.add_arguments(
        parser,
        "the cluster to examine; without --config, --kube-scheduler-config and --server, the one that kubectl would take; only read",
    )
    parser.add_argument(
        "--server", metavar="URL", help="examine a running extender too, at its ops listener: http://127.0.0.1:8889"
    )
    parser.add_argument(
        "--lease",
        default=LEASE,
        metavar="NAMESPACE/NAME",
        help="of the kube-scheduler with the extender: its namespace has the ConfigMap that counts without --config (%(default)s)",
    )
    parser.add_argument("--ops-port", type=int, default=OPS_PORT, metavar="PORT", help="of its extender (%(default)s)")
    parser.add_argument(
        "--user", default=ACCOUNT, metavar="USER", help="whose rights are examined there (%(default)s); empty: your own"
    )
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")


def run(args: argparse.Namespace) -> int:
    """1 if something is wrong: an error or a warning. What is only good to know is no mistake."""
    try:
        findings = sorted(_examine(args), key=_order)
    except UnusableKubeconfigError as error:
        if args.output != "json":
            raise
        findings = [_unusable(error)]
    if args.output == "json":
        output.as_json([_as_json(each) for each in findings])
    else:
        print("\n".join(_lines(findings, terminal.of())))
    return int(any(each.is_wrong for each in findings))


def _order(finding: Finding) -> tuple[int, str, bool, int]:
    """The worst first, then by place; what is of no field comes after those."""
    severities = list(type(finding.severity))
    return severities.index(finding.severity), finding.file, not finding.field, finding.line


def _unusable(error: UnusableKubeconfigError) -> Finding:
    from extender.config.findings import Finding, Severity

    return Finding(
        Severity.ERROR, "Unreachable", "kubeconfig", 0, "", str(error), "mend the kubeconfig, or name another"
    )


def _examine(args: argparse.Namespace) -> Iterator[Finding]:
    files = _cluster(args)
    if files is None:
        yield from _of_files(args, None)
        return
    api = kubeconfig_flags.connect(files, args.context)
    try:
        yield from _of_files(args, _Cluster(args, api, str(files)))
    finally:
        api.close()


def _of_files(args: argparse.Namespace, cluster: _Cluster | None) -> Iterator[Finding]:
    """And of what runs with them. Without a file of the extender, that of the cluster's installation."""
    from extender.doctor import configuration, running
    from extender.doctor.installed import Installed

    theirs, ours = map(configuration.of_file, (args.kube_scheduler_config, args.config))
    installed = Installed()
    if ours is None and cluster is not None:
        installed = cluster.installed()
    examined = configuration.examine_documents(theirs or installed.kube_scheduler, ours or installed.extender)
    yield from examined.findings
    if cluster is not None:
        refused = "its file is refused" if (ours or installed.extender) is not None else ""
        yield from cluster.examine(examined.ours, refused or installed.why)
    if args.server is not None:
        address = AtAddress(base_url(args.server))
        yield from running.examine(address.where, examined.ours, partial(address.ask, "GET"))


def _cluster(args: argparse.Namespace) -> KubeconfigFiles | None:
    """The kubeconfig of the cluster to examine. Beside files, or a running extender, only one that is asked for: they need none."""
    beside = any(each is not None for each in (args.kube_scheduler_config, args.config, args.server))
    if beside and args.kubeconfig is None and not args.context:
        return None
    files = kubeconfig_flags.files_of(args)
    if files is None and not beside:
        wanted = "--kube-scheduler-config FILE, --config FILE, --kubeconfig FILE, --server URL"
        raise UsageError(f"doctor: wanted one or more of {wanted}")
    return files


class _Cluster:
    """where: its kubeconfig. `kubectl gang` examines the extender that leads as well."""

    def __init__(self, args: argparse.Namespace, api: Connection, where: str) -> None:
        self._args, self._api, self._where = args, api, where
        self._unreachable: ApiError | None = None

    def installed(self) -> Installed:
        """The ConfigMap's; where there is none to read, what an extender that can be asked runs with."""
        from extender.client.errors import ApiError
        from extender.doctor import installed

        try:
            found = installed.find(self._api, _reference(self._args.lease).namespace)
            if found.extender is None and (extender := self._extender()) is not None:
                return replace(found, extender=installed.of_page(extender.where, partial(extender.ask, "GET")))
        except NoAnswerError:
            return found
        except ApiError as error:
            self._unreachable = error
            return installed.Installed(why=str(error))
        return found

    def _extender(self) -> AtAddress | Leader | None:
        """Raises NoAnswerError."""
        args = self._args
        if args.server is not None:
            return AtAddress(base_url(args.server))
        return Leader.find(self._api, args.lease, args.ops_port) if args.finds_leader else None

    def examine(self, ours: ExtenderFile | None, why: str) -> Iterator[Finding]:
        """ours: what its extender is to run with; None where that is not known, and why."""
        from extender.client.errors import ApiError
        from extender.doctor import cluster

        args, configuration = self._args, ours.read if ours is not None else None
        lease = _reference(args.lease) if configuration is None or args.lease != LEASE else None
        try:
            if self._unreachable is not None:
                raise self._unreachable
            yield from cluster.examine(self._api, configuration, self._where, args.user, lease=lease, why=why)
        except ApiError as error:
            yield cluster.unreachable(self._where, error)
        if args.finds_leader and args.server is None:
            yield from self._of_leader(ours)

    def _of_leader(self, ours: ExtenderFile | None) -> Iterator[Finding]:
        from extender.config.findings import Finding, Severity
        from extender.doctor import running

        args = self._args
        try:
            leader = Leader.find(self._api, args.lease, args.ops_port)
            yield from running.examine(leader.where, ours, partial(leader.ask, "GET"))
        except NoAnswerError as error:
            fix = "see that one leads, or name an extender by --server URL"
            yield Finding(Severity.ERROR, "NoAnswer", self._where, 0, args.lease, str(error), fix)


def _reference(lease: str) -> NamespacedName:
    """Of `--lease`. Raises UsageError."""
    from extender.config.types import NamespacedName

    namespace, _, name = lease.partition("/")
    if not (namespace and name):
        raise UsageError(f"--lease {lease}: wanted NAMESPACE/NAME")
    return NamespacedName(namespace, name)


def _as_json(finding: Finding) -> dict[str, Any]:
    return {**asdict(finding), "severity": finding.severity.value}


COLOURS = {"error": Colour.RED, "warning": Colour.YELLOW}


def _lines(findings: Sequence[Finding], shown_on: Terminal) -> Iterator[str]:
    if not findings:
        yield "nothing is wrong"
    for each in findings:
        severity = each.severity.value
        place, message, fix = map(
            printable, (each.place, each.message, each.fix)
        )  # a tenant may have written some of it
        first, *more = shown_on.fold(f"{severity}: {place}: {message} ({each.code})", FOLDED)
        yield shown_on.paint(severity, COLOURS.get(severity)) + first.removeprefix(severity)
        yield from (" " * FOLDED + line for line in more)
        yield from (" " * FIX + line for line in shown_on.fold(fix, FIX))

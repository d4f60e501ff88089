"""`gang-extender serve`: the extender over HTTP, behind a kube-scheduler or on an embedded cluster.

Patches before anything else is imported, so that the whole process runs on one event loop.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

NOT_READ = "; $KUBECONFIG is set, and serve acts on no file that is not named: --kubeconfig FILE, or --context NAME of $KUBECONFIG"

EXAMPLES = {
    "serve --config extender.yaml": "in a pod, beside a kube-scheduler: as manifests/sidecar runs it",
    "serve --config extender.yaml --kubeconfig ~/.kube/config --context lab": "from outside of the cluster, to try something",
    "serve --cluster nodes.yaml pods.yaml": "no cluster: the verbs for curl",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE", help="ExtenderConfiguration (gang-extender.dev/v1alpha1)")
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--kubeconfig", metavar="FILE", help="how to reach the API server (default: the pod's own identity)"
    )
    parser.add_argument(
        "--context", default="", metavar="NAME", help="of that kubeconfig, else of $KUBECONFIG or ~/.kube/config"
    )
    source.add_argument("--cluster", metavar="FILE", nargs="+", help="no cluster: objects from YAML files, in memory")
    parser.add_argument("--bind-address", default="127.0.0.1", metavar="IP", help="of the verbs (%(default)s)")
    parser.add_argument(
        "--advertise-address",
        default="",
        metavar="IP",
        help="of the verbs, as the endpoint of leaderService has it (that of --bind-address)",
    )
    parser.add_argument("--port", type=_port, default=8888, help="of the verbs (%(default)s)")
    parser.add_argument(
        "--ops-bind-address", default="127.0.0.1", metavar="IP", help="of probes and metrics (%(default)s)"
    )
    parser.add_argument("--ops-port", type=_port, default=8889, help="of probes and metrics (%(default)s)")
    parser.add_argument("--tls-cert-file", default="", metavar="FILE", help="certificate of the verbs")
    parser.add_argument("--tls-private-key-file", default="", metavar="FILE", help="its key")
    parser.add_argument("--client-ca-file", default="", metavar="FILE", help="CA that clients' certificates come from")
    parser.add_argument(
        "--allowed-client-name",
        action="append",
        default=[],
        metavar="NAME",
        help="common name or SAN of a client; repeatable",
    )
    parser.add_argument(
        "--pages-bind-address", default="", metavar="IP", help="of /ui and /gangs for users with tokens (none)"
    )
    parser.add_argument("--pages-port", type=_port, default=8890, help="of /ui and /gangs with TLS (%(default)s)")
    parser.add_argument("--pages-tls-cert-file", default="", metavar="FILE", help="certificate of /ui and /gangs")
    parser.add_argument("--pages-tls-private-key-file", default="", metavar="FILE", help="its key")
    parser.add_argument("-v", "--v", dest="verbosity", type=int, default=2, metavar="N", help="log level (%(default)s)")
    parser.add_argument(
        "--logging-format", choices=("text", "json"), default="text", help="as kube-scheduler's (%(default)s)"
    )


def _port(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 1 to 65535")
    return int(text)


def run(args: argparse.Namespace) -> int:
    from extender.server import serve  # isort: skip  - patches: everything else comes after
    from extender.cli import kubeconfig_flags
    from extender.cli.errors import UsageError
    from extender.config.types import ExtenderConfiguration
    from extender.server.options import OptionsError, ServeOptions

    if args.kubeconfig == "":  # `--kubeconfig "$UNSET"`, which does not mean the pod's own identity
        raise UsageError("--kubeconfig: the name of the file is empty")
    if args.cluster and args.context:
        raise UsageError("--context: of a kubeconfig; not with --cluster")
    if args.context:  # without it no file is acted on that is not named
        args.kubeconfig = kubeconfig_flags.files_of(args)
    options = ServeOptions(
        bind_address=args.bind_address,
        port=args.port,
        ops_bind_address=args.ops_bind_address,
        ops_port=args.ops_port,
        tls_cert_file=args.tls_cert_file,
        tls_private_key_file=args.tls_private_key_file,
        client_ca_file=args.client_ca_file,
        pages_bind_address=args.pages_bind_address,
        pages_port=args.pages_port,
        pages_tls_cert_file=args.pages_tls_cert_file,
        pages_tls_private_key_file=args.pages_tls_private_key_file,
        allowed_client_names=tuple(args.allowed_client_name),
        verbosity=args.verbosity,
        logging_format=args.logging_format,
    )
    try:
        options.check()
    except OptionsError as error:
        raise UsageError(str(error)) from error
    configuration = _configuration(args.config) if args.config else ExtenderConfiguration()
    if configuration.leader_service is not None:
        _check_advertised(args.advertise_address or args.bind_address)
    return serve.run(_builder(args, configuration), options)


def _configuration(file: str) -> Any:
    """Raises UsageError for what the worker could not begin with, which would be a traceback from it."""
    from extender.cli.errors import UsageError
    from extender.config.load import read_extender_configuration
    from extender.config.yaml_file import ConfigurationError, read_document
    from extender.framework.runtime.registry import RegistryError
    from extender.plugins import profile_check
    from extender.plugins.registry import new_registry

    try:
        document = read_document(file)
        configuration = read_extender_configuration(document)
        profiles = configuration.profiles
        wrong = [
            *profile_check.unknown_plugins(document, profiles, new_registry()),
            *profile_check.empty_points(document, profiles, profile_check.OF_OURS),
        ]
        if wrong:
            raise document.error(wrong)
    except ConfigurationError as error:
        raise UsageError(*map(str, error.mistakes)) from error
    except RegistryError as error:
        raise UsageError(str(error)) from error
    return configuration


def _check_advertised(address: str) -> None:
    """Raises UsageError for what no EndpointSlice may hold."""
    import ipaddress

    from extender.cli.errors import UsageError

    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        raise UsageError(f"leaderService: {address!r} is no IP: --advertise-address IP, or --bind-address IP") from None
    if ip.is_loopback or ip.is_unspecified or ip.is_link_local or ip.is_multicast:
        raise UsageError(
            f"leaderService: kube-scheduler does not reach the extender at {address}: --advertise-address IP, or --bind-address IP"
        )


def _builder(args: argparse.Namespace, configuration: Any) -> Callable[[Callable[..., Any]], Any]:
    """What the worker calls to get its scheduler. A cluster file that is wrong is said before anything listens."""
    from extender.cli.errors import UsageError
    from extender.client.connection import Connection
    from extender.client.credentials import IdentityError
    from extender.client.embedded import EmbeddedAPI
    from extender.client.embedded.load import load_files
    from extender.client.interface import API
    from extender.scheduler import factory
    from extender.server.collector import keep_what_was_listed

    if args.cluster:
        _say_what_is_left_out(load_files(EmbeddedAPI(), args.cluster))

    def connect() -> API:
        if args.cluster:
            embedded = EmbeddedAPI()
            load_files(embedded, args.cluster)
            return embedded
        return Connection.from_kubeconfig(args.kubeconfig, args.context) if args.kubeconfig else Connection.in_cluster()

    try:
        if not args.cluster:
            connect().close()
    except IdentityError as error:
        unread = "" if args.cluster or args.kubeconfig or not os.environ.get("KUBECONFIG") else NOT_READ
        raise UsageError(f"{error}{unread}") from error
    address = args.advertise_address or args.bind_address, args.port
    return lambda offload: factory.build(
        configuration, connect(), offload=offload, address=address, settled=keep_what_was_listed
    )


def _say_what_is_left_out(loaded: Any) -> None:
    from extender.cli import standard_error

    for kind, count in loaded.unknown.items():
        standard_error.say(f"gang-extender: left out, since the kind is not known here: {count} {kind}")
    for field in loaded.misspelt:
        standard_error.say(f"gang-extender: {field}")

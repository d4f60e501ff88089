"""`gang-extender explain [NAMESPACE/NAME]`: what a gang waits for, and what would make it fit; without a name, all gangs.

Asks the ops listener of a running extender, which answers loopback only: in the pod by `kubectl exec`, else through
`kubectl port-forward`. The page's JSON is what `-o json` prints.
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from urllib.parse import quote, urlsplit

from extender.cli.errors import UsageError

SERVER = "http://127.0.0.1:8889"
SECONDS = 15.0


class ExplainError(OSError):
    """There is no answer to show: nothing listens, another program does, or the group is not there."""


EXAMPLES = {
    "explain": "all gangs, those in line first",
    "explain team-a/train": "why one waits, and what would make it fit",
    "explain -n team-a -o json": "a namespace's, for programs; `gang-extender schema gangs` describes it",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", nargs="?", metavar="NAMESPACE/NAME", help="the group; without it, a list of all")
    parser.add_argument(
        "-n",
        "--namespace",
        metavar="NAMESPACE",
        help="of a group that is named without one; the list has its groups only",
    )
    parser.add_argument(
        "--server", default=SERVER, metavar="URL", help="the ops listener of a running extender (%(default)s)"
    )
    parser.add_argument("-o", "--output", choices=("text", "json", "yaml"), default="text")


def run(args: argparse.Namespace) -> int:
    """0 with an answer, whatever it says of the gang; 1 where there is none."""
    from extender.api import codec
    from extender.cli import explain_text, terminal
    from extender.plugins.coscheduling.report.gang_status import GangStatus, GangSummary

    group = _group(args.group, args.namespace)
    body = _get(base_url(args.server), _path(group), group)
    if not group and args.namespace:
        body = _of_namespace(body, args.namespace)
    if args.output != "text":
        _dump(body, args.output)
        return 0
    now, shown_on = datetime.now(UTC), terminal.of()
    if group:
        lines = explain_text.page(codec.decode(body, GangStatus), now, shown_on)
    else:
        lines = explain_text.listing(codec.decode(body, list[GangSummary]), now, shown_on)
    print("\n".join(lines))
    return 0


def _group(name: str | None, namespace: str | None) -> str | None:
    """As NAMESPACE/NAME; None where none is named."""
    if not name:
        return None
    if namespace and "/" not in name:
        name = f"{namespace}/{name}"
    of, slash, rest = name.partition("/")
    if not (of and slash and rest) or "/" in rest:
        raise UsageError(f"{name}: wanted NAMESPACE/NAME, or NAME and -n NAMESPACE")
    if namespace and of != namespace:
        raise UsageError(f"{name}: not in the namespace of -n, {namespace}")
    return name


def _path(group: str | None) -> str:
    if not group:
        return "/gangs"
    namespace, _, name = group.partition("/")
    return f"/gangs/{quote(namespace, safe='')}/{quote(name, safe='')}"


def _of_namespace(body: bytes, namespace: str) -> bytes:
    """Of a list of groups those of one namespace, with all their fields."""
    import json

    try:
        return json.dumps([each for each in json.loads(body) if each["namespace"] == namespace]).encode()
    except (ValueError, TypeError, KeyError) as error:
        raise ExplainError(f"what answers is no list of groups: {error!r}") from error


def base_url(server: str) -> str:
    """Of `--server`. Raises UsageError for what is no URL."""
    try:
        parts = urlsplit(server)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise UsageError(f"--server {server}: wanted a URL such as {SERVER}")
    return server.rstrip("/")


def _get(base: str, path: str, group: str | None) -> bytes:
    import urllib3

    try:
        with urllib3.PoolManager(retries=False, timeout=SECONDS) as http:
            answer = http.request("GET", base + path, redirect=False)
            status, body = answer.status, answer.data
    except urllib3.exceptions.HTTPError as error:
        raise ExplainError(f"no extender answers at {base}: {_cause(error)}") from error
    if status == 200 and body[:1] in (b"{", b"["):
        return body
    if status == 404 and group and b"no such group" in body:
        raise ExplainError(f"no group {group} is known; `gang-extender explain` lists those that are")
    if status == 404:
        raise ExplainError(f"{base} does not show gangs: they are on the ops port, and for loopback only")
    if status == 503 and b"not seen the whole cluster" in body:
        raise ExplainError(
            f"nothing is known of gangs yet at {base}; ask again in a moment: {body[:500].decode(errors='replace').strip()}"
        )
    raise ExplainError(f"{base}{path} answered {status}: {body[:200].decode(errors='replace').strip()}")


def _cause(error: Exception) -> str:
    """The system's own word at the bottom of the chain, where there is one."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return str(error)


def _dump(body: bytes, output: str) -> None:
    if output == "json":
        sys.stdout.write(body.decode())
        return
    import json

    import yaml

    yaml.safe_dump(json.loads(body), sys.stdout, sort_keys=False, allow_unicode=True)

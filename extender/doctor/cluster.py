"""What a cluster lacks for the extender, asked of its API server: kinds and rights; and what the rest of this room finds there.

Reads only.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from extender.client import interface as kinds
from extender.client.errors import ApiError, NotFoundError
from extender.client.interface import API
from extender.config.findings import Finding, Severity
from extender.config.types import ExtenderConfiguration, NamespacedName
from extender.doctor import admission, clocks, definitions, group_kinds, pods
from extender.doctor.questions import Questions
from extender.scheduler.rights import Right, rights

ERROR, WARNING, INFO = Severity


def examine(
    api: API,
    configuration: ExtenderConfiguration | None,
    source: str,
    user: str,
    clock: clocks.Clock = clocks.this_machines,
    *,
    lease: NamespacedName | None = None,
    why: str = "",
) -> Iterator[Finding]:
    """configuration: None where it is not known, for the reason `why`. source: how the cluster was reached, the `file` of the findings.
    user: whose rights are asked; empty: our own. clock: this machine's. lease: the one to look at in place of the
    configuration's. What the API server refuses to us is a finding too; a server that does not answer is an ApiError."""
    known = configuration or ExtenderConfiguration()
    ask = Questions(api, known, source, user, "" if configuration is not None else why or "no file was given")
    if ask.unknown:
        yield _not_known(ask)
    yield from _served(ask)
    yield from definitions.examine(ask)
    yield from group_kinds.examine(ask)
    for right in rights(known):
        yield from _right(ask, right)
    yield from clocks.examine(ask, lease or known.leader_lease, clock)
    if not ask.unknown:
        yield from admission.examine(ask)
    yield from pods.examine(ask)


def _not_known(ask: Questions) -> Finding:
    message = (
        "the extender's configuration is not known: not examined are the schedulers that members name, keys of groups that nothing reads, "
        f"admission policies, and rights that only some settings want: {ask.unknown}"
    )
    fix = "name the file that it runs with by --config FILE"
    return ask.finding(INFO, "NotExamined", "", message, fix)


def _served(ask: Questions) -> Iterator[Finding]:
    try:
        _, forbidden = ask.read(str(kinds.POD_GROUPS), partial(ask.api.list_page, kinds.POD_GROUPS, limit=1))
        yield from forbidden
    except NotFoundError:
        message = "the kind is not served: pods that name a PodGroup wait, gangs by labels alone start"
        fix = "kubectl apply --server-side -k manifests/crd"
        yield ask.finding(WARNING, "NoPodGroups", str(kinds.POD_GROUPS), message, fix)


def _right(ask: Questions, right: Right) -> Iterator[Finding]:
    lost, forbidden = ask.read("subjectaccessreviews", partial(right.missing, ask.api, ask.user))
    yield from forbidden
    if lost:
        yield right.finding(ask.source, ask.user, lost)


def unreachable(source: str, error: ApiError) -> Finding:
    """The API server does not answer, or does not know us."""
    return Finding(ERROR, "Unreachable", source, 0, "", str(error), "check the kubeconfig: server, CA, user")

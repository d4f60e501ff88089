"""What a running extender says of itself: checks that fail, what it sees to be wrong, and whether it runs with the file that was given.

Asked at its ops listener, of which the page is for loopback only: in the pod, or through `kubectl port-forward`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from extender.api import codec
from extender.config.effective import differences, effective
from extender.config.findings import Finding, Severity, finding
from extender.doctor.config_files import ExtenderFile
from extender.scheduler.interface import CONFIGURATION
from extender.scheduler.running_configuration import ConfigurationPage

DIFFERENCES_SHOWN = 20
FAILED = "[-]"


Ask = Callable[[str], tuple[int, bytes]]
"""Status and body of a page, by its path. Raises OSError where none answers, which says so."""


def examine(server: str, file: ExtenderFile | None, ask: Ask) -> Iterator[Finding]:
    """server: the URL of the ops listener, or what is asked in its place: the `file` of the findings. file: what the extender is to run
    with, where that is known."""
    try:
        ready, page = ask("/readyz?verbose"), ask(CONFIGURATION)
    except OSError as error:
        fix = "name the ops listener of one, or forward its port"
        yield Finding(Severity.ERROR, "NoAnswer", server, 0, "", str(error), fix)
        return
    yield from _checks(server, ready)
    yield from _page(server, page, file)


def _checks(server: str, answer: tuple[int, bytes]) -> Iterator[Finding]:
    for line in answer[1].decode(errors="replace").splitlines():
        if line.startswith(FAILED):
            name, _, reason = line.removeprefix(FAILED).partition(" failed: ")
            fix = "mend what it says; docs/troubleshooting.md knows most of them"
            yield Finding(Severity.ERROR, "NotReady", server, 0, name, reason, fix)


def _page(server: str, answer: tuple[int, bytes], file: ExtenderFile | None) -> Iterator[Finding]:
    status, body = answer
    try:
        page = codec.decode(body, ConfigurationPage) if status == 200 else None
    except codec.DecodeError:
        page = None
    if page is None:
        message = f"{CONFIGURATION} is not shown there ({status}): it is on the ops port of an extender, and for loopback only"
        fix = "ask in its pod, or through `kubectl port-forward`"
        yield Finding(Severity.ERROR, "NoAnswer", server, 0, "", message, fix)
        return
    yield from (replace(each, file=server) for each in page.findings)
    if file is not None:
        yield from _differences(server, page, file)


def _differences(server: str, page: ConfigurationPage, file: ExtenderFile) -> Iterator[Finding]:
    """The file was changed, and the process was not started anew; or it runs with another one."""
    fields = differences(page.configuration, effective(file.read))
    fix = "restart the extender with this file: it reads it at the start only"
    for field in fields[:DIFFERENCES_SHOWN]:
        message = f"the extender at {server} runs with another value"
        yield finding(Severity.WARNING, "ConfigurationDiffers", file.document, field, message, fix)
    if len(fields) > DIFFERENCES_SHOWN:
        message = f"{len(fields) - DIFFERENCES_SHOWN} more fields differ"
        yield finding(Severity.WARNING, "ConfigurationDiffers", file.document, "", message, fix)

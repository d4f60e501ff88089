"""What every part of the doctor asks a cluster by: the API server, and how findings about it are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from extender.client.errors import ForbiddenError
from extender.client.interface import API
from extender.config.findings import Finding, Severity
from extender.config.types import ExtenderConfiguration

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Questions:
    """configuration: the defaults where it is not known, for the reason `unknown`. source: how the cluster was reached, the `file` of the
    findings. user: whose rights are examined; empty: our own."""

    api: API
    configuration: ExtenderConfiguration
    source: str
    user: str
    unknown: str = ""

    def finding(self, severity: Severity, code: str, field: str, message: str, fix: str) -> Finding:
        return Finding(severity, code, self.source, 0, field, message, fix)

    def read(self, what: str, call: Callable[[], T]) -> tuple[T | None, list[Finding]]:
        """What the call gives; None and a finding where we may not ask."""
        try:
            return call(), []
        except ForbiddenError as error:
            fix = "ask as a user that may read it"
            return None, [self.finding(Severity.INFO, "NotExamined", what, f"not examined: {error}", fix)]

"""What is wrong with a configuration: one finding for each thing, with its place and what to do about it.

The doctor makes them of files and clusters, the running extender of what it sees while it runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from extender.config.yaml_file import Document
from extender.redaction import redacted


class Severity(Enum):
    """ERROR: gangs start in part, or not at all. WARNING: they start late, or a protection is missing. INFO: good to know."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """code: one word in CamelCase, as reasons of conditions are. file: where it was found; for a cluster or a running extender what was
    asked there. line 0: of no line. field: as in `extenders[0].ignorable`, or empty. fix: what to write or do, in a sentence."""

    severity: Severity
    code: str
    file: str
    line: int
    field: str
    message: str
    fix: str

    def __post_init__(self) -> None:
        """No finding tells a secret: its place may be a URL, its message another program's."""
        object.__setattr__(self, "file", redacted(self.file))
        object.__setattr__(self, "message", redacted(self.message))

    @property
    def is_wrong(self) -> bool:
        return self.severity is not Severity.INFO

    @property
    def place(self) -> str:
        return ": ".join(filter(None, (f"{self.file}:{self.line}" if self.line else self.file, self.field)))


def finding(severity: Severity, code: str, document: Document, field: str, message: str, fix: str) -> Finding:
    """One about a field of a file; a field that is not there stands on the line of the nearest around it."""
    return Finding(severity, code, document.file, document.line(field), field, message, fix)

"""The configuration that this process runs with, and what it has found to be wrong with it, or with kube-scheduler's.

For the log at the start, the check `configuration` of /readyz, a metric, and the page /configuration, which the doctor reads.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec import Struct

from extender.config.effective import effective
from extender.config.findings import Finding
from extender.config.types import ExtenderConfiguration

log = logging.getLogger(__name__)


class ConfigurationPage(Struct, frozen=True):
    """configuration: as a file that says all of it would have it. findings: of no file."""

    configuration: dict[str, Any]
    findings: tuple[Finding, ...]


class RunningConfiguration:
    """sources: each tells what it finds now."""

    def __init__(
        self, configuration: ExtenderConfiguration, sources: Sequence[Callable[[], Iterable[Finding]]]
    ) -> None:
        self._effective = effective(configuration)
        self._sources = sources

    def findings(self) -> tuple[Finding, ...]:
        return tuple(each for source in self._sources for each in source())

    def page(self) -> ConfigurationPage:
        return ConfigurationPage(self._effective, self.findings())

    def log(self) -> None:
        """One line, of JSON."""
        log.info("configuration in effect configuration=%s", json.dumps(self._effective, separators=(",", ":")))

"""The extender and the kube-scheduler that asks it: made, started and stopped as one.

Used by conftest for a module's programs, and by tests that need other settings than those or that kill one of the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.control_plane import ADMIN, ControlPlane, Scheduler
from tests.e2e.extender import Extender


@dataclass
class Pair:
    """In the order in which they are started: kube-scheduler asks from its first pod on."""

    extender: Extender
    scheduler: Scheduler

    @classmethod
    def of(
        cls,
        plane: ControlPlane,
        folder: Path,
        *,
        token: str = ADMIN,
        scheduler_token: str = ADMIN,
        as_shipped: bool = False,
        settings: Mapping[str, Any] | None = None,
        server: str = "",
        env: Mapping[str, str] | None = None,
        asked: bool = False,
        change: Callable[[dict[str, Any]], None] = lambda config: None,
    ) -> Pair:
        """Not started yet. token: the extender's rights; settings: of its configuration; server: the API
        server's URL for it, where something stands in between; env: of its process; asked: see Extender; change: kube-scheduler's."""
        kubeconfig = plane.kubeconfig(token, server)
        extender = Extender(folder, kubeconfig, as_shipped=as_shipped, settings=settings, env=env, asked=asked)
        scheduler = Scheduler(
            plane, folder, extender=extender.url, token=scheduler_token, as_shipped=as_shipped, change=change
        )
        return cls(extender, scheduler)

    def __iter__(self) -> Iterator[Extender | Scheduler]:
        return iter((self.extender, self.scheduler))

    def start(self) -> Pair:
        """Both, or none."""
        try:
            for program in self:
                program.start()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        self.scheduler.stop()
        self.extender.stop()

    @contextmanager
    def running(self) -> Iterator[Pair]:
        self.start()
        try:
            yield self
        finally:
            self.stop()

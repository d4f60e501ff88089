"""What a plugin, or a whole extension point, says of a pod.

None never stands for success here: SUCCESS does. A Status is an expected outcome; a broken promise is an exception,
which the runtime turns into Code.ERROR in one place.
kube-scheduler: k8s.io/kube-scheduler/framework/interface.go (Code, Status)
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Code(IntEnum):
    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    def __str__(self) -> str:
        return _CODE_NAMES[self]


_CODE_NAMES = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}

_REJECTED = frozenset({Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING})


@dataclass(frozen=True, slots=True)
class Status:
    code: Code = Code.SUCCESS
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def success(self) -> bool:
        return self.code is Code.SUCCESS

    @property
    def skip(self) -> bool:
        return self.code is Code.SKIP

    @property
    def wait(self) -> bool:
        return self.code is Code.WAIT

    @property
    def rejected(self) -> bool:
        """The pod was judged and refused, as against an error. Go: Status.IsRejected."""
        return self.code in _REJECTED

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)

    def with_plugin(self, plugin: str) -> Status:
        return self if self.plugin == plugin else Status(self.code, self.reasons, plugin)


SUCCESS = Status()
SKIP = Status(Code.SKIP)


def unschedulable(*reasons: str, plugin: str = "") -> Status:
    """Refused, and preemption might help."""
    return Status(Code.UNSCHEDULABLE, reasons, plugin)


def unresolvable(*reasons: str, plugin: str = "") -> Status:
    """Refused, and no preemption helps."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons, plugin)


def wait(*reasons: str) -> Status:
    return Status(Code.WAIT, reasons)


def error(*reasons: str, plugin: str = "") -> Status:
    return Status(Code.ERROR, reasons, plugin)

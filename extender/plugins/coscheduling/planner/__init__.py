"""Places a whole gang at once: a pure function of a snapshot, the members and what is promised to others.

GangSetPlanning and preemption ask it through `offload`: it takes no lock, does no I/O and does not log, so that it can
run on a native thread. `planning.plan` is the door; `request` has the words, `alike` and `constrained` the two ways.
"""

import numpy.ma  # noqa: F401  - np.unique imports it when it is first called, which would be under import locks on a native thread

from extender.plugins.coscheduling.planner.domains import UnknownLevelError
from extender.plugins.coscheduling.planner.foreseen import MOST_PIECES, NATIVE, asking_for
from extender.plugins.coscheduling.planner.members import judged_shape_of, looks_at_others, shape_of
from extender.plugins.coscheduling.planner.one_member import open_nodes, place_one
from extender.plugins.coscheduling.planner.planning import plan
from extender.plugins.coscheduling.planner.request import (
    Branch,
    Cause,
    DomainFit,
    Foreseen,
    Judge,
    Leaf,
    Minimum,
    NoPlacement,
    Placement,
    Request,
    Sliced,
    Topology,
    Trial,
)
from extender.plugins.coscheduling.planner.room import capacity_for

__all__ = [
    "MOST_PIECES",
    "NATIVE",
    "Branch",
    "Cause",
    "DomainFit",
    "Foreseen",
    "Judge",
    "Leaf",
    "Minimum",
    "NoPlacement",
    "Placement",
    "Request",
    "Sliced",
    "Topology",
    "Trial",
    "UnknownLevelError",
    "asking_for",
    "capacity_for",
    "judged_shape_of",
    "looks_at_others",
    "open_nodes",
    "place_one",
    "plan",
    "shape_of",
]

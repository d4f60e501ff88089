"""The order of arrival in which kube-scheduler, judging one pod at a time, accepts each planned member on its node.

Required affinity to a member needs that member in place, DoNotSchedule spread counts only those in place: a sibling that is
nominated is counted against a pod and never for it. Required affinity of a pod to pods like itself lets the first of them go
anywhere, and only the first: a member that it would match must not come before it elsewhere. All else can only get worse as members
come, and the whole placement was judged: for that any order will do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from extender.framework.node_info import NodeInfo
from extender.plugins.coscheduling.planner.constrained import Step
from extender.plugins.coscheduling.planner.domains import label_of
from extender.plugins.coscheduling.planner.members import Shape, hard_spread, may_be_first
from extender.plugins.coscheduling.planner.request import Deadline, Trial

Waves = tuple[frozenset[str], ...]


def waves(nodes: Sequence[NodeInfo], shapes: Sequence[Shape], sequence: Sequence[Step], deadline: Deadline) -> Waves:
    """One wave where the order does not matter. Falls back to one member at a time, in the order in which they were
    placed, where no larger waves can be told."""
    if not any(_needs_order(shape) for shape in shapes):
        return (_uids(sequence),) if sequence else ()
    arrival = _Arrival(nodes, shapes)
    result: list[frozenset[str]] = []
    waiting = list(sequence)
    while waiting:
        deadline.check()
        wave = arrival.next_wave(waiting)
        if not wave:
            return tuple(_uids([step]) for step in sequence)
        arrival.put(wave)
        come = _uids(wave)
        result.append(come)
        waiting = [step for step in waiting if step[1].pod.metadata.uid not in come]
    return tuple(result)


def _uids(steps: Iterable[Step]) -> frozenset[str]:
    return frozenset(member.pod.metadata.uid for _, member, _ in steps)


def _needs_order(shape: Shape) -> bool:
    return bool(shape.members.first.required_affinity_terms or _spread_keys(shape))


def _spread_keys(shape: Shape) -> list[str]:
    return sorted({constraint.topology_key for constraint in hard_spread(shape.members.first)})


def _keys_of_firsts(shape: Shape) -> list[str]:
    """The labels by which a member that may be the first of its kind looks at those that come after it; none for others."""
    return (
        sorted({term.topology_key for term in shape.members.first.required_affinity_terms})
        if may_be_first(shape)
        else []
    )


class _Arrival:
    """The cluster with the waves so far in place."""

    def __init__(self, nodes: Sequence[NodeInfo], shapes: Sequence[Shape]) -> None:
        self._nodes = list(nodes)
        self._shapes = shapes
        self._keys = [_spread_keys(shape) for shape in shapes]
        self._keys_of_firsts = [_keys_of_firsts(shape) for shape in shapes]
        self._trials = [shape.trial.clone() for shape in shapes]
        self._own: set[int] = set()  # nodes that are clones already

    def put(self, steps: Iterable[Step]) -> None:
        for _, member, at in steps:
            if at not in self._own:
                self._own.add(at)
                self._nodes[at] = self._nodes[at].clone()
            self._nodes[at].add_pod(member)
            for trial in self._trials:
                trial.add_pods([(member, self._nodes[at], {})])

    def next_wave(self, waiting: Sequence[Step]) -> list[Step]:
        """Members each of which is accepted whichever of the others have come before it."""
        wave: list[Step] = []
        with_wave = [trial.clone() for trial in self._trials]
        refused: set[tuple[int, int]] = set()
        harmless: set[object] = set()
        for step in waiting:
            number, member, at = step
            if (number, at) in refused:
                continue
            node = self._nodes[at]
            accepted = self._trials[number].filter(node).success and with_wave[number].filter(node).success
            if accepted and self._in_any_order(step, wave) and self._firsts_may_be_second(step, wave, harmless):
                wave.append(step)
                for trial in with_wave:
                    trial.add_pods([(member, node, {})])
            else:
                refused.add((number, at))
        return wave

    def _in_any_order(self, step: Step, wave: Sequence[Step]) -> bool:
        """Spread is at its worst for a member where of the wave just those have come that share its domain."""
        for key in self._keys[step[0]]:
            before = self._sharing(step, wave, key)
            if before and not self._accepted(step, before):
                return False
        judged: set[tuple[int, str]] = {(step[0], "")}
        for other in wave:  # and for those of other shapes, the newcomer included; those of its own shape are as it is
            if other[0] == step[0]:
                continue
            for key in self._keys[other[0]]:
                if (other[0], key) in judged or not self._sharing(step, [other], key):
                    continue
                judged.add((other[0], key))
                before = [one for one in self._sharing(step, wave, key) if one is not other]
                if not self._accepted(other, [*before, step]):
                    return False
        return True

    def _firsts_may_be_second(self, step: Step, wave: Sequence[Step], harmless: set[object]) -> bool:
        """Where one does not mind any single other coming before it, it minds none of them. harmless: pairs judged before."""
        if not any(self._keys_of_firsts):
            return True
        for other in wave:
            for one, before in ((step, other), (other, step)):
                keys = self._keys_of_firsts[one[0]]
                if not keys:
                    continue
                pair = (one[0], self._labels(one, keys), before[0], self._labels(before, keys))
                if pair not in harmless and not self._accepted(one, [before]):
                    return False
                harmless.add(pair)
        return True

    def _labels(self, step: Step, keys: Sequence[str]) -> tuple[str | None, ...]:
        return tuple(label_of(self._nodes[step[2]], key) for key in keys)

    def _sharing(self, step: Step, wave: Sequence[Step], key: str) -> list[Step]:
        value = label_of(self._nodes[step[2]], key)
        return [one for one in wave if label_of(self._nodes[one[2]], key) == value]

    def _accepted(self, step: Step, before: Sequence[Step]) -> bool:
        trial: Trial = self._trials[step[0]].clone()
        for _, member, at in before:
            trial.add_pods([(member, self._nodes[at], {})])
        return trial.filter(self._nodes[step[2]]).success

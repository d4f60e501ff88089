"""What every plugin says of a scenario, in the parity corpus' own schema: `evaluate` prints it, the parity tests compare it.

All nodes are looked at: sampling, and which of several equals is taken, are left out of it (`bestSet`, `chosenSet`).
kube-scheduler: pkg/scheduler/schedule_one.go (schedulePod), pkg/scheduler/framework/preemption
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from extender.framework.aggregate import aggregate
from extender.framework.cycle_state import CycleState
from extender.framework.diagnosis import Diagnosis, FitError
from extender.framework.interface import NodeToStatus, NominatingMode, PreFilterResult
from extender.framework.node_info import NodeInfo
from extender.framework.preemption.candidate import Candidate, Victims
from extender.framework.preemption.dry_run import DryRun, dry_run_preemption, try_node
from extender.framework.preemption.ordering import ABOVE_ANY_PRIORITY, default_score_functions
from extender.framework.resource import Resource
from extender.framework.runtime.scoring_points import PluginScores
from extender.framework.status import SUCCESS, Code, Status, unresolvable, unschedulable
from extender.plugins import names
from extender.plugins.default_preemption import DefaultPreemption
from extender.scheduler.in_process.schedule_one import Algorithm, NoNodesAvailableError, SchedulingError
from extender.simulation.gang_evaluation import chosen, gang_answer, guard_answer
from extender.simulation.gangs import Gangs
from extender.simulation.scenario import BuiltScenario

Json = dict[str, Any]


class EvaluationError(Exception):
    """A plugin broke its promise; the text is the status'."""


def evaluate(built: BuiltScenario) -> Json:
    """`nodeOrder` to `preemption`. Raises EvaluationError, NoNodesAvailableError."""
    return _Evaluation(built).answer()


class _Evaluation:
    """One pod's cycle over one snapshot, looked at from all sides."""

    def __init__(self, built: BuiltScenario) -> None:
        self._scenario = built
        self._framework = built.framework
        self._pod = built.pod
        self._nodes = built.snapshot.list()
        self._state = CycleState()
        self._statuses = NodeToStatus({}, unresolvable())
        self._verdicts: dict[str, Status] = {}
        self._candidates: Sequence[Candidate] = ()
        self._extenders = Algorithm(built.extenders)
        self._framework.set_snapshot(built.snapshot)

    def answer(self) -> Json:
        if not self._nodes:
            raise NoNodesAvailableError
        result, status, narrowing = self._framework.run_pre_filter_plugins(self._state, self._pod, self._nodes)
        if status.code is Code.ERROR:
            raise EvaluationError(status.message)
        answer: Json = {
            "nodeOrder": [node.name for node in self._nodes],
            "preFilter": self._pre_filter(result, status, narrowing),
        }
        diagnosis = Diagnosis(node_to_status=self._statuses)
        if status.success:
            tried = self._narrowed(result, narrowing)
            feasible = self._filtered(tried)
        else:
            tried, feasible = [], []
            self._statuses.absent = status
            diagnosis.pre_filter_message = status.message
        scores: Sequence[PluginScores] = ()
        if feasible:
            scores = self._scored(feasible, answer)
        answer["nodes"] = [self._node(node, tried, feasible, scores) for node in self._nodes]
        answer["feasible"] = [node.name for node in feasible] or None
        if feasible:
            answer["bestSet"] = self._best(feasible, scores)
        else:
            answer["fitError"] = str(FitError(self._pod, len(self._nodes), diagnosis))
            answer["preemption"] = self._preemption()
        if self._scenario.gangs is not None:
            self._with_gangs(self._scenario.gangs, answer)
        return answer

    def _with_gangs(self, gangs: Gangs, answer: Json) -> None:
        """What the extender adds: its guard, where kube-scheduler would preempt, and the plan of the pod's own gang."""
        gangs.look()
        preemption: Json = dict(answer.get("preemption") or {})
        if "candidates" in preemption:
            preemption["guard"] = guard_answer(gangs, self._pod, self._candidates)
        gang = gangs.of(self._pod)
        if gang is not None:
            preemption["gang"] = gang_answer(gang)
        if preemption:
            answer["preemption"] = preemption

    def _pre_filter(self, result: PreFilterResult | None, status: Status, narrowing: frozenset[str]) -> Json:
        answer: Json = {"verdict": _verdict(status)}
        allowed = result.node_names if result is not None else None
        if allowed is not None:
            answer["nodeNames"] = sorted(allowed)
        answer["allNodes"] = allowed is None
        answer["skipFilterPlugins"] = sorted(self._state.skip_filter_plugins)
        if narrowing:
            answer["pluginsWithNodes"] = sorted(narrowing)
        return answer

    def _narrowed(self, result: PreFilterResult | None, narrowing: frozenset[str]) -> list[NodeInfo]:
        if result is None or result.node_names is None:
            return list(self._nodes)
        self._statuses.absent = unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(narrowing))}]")
        return [node for node in self._nodes if node.name in (result.node_names or ())]

    def _filtered(self, nodes: Sequence[NodeInfo]) -> list[NodeInfo]:
        """Those that pass the filters, and the extender where the scenario says what it answered."""
        feasible = []
        for node in nodes:
            status = self._framework.run_filter_plugins_with_nominated_pods(self._state, self._pod, node)
            if status.code is Code.ERROR:
                raise EvaluationError(status.message)
            if status.success:
                status = self._extender_says(node.name)
            self._verdicts[node.name] = status
            if status.success:
                feasible.append(node)
            else:
                self._statuses.statuses[node.name] = status
        return self._passed_by_extenders(feasible)

    def _passed_by_extenders(self, nodes: Sequence[NodeInfo]) -> list[NodeInfo]:
        """Those that may be asked."""
        try:
            feasible = self._extenders.nodes_that_pass_extenders(self._pod, nodes, self._statuses)
        except SchedulingError as error:
            raise EvaluationError(str(error)) from error
        left = {node.name for node in feasible}
        for node in nodes:
            if node.name not in left:
                self._verdicts[node.name] = self._statuses.get(node.name)
        return list(feasible)

    def _extender_says(self, name: str) -> Status:
        if (message := self._scenario.extender_unresolvable.get(name)) is not None:
            return unresolvable(message)
        if (message := self._scenario.extender_failed.get(name)) is not None:
            return unschedulable(message)
        return SUCCESS

    def _scored(self, feasible: Sequence[NodeInfo], answer: Json) -> Sequence[PluginScores]:
        status = self._framework.run_pre_score_plugins(self._state, self._pod, feasible)
        answer["preScore"] = _verdict(status)
        answer["skipScorePlugins"] = sorted(self._state.skip_score_plugins)
        if not status.success:
            raise EvaluationError(status.message)
        scores, status = self._framework.score_by_plugin(self._state, self._pod, feasible)
        if not status.success:
            raise EvaluationError(status.message)
        return scores

    def _node(
        self, node: NodeInfo, tried: Sequence[NodeInfo], feasible: Sequence[NodeInfo], scores: Sequence[PluginScores]
    ) -> Json:
        answer: Json = {"name": node.name, "verdict": _verdict(self._verdicts.get(node.name, self._statuses.absent))}
        alone = self._each_alone(node) if node in tried else {}
        if alone:
            answer["perPlugin"] = alone
        answer.update(_amounts(node))
        if node in feasible:
            at = feasible.index(node)
            answer["scores"] = {
                each.plugin: {
                    "raw": int(each.raw[at]),
                    "norm": int(each.normalized[at]),
                    "weighted": int(each.normalized[at]) * each.weight,
                }
                for each in sorted(scores, key=lambda each: each.plugin)
            }
            answer["total"] = sum(score["weighted"] for score in answer["scores"].values())
        return answer

    def _each_alone(self, node: NodeInfo) -> Json:
        """What each filter would say if it were the only one, with no pod nominated; those that pass are left out."""
        refused = {}
        for plugin in self._framework.filter_plugins:
            if plugin.name in self._state.skip_filter_plugins:
                continue
            status = plugin.filter(self._state, self._pod, node)
            if not status.success:
                refused[plugin.name] = _verdict(status)
        return dict(sorted(refused.items()))

    def _preemption(self) -> Json | None:
        """All candidates from the first node on, whether or not the pod may preempt; `postFilter` is what comes of it."""
        plugin = self._framework.plugins.get(names.DEFAULT_PREEMPTION)
        if not isinstance(plugin, DefaultPreemption):
            return None
        eligible, reason = plugin.pod_eligible_to_preempt_others(
            self._pod, self._statuses.get(self._pod.status.nominated_node_name)
        )
        nodes = plugin.evaluator.potential_nodes(self._statuses)
        enough = plugin.get_offset_and_num_candidates(len(nodes))[1] if nodes else 0
        pdbs = plugin.evaluator.pdbs()
        found = dry_run_preemption(plugin, self._state, self._pod, nodes, pdbs, 0, enough) if nodes else DryRun()
        answer: Json = {"eligible": eligible}
        if reason:
            answer["ineligibleReason"] = reason
        answer["potentialNodes"] = [node.name for node in nodes]
        answer["numCandidates"] = enough
        answer["perNode"] = {
            node.name: _victims(try_node(plugin, self._state, self._pod, node, pdbs)) for node in nodes
        }
        answer["candidates"] = [candidate.name for candidate in found.candidates]
        if found.errors:
            answer["dryRunError"] = aggregate(found.errors)
        answer["criteria"] = {candidate.name: _criteria(candidate.victims) for candidate in found.candidates}
        answer["chosenSet"] = chosen({each.name: each.victims for each in found.candidates}) if nodes else None
        answer["postFilter"] = self._post_filter()
        self._candidates = found.candidates
        return answer

    def _best(self, feasible: Sequence[NodeInfo], scores: Sequence[PluginScores]) -> list[str]:
        """The node that the pod is nominated to, if it passes: no plugin scores then. Else those with the highest total."""
        totals = dict(_totals(feasible, scores))
        for name, added in self._extenders.extender_scores(self._pod, feasible).items():
            totals[name] = totals.get(name, 0) + added
        if (nominated := self._pod.status.nominated_node_name) in totals:
            return [nominated]
        best = max(totals.values())
        return [name for name, total in totals.items() if total == best]

    def _post_filter(self) -> Json:
        result, status = self._framework.run_post_filter_plugins(self._state, self._pod, self._statuses)
        nominating = result is not None and result.mode is NominatingMode.OVERRIDE
        return {
            "verdict": _verdict(status),
            "hasResult": result is not None,
            "nominatedNode": result.nominated_node_name if result is not None else "",
            "nominatingMode": int(nominating),
        }


def _verdict(status: Status) -> Json:
    answer: Json = {"code": str(status.code)}
    if status.plugin:
        answer["plugin"] = status.plugin
    if status.reasons:
        answer["reasons"] = list(status.reasons)
    answer["unresolvable"] = status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    return answer


def _victims(tried: tuple[Victims, Status]) -> Json:
    victims, status = tried
    answer: Json = {"verdict": _verdict(status)}
    if victims.pods:
        answer["victims"] = [pod.key for pod in victims.pods]
    answer["numPDBViolations"] = victims.num_pdb_violations
    return answer


def _criteria(victims: Victims) -> Json:
    earliest = default_score_functions({"": victims})[-1]("")
    return {
        "numPDBViolations": victims.num_pdb_violations,
        "highestPriority": victims.pods[0].priority,
        "sumPriorities": sum(pod.priority + ABOVE_ANY_PRIORITY for pod in victims.pods),
        "numVictims": len(victims.pods),
        "earliestStartUnixNano": earliest,
    }


def _totals(feasible: Sequence[NodeInfo], scores: Sequence[PluginScores]) -> Mapping[str, int]:
    totals = [sum(int(each.normalized[at]) * each.weight for each in scores) for at in range(len(feasible))]
    return {node.name: total for node, total in zip(feasible, totals)}


def _amounts(node: NodeInfo) -> Json:
    def of(resource: Resource, pods: int) -> Json:
        amounts: Json = {
            "milliCPU": resource.milli_cpu,
            "memory": resource.memory,
            "ephemeralStorage": resource.ephemeral_storage,
            "pods": pods,
        }
        if resource.scalar:
            amounts["scalar"] = dict(sorted(resource.scalar.items()))
        return amounts

    return {
        "allocatable": of(node.allocatable, node.allocatable.allowed_pod_number),
        "requested": of(node.requested, len(node.pods)),
        "nonZeroRequested": {
            "milliCPU": node.non_zero_milli_cpu,
            "memory": node.non_zero_memory,
            "ephemeralStorage": 0,
            "pods": len(node.pods),
        },
    }

"""What the extender would say to a preemption, and a gang's own, as JSON: beside kube-scheduler's answer in `evaluate`.

Everything is decided by the guard and the search for victims that the verb preempt and the pages use.
No counterpart in kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from extender.api import corev1
from extender.framework.preemption.candidate import Candidate, Victims
from extender.framework.preemption.ordering import best_nodes, default_score_functions
from extender.plugins.coscheduling.preemption.guard import Review, Veto
from extender.plugins.coscheduling.preemption.planning import VictimPlan
from extender.plugins.coscheduling.preemption.reselection import Selection
from extender.simulation.gangs import GangAnswer, Gangs

Json = dict[str, Any]

OWN_CHOICE = "own_choice"
RESELECTED = "reselected"
TEXTS: Mapping[Veto, str] = {
    Veto.GANG_MEMBER: "no pod is evicted for a single member of a gang without a plan",
    Veto.HELD: "no pod need be evicted: members that wait in bind free the room",
    Veto.GANG_FRACTION: "a fraction of a running gang would be left",
    Veto.COSTLIER: "another candidate costs less: in budgets, then top priority, then gangs",
}


def guard_answer(gangs: Gangs, pod: corev1.Pod, candidates: Sequence[Candidate]) -> Json:
    """What the verb preempt says to the candidates that kube-scheduler has found."""
    if not candidates:  # no extender is asked then
        return {"verdict": OWN_CHOICE, "candidates": [], "chosenSet": []}
    review = gangs.review(pod, candidates)
    answer: Json = {"verdict": _verdict(review)}
    if review.veto is not None:
        answer["message"] = TEXTS[review.veto]
    if review.release is not None:
        answer["letGo"] = {"node": review.release.node_name, "gangs": list(review.release.groups)}
    answer["candidates"] = list(_candidates(gangs, review, candidates))
    answer["chosenSet"] = chosen({one.name: one.victims for one in review.usable})
    return answer


def _verdict(review: Review) -> str:
    if review.veto is not None:
        return review.veto.value
    return RESELECTED if review.selections else OWN_CHOICE


def _candidates(gangs: Gangs, review: Review, offered: Sequence[Candidate]) -> Sequence[Json]:
    """In the guard's order; those that may not be used at all come last, as kube-scheduler would have them."""
    usable = {one.name for one in review.usable}
    listed = [_selected(each, usable=each.node_name in usable) for each in review.selections]
    known = {each.node_name for each in review.selections}
    for one in offered:
        if one.name in usable - known:
            listed.append({"usable": True, **_offered(one)})
        elif one.name not in known:
            because = _because(review.veto or Veto.GANG_FRACTION)
            listed.append({"usable": False, **_offered(one), "gangs": gangs.names_of(one.victims.pods), **because})
    return listed


def _offered(one: Candidate) -> Json:
    victims = [victim.key for victim in one.victims.pods]
    return {"node": one.name, "victims": victims, "numPDBViolations": one.victims.num_pdb_violations}


def _because(veto: Veto) -> Json:
    return {"reason": veto.value, "message": TEXTS[veto]}


def _selected(selection: Selection, *, usable: bool) -> Json:
    """takes: the most that is taken there, of what is taken in this order."""
    answer: Json = {
        "usable": usable,
        "node": selection.node_name,
        "victims": [victim.key for victim in selection.victims],
        "numPDBViolations": selection.violations,
        "takes": "wholeGangs" if selection.broken else "surplus" if selection.from_gangs else "lonePods",
    }
    if selection.broken:
        answer["brokenGangs"] = sorted(selection.broken)
    if selection.elsewhere:
        answer["elsewhere"] = _by_node((each.pod.key, each.node_name) for each in selection.elsewhere)
    return answer if usable else {**answer, **_because(Veto.COSTLIER)}


def gang_answer(answer: GangAnswer) -> Json:
    """Where the pod's gang goes at once; or which pods would have to go for it, or why none does."""
    gang = answer.status.gang
    json: Json = {"group": gang.key, "minMember": gang.min_member, "fits": bool(answer.nodes)}
    if answer.nodes:
        return {**json, "nodes": dict(sorted(answer.nodes.items()))}
    json |= {"reason": gang.reason, "message": gang.message}
    view = answer.status.preemption
    if answer.plan is not None:
        json |= _with_victims(answer.plan, answer)
    why_not = view.why_not if view is not None else gang.message or gang.reason
    return {**json, "whyNot": why_not} if why_not else json


def _with_victims(plan: VictimPlan, answer: GangAnswer) -> Json:
    violations, top, broken, total, count = plan.cost
    places = plan.placement.nodes
    return {
        "nodes": dict(sorted((answer.names[uid], node_name) for uid, node_name in places.items())),
        "victims": [
            {"pod": each.pod.key, "node": each.node_name, "priority": each.pod.priority}
            | ({"gang": each.gang} if each.gang else {})
            for each in plan.victims
        ],
        "perNode": _by_node((each.pod.key, each.node_name) for each in plan.victims),
        "brokenGangs": sorted(plan.broken_gangs),
        "awaited": sorted(answer.names[uid] for uid in plan.awaited),
        "criteria": {
            "numPDBViolations": violations,
            "highestPriority": top,
            "gangsBroken": broken,
            "sumPriorities": total,
            "numVictims": count,
        },
    }


def _by_node(pods: Iterable[tuple[str, str]]) -> Json:
    """(pod, node) pairs."""
    found: Json = {}
    for name, node_name in pods:
        found.setdefault(node_name, []).append(name)
    return dict(sorted(found.items()))


def chosen(victims: Mapping[str, Victims]) -> list[str]:
    """The nodes of which kube-scheduler would take one."""
    return sorted(best_nodes(list(victims), default_score_functions(victims))) if victims else []

"""The shape of what `evaluate` prints: what `gang-extender schema evaluate` is made of. docs/evaluate.md says what each field means.

evaluation and gang_evaluation build it as plain dicts, in the parity corpus' own schema, which the Go oracle writes as well; tests hold
every answer against these types, in which no field is unknown. UNSET: the field is left out.
"""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType, field


class Part(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Base: camelCase, and nothing that is not named here."""


class Verdict(Part, frozen=True):
    """A status of kube-scheduler's framework."""

    code: str
    unresolvable: bool
    plugin: str | UnsetType = UNSET
    reasons: list[str] | UnsetType = UNSET


class PreFilter(Part, frozen=True):
    """nodeNames: those that are left, where it narrows them down."""

    verdict: Verdict
    all_nodes: bool
    skip_filter_plugins: list[str]
    node_names: list[str] | UnsetType = UNSET
    plugins_with_nodes: list[str] | UnsetType = UNSET


class Amounts(Part, frozen=True):
    """Thousandths of a core, bytes, pods; scalar: by the name of the resource."""

    memory: int
    ephemeral_storage: int
    pods: int
    milli_cpu: int = field(name="milliCPU")
    scalar: dict[str, int] | UnsetType = UNSET


class PluginScore(Part, frozen=True):
    """As the plugin says it, normalized to 0..100, and times the plugin's weight."""

    raw: int
    norm: int
    weighted: int


class Node(Part, frozen=True):
    """perPlugin: what each filter that refuses would say alone. scores, total: of a feasible node."""

    name: str
    verdict: Verdict
    allocatable: Amounts
    requested: Amounts
    non_zero_requested: Amounts
    per_plugin: dict[str, Verdict] | UnsetType = UNSET
    scores: dict[str, PluginScore] | UnsetType = UNSET
    total: int | UnsetType = UNSET


class NodeVictims(Part, frozen=True):
    """What the dry run finds on one node; the most important victim first."""

    verdict: Verdict
    num_pdb_violations: int = field(name="numPDBViolations")
    victims: list[str] | UnsetType = UNSET


class Criteria(Part, frozen=True):
    """What kube-scheduler compares candidates by, in this order."""

    num_pdb_violations: int = field(name="numPDBViolations")
    highest_priority: int
    sum_priorities: int
    num_victims: int
    earliest_start_unix_nano: int


class PostFilter(Part, frozen=True):
    """What comes of it."""

    verdict: Verdict
    has_result: bool
    nominated_node: str
    nominating_mode: int


class GuardCandidate(Part, frozen=True):
    """One node as the verb preempt judges it. elsewhere: members of the broken gangs on other nodes, by node."""

    usable: bool
    node: str
    victims: list[str]
    num_pdb_violations: int = field(name="numPDBViolations")
    takes: str | UnsetType = UNSET
    broken_gangs: list[str] | UnsetType = UNSET
    elsewhere: dict[str, list[str]] | UnsetType = UNSET
    gangs: list[str] | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    message: str | UnsetType = UNSET


class LetGo(Part, frozen=True):
    """Members that wait in bind on a node, and are let go in place of an eviction."""

    node: str
    gangs: list[str]


class Guard(Part, frozen=True):
    """What the verb preempt answers to kube-scheduler's candidates."""

    verdict: str
    candidates: list[GuardCandidate]
    chosen_set: list[str]
    message: str | UnsetType = UNSET
    let_go: LetGo | UnsetType = UNSET


class GangVictim(Part, frozen=True):
    """A pod that would have to go; gang: with which it would go whole."""

    pod: str
    node: str
    priority: int
    gang: str | UnsetType = UNSET


class GangCriteria(Part, frozen=True):
    """What the choice of a gang's victims went by, in this order."""

    num_pdb_violations: int = field(name="numPDBViolations")
    highest_priority: int
    gangs_broken: int
    sum_priorities: int
    num_victims: int


class Gang(Part, frozen=True):
    """The plan of the pod's whole gang: nodes, if it fits; else why not, and what would be evicted for it."""

    group: str
    min_member: int
    fits: bool
    nodes: dict[str, str] | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    message: str | UnsetType = UNSET
    victims: list[GangVictim] | UnsetType = UNSET
    per_node: dict[str, list[str]] | UnsetType = UNSET
    broken_gangs: list[str] | UnsetType = UNSET
    awaited: list[str] | UnsetType = UNSET
    criteria: GangCriteria | UnsetType = UNSET
    why_not: str | UnsetType = UNSET


class Preemption(Part, frozen=True):
    """kube-scheduler's own, where the pod fits nowhere; guard and gang: what the extender adds, where there are groups."""

    eligible: bool | UnsetType = UNSET
    ineligible_reason: str | UnsetType = UNSET
    potential_nodes: list[str] | UnsetType = UNSET
    num_candidates: int | UnsetType = UNSET
    per_node: dict[str, NodeVictims] | UnsetType = UNSET
    candidates: list[str] | UnsetType = UNSET
    dry_run_error: str | UnsetType = UNSET
    criteria: dict[str, Criteria] | UnsetType = UNSET
    chosen_set: list[str] | UnsetType | None = UNSET
    post_filter: PostFilter | UnsetType = UNSET
    guard: Guard | UnsetType = UNSET
    gang: Gang | UnsetType = UNSET


class Answer(Part, frozen=True):
    """Of one scenario. error: why it could not be evaluated; there is nothing else then."""

    name: str
    error: str | UnsetType = UNSET
    node_order: list[str] | UnsetType = UNSET
    pre_filter: PreFilter | UnsetType = UNSET
    nodes: list[Node] | UnsetType = UNSET
    feasible: list[str] | UnsetType | None = UNSET
    pre_score: Verdict | UnsetType = UNSET
    skip_score_plugins: list[str] | UnsetType = UNSET
    best_set: list[str] | UnsetType = UNSET
    fit_error: str | UnsetType = UNSET
    preemption: Preemption | UnsetType | None = UNSET

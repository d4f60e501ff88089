"""The admission policies of manifests/gate and manifests/scheduler-name: there, bound, and of one mind with the configuration.

They are optional: where nothing of one is there nothing is said of it. Reads only.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from functools import partial
from typing import TypeVar

from extender.api.admissionregistrationv1 import VERSION, AdmissionPolicy, AdmissionPolicyBinding, ConfigMap
from extender.api.metadata_keys import Source
from extender.client.errors import NotFoundError
from extender.client.interface import PODS, ResourceType, list_all
from extender.config.findings import Finding, Severity
from extender.doctor.questions import Questions
from extender.plugins.coscheduling.spec.membership import GroupLabels
from extender.scheduler.rights import Right

T = TypeVar("T")
ERROR, WARNING, INFO = Severity

MUTATING = ResourceType(
    VERSION, "mutatingadmissionpolicies", "MutatingAdmissionPolicy", AdmissionPolicy, namespaced=False
)
MUTATING_BINDINGS = ResourceType(
    VERSION,
    "mutatingadmissionpolicybindings",
    "MutatingAdmissionPolicyBinding",
    AdmissionPolicyBinding,
    namespaced=False,
)
VALIDATING = ResourceType(
    VERSION, "validatingadmissionpolicies", "ValidatingAdmissionPolicy", AdmissionPolicy, namespaced=False
)
VALIDATING_BINDINGS = ResourceType(
    VERSION,
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
    AdmissionPolicyBinding,
    namespaced=False,
)
CONFIG_MAPS = ResourceType("v1", "configmaps", "ConfigMap", ConfigMap)

GATE, NAMES = "gang-extender-gate", "gang-extender-scheduler-name"
"""The policies, by the names of the manifests."""
UNGATE = Right(("patch",), PODS, "the gates that the policy puts on pods are never taken off: they wait for ever")
SETTINGS = "manifests/gate/groups.yaml", "manifests/scheduler-name/groups.yaml"


def examine(ask: Questions) -> Iterator[Finding]:
    policies, forbidden = ask.read(str(MUTATING), partial(_by_name, ask, MUTATING))
    if policies is None:
        yield from forbidden
        return
    bindings, forbidden = ask.read(str(MUTATING_BINDINGS), partial(_by_name, ask, MUTATING_BINDINGS))
    yield from forbidden
    gated = yield from _policy(ask, policies, bindings or {}, GATE)
    if gated is not None:
        yield from _gate(ask, policies[GATE], gated)
    named = yield from _policy(ask, policies, bindings or {}, NAMES)
    if named is not None:
        yield from _scheduler_name(ask, named)


def _by_name(ask: Questions, kind: ResourceType[T]) -> Mapping[str, T]:
    """Empty where the API server does not serve the kind."""
    try:
        return {each.metadata.name: each for each in list_all(ask.api, kind)}  # type: ignore[attr-defined]
    except NotFoundError:
        return {}


Settings = Mapping[str, str]


def _policy(
    ask: Questions,
    policies: Mapping[str, AdmissionPolicy],
    bindings: Mapping[str, AdmissionPolicyBinding],
    name: str,
) -> Generator[Finding, None, Settings | None]:
    """Returns what it is set to: the data of its ConfigMap; None where it is not in force, or that may not be read."""
    bound = [each for each in bindings.values() if each.spec.policy_name == name]
    if name not in policies:
        if bound:
            message = "the binding names a policy that is not there: no pod is changed"
            yield ask.finding(WARNING, "PolicyNotInForce", name, message, "apply the whole overlay")
        return None
    ref = bound[0].spec.param_ref if bound else None
    if not bound or ref is None:
        message = "no MutatingAdmissionPolicyBinding binds the policy with its settings: no pod is changed"
        yield ask.finding(WARNING, "PolicyNotInForce", name, message, "apply the whole overlay")
        return None
    try:
        found, forbidden = ask.read(
            f"configmaps {ref.namespace}/{ref.name}", partial(ask.api.get, CONFIG_MAPS, ref.name, ref.namespace)
        )
    except NotFoundError:
        message = f"its settings, the ConfigMap {ref.namespace}/{ref.name}, are not there: no pod is changed"
        yield ask.finding(WARNING, "PolicyNotInForce", name, message, "apply the whole overlay")
        return None
    yield from forbidden
    return found.data if found is not None else None


def _gate(ask: Questions, policy: AdmissionPolicy, settings: Settings) -> Iterator[Finding]:
    gate = ask.configuration.coscheduling_args.scheduling_gate
    if not policy.has(gate):
        message = (
            f"it does not set {gate}, the schedulingGate of the configuration: the gate that it sets is never taken off"
        )
        fix = "write the same name into the policy, its guard, and schedulingGate"
        yield ask.finding(ERROR, "GateDiffers", GATE, message, fix)
    for name in _lines(settings, "schedulerNames"):
        if not ask.configuration.serves(name):
            message = f"pods of {name!r} get the gate, and the extender does not serve them: they wait for ever"
            fix = f"take the name out of {SETTINGS[0]}, or add it to schedulerNames"
            yield ask.finding(ERROR, "GatedNotServed", f"{GATE}: schedulerNames", message, fix)
    yield from _keys_of_groups(ask, settings)
    lost, forbidden = ask.read("subjectaccessreviews", partial(UNGATE.missing, ask.api, ask.user))
    yield from forbidden
    if lost:
        yield UNGATE.finding(ask.source, ask.user, lost)
    elif not forbidden:
        yield from _guard(ask, gate)


def _keys_of_groups(ask: Questions, settings: Settings) -> Iterator[Finding]:
    """A pod that is gated and no member is never scheduled; a member that is not gated is scheduled all the same."""
    for field, source in (("groupLabels", Source.LABEL), ("groupAnnotations", Source.ANNOTATION)):
        counted = _counted(ask, source)
        for key in sorted(set(_lines(settings, field)) - counted):
            message = f"pods with {key} get the gate, and the configuration does not count them as members: they wait for ever"
            fix = f"take the key out of {SETTINGS[0]}, or add it to podGroupLabels or groupSources"
            yield ask.finding(ERROR, "GatedNoMember", f"{GATE}: {field}", message, fix)
    if settings.get("schedulingGroup") == "true" and not ask.configuration.coscheduling_args.in_tree_pod_groups:
        message = "pods with spec.schedulingGroup get the gate, and inTreePodGroups is false: they wait for ever"
        fix = 'write `schedulingGroup: "false"`, or `inTreePodGroups: true` in the arguments of Coscheduling'
        yield ask.finding(ERROR, "GatedNoMember", f"{GATE}: schedulingGroup", message, fix)


def _counted(ask: Questions, source: Source) -> set[str]:
    keys = GroupLabels.of(ask.configuration.coscheduling_args).group_keys
    return {str(key) for key in keys if key.source is source}


def _guard(ask: Questions, gate: str) -> Iterator[Finding]:
    """The account may patch pods: a policy is to see that it takes off its gate, and does nothing else."""
    policies, forbidden = ask.read(str(VALIDATING), partial(_by_name, ask, VALIDATING))
    bindings, more = ask.read(str(VALIDATING_BINDINGS), partial(_by_name, ask, VALIDATING_BINDINGS))
    yield from (*forbidden, *more)
    if policies is None or bindings is None or not ask.user:
        return
    denying = {each.spec.policy_name for each in bindings.values() if "Deny" in each.spec.validation_actions}
    guards = [
        each
        for name, each in policies.items()
        if name in denying and any(ask.user in condition.expression for condition in each.spec.match_conditions)
    ]
    if not guards:
        message = f"{ask.user} may patch pods, and no ValidatingAdmissionPolicy keeps it to its own gate"
        fix = "kubectl apply --server-side -k manifests/gate, with its guard.yaml"
        yield ask.finding(WARNING, "NoGuard", str(PODS), message, fix)
    for each in guards:
        if not each.has(gate):
            message = f"it does not let {gate}, the schedulingGate of the configuration, be taken off: gated pods wait for ever"
            fix = "write the same name into the policy, its guard, and schedulingGate"
            yield ask.finding(ERROR, "GateDiffers", each.metadata.name, message, fix)


def _scheduler_name(ask: Questions, settings: Settings) -> Iterator[Finding]:
    name, gate = settings.get("schedulerName", "").strip(), settings.get("schedulingGate", "").strip()
    if not name or not ask.configuration.serves(name):
        message = (
            f"pods of groups are given schedulerName {name!r}, which the extender does not serve: they wait for ever"
        )
        fix = f"write a name of schedulerNames into {SETTINGS[1]}"
        yield ask.finding(ERROR, "NamedNotServed", f"{NAMES}: schedulerName", message, fix)
    ours = ask.configuration.coscheduling_args.scheduling_gate
    if gate not in ("", ours):
        message = f"pods get the gate {gate}, which is not schedulingGate, {ours}: it is never taken off"
        yield ask.finding(ERROR, "GateDiffers", f"{NAMES}: schedulingGate", message, f"write `schedulingGate: {ours}`")


def _lines(settings: Settings, field: str) -> list[str]:
    return [line.strip() for line in settings.get(field, "").splitlines() if line.strip()]

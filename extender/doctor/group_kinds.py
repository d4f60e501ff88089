"""The kinds of groups that the configuration asks for besides our own PodGroup: whether they are served, in the version that is read.

`inTreePodGroups` asks for kube-scheduler's own kinds, a source of `groupSources` for another system's where its key names its objects.
The rights to kube-scheduler's kinds are among those of scheduler/rights; those to the others are examined here. No counterpart upstream.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from extender.api import koordinatorv1alpha1, volcanov1beta1
from extender.client import interface as kinds
from extender.client.errors import ForbiddenError, NotFoundError
from extender.client.interface import ResourceType
from extender.config.findings import Finding, Severity
from extender.doctor.questions import Questions
from extender.plugins.coscheduling.spec.sources.source import configured
from extender.scheduler.rights import READ, Right

ERROR, WARNING, INFO = Severity

OVERLAYS = {koordinatorv1alpha1.GROUP: "koordinator-groups", volcanov1beta1.GROUP: "volcano-groups"}
"""Of manifests, with the rights to read them, by API group."""


def examine(ask: Questions) -> Iterator[Finding]:
    args = ask.configuration.coscheduling_args
    if args.in_tree_pod_groups and not any(_is_served(ask, each) for each in kinds.IN_TREE_GROUPS):
        fix = "let kube-apiserver serve them (docs/groups.md), or write `inTreePodGroups: false` in the arguments of Coscheduling"
        yield _not_served(
            ask, "inTreePodGroups", ERROR, kinds.IN_TREE_GROUPS, "pods with spec.schedulingGroup wait", fix
        )
    for index, source in enumerate(map(configured, args.group_sources)):
        for resource in kinds.FOREIGN_POD_GROUPS:
            if resource.group == source.kind:
                yield from _of_source(ask, f"groupSources[{index}]", source.name, resource)


def _of_source(ask: Questions, field: str, name: str, resource: ResourceType[Any]) -> Iterator[Finding]:
    by_pods = f"gangs of {name} are known by their pods' keys alone"
    if not _is_served(ask, resource):
        other = bool(ask.api.served_versions(resource.group))
        fix = "see which version its controller installs" if other else "nothing, where its controller is not installed"
        yield _not_served(ask, field, WARNING if other else INFO, (resource,), by_pods, fix)
        return
    right = Right(READ, resource, by_pods, WARNING)
    lost, forbidden = ask.read("subjectaccessreviews", partial(right.missing, ask.api, ask.user))
    yield from forbidden
    if lost:
        message = f"{ask.user or 'this user'} may not {', '.join(lost)} {resource}: {by_pods}"
        fix = f"kubectl apply -k manifests/{OVERLAYS[resource.group]}"
        yield ask.finding(WARNING, "MissingRight", field, message, fix)


def _is_served(ask: Questions, resource: ResourceType[Any]) -> bool:
    """One that is only forbidden to us is there."""
    try:
        ask.api.list_page(resource, limit=1)
    except ForbiddenError:
        return True
    except NotFoundError:
        return False
    return True


def _not_served(
    ask: Questions, field: str, severity: Severity, wanted: Sequence[ResourceType[Any]], lost: str, fix: str
) -> Finding:
    group, plural = wanted[0].group, wanted[0].plural
    versions = ", ".join(ask.api.served_versions(group)) or "none"
    read = " or ".join(each.version for each in wanted)
    message = (
        f"{plural} of {group} are not served in {read}; versions of that group that are served: {versions}: {lost}"
    )
    return ask.finding(severity, "GroupsNotServed", field, message, fix)

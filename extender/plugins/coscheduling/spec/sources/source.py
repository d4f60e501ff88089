"""A source of groups: the keys of pods that name a group, and where the rest of what it asks for is.

`membership` asks each in turn which group a pod is of. The labels-only groups of scheduler-plugins and Koordinator's annotations are
two, those of `groupSources` in Coscheduling's arguments are others, and so are the keys that name another system's PodGroup.
Koordinator: pkg/scheduler/plugins/coscheduling/util. Volcano: pkg/scheduler/api/job_info.go (getJobID)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from extender.api import koordinatorv1alpha1, volcanov1beta1
from extender.api.metadata_keys import NAME, WORD, Key
from extender.api.metadata_keys import Source as Where
from extender.config.group_sources import PRESETS
from extender.config.plugin_args import GroupSource
from extender.plugins.coscheduling.spec import keys
from extender.plugins.coscheduling.spec.counts import parse_count, parse_minimum
from extender.plugins.coscheduling.spec.match_policy import MatchPolicy
from extender.plugins.coscheduling.spec.named_groups import check_group_name

_POD = ("Pod",)


@dataclass(frozen=True, slots=True)
class Source:
    """minimum: the key of minMember; None where an object says it. kind: the API group of the PodGroup that the name may be of; it
    comes before what the pods say, and is empty where there is none. pair: without the minimum the pod names no group.

    served_only: only pods of the schedulers that we serve are members. role_label: empty where there is none. index: where a pod's
    index in its gang is. match_policy: where the group asks for none.
    """

    name: str
    group: Key[str]
    minimum: Key[int] | None = None
    kind: str = ""
    pair: bool = False
    served_only: bool = True
    role_label: str = ""
    index: Key[int | None] | None = None
    match_policy: MatchPolicy = MatchPolicy.WAITING_AND_RUNNING

    def read_keys(self) -> Iterator[Key[Any]]:
        """What of a pod's labels and annotations is read by it."""
        yield self.group
        if self.minimum is not None:
            yield self.minimum
        if self.index is not None:
            yield self.index


LIGHTWEIGHT = Source("lightweight", keys.LIGHTWEIGHT_NAME, keys.LIGHTWEIGHT_MIN_AVAILABLE, pair=True, served_only=False)
KOORDINATOR = Source(
    "koordinator",
    keys.KOORDINATOR_NAME,
    keys.KOORDINATOR_MIN_AVAILABLE,
    served_only=False,
    match_policy=MatchPolicy.ONCE_SATISFIED,
)


KOORDINATOR_OBJECT = Source(
    "Koordinator's PodGroup",
    keys.KOORDINATOR_POD_GROUP,
    kind=koordinatorv1alpha1.GROUP,
    match_policy=MatchPolicy.ONCE_SATISFIED,
)
VOLCANO_OBJECT = Source(
    "Volcano's PodGroup", keys.VOLCANO_POD_GROUP, kind=volcanov1beta1.GROUP, role_label=volcanov1beta1.TASK_SPEC
)
OBJECTS = (KOORDINATOR_OBJECT, VOLCANO_OBJECT)
"""Of other systems; they come before what pods say."""


def configured(source: GroupSource) -> Source:
    """source: checked by the configuration's reader."""
    group = _key(source.group_label, source.group_annotation, NAME, check_group_name)
    return Source(
        source.name,
        group,
        _key(source.min_member_label, source.min_member_annotation, WORD, parse_minimum),
        kind=next((each.kind for each in OBJECTS if each.group == group), ""),
        role_label=source.role_label,
        index=_key(source.index_label, "", WORD, parse_count) if source.index_label else None,
    )


def _key(label: str, annotation: str, longest: int, parse: Any) -> Key[Any]:
    return Key(label or annotation, Where.LABEL if label else Where.ANNOTATION, _POD, longest, parse)


def presets() -> Iterator[Source]:
    """As if each were configured."""
    return map(configured, PRESETS.values())

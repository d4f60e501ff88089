"""Every label and annotation that makes a group or says what it asks for.

GroupLabels and `group_annotations` read them; what each may hold is in docs/groups.md. The labels that name a PodGroup are
configuration: `GroupLabels` declares those.
scheduler-plugins: apis/scheduling/v1alpha1/types.go. Koordinator: apis/extension/coscheduling.go
"""

from __future__ import annotations

from typing import Any

from extender.api import koordinatorv1alpha1, volcanov1beta1
from extender.api.metadata_keys import LIST, NAME, QUALIFIED_NAME, WORD, Key, Record, Source
from extender.api.schedulingv1alpha1 import LIGHTWEIGHT_MIN_AVAILABLE_LABEL, LIGHTWEIGHT_NAME_LABEL
from extender.plugins.coscheduling.spec.counts import parse_count, parse_minimum, parse_patience, parse_when_broken
from extender.plugins.coscheduling.spec.match_policy import parse_match_policy
from extender.plugins.coscheduling.spec.named_groups import (
    check_group_name,
    check_label_key,
    check_label_value,
    parse_group_list,
    parse_groups,
)
from extender.plugins.coscheduling.spec.roles import parse_minima
from extender.plugins.coscheduling.spec.sources.koordinator import (
    parse_mode,
    parse_network_topology,
    parse_waiting_time,
)
from extender.plugins.coscheduling.spec.start_record import parse_start
from extender.plugins.coscheduling.spec.topology import parse_level, parse_sizes, parse_spread

POD = ("Pod",)
BOTH = ("Pod", "PodGroup")
_ANNOTATION, _LABEL = Source.ANNOTATION, Source.LABEL
_KOORDINATOR = "gang.scheduling.koordinator.sh"
_KUEUE = "kueue.x-k8s.io"
_OURS = "gang-extender.dev"


def group_label(name: str) -> Key[str]:
    """A label that names a PodGroup."""
    return Key(name, _LABEL, POD, NAME, check_group_name)


LIGHTWEIGHT_NAME = group_label(LIGHTWEIGHT_NAME_LABEL)
LIGHTWEIGHT_MIN_AVAILABLE = Key(LIGHTWEIGHT_MIN_AVAILABLE_LABEL, _LABEL, POD, WORD, parse_minimum)

KOORDINATOR_POD_GROUP = Key(koordinatorv1alpha1.POD_GROUP_LABEL, _LABEL, POD, NAME, check_group_name)
VOLCANO_POD_GROUP = Key(volcanov1beta1.GROUP_NAME_ANNOTATION, _ANNOTATION, POD, NAME, check_group_name)

MATCH_POLICY = Key(f"{_OURS}/match-policy", _ANNOTATION, BOTH, WORD, parse_match_policy)
GROUPS = Key(f"{_OURS}/groups", _ANNOTATION, BOTH, LIST, parse_groups)
ROLES = Key(f"{_OURS}/roles", _ANNOTATION, BOTH, LIST, parse_minima)
ROLE_LABEL = Key(f"{_OURS}/role-label", _ANNOTATION, BOTH, QUALIFIED_NAME, check_label_key)
BROKEN_AFTER = Key(f"{_OURS}/broken-after", _ANNOTATION, BOTH, WORD, parse_patience)
WHEN_BROKEN = Key(f"{_OURS}/when-broken", _ANNOTATION, BOTH, WORD, parse_when_broken)
GIVE_UP_AFTER = Key(f"{_OURS}/give-up-after", _ANNOTATION, BOTH, WORD, parse_patience)
TOPOLOGY_REQUIRED = Key(f"{_OURS}/topology-required", _ANNOTATION, BOTH, QUALIFIED_NAME, parse_level)
TOPOLOGY_PREFERRED = Key(f"{_OURS}/topology-preferred", _ANNOTATION, BOTH, QUALIFIED_NAME, parse_level)

TOPOLOGY_SLICE = Key(f"{_OURS}/topology-slice", _ANNOTATION, BOTH, LIST, parse_sizes)
TOPOLOGY_SPREAD = Key(f"{_OURS}/topology-spread", _ANNOTATION, BOTH, WORD, parse_spread)

KUEUE_REQUIRED = Key(f"{_KUEUE}/podset-required-topology", _ANNOTATION, BOTH, QUALIFIED_NAME, check_label_key)
KUEUE_PREFERRED = Key(f"{_KUEUE}/podset-preferred-topology", _ANNOTATION, BOTH, QUALIFIED_NAME, check_label_key)
KUEUE_SLICE = Key(f"{_KUEUE}/podset-slice-required-topology", _ANNOTATION, BOTH, QUALIFIED_NAME, check_label_key)
KUEUE_SLICE_SIZE = Key(f"{_KUEUE}/podset-slice-size", _ANNOTATION, BOTH, WORD, parse_minimum)

JOB_INDEX: Key[int | None] = Key("batch.kubernetes.io/job-completion-index", _LABEL, POD, WORD, parse_count)
WORKER_INDEX: Key[int | None] = Key("leaderworkerset.sigs.k8s.io/worker-index", _LABEL, POD, WORD, parse_count)
POD_INDEX: Key[int | None] = Key("apps.kubernetes.io/pod-index", _LABEL, POD, WORD, parse_count)
INDICES = (JOB_INDEX, WORKER_INDEX, POD_INDEX)
"""Where a member's rank is, if its source has no index: the first that it has."""
JOBSET_INDEX: Key[int | None] = Key("jobset.sigs.k8s.io/job-global-index", _LABEL, POD, WORD, parse_count)
"""Of a JobSet: the ranks of one Job come after those of the Job before."""

KOORDINATOR_NAME = Key(f"{_KOORDINATOR}/name", _ANNOTATION, POD, NAME, check_group_name)
KOORDINATOR_MIN_AVAILABLE = Key(f"{_KOORDINATOR}/min-available", _ANNOTATION, POD, WORD, parse_minimum)
KOORDINATOR_MATCH_POLICY = Key(f"{_KOORDINATOR}/match-policy", _ANNOTATION, BOTH, WORD, parse_match_policy)
KOORDINATOR_MATCH_POLICY_ALIAS = Key(
    "pod-group.scheduling.sigs.k8s.io/match-policy", _ANNOTATION, BOTH, WORD, parse_match_policy
)
KOORDINATOR_GROUPS = Key(f"{_KOORDINATOR}/groups", _ANNOTATION, BOTH, LIST, parse_group_list)
KOORDINATOR_WAITING_TIME = Key(f"{_KOORDINATOR}/waiting-time", _ANNOTATION, BOTH, WORD, parse_waiting_time)
KOORDINATOR_MODE = Key(f"{_KOORDINATOR}/mode", _ANNOTATION, BOTH, WORD, parse_mode)
KOORDINATOR_TOPOLOGY = Key(f"{_KOORDINATOR}/network-topology-spec", _ANNOTATION, BOTH, LIST, parse_network_topology)

TRAIN_JOB_STEP = Key("trainer.kubeflow.org/trainjob-ancestor-step", _LABEL, POD, WORD, check_label_value)
REPLICATED_JOB = Key("jobset.sigs.k8s.io/replicatedjob-name", _LABEL, POD, WORD, check_label_value)
JOBSET_JOBS: Key[int | None] = Key("jobset.sigs.k8s.io/global-replicas", _LABEL, POD, WORD, parse_count)
JOB_ROLE = Key("training.kubeflow.org/job-role", _LABEL, POD, WORD, check_label_value)
MPI_JOB_ROLE = Key("mpi-job-role", _LABEL, POD, WORD, check_label_value)
SPARK_ROLE = Key("spark-role", _LABEL, POD, WORD, check_label_value)

START = Record(f"{_OURS}/start", _ANNOTATION, POD, 2 * 1024, parse_start)
"""Written with a member's binding, and read after a restart: the start that the member was bound by."""

ASKING: tuple[Key[Any], ...] = (
    MATCH_POLICY,
    GROUPS,
    ROLES,
    ROLE_LABEL,
    BROKEN_AFTER,
    WHEN_BROKEN,
    GIVE_UP_AFTER,
    TOPOLOGY_REQUIRED,
    TOPOLOGY_PREFERRED,
    KOORDINATOR_MATCH_POLICY,
    KOORDINATOR_MATCH_POLICY_ALIAS,
    KOORDINATOR_GROUPS,
    KOORDINATOR_WAITING_TIME,
    KOORDINATOR_MODE,
    KOORDINATOR_TOPOLOGY,
    TOPOLOGY_SLICE,
    TOPOLOGY_SPREAD,
    KUEUE_REQUIRED,
    KUEUE_PREFERRED,
    KUEUE_SLICE,
    KUEUE_SLICE_SIZE,
)
"""What says more of a group than its name and its minimum."""

BY_POD: tuple[Key[Any], ...] = ASKING[-6:]
"""Those that one pod may say otherwise than another: they are of the pods that say the same."""

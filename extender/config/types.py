"""What the configuration files say, as frozen values: profiles with their plugins, extenders, and our own settings.

kube-scheduler: pkg/scheduler/apis/config/types.go
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from extender.config.plugin_args import CoschedulingArgs, PluginArgs

EXTENSION_POINTS = (
    "pre_enqueue",
    "queue_sort",
    "pre_filter",
    "filter",
    "post_filter",
    "pre_score",
    "score",
    "reserve",
    "permit",
    "pre_bind",
    "bind",
    "post_bind",
)


@dataclass(frozen=True, slots=True)
class PluginRef:
    """A plugin by name. weight 0 means unset, which counts as 1 where weights count."""

    name: str
    weight: int = 0


@dataclass(frozen=True, slots=True)
class PluginSet:
    enabled: tuple[PluginRef, ...] = ()
    disabled: tuple[PluginRef, ...] = ()


@dataclass(frozen=True, slots=True)
class Plugins:
    """`multi_point` at every extension point that a plugin has; `points` at one, by its name in EXTENSION_POINTS."""

    multi_point: PluginSet = PluginSet()
    points: Mapping[str, PluginSet] = field(default_factory=dict)

    def at(self, point: str) -> PluginSet:
        return self.points.get(point, PluginSet())


@dataclass(frozen=True, slots=True)
class KubeSchedulerProfile:
    """plugin_config: by plugin; one that is not of kube-scheduler's tree has its arguments as they stand in the file."""

    scheduler_name: str = "default-scheduler"
    plugins: Plugins = Plugins()
    plugin_config: Mapping[str, PluginArgs | Mapping[str, Any]] = field(default_factory=dict)
    percentage_of_nodes_to_score: int | None = None

    @property
    def coscheduling_args(self) -> CoschedulingArgs:
        """The default ones where the file has none."""
        args = self.plugin_config.get("Coscheduling")
        return args if isinstance(args, CoschedulingArgs) else CoschedulingArgs()


@dataclass(frozen=True, slots=True)
class ExtenderTLSConfig:
    """How kube-scheduler calls an extender over TLS: files, or the PEM itself."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


@dataclass(frozen=True, slots=True)
class ExtenderConfig:
    """One entry of `extenders:`. http_timeout_seconds in seconds, weight for prioritize."""

    url_prefix: str
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    bind_verb: str = ""
    weight: int = 1
    enable_https: bool = False
    http_timeout_seconds: float = 5.0
    node_cache_capable: bool = False
    managed_resources: frozenset[str] = frozenset()
    ignored_by_scheduler: frozenset[str] = frozenset()
    ignorable: bool = False
    tls: ExtenderTLSConfig | None = None


@dataclass(frozen=True, slots=True)
class LeaderElection:
    """Which Lease kube-scheduler holds while it schedules; without leader election it schedules always."""

    leader_elect: bool = True
    resource_namespace: str = "kube-system"
    resource_name: str = "kube-scheduler"
    renew_deadline_seconds: float = 10.0
    retry_period_seconds: float = 2.0


@dataclass(frozen=True, slots=True)
class KubeSchedulerConfiguration:
    """parallelism: how many goroutines kube-scheduler filters and scores with. The mirror takes the number and does
    without: one cycle runs at a time on one thread, and columns of numbers do what the goroutines do there.

    What kube-scheduler's flags and older versions had besides (algorithm provider, Policy) is refused by name.
    """

    profiles: tuple[KubeSchedulerProfile, ...]
    extenders: tuple[ExtenderConfig, ...] = ()
    percentage_of_nodes_to_score: int = 0
    parallelism: int = 16
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    leader_election: LeaderElection = LeaderElection()


@dataclass(frozen=True, slots=True)
class NamespacedName:
    namespace: str
    name: str


class Packing(Enum):
    """How a gang is laid out on the nodes of its domain."""

    FEWEST_NODES = "fewestNodes"
    MOST_EVEN = "mostEven"


@dataclass(frozen=True, slots=True)
class TopologyLevel:
    """name: what groups call the level. The node label's value names the domain of the node."""

    name: str
    key: str


@dataclass(frozen=True, slots=True)
class ExtenderConfiguration:
    """Our own file. scheduler_names empty: every pod is ours. leader_lease None: always active. leader_service: not
    beside a kube-scheduler: the extenders elect their leader by that Lease, and it writes the Service's endpoint. topology: wide to narrow.

    bind_timeout_seconds is the httpTimeout of the bind entry; holds end the commit budget before it. wake_by: how a pod
    that kube-scheduler has parked is woken, one of load.WAKE_BY. ungate_refused: members of a gang that finds no room
    lose our gate, so that a cluster autoscaler sees them. max_held_binds: the most bind calls at a time.
    percentage_of_nodes_to_score: what kube-scheduler has; 0 for its default, by which it offers a sample of more than 100 nodes.
    """

    scheduler_names: tuple[str, ...] = ()
    leader_lease: NamespacedName | None = None
    leader_service: NamespacedName | None = None
    lease_duration_seconds: int = 15
    bind_timeout_seconds: float = 120.0
    max_held_binds: int = 2000
    percentage_of_nodes_to_score: int = 0
    profiles: tuple[KubeSchedulerProfile, ...] = ()
    topology: tuple[TopologyLevel, ...] = ()
    packing: Packing = Packing.FEWEST_NODES
    gang_victims: str = "wholeOrSurplus"
    gang_preemption: bool = True
    victim_minimum_run_seconds: float = 0.0
    preemption_delay_seconds: float = 0.0
    evict_through: str = "delete"
    shadow_after_seconds: float = 300.0
    shadow_max_seconds: float = 600.0
    shadow_max_nodes_percent: int = 25
    wake_by: str = "auto"
    ungate_refused: bool = False

    @property
    def coscheduling_args(self) -> CoschedulingArgs:
        """Of the first profile, as everywhere: they count for all."""
        return self.profiles[0].coscheduling_args if self.profiles else CoschedulingArgs()

    def serves(self, scheduler_name: str) -> bool:
        """Whether pods that name this scheduler are ours."""
        return not self.scheduler_names or scheduler_name in self.scheduler_names

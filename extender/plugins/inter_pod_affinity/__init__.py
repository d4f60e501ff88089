"""InterPodAffinity: pods that want to be near other pods, or away from them.

kube-scheduler: pkg/scheduler/framework/plugins/interpodaffinity
"""

from extender.plugins.inter_pod_affinity.plugin import InterPodAffinity

__all__ = ["InterPodAffinity"]

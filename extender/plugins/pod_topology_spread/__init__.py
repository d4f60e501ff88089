"""PodTopologySpread: pods of a kind spread evenly over zones, hosts or whatever labels name.

kube-scheduler: pkg/scheduler/framework/plugins/podtopologyspread
"""

from extender.plugins.pod_topology_spread.plugin import PodTopologySpread

__all__ = ["PodTopologySpread"]

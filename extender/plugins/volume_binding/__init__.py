"""VolumeBinding: claims and volumes brought together while a pod finds its node.

plugin: the extension points; pod_volumes: what is decided for a pod; binder: finds, assumes, binds; matching: which
volume fits a claim; provisioning: where a new one can be made; assume_cache: what is decided and not yet written.
kube-scheduler: pkg/scheduler/framework/plugins/volumebinding
"""

from extender.plugins.volume_binding.plugin import VolumeBinding

__all__ = ["VolumeBinding"]

"""Prometheus metrics, one object each; kube-scheduler's under its own names, ours with the prefix gang_extender_.

kube-scheduler: pkg/scheduler/metrics/metrics.go
"""

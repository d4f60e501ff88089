"""Scheduler name -> Framework: one profile each.

kube-scheduler: pkg/scheduler/profile/profile.go
"""

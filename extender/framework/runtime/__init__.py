"""Runs a profile's plugins at their extension points. kube-scheduler: pkg/scheduler/framework/runtime"""

"""Pods that wait for their turn, and where they are nominated. kube-scheduler: pkg/scheduler/backend/queue"""

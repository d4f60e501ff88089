"""The cluster as the scheduler sees it, assumed pods included. kube-scheduler: pkg/scheduler/backend/cache"""

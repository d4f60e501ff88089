"""State: the scheduler cache with its snapshots, and the scheduling queue. kube-scheduler: pkg/scheduler/backend"""

"""kube-scheduler's own side, in-process: scheduleOne, its queue's handlers, and its calls to extenders. kube-scheduler: pkg/scheduler"""

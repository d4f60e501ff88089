"""Finds victims: the Evaluator behind DefaultPreemption and the preempt verb. kube-scheduler: pkg/scheduler/framework/preemption"""

"""The contract between the scheduler and its plugins, and the values that both speak of.

`interface` is the contract, `runtime/` runs it, `preemption/` is the Evaluator behind DefaultPreemption.
kube-scheduler: k8s.io/kube-scheduler/framework and pkg/scheduler/framework
"""

"""The cycles behind the four verbs, and what feeds them. kube-scheduler: pkg/scheduler"""

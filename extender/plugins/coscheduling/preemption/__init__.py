"""Makes room for whole gangs, and keeps running gangs whole: which pods preemption may take, for a gang and from one.

kube-scheduler has no counterpart that is on by default: its preemption knows single pods only.
"""

"""Fault runs: random faults for a cluster, the gangs that meet them, and the checks of how it ends.

`python -m tests.e2e.fault_run --seed 7 --steps 200` runs one (`__main__`); tests/e2e/test_fault_run.py has a short one.

The cluster:  kinds (of gangs), volumes (and the controllers of their storage), kubelets (which pods take their time to go)
The faults:   faults (of gangs, nodes and programs), nodes, owners (changes to gangs that are there), admission (a foreign gate),
              drawn_configuration
The checks:   liveness (pods that wait although they fit), promises (what the history shows that annotations rule out),
              preemption_check (needless victims of the important pods that come last, and broken PodDisruptionBudgets)
"""

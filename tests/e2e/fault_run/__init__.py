"""Fault runs: a cluster under load, whatever can befall its programs and lines, and judges that read what was recorded.

`python -m tests.e2e.fault_run --seed 7 --minutes 10` runs one (`__main__`). See docs/fault-runs.md.

The rig:      rig (programs and lines; its extenders can be asked: tests/e2e/asked_extender.py), patient_api, wall_clock, stderr_pipe,
              verb_calls (reads along where verbs are called)
The load:     load, kinds (of gangs), owners (changes to gangs that are there), nodes, volumes (and the controllers of their storage),
              kubelets (which pods take their time to go), admission (a foreign gate), budgets, hostile_tenant, drawn_configuration
The faults:   acts (drawn by the seed), nemesis (does them), minimise (leaves out what a failing run can do without)
The record:   record (on disk), run (from start to judgement)
The judges:   judges, which use excuses (what a fault can have done), liveness (pods that wait although they fit), room, promises (what
              annotations rule out), wishes, preemption_check (needless victims of the important pods that come last)
"""

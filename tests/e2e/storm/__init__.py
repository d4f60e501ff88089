"""Storms: what happens to a cluster at random, the kinds of gangs it happens to, and the judges of how it ends.

`python -m tests.e2e.storm --seed 7 --steps 200` runs one (`__main__`); tests/e2e/test_storm.py has a short one.
  kinds     what gangs there are        weather   what happens to them, to nodes and programs
  owners    what is asked of gangs that are there already
  in_vain   who waits although he fits  promises  what the history shows that a gang's annotations rule out
  nodes     what happens to nodes  kubelets  which pods take their time to go  admission  somebody else's gate
  volumes   the storage that some bring, and its controllers
  last_gusts  who has to go for the important that come in the end, and which PodDisruptionBudgets that breaks
"""

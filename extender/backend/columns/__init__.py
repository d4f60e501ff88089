"""A snapshot's nodes and pods as numpy columns: what vectorised filters and scores, and the planner, read at once.

backend/cache has the nodes one by one, and each snapshot its table of columns. No counterpart in kube-scheduler.
"""

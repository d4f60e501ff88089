"""Which members of planned gangs are sent to kube-scheduler, in what order, and how many at a time."""

"""What follows from an event: of pods, groups and nodes, of the Lease, of the clock, and of what kube-scheduler says."""

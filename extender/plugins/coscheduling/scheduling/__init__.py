"""Which gang is planned when, which members are sent to kube-scheduler, what its answers mean, and what follows from an event."""

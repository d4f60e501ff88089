"""Which nodes are kept free for the gang that waits longest, and how its turns go: pure."""

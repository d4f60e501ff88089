"""The judges of a fault run: each reads what a run has left on disk (`record.Past`), and says in sentences what may not be.

gangs (fractions, promises), nodes (room, nodes fit for a pod), leases (only the leader writes), calls (deadlines),
bindings (none after its call), health (errors, memory, descriptors, lists), starts (what waits although it fits, needless victims),
books (what the extenders have noted); `judge` has them all.
"""

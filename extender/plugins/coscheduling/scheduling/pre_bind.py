"""The time that kube-scheduler's PreBind takes for members with claims that are not bound yet.

kube-scheduler binds volumes after our filter and before our bind verb, and waits for whoever makes them: such a member comes
late, and what waits for it, its siblings' holds and the lease of its place, has to last that long.
kube-scheduler: pkg/scheduler/framework/plugins/volumebinding (PreBind, bindTimeoutSeconds)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from extender.api import corev1
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.ledger import Ledger

PRE_BIND_SECONDS = 600.0  # VolumeBinding's bindTimeoutSeconds where nobody has configured another

HasUnboundClaims = Callable[[corev1.Pod], bool]


def time_for_siblings(
    unit: Sequence[Group], arriving: str, ledger: Ledger, has_unbound_claims: HasUnboundClaims
) -> float:
    """What a hold may last beyond its own time while members with unbound claims are to come. The manager's lock is held.

    Who was refused, and has no place, does not come.
    """
    coming = (
        group.members[uid].pod
        for group in unit
        for uid in group.claiming - group.assigned() - group.held.keys() - {arriving}
        if uid not in group.refused or ledger.get(uid) is not None
    )
    return _seconds(coming, has_unbound_claims)


def time_for_place(group: Group, has_unbound_claims: HasUnboundClaims) -> float:
    """What the group's leases last longer while one that was given its place is in PreBind. The manager's lock is held."""
    answered = (group.members[uid].pod for uid in group.claiming & group.answered)
    return _seconds(answered, has_unbound_claims)


def _seconds(pods: Iterable[corev1.Pod], has_unbound_claims: HasUnboundClaims) -> float:
    return PRE_BIND_SECONDS if any(map(has_unbound_claims, pods)) else 0.0

"""Only the extender beside the kube-scheduler that holds the Lease acts."""

from __future__ import annotations

from extender.api.codec import convert
from extender.api.coordinationv1 import Lease
from extender.scheduler.leadership import Leadership


def lease(holder: str) -> Lease:
    return convert({"metadata": {}, "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15}}, Lease)


def test_without_a_lease_to_watch_we_always_lead() -> None:
    assert Leadership("me", lambda: 0.0, watched=False).leading


def test_the_holder_is_known_by_its_host_name_and_only_as_long_as_it_renews() -> None:
    now = [0.0]
    leadership = Leadership("me", lambda: now[0], watched=True)
    assert leadership.reason == "nobody holds the Lease"
    leadership.on_lease(None, lease("me_123"))
    assert leadership.leading
    now[0] = 16.0
    assert leadership.reason == "the Lease has expired"
    leadership.on_lease(lease("me_123"), lease("me_123"))
    assert leadership.leading
    leadership.on_lease(lease("me_123"), lease("me-too_123"))
    assert leadership.reason == "another kube-scheduler holds the Lease"

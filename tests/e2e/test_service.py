"""The extender apart from kube-scheduler, over TLS: one of two replicas leads, certificates are renewed under load, strangers are named."""

from __future__ import annotations

import signal
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import Scheduler
from tests.e2e.extender import Extender
from tests.e2e.intercepting_proxy import InterceptingProxy
from tests.e2e.processes import eventually
from tests.e2e.service import LEASE, NAME, Certificates, ServiceShape
from tests.e2e.test_held_binds import GROUP, NAMES, hold_two, let_in
from tests.e2e.test_two_replicas import own_host_name

ENDS = "gang_extender_certificate_not_after_timestamp_seconds"


@pytest.fixture
def shape(cluster: Cluster, tmp_path: Path) -> Iterator[ServiceShape]:
    made = ServiceShape(cluster.plane, tmp_path)
    yield made
    made.stop()


@pytest.fixture
def proxy() -> Iterator[InterceptingProxy]:
    proxy = InterceptingProxy().start()
    yield proxy
    proxy.stop()


Programs = list[Extender | Scheduler]


def leading(shape: ServiceShape, programs: Programs, name: str = "first") -> Extender:
    extender = shape.replica(name, own_host_name(name))
    programs.append(extender.start())
    shape.await_leader(name, extender, within=20)
    return extender


def standing_by(shape: ServiceShape, programs: Programs) -> Extender:
    """The second replica is ready as well: a rollout goes on, and a drain."""
    second = shape.replica("second", own_host_name("second"))
    programs.append(second.start())
    assert second.ops("/readyz")[0] == 200
    assert (shape.leader(), second.metric("gang_extender_leading")) == ("first", 0)
    return second


def test_certificates_are_renewed_under_load(cluster: Cluster, shape: ServiceShape, programs: Programs) -> None:
    """All connections are cut after each renewal, so that every one is shaken hands for anew."""
    extender = leading(shape, programs)
    programs.append(shape.scheduler().start())
    cluster.node("node-1")
    expected: list[str] = []

    def load(round_: int) -> None:
        cluster.pod_group(f"gang-{round_}", min_member=3)
        names = [f"gang-{round_}-{index}" for index in range(3)]
        for name in names:
            cluster.pod(name, group=f"gang-{round_}")
        cluster.pod(f"single-{round_}")
        expected.extend([*names, f"single-{round_}"])

    load(0)
    cluster.recorder.await_bound(*expected, within=10)
    first = served(shape)
    for round_, which in enumerate(("server", "client", "server"), start=1):
        load(2 * round_)
        shape.certificates.renew(which, days=365 + round_)
        shape.link.cut()
        load(2 * round_ + 1)
        cluster.recorder.await_bound(*expected, within=20)
    eventually(lambda: served(shape) != first, within=5, what="the new certificate is served")
    eventually(lambda: "certificates reloaded" in extender.log(), within=5, what="and the log says so")
    in_a_year = time.time() + 366 * 86400 - 3600
    assert metric(extender, ENDS, "client") > in_a_year
    assert metric(extender, ENDS, "server") > in_a_year
    assert "client refused in the TLS handshake" not in extender.log()


def served(shape: ServiceShape) -> bytes:
    """The certificate that the Service shows."""
    context = ssl.create_default_context(cafile=str(shape.certificates.folder / "ca.crt"))
    context.load_cert_chain(
        str(shape.certificates.folder / "client" / "tls.crt"), str(shape.certificates.folder / "client" / "tls.key")
    )
    with (
        socket.create_connection(("127.0.0.1", shape.link.port), timeout=5) as plain,
        context.wrap_socket(plain, server_hostname=NAME) as wrapped,
    ):
        return wrapped.getpeercert(binary_form=True) or b""


def metric(extender: Extender, name: str, certificate: str) -> float:
    line = next(
        line
        for line in extender.ops("/metrics")[1].splitlines()
        if line.startswith(f'{name}{{certificate="{certificate}"}}')
    )
    return float(line.split()[-1])


def of_another_ca(shape: ServiceShape, folder: Path) -> None:
    """The client's pair."""
    made = Certificates(folder).folder / "client"
    for name in ("tls.key", "tls.crt"):
        (made / name).replace(shape.certificates.folder / "client" / name)


def test_a_certificate_that_is_wrong_is_named_on_the_pod_and_in_the_log_and_a_right_one_mends_it(
    cluster: Cluster, shape: ServiceShape, programs: Programs, tmp_path: Path
) -> None:
    """One after the other, with the same two processes. kube-scheduler knows no more than the alert; the extender says the reason."""
    extender = leading(shape, programs)
    programs.append(shape.scheduler().start())
    cluster.node("node-1")
    renew = shape.certificates.renew
    cases: dict[str, tuple[Callable[[], None], str, str]] = {
        "expired": (
            lambda: renew("client", days=-1),
            "expired certificate",
            "reason='its certificate: certificate has expired'",
        ),
        "unknown": (
            lambda: of_another_ca(shape, tmp_path / "other"),
            "unknown certificate authority",
            "unable to get local issuer certificate",
        ),
        "stranger": (
            lambda: renew("client", "another-client"),
            "code 403",
            "client refused by its name client=127.0.0.1 reason='another-client'",
        ),
        "late": (lambda: renew("server", days=-1), "certificate has expired or is not yet valid", ""),
        "misnamed": (
            lambda: renew("server", extensions="subjectAltName=DNS:another.name"),
            f"certificate is valid for another.name, not {NAME}",
            "",
        ),
    }
    for case, (spoil, on_the_pod, in_the_log) in cases.items():
        spoil()
        time.sleep(1.1)  # the files are looked at once a second
        shape.link.cut()
        cluster.pod(case)
        cluster.recorder.await_message(case, on_the_pod, within=15)
        eventually(lambda text=in_the_log: text in extender.log(), within=5, what=in_the_log)  # type: ignore[misc]
        renew("client")
        renew("server")
        time.sleep(1.1)
        shape.link.cut()
        cluster.recorder.await_bound(case, within=20)


def test_a_kube_scheduler_without_a_certificate_is_refused(
    cluster: Cluster, shape: ServiceShape, programs: Programs
) -> None:
    def without(config: dict[str, Any]) -> None:
        for entry in config["extenders"]:
            del entry["tlsConfig"]["certFile"], entry["tlsConfig"]["keyFile"]

    extender = leading(shape, programs)
    programs.append(shape.scheduler(change=without).start())
    cluster.node("node-1")
    cluster.pod("single")
    cluster.recorder.await_message("single", "certificate required", within=15)
    eventually(lambda: "peer did not return a certificate" in extender.log(), within=5, what="the log says why")
    assert cluster.recorder.bound() == set()


def test_the_ca_is_replaced(cluster: Cluster, shape: ServiceShape, programs: Programs, tmp_path: Path) -> None:
    """As the page says: both, a restart of kube-scheduler, the certificates, the new one alone. A gang starts after each step."""
    extender = leading(shape, programs)
    scheduler = shape.scheduler().start()
    programs.append(scheduler)
    cluster.node("node-1")
    there, new = shape.certificates.folder, Certificates(tmp_path / "new").folder
    both = (there / "ca.crt").read_text() + (new / "ca.crt").read_text()

    def write(text: str) -> None:
        (there / "ca.crt").write_text(text)
        scheduler.stop()
        scheduler.start()

    def take_the_new_pairs() -> None:
        for which in ("server", "client"):
            for name in ("tls.key", "tls.crt"):
                (new / which / name).replace(there / which / name)

    steps: tuple[Callable[[], None], ...] = (
        lambda: write(both),
        take_the_new_pairs,
        lambda: write((new / "ca.crt").read_text()),
    )
    for number, step in enumerate(steps):
        step()
        time.sleep(1.1)  # the files are looked at once a second
        shape.link.cut()
        cluster.pod_group(f"gang-{number}", min_member=2)
        names = [f"gang-{number}-{index}" for index in range(2)]
        for name in names:
            cluster.pod(name, group=f"gang-{number}")
        cluster.recorder.await_bound(*names, within=25)
    assert "client refused in the TLS handshake" not in extender.log()


@pytest.mark.parametrize(
    ("number", "within"),
    [
        pytest.param(signal.SIGTERM, 10.0, id="told to end: gives the Lease up"),
        pytest.param(signal.SIGKILL, 30.0, id="killed: the Lease expires"),
        pytest.param(signal.SIGSTOP, 30.0, id="frozen: the Lease expires"),
    ],
)
def test_the_other_replica_goes_on_with_a_gang_that_is_held(
    number: signal.Signals,
    within: float,
    cluster: Cluster,
    shape: ServiceShape,
    proxy: InterceptingProxy,
    programs: Programs,
) -> None:
    """By the times that are shipped. Nothing answers the calls that a frozen one holds: they last until it goes on, until kubelet's
    liveness probe ends it, or for the httpTimeout of bind."""
    cluster.killed = True
    first = leading(shape, programs)
    second = standing_by(shape, programs)
    programs.append(shape.scheduler(change=proxy.put_in_front).start())
    hold_two(cluster, proxy, first)
    began = time.monotonic()
    if number is signal.SIGTERM:
        first.terminate(within=8)  # the calls that it holds are let go at once: a drain would last ten seconds
        assert "Lease given up" in first.log()
    else:
        first.program.signal_group(number)
    shape.await_leader("second", second, within=within)
    led_after = time.monotonic() - began
    assert cluster.recorder.bound() == set()
    if number is signal.SIGSTOP:
        first.program.signal_group(signal.SIGCONT)
        eventually(lambda: first.metric("gang_extender_leading") == 0, within=5, what="it sees that it leads no more")
    let_in(cluster, proxy)
    cluster.recorder.await_bound(*NAMES, within=30)
    print(
        f"{number.name}: the second led after {led_after:.1f} s, the gang was bound after {time.monotonic() - began:.1f} s"
    )
    assert second.planned(GROUP) >= 1
    assert shape.leader() == "second"


def test_a_replica_that_leads_no_more_sends_kube_scheduler_to_the_other(
    cluster: Cluster, shape: ServiceShape, programs: Programs
) -> None:
    """It lives, and kube-scheduler's connections to it are well: the Service would keep them there."""
    first = leading(shape, programs)
    second = standing_by(shape, programs)
    programs.append(shape.scheduler().start())
    cluster.node("node-1")
    cluster.pod("before")
    cluster.recorder.await_bound("before", within=10)
    lease = {"spec": {"holderIdentity": "second_by-hand"}}
    cluster.api.patch(LEASE, lease)
    shape.await_leader("second", second, within=10)
    cluster.pod_group("gang", min_member=2)
    for name in ("gang-a", "gang-b"):
        cluster.pod(name, group="gang")
    cluster.recorder.await_bound("gang-a", "gang-b", within=15)
    assert (first.planned("default/gang"), second.planned("default/gang")) == (0, 1)

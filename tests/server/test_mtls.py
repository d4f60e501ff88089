"""TLS on the verbs' port of the real worker: which clients get in, which do not, and certificates that change under it."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme

from tests.e2e.processes import eventually
from tests.server.conftest import TIMES
from tests.server.service import LONG, SOON, Service, bind_body, ended, payload, pod_body, raw, read_answer
from tests.server.test_bad_clients import filter_on

NAME = "system:kube-scheduler"
MALFORMED = b"POST /filter HTTP/1.1\r\n\r\n"


class Certs:
    """Our CA, the server's files, and contexts of clients."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ca = trustme.CA()
        self.write(self.ca)
        self.ca.cert_pem.write_to_path(folder / "ca.crt")

    def write(self, ca: trustme.CA) -> None:
        server = ca.issue_cert("127.0.0.1")
        for name, blob in (("tls.crt", server.cert_chain_pems[0]), ("tls.key", server.private_key_pem)):
            blob.write_to_path(self.folder / f"{name}.new")
            (self.folder / f"{name}.new").replace(self.folder / name)

    def options(self) -> dict[str, object]:
        return {
            "tls_cert_file": str(self.folder / "tls.crt"),
            "tls_private_key_file": str(self.folder / "tls.key"),
            "client_ca_file": str(self.folder / "ca.crt"),
            "allowed_client_names": [NAME, "dns.example"],
        }

    def client(
        self,
        name: str = NAME,
        *,
        issuer: trustme.CA | None = None,
        dns: str = "other.example",
        until: datetime | None = None,
    ) -> ssl.SSLContext:
        context = self.anonymous()
        (issuer or self.ca).issue_cert(dns, common_name=name, not_after=until).configure_cert(context)
        return context

    def anonymous(self, server_ca: trustme.CA | None = None) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        (server_ca or self.ca).configure_trust(context)
        return context


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Certs:
    return Certs(tmp_path_factory.mktemp("certs"))


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory, certs: Certs) -> Iterator[Service]:
    service = Service(tmp_path_factory.mktemp("secure"), **{**TIMES, **certs.options()})
    service.client_context = certs.client()
    try:
        yield service.start()
    finally:
        service.stop()
    assert "Traceback" not in service.program.log(), service.program.tail()


def test_kube_scheduler_gets_in(secure: Service) -> None:
    secure.filter()
    assert secure.post("bind", bind_body("a")) == (200, {"Error": ""})


def test_a_name_in_the_san_is_a_name(secure: Service, certs: Certs) -> None:
    assert ask(secure, certs.client("any-client", dns="dns.example")) == 200


def ask(service: Service, context: ssl.SSLContext) -> int:
    """The status of a filter call; raises OSError where the handshake fails."""
    known, service.client_context = service.client_context, context
    try:
        return service.post("filter", payload("filter"))[0]
    finally:
        service.client_context = known


def test_another_name_is_a_403_and_is_counted(secure: Service, certs: Certs) -> None:
    before = rejected(secure, "name")
    assert ask(secure, certs.client("system:node:n1")) == 403
    assert rejected(secure, "name") == before + 1


@pytest.mark.parametrize("kind", ["no certificate", "of another CA", "expired", "TLS 1.2"])
def test_strangers_do_not_get_past_the_handshake(secure: Service, certs: Certs, kind: str) -> None:
    before = rejected(secure, "handshake")
    match kind:
        case "no certificate":
            context = certs.anonymous()
        case "of another CA":
            context = certs.client(issuer=trustme.CA())
        case "expired":
            context = certs.client(until=datetime.now(UTC) - timedelta(seconds=1))
        case _:
            context = certs.client()
            context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(OSError, match=r"SSL|reset|closed|EOF"):
        ask(secure, context)
    eventually(lambda: rejected(secure, "handshake") == before + 1, within=SOON, what="it was counted")


@pytest.mark.parametrize("kind", ["before a word", "after its hello"])
def test_a_client_that_goes_away_is_not_refused(start: Callable[..., Service], certs: Certs, kind: str) -> None:
    service = start(**certs.options())
    service.client_context = certs.client()
    with socket.create_connection(("127.0.0.1", service.port)) as plain:
        if kind == "after its hello":
            outgoing = ssl.MemoryBIO()
            handshake = certs.client().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="127.0.0.1")
            with pytest.raises(ssl.SSLWantReadError):
                handshake.do_handshake()
            plain.sendall(outgoing.read())
            assert plain.recv(1)
    with pytest.raises(OSError, match=r"SSL|reset|closed|EOF"):
        ask(service, certs.anonymous())
    eventually(lambda: rejected(service, "handshake") == 1, within=SOON, what="the one that came later was counted")
    assert service.program.log().count("client refused in the TLS handshake") == 1


def test_the_log_says_once_what_was_wrong_with_a_client_s_certificate(
    certs: Certs, start: Callable[..., Service]
) -> None:
    service = start(**certs.options())
    service.client_context = certs.client()
    expired = certs.anonymous()
    yesterday = datetime.now(UTC) - timedelta(days=1)
    certs.ca.issue_cert(
        "x", common_name=NAME, not_before=yesterday - timedelta(days=1), not_after=yesterday
    ).configure_cert(expired)
    strangers = {
        "certificate has expired": expired,
        "unable to get local issuer certificate": certs.client(issuer=trustme.CA()),
    }
    for context in [*strangers.values(), certs.anonymous()] * 2:
        with pytest.raises(OSError, match=r"SSL|reset|closed|EOF"):
            ask(service, context)
    eventually(lambda: rejected(service, "handshake") == 6, within=SOON, what="all were counted")
    for reason in [*(f"its certificate: {each}" for each in strangers), "peer did not return a certificate"]:
        line = f"client refused in the TLS handshake client=127.0.0.1 reason={reason!r} more=0"
        assert service.program.log().count(line) == 1
    assert service.program.log().count("TLS handshake") == 3
    for _ in range(2):
        assert ask(service, certs.client("system:node:n1", dns="n1")) == 403
    line = "client refused by its name client=127.0.0.1 reason='n1, system:node:n1' more=0"
    eventually(lambda: line in service.program.log(), within=SOON, what=line)
    assert service.program.log().count("refused by its name") == 1


def test_a_replica_that_leads_no_more_answers_and_ends_the_connection(
    certs: Certs, start: Callable[..., Service]
) -> None:
    """kube-scheduler keeps its connections, and through a Service each leads to one replica for ever."""
    service = start(**certs.options())
    service.client_context = certs.client()
    caller = service.client()
    for name, said in (("a", None), ("demoted-a", None), ("b", "close")):
        caller.request("POST", "/filter", pod_body(name))
        answer = caller.getresponse()
        assert (answer.status, answer.getheader("Connection") == "close") == (200, said == "close")
        assert answer.read()
    assert caller.sock is None, "http.client has hung up, as Go does"
    caller.close()


def rejected(service: Service, reason: str) -> float:
    series = f'gang_extender_rejected_clients_total{{reason="{reason}"}} '
    lines = [line for line in service.ops("/metrics")[1].splitlines() if line.startswith(series)]
    return float(lines[0].split()[-1]) if lines else 0.0


def test_half_a_handshake_is_let_go_in_time(secure: Service) -> None:
    halves = [b"", b"\x16", b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n\r\n"]
    crowd = [(data, secure.connect()) for data in halves * 20]
    try:
        for data, sock in crowd:
            sock.sendall(data)
        secure.filter()
        assert secure.ops("/livez") == (200, "ok")
        assert [data for data, sock in crowd if not ended(sock, within=SOON)] == []
    finally:
        for _, sock in crowd:
            sock.close()


@pytest.mark.parametrize("kind", ["silent", "half a handshake", "with a name that is not allowed"])
def test_strangers_cost_kube_scheduler_neither_its_connection_nor_a_new_one(
    certs: Certs, kind: str, start: Callable[..., Service]
) -> None:
    """More of them than there are places. Its kept-alive connection was the oldest, and was hung up on first; a new one came in when
    the first handshake had run out of time."""
    service = start(worker_connections=40, handshake_seconds=LONG, **certs.options())
    service.client_context = certs.client()
    kept = service.client()
    filter_on(kept)
    sock = kept.sock
    stranger = certs.client("system:node:n1")
    crowd: list[socket.socket] = []
    try:
        for _ in range(60):
            crowd.append(service.connect())
            if kind == "half a handshake":
                crowd[-1].sendall(b"\x16\x03\x01")
            elif kind.startswith("with"):
                crowd[-1] = call_and_stay(crowd[-1], stranger)
        for _ in range(3):
            service.filter()
            filter_on(kept)
        assert kept.sock is sock
    finally:
        for each in crowd:
            each.close()
        kept.close()


def call_and_stay(sock: socket.socket, context: ssl.SSLContext) -> socket.socket:
    """Is answered with 403, and keeps the connection."""
    wrapped = context.wrap_socket(sock, server_hostname="127.0.0.1")
    wrapped.sendall(raw("filter", b""))  # a body would be left unread, and end it
    assert read_answer(wrapped)[0] == 403
    return wrapped


def test_half_a_request_inside_tls_is_let_go_in_time(secure: Service, certs: Certs) -> None:
    with secure.connect() as plain, certs.client().wrap_socket(plain, server_hostname="127.0.0.1") as sock:
        sock.sendall(b"POST /filter HTTP/1.1\r\nContent-")
        assert ended(sock, within=SOON)
    secure.filter()


def test_http_2_is_not_agreed_on(secure: Service, certs: Certs) -> None:
    context = certs.client()
    context.set_alpn_protocols(["h2", "http/1.1"])
    with secure.connect() as plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as sock:
        assert sock.selected_alpn_protocol() == "http/1.1"


def test_probes_need_no_certificate_and_give_no_verb(secure: Service) -> None:
    assert secure.ops("/readyz") == (200, "ok")
    assert secure.ops("/filter")[0] in (404, 405)
    assert secure.ops("/bind")[0] in (404, 405)


def test_a_caller_that_leaves_is_noticed_through_tls(secure: Service, certs: Certs) -> None:
    before = secure.report()["gone"]
    with socket.create_connection(("127.0.0.1", secure.port), timeout=SOON) as plain:
        sock = certs.client().wrap_socket(plain, server_hostname="127.0.0.1")
        body = bind_body("held-tls")
        sock.sendall(b"POST /bind HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        eventually(lambda: secure.report()["held"] == 1, within=SOON, what="it is held")
        sock.close()
    eventually(lambda: secure.report()["gone"] == before + 1, within=SOON, what="its leaving is noticed")


def test_new_certificates_are_taken_up_and_broken_ones_are_not(secure: Service, certs: Certs) -> None:
    """Last of this file: the server has another CA afterwards."""
    kept = secure.client()
    kept.request("POST", "/bind", bind_body("a"))
    kept.getresponse().read()
    new_ca = trustme.CA()
    (certs.folder / "tls.crt").write_text("half a certific")
    eventually(
        lambda: still(secure) and "not reloaded" in secure.program.log(), within=SOON, what="the broken pair is seen"
    )
    certs.write(new_ca)
    only_new = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    new_ca.configure_trust(only_new)
    certs.ca.issue_cert("other.example", common_name=NAME).configure_cert(only_new)
    secure.client_context = only_new
    eventually(lambda: still(secure), within=SOON, what="the new pair is served")
    kept.request("POST", "/bind", bind_body("a"))
    assert kept.getresponse().status == 200  # on the connection from before
    kept.close()


def still(service: Service) -> bool:
    try:
        return service.post("filter", payload("filter"))[0] == 200
    except ssl.SSLError:
        return False

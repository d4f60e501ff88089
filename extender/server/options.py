"""What `serve` is told: addresses, TLS, limits. Read by the command, checked here, used by the application and the worker."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

MAX_BODY_BYTES = 16 * 1024 * 1024
QUESTION_BYTES = 4 * 1024 * 1024  # of a body on the ops port: two thousand pods
LOOPBACK = "127.0.0.1"


class OptionsError(ValueError):
    """Flags that do not go together; the text names them."""


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Timeouts in seconds. request_seconds bounds a whole request, idle_seconds the wait for its first byte.

    pages_bind_address: empty: pages are for loopback alone, on the ops port.
    """

    bind_address: str = "127.0.0.1"
    port: int = 8888
    ops_bind_address: str = "127.0.0.1"
    ops_port: int = 8889
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    client_ca_file: str = ""
    pages_bind_address: str = ""
    pages_port: int = 8890
    pages_tls_cert_file: str = ""
    pages_tls_private_key_file: str = ""
    allowed_client_names: tuple[str, ...] = ()
    max_body_bytes: int = MAX_BODY_BYTES
    worker_connections: int = 4096
    idle_seconds: float = 120.0
    request_seconds: float = 5.0
    send_seconds: float = 10.0
    handshake_seconds: float = 5.0
    drain_seconds: float = 10.0
    blocked_seconds: int = 60
    verbosity: int = 2
    logging_format: str = "text"

    @property
    def tls(self) -> bool:
        return bool(self.tls_cert_file)

    @property
    def pages(self) -> bool:
        """Whether pages have a port of their own, with TLS and for the bearers of tokens."""
        return bool(self.pages_bind_address)

    @property
    def ops_addresses(self) -> tuple[str, ...]:
        """Where probes, metrics and pages listen. Loopback always: `explain` and a port-forward come from there, and callers
        from elsewhere are not shown the pages."""
        address = self.ops_bind_address
        if is_loopback(address) or _is_every_address(address) or self.ops_port == 0:
            return (address,)
        return address, LOOPBACK

    def check(self) -> None:
        """Raises OptionsError."""
        given = [self.tls_cert_file, self.tls_private_key_file, self.client_ca_file]
        if any(given) and not all(given):
            raise OptionsError(
                "--tls-cert-file, --tls-private-key-file and --client-ca-file go together: clients are always verified"
            )
        if self.allowed_client_names and not self.tls:
            raise OptionsError("--allowed-client-name needs --client-ca-file")
        if self.tls and not self.allowed_client_names:
            raise OptionsError(
                "--client-ca-file needs --allowed-client-name: a CA alone would let in all that it signed"
            )
        if not self.tls and not is_loopback(self.bind_address):
            raise OptionsError(
                f"--bind-address {self.bind_address}: the verbs are not served beyond loopback without "
                "--tls-cert-file, --tls-private-key-file and --client-ca-file: a client that can call bind can place any pod"
            )
        self._check_pages()
        flags = {"--port": self.port, "--ops-port": self.ops_port}
        if self.pages:
            flags["--pages-port"] = self.pages_port
        for flag, port in flags.items():
            same = [each for each, other in flags.items() if other == port and port != 0]
            if len(same) > 1:
                raise OptionsError(f"{' and '.join(same)} are both {port}")

    def _check_pages(self) -> None:
        files = [self.pages_tls_cert_file, self.pages_tls_private_key_file]
        if any(files) and not self.pages:
            raise OptionsError("--pages-tls-cert-file and --pages-tls-private-key-file need --pages-bind-address")
        if self.pages and not all(files):
            raise OptionsError(
                f"--pages-bind-address {self.pages_bind_address}: the pages are served with TLS only: "
                "--pages-tls-cert-file and --pages-tls-private-key-file are missing: users' tokens would go in plain text"
            )


def is_loopback(address: str) -> bool:
    """Whether it is this host's own."""
    ip = _ip_address(address)
    return address == "localhost" or (ip is not None and ip.is_loopback)


def _is_every_address(address: str) -> bool:
    """As an address to listen on: no address is every address."""
    ip = _ip_address(address)
    return address == "" or (ip is not None and ip.is_unspecified)


def _ip_address(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """None for a name. A listener on `::` sees IPv4 callers as ::ffff:a.b.c.d: such an address is a.b.c.d."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return None
    return (parsed.ipv4_mapped or parsed) if isinstance(parsed, ipaddress.IPv6Address) else parsed

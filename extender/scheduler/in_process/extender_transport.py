"""One connection pool to an extender, with the TLS of its entry in `extenders:`.

kube-scheduler: pkg/scheduler/extender.go (makeTransport), k8s.io/client-go/transport (TLSConfigFor)
"""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path

import urllib3

from extender.config.types import ExtenderConfig, ExtenderTLSConfig

CONNECTIONS = 64


class TransportError(ValueError):
    """TLS options that do not go together, or files that cannot be read."""


def check(config: ExtenderConfig) -> None:
    """What can be said of the options without reading a file. Raises TransportError."""
    tls = config.tls or ExtenderTLSConfig()
    if bool(tls.cert_data or tls.cert_file) != bool(tls.key_data or tls.key_file):
        raise TransportError("tlsConfig: certFile and keyFile (or certData and keyData) go together")
    if bool(tls.ca_data or tls.ca_file) and tls.insecure:
        raise TransportError("tlsConfig: specifying a root certificates file with the insecure flag is not allowed")


def pool(config: ExtenderConfig) -> urllib3.PoolManager:
    """Raises TransportError."""
    check(config)
    tls = config.tls or ExtenderTLSConfig()
    plain = config.tls is None and not config.enable_https and config.url_prefix.startswith("http:")
    try:
        context = None if plain else _context(tls, enable_https=config.enable_https)
    except (OSError, ssl.SSLError) as error:
        raise TransportError(f"tlsConfig: {error}") from error
    names = {"server_hostname": tls.server_name, "assert_hostname": tls.server_name} if tls.server_name else {}
    return urllib3.PoolManager(
        maxsize=CONNECTIONS,
        block=False,
        retries=False,
        timeout=config.http_timeout_seconds,
        ssl_context=context,
        **names,  # type: ignore[arg-type]
    )


def _context(tls: ExtenderTLSConfig, *, enable_https: bool) -> ssl.SSLContext:
    """enableHTTPS without a CA checks no certificate, as there."""
    has_ca = bool(tls.ca_data or tls.ca_file)
    insecure = tls.insecure or (enable_https and not has_ca)
    context = ssl.create_default_context()
    if insecure:
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)  # it is what the file asks for
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif has_ca:
        context = ssl.create_default_context(cadata=_text(tls.ca_data, tls.ca_file))
    certificate, key = tls.cert_data or _read(tls.cert_file), tls.key_data or _read(tls.key_file)
    if certificate:
        _load(context, certificate, key)
    return context


def _load(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """OpenSSL reads a key from a file only; this one is gone at once, and no other user may read it."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(certificate + b"\n" + key)
        file.flush()
        context.load_cert_chain(file.name)


def _read(file: str) -> bytes:
    return Path(file).read_bytes() if file else b""


def _text(data: bytes, file: str) -> str:
    return (data or _read(file)).decode()

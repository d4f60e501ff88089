"""Where kube-scheduler's entries send their calls, and what protects them on the way.

kube-scheduler: pkg/scheduler/extender.go (makeTransport), which says nothing where no server is verified
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from extender.config.findings import Finding, Severity, finding
from extender.config.types import ExtenderConfig, ExtenderTLSConfig
from extender.config.yaml_file import Document

ERROR, WARNING, INFO = Severity

VERBS_PORT, OPS_PORT = 8888, 8889


def examine(document: Document, path: str, entry: ExtenderConfig) -> Iterator[Finding]:
    """path: of the entry in the document."""
    yield from _address(document, path, entry)
    yield from _tls(document, path, entry)


def _address(document: Document, path: str, entry: ExtenderConfig) -> Iterator[Finding]:
    field = f"{path}.urlPrefix"
    url, port = split(entry.url_prefix)
    if url is None or url.scheme not in ("http", "https") or not url.hostname:
        message, fix = f"{entry.url_prefix!r} is no URL", "write `urlPrefix: http://127.0.0.1:8888`"
        yield finding(ERROR, "InvalidAddress", document, field, message, fix)
    elif _has_more_than_an_address(entry.url_prefix):
        message, fix = f"{entry.url_prefix!r} is more than an address: the verb is appended", "end it with the port"
        yield finding(ERROR, "InvalidAddress", document, field, message, fix)
    elif url.path.strip("/"):
        message, fix = f"the extender serves its verbs at the root, not below {url.path}", "take the path away"
        yield finding(ERROR, "PathInAddress", document, field, message, fix)
    elif port == OPS_PORT:
        message = (
            f"{OPS_PORT} is the port of probes and metrics unless the extender is told otherwise: verbs get 404 there"
        )
        yield finding(WARNING, "OpsPort", document, field, message, f"write the port of the verbs, {VERBS_PORT}")
    elif is_loopback(url.hostname) and port != VERBS_PORT:
        message = f"the extender serves its verbs at {VERBS_PORT} unless it is told otherwise (--port)"
        yield finding(INFO, "OtherPort", document, field, message, "compare it with --port in the extender's arguments")
    elif url.scheme == "http" and not is_loopback(url.hostname):
        message = "any program that reaches this address can bind pods: the verbs are not protected by TLS"
        fix = "serve them on loopback, or with TLS and client certificates: docs/security.md"
        yield finding(ERROR, "UnprotectedVerbs", document, field, message, fix)


def _has_more_than_an_address(text: str) -> bool:
    """kube-scheduler appends the verb to the text as it is, so what follows a `?` or `#` swallows it. urlsplit drops tabs and line
    ends without a word, so the text itself is looked at."""
    return any(letter in "?#" or letter.isspace() or not letter.isprintable() for letter in text)


def split(text: str) -> tuple[SplitResult | None, int | None]:
    """With the port; None for what is no URL."""
    try:
        url = urlsplit(text)
        return url, url.port
    except ValueError:
        return None, None


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _tls(document: Document, path: str, entry: ExtenderConfig) -> Iterator[Finding]:
    """What kube-scheduler says nothing of: with enableHTTPS and without a CA it trusts any server, and what is in the file is read once.

    With both a CA and `insecure` it does not start, which the file's reader says."""
    url, _ = split(entry.url_prefix)
    if url is None or url.scheme != "https":
        return
    tls, field = entry.tls or ExtenderTLSConfig(), f"{path}.tlsConfig"
    has_ca = bool(tls.ca_file or tls.ca_data)
    if tls.insecure or (entry.enable_https and not has_ca):
        why = "`insecure` is set" if tls.insecure else "enableHTTPS is set, and no `caFile`"
        message = f"kube-scheduler believes any server that answers there ({why}): it may place every pod, and read it"
        yield finding(ERROR, "UnverifiedServer", document, field, message, "write `caFile`, and no `insecure`")
    elif not has_ca:
        message = "no `caFile`: every call fails unless an authority of kube-scheduler's system has signed the server's certificate"
        yield finding(
            WARNING, "SystemRoots", document, field, message, "write the `caFile` of the extender's certificate"
        )
    if not ((tls.cert_file or tls.cert_data) and (tls.key_file or tls.key_data)):  # one of them alone is left unused
        message = "the extender refuses callers without a client certificate: no pod is scheduled"
        yield finding(ERROR, "NoClientCertificate", document, field, message, "write `certFile` and `keyFile`")
    elif tls.cert_data:
        message = "kube-scheduler reads a certificate in its configuration once, and files again when they change"
        fix = "write `certFile` and `keyFile`, so that it can be renewed without a restart"
        yield finding(WARNING, "CertificateInFile", document, field, message, fix)

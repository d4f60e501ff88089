"""When the certificates of the verbs end: for the metric, by which an alert says so weeks before kube-scheduler is refused.

Written when files are read, and when a client has shown its certificate. No counterpart: kube-scheduler has no such metric.
"""

from __future__ import annotations

import _ssl
import ssl
from collections.abc import Mapping
from typing import Any

from extender import metrics

SERVER, CLIENT_CA, CLIENT, PAGES = "server", "client_ca", "client", "pages"


def of_server(file: str) -> None:
    """The first certificate of a file that has been loaded. `ssl` itself has no way to read one that is no CA's."""
    _write(SERVER, _ssl._test_decode_cert(file))  # type: ignore[attr-defined]


def of_pages(file: str) -> None:
    """Of the pages' port."""
    _write(PAGES, _ssl._test_decode_cert(file))  # type: ignore[attr-defined]


def of_client_cas(context: ssl.SSLContext) -> None:
    """The one that ends first."""
    ends = [ssl.cert_time_to_seconds(str(each["notAfter"])) for each in context.get_ca_certs() if "notAfter" in each]
    if ends:
        metrics.certificate_not_after.labels(CLIENT_CA).set(min(ends))


def of_client(certificate: Mapping[str, Any] | None) -> None:
    """As getpeercert gives it."""
    if certificate:
        _write(CLIENT, certificate)


def _write(which: str, certificate: Mapping[str, Any]) -> None:
    metrics.certificate_not_after.labels(which).set(ssl.cert_time_to_seconds(certificate["notAfter"]))

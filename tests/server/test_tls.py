"""The certificates' life without a network: what is read again when, and what is kept."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from cryptography import x509

from extender.metrics import REGISTRY
from extender.server import certificate_ends
from extender.server.client_auth import names_of
from extender.server.options import ServeOptions
from extender.server.tls import LOOK_SECONDS, Certificates
from tests.server.test_few_descriptors import no_more_descriptors

NOT_AFTER = "gang_extender_certificate_not_after"


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def options(tmp_path: Path) -> ServeOptions:
    ca = trustme.CA()
    ca.cert_pem.write_to_path(tmp_path / "ca.crt")
    options = ServeOptions(
        tls_cert_file=str(tmp_path / "tls.crt"),
        tls_private_key_file=str(tmp_path / "tls.key"),
        client_ca_file=str(tmp_path / "ca.crt"),
        allowed_client_names=("a",),
    )
    write_pair(options)
    return options


def certificates_of(options: ServeOptions, clock: Clock) -> Certificates:
    files = options.tls_cert_file, options.tls_private_key_file, options.client_ca_file
    return Certificates(*files, clock)


def write_pair(options: ServeOptions, days: int = 30) -> None:
    pair = trustme.CA().issue_cert("127.0.0.1", not_after=datetime.now(UTC) + timedelta(days=days))
    pair.cert_chain_pems[0].write_to_path(options.tls_cert_file)
    pair.private_key_pem.write_to_path(options.tls_private_key_file)


def test_unchanged_files_keep_the_context(options: ServeOptions, clock: Clock) -> None:
    certificates = certificates_of(options, clock)
    first = certificates.current()
    clock.now += 10 * LOOK_SECONDS
    assert certificates.current() is first


def test_changed_files_are_read_again_but_not_at_every_call(options: ServeOptions, clock: Clock) -> None:
    certificates = certificates_of(options, clock)
    first = certificates.current()
    write_pair(options)
    assert certificates.current() is first
    clock.now += LOOK_SECONDS
    second = certificates.current()
    assert second is not first
    assert certificates.current() is second


def test_a_changed_client_ca_is_read_again(options: ServeOptions, clock: Clock) -> None:
    certificates = certificates_of(options, clock)
    first = certificates.current()
    trustme.CA().cert_pem.write_to_path(options.client_ca_file)
    clock.now += LOOK_SECONDS
    assert certificates.current() is not first


@pytest.mark.parametrize("broken", ["half written", "gone", "of another key"])
def test_a_broken_pair_leaves_the_old_one(
    options: ServeOptions, clock: Clock, caplog: pytest.LogCaptureFixture, broken: str
) -> None:
    certificates = certificates_of(options, clock)
    first = certificates.current()
    key = Path(options.tls_private_key_file)
    match broken:
        case "half written":
            key.write_bytes(key.read_bytes()[:100])
        case "gone":
            key.unlink()
        case _:
            trustme.CA().issue_cert("x").private_key_pem.write_to_path(key)
    for _ in range(3):
        clock.now += LOOK_SECONDS
        assert certificates.current() is first
    assert caplog.text.count("not reloaded") == 1
    write_pair(options)
    os.utime(key, ns=(1, 1))
    clock.now += LOOK_SECONDS
    assert certificates.current() is not first


def test_a_pair_that_no_descriptor_was_left_for_is_taken_up_once_there_is_one(
    options: ServeOptions, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    certificates = certificates_of(options, clock)
    first = certificates.current()
    write_pair(options)
    clock.now += LOOK_SECONDS
    with no_more_descriptors(os.getpid(), 0):
        assert certificates.current() is first
    assert "not reloaded" in caplog.text
    clock.now += LOOK_SECONDS
    assert certificates.current() is not first


def test_what_is_wrong_is_said_again_where_it_was_right_in_between(
    options: ServeOptions, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    certificates = certificates_of(options, clock)
    key = Path(options.tls_private_key_file)
    aside = key.with_suffix(".aside")
    for _ in range(2):
        for before, after in ((key, aside), (aside, key)):
            before.rename(after)
            clock.now += LOOK_SECONDS
            certificates.current()
    assert caplog.text.count("not reloaded") == 2


@pytest.mark.parametrize(
    ("file", "text"),
    [
        pytest.param("tls_cert_file", "are not a certificate and its key", id="a certificate that is none"),
        pytest.param("client_ca_file", "is not a CA certificate", id="a CA that is none"),
    ],
)
def test_at_the_start_what_is_wrong_is_named(options: ServeOptions, file: str, text: str) -> None:
    path = Path(getattr(options, file))
    path.write_text("-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n")
    with pytest.raises(OSError, match=text) as caught:
        Certificates.of(options)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("certificate", "names"),
    [
        pytest.param({}, [], id="no certificate"),
        pytest.param(
            {"subject": ((("organizationName", "system:masters"),), (("commonName", "kube"),))},
            ["kube"],
            id="the common name, not the organization",
        ),
        pytest.param(
            {"subjectAltName": (("DNS", "a.b"), ("URI", "spiffe://x"), ("IP Address", "10.0.0.1"), ("email", "a@b"))},
            ["a.b", "spiffe://x"],
            id="DNS and URI, not addresses",
        ),
    ],
)
def test_names_of_a_certificate(certificate: dict[str, object], names: list[str]) -> None:
    assert list(names_of(certificate)) == names


def ends(which: str) -> float:
    return REGISTRY.get_sample_value(f"{NOT_AFTER}_timestamp_seconds", {"certificate": which}) or 0.0


def test_the_metric_says_when_they_end(options: ServeOptions, clock: Clock) -> None:
    """As OpenSSL reads them."""
    certificates = certificates_of(options, clock)
    certificates.current()
    pem = Path(options.tls_cert_file).read_bytes()
    assert ends("server") == x509.load_pem_x509_certificate(pem).not_valid_after_utc.timestamp()
    ca = Path(options.client_ca_file).read_bytes()
    assert ends("client_ca") == x509.load_pem_x509_certificate(ca).not_valid_after_utc.timestamp()


def test_one_that_was_renewed_ends_later(options: ServeOptions, clock: Clock) -> None:
    certificates = certificates_of(options, clock)
    write_pair(options, days=3)
    clock.now += LOOK_SECONDS
    certificates.current()
    assert ends("server") == pytest.approx(time.time() + 3 * 86400, abs=3600)


def test_a_client_s_certificate_is_told_as_it_shows_it() -> None:
    certificate_ends.of_client({"notAfter": "Jan  5 09:34:43 2028 GMT"})
    assert datetime.fromtimestamp(ends("client"), UTC).isoformat() == "2028-01-05T09:34:43+00:00"
    certificate_ends.of_client(None)

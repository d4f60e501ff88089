"""Flags that go together, and those that do not."""

from __future__ import annotations

from typing import Any

import pytest

from extender.server.options import OptionsError, ServeOptions, is_loopback

FILES = {"tls_cert_file": "c", "tls_private_key_file": "k", "client_ca_file": "a"}
PAGES = {"pages_bind_address": "10.0.0.7", "pages_tls_cert_file": "c", "pages_tls_private_key_file": "k"}
NAMES = {"allowed_client_names": ("system:kube-scheduler",)}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        pytest.param({"bind_address": "0.0.0.0"}, "not served beyond loopback", id="everywhere without TLS"),
        pytest.param({"bind_address": "10.0.0.7"}, "not served beyond loopback", id="the pod's address without TLS"),
        pytest.param({"bind_address": "::"}, "not served beyond loopback", id="everywhere by IPv6"),
        pytest.param({"bind_address": ""}, "not served beyond loopback", id="no address is every address"),
        pytest.param({"tls_cert_file": "c", "tls_private_key_file": "k"}, "go together", id="TLS without a client CA"),
        pytest.param({"client_ca_file": "a"}, "go together", id="a client CA without a certificate"),
        pytest.param(FILES, "--allowed-client-name", id="a CA without names"),
        pytest.param(NAMES, "--client-ca-file", id="names without a CA"),
        pytest.param({"port": 8889}, "both 8889", id="one port for both"),
        pytest.param(
            {**PAGES, "pages_port": 8889}, "--ops-port and --pages-port are both 8889", id="one for the pages too"
        ),
        pytest.param({"pages_bind_address": "0.0.0.0"}, "served with TLS only", id="pages without TLS"),
        pytest.param({"pages_bind_address": "127.0.0.1"}, "served with TLS only", id="not even on loopback"),
        pytest.param(
            {**PAGES, "pages_tls_private_key_file": ""}, "served with TLS only", id="a certificate without its key"
        ),
        pytest.param({"pages_tls_cert_file": "c"}, "need --pages-bind-address", id="a certificate for nothing"),
    ],
)
def test_wrong_use_is_named(given: dict[str, object], text: str) -> None:
    with pytest.raises(OptionsError, match=text):
        ServeOptions(**given).check()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({}, id="the defaults"),
        pytest.param(PAGES, id="pages with TLS"),
        pytest.param({"pages_port": 8889}, id="a port of pages that are not served"),
        pytest.param({"bind_address": "::1"}, id="loopback by IPv6"),
        pytest.param({"ops_bind_address": "0.0.0.0"}, id="probes everywhere"),
        pytest.param({**FILES, **NAMES, "bind_address": "0.0.0.0"}, id="everywhere with verified clients"),
    ],
)
def test_right_use(given: dict[str, object]) -> None:
    ServeOptions(**given).check()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("address", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("::ffff:7f00:1", True),
        ("localhost", True),
        ("::ffff:10.0.0.7", False),
        ("::ffff:0.0.0.0", False),
        ("::127.0.0.1", False),
        ("2002:7f00:1::", False),
        ("0.0.0.0", False),
        ("", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
    ],
)
def test_loopback(address: str, loopback: bool) -> None:
    assert is_loopback(address) is loopback


@pytest.mark.parametrize(
    ("given", "addresses"),
    [
        pytest.param({}, ("127.0.0.1",), id="loopback alone"),
        pytest.param({"ops_bind_address": "10.1.2.3"}, ("10.1.2.3", "127.0.0.1"), id="a pod's address, and loopback"),
        pytest.param({"ops_bind_address": "fd00::3"}, ("fd00::3", "127.0.0.1"), id="an IPv6 address, and loopback"),
        pytest.param({"ops_bind_address": "0.0.0.0"}, ("0.0.0.0",), id="everywhere is there already"),
        pytest.param({"ops_bind_address": "::"}, ("::",), id="everywhere by IPv6, and by IPv4"),
        pytest.param({"ops_bind_address": "0:0::0"}, ("0:0::0",), id="everywhere by IPv6, in other words"),
        pytest.param({"ops_bind_address": "::ffff:0.0.0.0"}, ("::ffff:0.0.0.0",), id="everywhere by IPv4, mapped"),
        pytest.param({"ops_bind_address": "::1"}, ("::1",), id="IPv6's loopback"),
        pytest.param({"ops_bind_address": "::ffff:127.0.0.1"}, ("::ffff:127.0.0.1",), id="IPv4's loopback, mapped"),
        pytest.param({"ops_bind_address": "10.1.2.3", "ops_port": 0}, ("10.1.2.3",), id="any port"),
    ],
)
def test_where_pages_listen(given: dict[str, Any], addresses: tuple[str, ...]) -> None:
    assert ServeOptions(**given).ops_addresses == addresses

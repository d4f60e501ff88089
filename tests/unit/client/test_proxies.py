"""Which proxy the environment names: Go's rules."""

from __future__ import annotations

import pytest

from extender.client.proxies import proxy_for

PROXY = "http://proxy.example.com:3128"


@pytest.mark.parametrize(
    ("server", "no_proxy", "proxy"),
    [
        pytest.param("https://10.96.0.1:443", "", PROXY, id="nothing is left out"),
        pytest.param("https://10.96.0.1:443", "*", "", id="everything is left out"),
        pytest.param("https://10.96.0.1:443", "10.96.0.1", "", id="its address"),
        pytest.param("https://10.96.0.1:443", "10.96.0.10", PROXY, id="another address that begins alike"),
        pytest.param("https://10.96.0.1:443", "10.0.0.0/8, .svc", "", id="its network"),
        pytest.param("https://10.96.0.1:443", "10.0.0.0/16", PROXY, id="another network"),
        pytest.param("https://10.96.0.1:443", "nonsense/8,10.0.0.0/99", PROXY, id="networks that are none"),
        pytest.param("https://10.96.0.1:443", "10.96.0.1:443", "", id="its address and port"),
        pytest.param("https://10.96.0.1", "10.96.0.1:443", "", id="its address and the port of its scheme"),
        pytest.param("https://10.96.0.1:6443", "10.96.0.1:443", PROXY, id="its address with another port"),
        pytest.param("https://[fd00::1]:443", "fd00::1", "", id="its address, version 6"),
        pytest.param("https://[fd00::1]:443", "[fd00::1]:443", "", id="its address and port, version 6"),
        pytest.param("https://[fd00::1]:443", "fd00::/16", "", id="its network, version 6"),
        pytest.param("https://api.example.com", "example.com", "", id="a domain around it"),
        pytest.param("https://api.example.com", ".example.com", "", id="a domain around it, with a dot"),
        pytest.param("https://api.example.com", "*.example.com", "", id="a domain around it, with a star"),
        pytest.param("https://API.Example.com", "Example.COM", "", id="in capitals"),
        pytest.param("https://example.com", "example.com", "", id="the domain itself"),
        pytest.param("https://example.com", ".example.com", PROXY, id="only what is in the domain"),
        pytest.param("https://example.com.evil.org", "example.com", PROXY, id="a domain that begins alike"),
        pytest.param("https://notexample.com", "example.com", PROXY, id="a domain that ends alike"),
        pytest.param("https://127.0.0.1:6443", "", "", id="the machine itself"),
        pytest.param("https://[::1]:6443", "", "", id="the machine itself, version 6"),
        pytest.param("https://localhost:6443", "", "", id="the machine itself by name"),
    ],
)
def test_what_no_proxy_leaves_out(server: str, no_proxy: str, proxy: str) -> None:
    assert proxy_for(server, {"HTTPS_PROXY": PROXY, "NO_PROXY": no_proxy}) == proxy


@pytest.mark.parametrize(
    ("server", "environ", "proxy"),
    [
        pytest.param("https://a", {}, "", id="none"),
        pytest.param("https://a", {"HTTP_PROXY": PROXY}, "", id="only for the other scheme"),
        pytest.param("http://a", {"HTTP_PROXY": PROXY}, PROXY, id="for plain HTTP"),
        pytest.param("https://a", {"https_proxy": PROXY}, PROXY, id="in small letters"),
        pytest.param("https://a", {"https_proxy": "http://b", "HTTPS_PROXY": PROXY}, PROXY, id="capitals come first"),
        pytest.param("https://a", {"HTTPS_PROXY": "b:3128"}, "http://b:3128", id="without a scheme"),
        pytest.param("https://a", {"HTTPS_PROXY": PROXY, "no_proxy": "a"}, "", id="left out in small letters"),
    ],
)
def test_the_variable_is_that_of_the_server_s_scheme(server: str, environ: dict[str, str], proxy: str) -> None:
    assert proxy_for(server, environ) == proxy

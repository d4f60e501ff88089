"""Which proxy is between us and a server, by the environment: the rules are Go's, so that kube-scheduler beside us goes the same way.

client/identity asks for a server whose kubeconfig names no proxy.
Go: golang.org/x/net/http/httpproxy
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from contextlib import suppress

from urllib3.util import Url, parse_url

PORTS = {"http": 80, "https": 443}


def proxy_for(server: str, environ: Mapping[str, str]) -> str:
    """URL of the proxy, empty for none. HTTPS_PROXY or HTTP_PROXY by the server's scheme, except for what NO_PROXY names and
    for the machine itself."""
    url = parse_url(server)
    proxy = _value(environ, f"{url.scheme}_proxy")
    if not proxy or _is_direct(url, _value(environ, "no_proxy")):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _value(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name.upper()) or environ.get(name, "")


def _is_direct(url: Url, no_proxy: str) -> bool:
    host, port = (url.host or "").strip("[]").lower(), url.port or PORTS.get(url.scheme or "", 0)
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    return any(_matches(entry.strip().lower(), host, port, address) for entry in no_proxy.split(",") if entry.strip())


def _matches(entry: str, host: str, port: int, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None) -> bool:
    """One entry of NO_PROXY: `*`, a network, an address or a domain, the last two perhaps with a port."""
    if entry == "*":
        return True
    if "/" in entry:
        with suppress(ValueError):
            return address is not None and address in ipaddress.ip_network(entry, strict=False)
        return False
    entry, of_port = _split(entry)
    if of_port and of_port != str(port):
        return False
    if (wanted := _address(entry)) is not None:
        return address == wanted
    if entry.startswith(("*.", ".")):
        return host.endswith(entry.removeprefix("*"))
    return host == entry or host.endswith(f".{entry}")


def _split(entry: str) -> tuple[str, str]:
    """Host and port; `::1` is an address without one."""
    host, colon, port = entry.rpartition(":")
    if colon and port.isdecimal() and (":" not in host or host.endswith("]")):
        return host.strip("[]"), port
    return entry.strip("[]"), ""


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    with suppress(ValueError):
        return ipaddress.ip_address(text)
    return None

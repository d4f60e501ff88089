"""Who we are to the API server: from a kubeconfig file, or from the pod's service account.

The `kubernetes` package reads both, exec plugins and OIDC included; only what it finds is used here.
"""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kubernetes import client as kubernetes_client
from kubernetes import config as kubernetes_config

from extender.client.errors import ConnectionFailedError

HEADERS_SECONDS = (
    10.0  # how long headers are kept: the library sets up everything anew each time it is asked for a token
)
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


class IdentityError(Exception):
    """No usable kubeconfig, or not in a cluster."""


class Identity:
    """Host, TLS and headers. `refresh` reads the token again: it rotates about hourly, and a 401 says it has."""

    def __init__(self, load: Callable[[], Any], clock: Callable[[], float] = time.monotonic) -> None:
        self._load = load
        self._clock = clock
        self._lock = threading.Lock()  # guards the three below
        self._configuration = load()
        self._headers: dict[str, str] = {}
        self._kept_until = clock()

    @classmethod
    def from_kubeconfig(cls, path: str | None = None, context: str | None = None) -> Identity:
        """path None: $KUBECONFIG, else ~/.kube/config. Raises IdentityError."""

        def load() -> Any:
            configuration = kubernetes_client.Configuration()
            try:
                kubernetes_config.load_kube_config(  # type: ignore[no-untyped-call]
                    config_file=path, context=context, client_configuration=configuration, persist_config=False
                )
            except (kubernetes_config.ConfigException, OSError, TypeError, ValueError) as error:
                raise IdentityError(f"kubeconfig {path or '(default)'}: {error}") from error
            return configuration

        return cls(load)

    @classmethod
    def in_cluster(cls) -> Identity:
        def load() -> Any:
            configuration = kubernetes_client.Configuration()
            try:
                kubernetes_config.load_incluster_config(  # type: ignore[no-untyped-call]
                    client_configuration=configuration
                )
            except kubernetes_config.ConfigException as error:
                raise IdentityError(f"not in a cluster: {error}") from error
            return configuration

        return cls(load)

    @property
    def host(self) -> str:
        return str(self._configuration.host).rstrip("/")

    def headers(self) -> dict[str, str]:
        """The Authorization header, if there is one. The library renews a token of the service account that has aged."""
        with self._lock:
            if self._clock() >= self._kept_until:
                self._headers = self._read_headers()
                self._kept_until = self._clock() + HEADERS_SECONDS
            return self._headers

    def _read_headers(self) -> dict[str, str]:
        try:
            # the name that the library keeps it under depends on its version
            token = self._configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        except OSError as error:
            raise ConnectionFailedError(f"token could not be read: {error}") from error
        if token:
            return {"Authorization": token}
        if self._configuration.username:
            return {"Authorization": self._configuration.get_basic_auth_token()}
        return {}

    def refresh(self) -> None:
        with self._lock:
            try:
                self._configuration = self._load()
            except IdentityError as error:
                raise ConnectionFailedError(str(error)) from error
            self._kept_until = self._clock()

    def ssl_context(self) -> ssl.SSLContext | None:
        """None for plain http. Only the server's own CA is trusted where the configuration names one."""
        configuration = self._configuration
        if not self.host.startswith("https:"):
            return None
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert or None)
        if not configuration.verify_ssl:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if configuration.cert_file:
            context.load_cert_chain(configuration.cert_file, configuration.key_file)
        return context

    @property
    def server_hostname(self) -> str | None:
        name = self._configuration.tls_server_name
        return str(name) if name else None

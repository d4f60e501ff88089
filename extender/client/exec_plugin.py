"""A program named in a kubeconfig that gives our identity: a token or certificate, for as long as that is valid.

client-go: plugin/pkg/client/auth/exec; the contract: k8s.io/client-go/pkg/apis/clientauthentication/v1/types.go
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from extender.api import codec
from extender.client.credentials import IdentityError

SECONDS = 60.0  # a program that takes longer is of no use
MAX_ERROR = 500


class PluginStatus(Struct, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _ExecCredential(Struct, frozen=True, rename="camel"):
    api_version: str
    status: PluginStatus


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """place: where it is named. cluster: what it is told of the cluster, None where it did not ask for it."""

    place: str
    api_version: str
    command: str
    args: Sequence[str]
    env: Mapping[str, str]
    folder: Path
    install_hint: str = ""
    cluster: Mapping[str, Any] | None = None

    def run(self) -> PluginStatus:
        """Raises IdentityError with what the program wrote, if it failed."""
        try:
            done = subprocess.run(  # noqa: S603 - the kubeconfig names it: to run it is what it is for
                [self._program(), *self.args],
                env={**os.environ, **self.env, "KUBERNETES_EXEC_INFO": self._info()},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=SECONDS,
                check=False,
            )
        except FileNotFoundError as error:
            raise IdentityError(f"{self.place}: {self.command}: not found. {self.install_hint}".rstrip(". ")) from error
        except (
            OSError,
            ValueError,
            subprocess.TimeoutExpired,
        ) as error:  # ValueError: names no program or variable can have
            raise IdentityError(f"{self.place}: {self.command}: {_said(error)}") from error
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()[-MAX_ERROR:]
            raise IdentityError(f"{self.place}: {self.command} ended with {done.returncode}: {said}")
        return self._read(done.stdout)

    def _program(self) -> str:
        """A path is from the kubeconfig's folder, a name is looked up in PATH."""
        return str(self.folder / self.command) if "/" in self.command else self.command

    def _info(self) -> str:
        spec: dict[str, Any] = {"interactive": False}
        if self.cluster is not None:
            spec["cluster"] = dict(self.cluster)
        return json.dumps({"apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec})

    def _read(self, output: bytes) -> PluginStatus:
        try:
            answer = codec.decode(output, _ExecCredential)
        except codec.DecodeError as error:
            raise IdentityError(f"{self.place}: {self.command} wrote no ExecCredential: {error}") from error
        if answer.api_version != self.api_version:
            raise IdentityError(f"{self.place}: {self.command} wrote {answer.api_version}, not {self.api_version}")
        status = answer.status
        if not status.token and not status.client_certificate_data:
            raise IdentityError(f"{self.place}: {self.command} wrote neither a token nor a certificate")
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise IdentityError(f"{self.place}: {self.command} wrote a certificate or a key without the other")
        return status


def _said(error: Exception) -> str:
    if isinstance(error, subprocess.TimeoutExpired):
        return f"not done after {SECONDS:.0f} s"
    return str(getattr(error, "strerror", None) or error)

"""An extender at an address: `--server`, and with which token it is asked there.

The pages beyond loopback ask for a bearer token. It is that of `--token-file`, or the one by which the kubeconfig's context asks the API
server: its token, or what its exec plugin gives. No token is sent without TLS. `asking` chooses between an address and the leader.
kubectl: with `--server` it sends the context's credentials too
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from extender.cli import kubeconfig_flags
from extender.cli.errors import NoAnswerError, UsageError

if TYPE_CHECKING:
    from extender.client.credentials import Credentials
    from extender.client.identity import Identity

SERVER = "http://127.0.0.1:8889"
VARIABLE = "GANG_EXTENDER_SERVER"
SECONDS = 30.0
"""Of silence. A question that costs plans is answered within half of it."""
JSON = "application/json"
BEARER = "Bearer "
OTHERS = (
    "; --server URL names an extender elsewhere, --kubeconfig FILE or --context NAME the cluster whose leader is asked"
)


class Tokens(Protocol):
    def authorization(self) -> str:
        """The header's value; empty for none. Raises NoAnswerError."""
        ...

    def renew(self) -> bool:
        """After the server has refused it: whether there is another."""
        ...


@dataclass(frozen=True, slots=True)
class NoToken:
    def authorization(self) -> str:
        return ""

    def renew(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class FixedToken:
    token: str = field(repr=False)

    def authorization(self) -> str:
        return BEARER + self.token

    def renew(self) -> bool:
        return False


@dataclass(eq=False)
class ContextToken:
    """Of the kubeconfig's context. A password or a certificate of it is for the API server alone, and is not shown to others."""

    identity: Identity
    _given: Credentials | None = field(default=None, init=False, repr=False)

    def authorization(self) -> str:
        self._given = self.identity.current()
        value = self._given.authorization
        return value if value.startswith(BEARER) else ""

    def renew(self) -> bool:
        from extender.client.errors import ApiError

        if self._given is None or not self.authorization():
            return False
        refused = self._given
        try:
            self.identity.renew(refused)
        except ApiError as error:
            raise NoAnswerError(f"the token of the kubeconfig's context was refused: {error}") from error
        return self.identity.current() != refused


@dataclass(frozen=True, slots=True)
class AtAddress:
    """where: its URL. authority: a file; None: what the system trusts. hint: what else may be asked, where none listens."""

    where: str
    tokens: Tokens = field(default_factory=NoToken, repr=False)
    authority: str | None = None
    hint: str = ""

    @classmethod
    def of(cls, args: argparse.Namespace) -> AtAddress:
        """Raises UsageError, OSError for a file that cannot be read."""
        where = base_url(args.server or SERVER)
        flags = {"--token-file": args.token_file, "--certificate-authority": args.certificate_authority}
        given = [flag for flag, value in flags.items() if value is not None]
        if given and not where.startswith("https:"):
            raise UsageError(f"{given[0]}: is for --server https://..., and not for {where}")
        if args.certificate_authority is not None:
            Path(args.certificate_authority).read_bytes()
        if args.token_file is not None:
            return cls(where, FixedToken(Path(args.token_file).read_text().strip()), args.certificate_authority)
        if not where.startswith("https:"):
            return cls(where, hint="" if args.server else OTHERS)
        return cls(where, _of_context(args), args.certificate_authority)

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        status, data = self._asked(method, path, body)
        if status == 401 and self.tokens.renew():
            status, data = self._asked(method, path, body)
        return status, data

    def _asked(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        import urllib3

        headers = {"Content-Type": JSON} if body is not None else {}
        if authorization := self.tokens.authorization():
            headers["Authorization"] = authorization
        try:
            with urllib3.PoolManager(retries=False, timeout=SECONDS, ca_certs=self.authority) as http:
                answer = http.request(method, self.where + path, body=body, headers=headers, redirect=False)
                return answer.status, answer.data
        except urllib3.exceptions.HTTPError as error:
            raise NoAnswerError(f"no extender answers at {self.where}: {_cause(error)}{self.hint}") from error


def _of_context(args: argparse.Namespace) -> Tokens:
    """`kubectl gang` has a context as kubectl has it; `gang-extender`, where one is named. Raises UsageError."""
    from extender.client.credentials import IdentityError
    from extender.client.identity import Identity

    files = kubeconfig_flags.of_caller(args)
    if files is None:
        return NoToken()
    try:
        return ContextToken(Identity.from_kubeconfig(files, args.context))
    except IdentityError as error:
        raise UsageError(f"{error}; --token-file FILE names another token") from error


def base_url(server: str) -> str:
    """Of `--server`. Raises UsageError for what is no URL."""
    try:
        parts = urlsplit(server)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise UsageError(f"--server {server}: wanted a URL such as {SERVER}")
    return server.rstrip("/")


def _cause(error: Exception) -> str:
    """The system's own word at the bottom of the chain, where there is one."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return str(error)

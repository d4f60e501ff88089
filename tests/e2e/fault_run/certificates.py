"""Certificates of the verbs of one replica, renewed with their CA as docs/tasks/extender-as-a-service.md has it.

The extender reads its files again; kube-scheduler's side is the line's, which speaks TLS in its place. Used by `rig` and `nemesis`.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from pathlib import Path

import trustme

ADDRESS, CALLER = "127.0.0.1", "gang-extender-client"


class Certificates:
    """caller: what the line shows and trusts, for connections that begin now."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._files = {name: folder / name for name in ("tls.crt", "tls.key", "ca.crt")}
        self._ca = trustme.CA()
        self._shown = self._pair_of_the_caller()
        self._trust(self._ca)
        self._renew_the_server_s()
        self.caller = self._context(self._ca)

    @property
    def flags(self) -> Sequence[str]:
        """Of the extender."""
        return (
            f"--tls-cert-file={self._files['tls.crt']}",
            f"--tls-private-key-file={self._files['tls.key']}",
            f"--client-ca-file={self._files['ca.crt']}",
            f"--allowed-client-name={CALLER}",
        )

    def begin(self) -> None:
        """Both sides trust the old CA and a new one, and the server shows a certificate of the new one."""
        old, self._ca = self._ca, trustme.CA()
        self._trust(old, self._ca)
        self.caller = self._context(old, self._ca)
        self._renew_the_server_s()

    def finish(self) -> None:
        """The caller, too; and the old CA is trusted no more."""
        self._shown = self._pair_of_the_caller()
        self.caller = self._context(self._ca)
        self._trust(self._ca)

    def _pair_of_the_caller(self) -> trustme.LeafCert:
        return self._ca.issue_cert("caller.example", common_name=CALLER)

    def _renew_the_server_s(self) -> None:
        pair = self._ca.issue_cert(ADDRESS)
        self._write("tls.crt", pair.cert_chain_pems[0].bytes())
        self._write("tls.key", pair.private_key_pem.bytes())

    def _trust(self, *authorities: trustme.CA) -> None:
        self._write("ca.crt", b"".join(each.cert_pem.bytes() for each in authorities))

    def _write(self, name: str, data: bytes) -> None:
        """File by file, as the page says."""
        fresh = self._files[name].with_suffix(".new")
        fresh.write_bytes(data)
        fresh.replace(self._files[name])

    def _context(self, *authorities: trustme.CA) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        for each in authorities:
            each.configure_trust(context)
        self._shown.configure_cert(context)
        return context

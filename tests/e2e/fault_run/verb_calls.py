"""Reads along where kube-scheduler asks the extender: each call of a verb, and what it was answered, when.

A tap of `link`. It changes nothing, and where a connection holds anything else than HTTP/1.1 it stops to read.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import h11

Note = Callable[[dict[str, Any]], None]


class VerbCalls:
    """Of one connection, which has one call after the other. A call without an answer is noted when the connection ends."""

    def __init__(self, note: Note, clock: Callable[[], float] = time.time) -> None:
        self._note = note
        self._clock = clock
        self._caller = h11.Connection(h11.SERVER, max_incomplete_event_size=2**20)  # reads what it sends
        self._callee = h11.Connection(h11.CLIENT, max_incomplete_event_size=2**20)
        self._readable = True
        self._call: dict[str, Any] = {}
        self._body = b""

    def sent(self, piece: bytes) -> None:
        self._read(self._caller, piece, self._of_the_call)

    def answered(self, piece: bytes) -> None:
        self._read(self._callee, piece, self._of_the_answer)

    def closed(self) -> None:
        if self._call:
            self._note({**self._call, "ended": self._clock(), "status": 0, "error": ""})
            self._call = {}

    def _read(self, side: h11.Connection, piece: bytes, take: Callable[[Any], None]) -> None:
        if not self._readable:
            return
        try:
            side.receive_data(piece)
            while (event := side.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
                take(event)
        except h11.ProtocolError:
            self._readable = False
            self._call = {}

    def _of_the_call(self, event: Any) -> None:
        if isinstance(event, h11.Request):
            self._body = b""
            self._call = {"verb": event.target.decode(errors="replace").rpartition("/")[2], "began": self._clock()}
        elif isinstance(event, h11.Data):
            self._body += event.data
        elif isinstance(event, h11.EndOfMessage):
            self._call |= _asked(self._body)
            self._body = b""
        self._callee.send(event)

    def _of_the_answer(self, event: Any) -> None:
        if isinstance(event, h11.Response):
            self._call["status"] = event.status_code
        elif isinstance(event, h11.Data):
            self._body += event.data
        self._caller.send(event)
        if isinstance(event, h11.EndOfMessage):
            self._note({**self._call, "ended": self._clock(), "error": _error(self._body)})
            self._call = {}
            self._caller.start_next_cycle()
            self._callee.start_next_cycle()


def _asked(body: bytes) -> dict[str, str]:
    """Of ExtenderArgs, ExtenderPreemptionArgs or ExtenderBindingArgs."""
    try:
        arguments = json.loads(body)
    except ValueError:
        return {}
    if "PodUID" in arguments:
        pod = f"{arguments['PodNamespace']}/{arguments['PodName']}"
        return {"pod": pod, "uid": arguments["PodUID"], "node": arguments["Node"]}
    metadata = (arguments.get("Pod") or {}).get("metadata", {})
    pod = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    return {"pod": pod, "uid": metadata.get("uid", ""), "node": ""}


def _error(body: bytes) -> str:
    try:
        answer = json.loads(body)
    except ValueError:
        return ""
    return str(answer.get("Error") or "") if isinstance(answer, dict) else ""

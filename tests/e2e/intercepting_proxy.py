"""A second extender of kube-scheduler's that keeps chosen pods out of ours, until a test lets them in.

So a gang can be had of which some members are held in their bind calls and one is still missing, for as long as a test
needs, whatever our own mirror knows; or that keeps a scheduling cycle waiting while the cluster changes.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WAIT_SECONDS = 30


class InterceptingProxy:
    """Answers filter and preempt calls on loopback in a thread of its own. kube-scheduler asks it before it asks us."""

    def __init__(self, timeout_seconds: int = 5) -> None:
        """After so long kube-scheduler takes no answer for an error, and tries another pod."""
        self._timeout_seconds = timeout_seconds
        self._changed = threading.Condition()  # guards the next four
        self._kept_out: frozenset[str] = frozenset()
        self._kept_waiting: frozenset[str] = frozenset()
        self._passes: int | None = None  # how many more may pass filter; None for all
        self._asked: set[str] = set()  # names of those whose call waits
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="intercepting-proxy")

    def start(self) -> InterceptingProxy:
        self._thread.start()
        return self

    def stop(self) -> None:
        self.open()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def keep_out(self, names: Iterable[str]) -> None:
        """These are refused, and no call waits any more."""
        with self._changed:
            self._kept_out = frozenset(names)
            self._kept_waiting = frozenset()
            self._changed.notify_all()

    def keep_waiting(self, names: Iterable[str]) -> None:
        """Gives no answer for these, and kube-scheduler tries no other pod meanwhile, until others or none are named."""
        with self._changed:
            self._kept_waiting = frozenset(names)
            self._changed.notify_all()

    def await_call(self, name: str, within: float) -> None:
        """Until a call about the pod is kept waiting."""
        with self._changed:
            assert self._changed.wait_for(lambda: name in self._asked, within), f"no call about {name} in {within:g} s"

    def let_pass(self, count: int) -> None:
        """So many more, in the order of their calls; the next gets no answer until this is called again."""
        with self._changed:
            self._passes = count + (self._passes or 0)
            self._changed.notify_all()

    def open(self) -> None:
        """For all pods, and for good."""
        with self._changed:
            self._passes = None
        self.keep_out([])

    def put_in_front(self, config: dict[str, Any]) -> None:
        """Into a KubeSchedulerConfiguration."""
        entry = {
            "urlPrefix": f"http://127.0.0.1:{self._server.server_address[1]}",
            "filterVerb": "filter",
            "preemptVerb": "preempt",
            "nodeCacheCapable": True,
            "httpTimeout": f"{self._timeout_seconds}s",
        }
        config["extenders"] = [entry, *config.get("extenders", [])]

    def answer(self, arguments: dict[str, Any]) -> dict[str, Any]:
        name = arguments["Pod"]["metadata"]["name"]
        candidates = arguments.get("NodeNameToMetaVictims")
        with self._changed:
            self._asked.add(name)
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: name not in self._kept_waiting and (self._passes != 0 or candidates is not None), WAIT_SECONDS
            )
            self._asked.discard(name)
            if candidates is not None:
                return {"NodeNameToMetaVictims": candidates}
            refused = name in self._kept_out
            if self._passes:
                self._passes -= 1
        names = arguments["NodeNames"]
        if not refused:
            return {"NodeNames": names}
        return {
            "NodeNames": [],
            "FailedAndUnresolvableNodes": dict.fromkeys(names, "kept out by the intercepting proxy"),
        }

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                answer = json.dumps(proxy.answer(json.loads(body))).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.send_header("Connection", "close")
                self.end_headers()
                with suppress(ConnectionError):  # kube-scheduler waits no longer
                    self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class' name
                """Says nothing."""

        return Handler

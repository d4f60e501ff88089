"""One kind of objects from a moment on: every event of its watch, in order, for as long as a test runs.

Used by the recorder of pods, and by fault runs, which keep nodes, groups and the Lease as well.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

import urllib3

from tests.e2e.api import Api, Json, Refused

AGAIN_SECONDS = 0.05

Take = Callable[[str, Json], None]  # ADDED, MODIFIED or DELETED; the object


class Follower:
    """Lists at `start`, watches from there in a thread of its own, and resumes where the server drops it.

    broke: is told once why it could not go on. over_holes: where the API server has forgotten what happened since (its etcd was
    compacted, or restored), it lists again, and makes up the events between; else that breaks it.
    """

    def __init__(
        self, api: Api, path: str, take: Take, broke: Callable[[str], None], *, over_holes: bool = False
    ) -> None:
        self._api = api
        self._path = path
        self._take_event = take
        self._broke = broke
        self._over_holes = over_holes
        self._lock = threading.Lock()  # guards the stream and stopping
        self._stream: urllib3.BaseHTTPResponse | None = None
        self._stopping = threading.Event()
        self._known: dict[str, Json] = {}  # UID -> as last seen; the thread's own after `start`
        self._version = ""
        self._thread = threading.Thread(target=self._run, name="follower", daemon=True)

    def start(self) -> None:
        self._list()
        self._thread.start()

    def stop(self) -> None:
        with self._lock:
            self._stopping.set()
            if self._stream is not None:
                with suppress(OSError):  # the server has just ended it
                    self._stream.shutdown()
        self._thread.join(10)
        assert not self._thread.is_alive(), "the follower did not end"

    def _list(self) -> None:
        listed = self._api.get(self._path)
        self._version = listed["metadata"]["resourceVersion"]
        now: Mapping[str, Json] = {item["metadata"]["uid"]: item for item in listed["items"]}
        for uid in [*self._known]:
            if uid not in now:
                self._note("DELETED", self._known[uid])
        for uid, item in now.items():
            if uid not in self._known or self._known[uid]["metadata"]["resourceVersion"] != _version(item):
                self._note("MODIFIED" if uid in self._known else "ADDED", item)

    def _note(self, kind: str, item: Json) -> None:
        uid = item["metadata"]["uid"]
        if kind == "DELETED":
            self._known.pop(uid, None)
        else:
            self._known[uid] = item
        self._take_event(kind, item)

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._follow()
        except Exception as error:
            self._broke(f"the follower of {self._path} broke: {error!r}")

    def _follow(self) -> None:
        stream = self._api.watch(self._path, self._version)
        with self._lock:
            self._stream = stream
            if self._stopping.is_set():
                stream.shutdown()
        rest = b""
        try:
            if stream.status >= 400:
                self._refused(stream.status, stream.data.decode(errors="replace"))
                return
            for piece in stream.stream(65536):
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    if not self._take(json.loads(line)):
                        return
        except (urllib3.exceptions.HTTPError, OSError):
            time.sleep(AGAIN_SECONDS)  # the server went away, or we are stopping: resume from the last event
        finally:
            with self._lock:
                self._stream = None
            stream.close()

    def _refused(self, status: int, message: str) -> None:
        if not self._over_holes:
            raise Refused(status, message)
        self._stopping.wait(1)
        if status == 410:
            self._again()

    def _take(self, event: Json) -> bool:
        """Whether the watch goes on."""
        if event["type"] == "ERROR":
            if not self._over_holes:
                raise RuntimeError(f"the history has a hole: {event['object'].get('message')}")
            self._again()
            return False
        self._version = _version(event["object"])
        if event["type"] != "BOOKMARK":
            self._note(event["type"], event["object"])
        return True

    def _again(self) -> None:
        with suppress(Refused, urllib3.exceptions.HTTPError, OSError):  # it is tried again
            self._list()


def _version(item: Json) -> str:
    version: str = item["metadata"]["resourceVersion"]
    return version

"""What happened in a fault run, on disk: one file of JSON lines for each kind, each line with its moment (seconds since 1970).

  pods, nodes, podgroups, leases   every version: {at, type, object}
  calls      every call of a verb: {at, replica, verb, pod, uid, node, began, ended, status, error}
  metrics    a sample of each extender each second: {at, replica, name: value ...}
  faults     {at, number, name, target, text, began, ended, done ...}: what was done
  watches    {at, objects, server}: of which API server (first or second) the versions of a kind of objects come from then on
  audit-*    the API servers' own logs: every write and every list, with its user
  books      {at, replica, leads, wrong, gangs, cache, pods}: what each extender has noted when all is calm
  holes      {at, why}: the versions of a kind of objects end here
  pauses     {at, began, ended}: when the machine was too busy for the rig, through which every line goes
  outcome    one line, at the end: what the run knows that its files do not say

Written by `run`, read by the judges, also long after the run.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import parse_qs, urlsplit

from tests.e2e.api import Json
from tests.e2e.fault_run.excuses import REPLICAS, Excuses, Leaders
from tests.e2e.history import Change, Spans, seen

Line = dict[str, Any]
BEAT_SECONDS, PAUSE_SECONDS = 0.02, 0.1


class Record:
    """Thread-safe."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()  # guards the files
        self._files: dict[str, TextIO] = {}

    def note(self, kind: str, **fields: Any) -> None:
        line = json.dumps({"at": time.time(), **fields}, separators=(",", ":"))
        with self._lock:
            if kind not in self._files:
                self._files[kind] = (self.folder / f"{kind}.jsonl").open(
                    "a", buffering=1
                )  # of a run that is killed too
            self._files[kind].write(line + "\n")

    def close(self) -> None:
        with self._lock:
            for file in self._files.values():
                file.close()
            self._files.clear()


class Pulse:
    """Notes when the rig itself stood still, in a thread of its own: all lines go through its process."""

    def __init__(self, record: Record, clock: Callable[[], float] = time.time) -> None:
        self._record = record
        self._clock = clock
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pulse", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join(30)

    def _run(self) -> None:
        before = self._clock()
        while not self._ended.wait(BEAT_SECONDS):
            now = self._clock()
            if now - before > PAUSE_SECONDS:
                self._record.note("pauses", began=before + BEAT_SECONDS, ended=now)
            before = now


def _field_selector(uri: str) -> str:
    return ",".join(parse_qs(urlsplit(uri).query).get("fieldSelector", ()))


def lines(folder: Path, kind: str) -> Iterator[Line]:
    """In order; a last line that was cut off where the run was killed does not count."""
    file = folder / f"{kind}.jsonl"
    if file.exists():
        with file.open() as opened:
            for text in opened:
                if text.endswith("\n"):
                    yield json.loads(text)


class Past:
    """A run that has ended, as the judges read it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def outcome(self) -> Line:
        """Raises ValueError where the run did not get to its end."""
        for line in lines(self.folder, "outcome"):
            return line
        raise ValueError(f"{self.folder} is no fault run that ended: there is no outcome.jsonl")

    @cached_property
    def history(self) -> list[Change]:
        return [
            Change(line["at"], seen(line["object"]), line["type"] == "DELETED") for line in lines(self.folder, "pods")
        ]

    @cached_property
    def faults(self) -> list[Line]:
        return list(lines(self.folder, "faults"))

    @cached_property
    def calls(self) -> list[Line]:
        return list(lines(self.folder, "calls"))

    @cached_property
    def pauses(self) -> Spans:
        return [(line["began"], line["ended"]) for line in lines(self.folder, "pauses")]

    @cached_property
    def metrics(self) -> list[Line]:
        return list(lines(self.folder, "metrics"))

    def objects(self, kind: str) -> Iterator[tuple[float, str, Json]]:
        for line in lines(self.folder, kind):
            yield line["at"], line["type"], line["object"]

    @cached_property
    def settings(self) -> Line:
        return next(lines(self.folder, "settings"), {})

    @cached_property
    def leaders(self) -> Leaders:
        return Leaders(self.objects("leases"))

    @cached_property
    def excuses(self) -> Excuses:
        samples: dict[str, list[Line]] = {}
        for sample in sorted(self.metrics, key=lambda sample: float(sample["at"])):
            samples.setdefault(sample["replica"], []).append(sample)
        return Excuses(self.faults, self.leaders, samples, self._followed())

    def _followed(self) -> dict[tuple[str, str], list[tuple[float, float]]]:
        """Of which API server the record had a kind of objects, and when."""
        found: dict[tuple[str, str], list[tuple[float, float]]] = {}
        last: dict[str, tuple[float, str]] = {}
        for line in lines(self.folder, "watches"):
            if line["objects"] in last:
                at, server = last[line["objects"]]
                found.setdefault((line["objects"], server), []).append((at, line["at"]))
            last[line["objects"]] = line["at"], line["server"]
        for kind, (at, server) in last.items():
            found.setdefault((kind, server), []).append((at, math.inf))
            for replica in REPLICAS:
                found.setdefault((kind, replica), [])
        return found

    @cached_property
    def shares(self) -> Mapping[str, float]:
        """By judge, of the time with faults that it has judged."""
        began, ended = self.outcome["faults_from"], self.outcome["faults_until"]
        return self.excuses.shares(began, ended)

    def audit(self) -> Iterator[Line]:
        """Of both servers, one after the other: {at, took, writer, verb, group, resource, subresource, name, uid, node, selects, code};
        at: when it was received, took: seconds until it was answered, node: of a Binding, selects: the field selector of a list. Without
        dry runs, which write nothing."""
        for file in sorted(self.folder.glob("audit-*.log")):
            for text in file.read_text(errors="replace").splitlines():
                try:
                    event = json.loads(text)
                except ValueError:  # the server was killed while it wrote
                    continue
                asked = event.get("requestObject", {})
                if asked.get("dryRun") or asked.get("deleteOptions", {}).get("dryRun"):
                    continue
                what = event.get("objectRef", {})
                received = datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()
                answered = datetime.fromisoformat(event["stageTimestamp"]).timestamp()
                yield {
                    "at": received,
                    "took": answered - received,
                    "writer": event["user"].get("uid", ""),
                    "verb": event["verb"],
                    "group": what.get("apiGroup", ""),
                    "resource": what.get("resource", ""),
                    "subresource": what.get("subresource", ""),
                    "name": f"{what.get('namespace', '')}/{what.get('name', '')}",
                    "uid": what.get("uid", ""),
                    "node": asked.get("target", {}).get("name", ""),
                    "selects": _field_selector(event.get("requestURI", "")),
                    "code": event.get("responseStatus", {}).get("code", 0),
                }

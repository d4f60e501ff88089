"""One fault run from its start to what the judges say: a rig of its own, a load, a nemesis, and everything on disk.

Used by tests/e2e/test_fault_run.py and by `python -m tests.e2e.fault_run`.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from tests.e2e.api import ALL_PODS, Json
from tests.e2e.build import Binaries
from tests.e2e.fault_run.acts import HANDS, Act, draw
from tests.e2e.fault_run.drawn_configuration import draw_configuration
from tests.e2e.fault_run.etcd import READY_SECONDS
from tests.e2e.fault_run.hostile_tenant import is_hostile
from tests.e2e.fault_run.judges.judge import judge, told_shares
from tests.e2e.fault_run.kubelets import Kubelets
from tests.e2e.fault_run.load import Load
from tests.e2e.fault_run.nemesis import Nemesis
from tests.e2e.fault_run.patient_api import PatientApi
from tests.e2e.fault_run.record import Past, Pulse, Record
from tests.e2e.fault_run.rig import NAMES, Rig, RigPlane, of_interest, samples
from tests.e2e.fault_run.volumes import Provisioner
from tests.e2e.follower import Follower
from tests.e2e.processes import eventually
from tests.e2e.recorder import Recorder

FOLLOWED = {
    "nodes": "/api/v1/nodes",
    "podgroups": "/apis/scheduling.x-k8s.io/v1alpha1/podgroups",
    "leases": "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases",
}
BOOKS = {"gangs": "/debug/gangs", "cache": "/debug/cache?against=api"}
ROUNDS = 4  # of preemption, in the end
Say = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """One seed gives one run. hostile: None is as the seed draws it. kinds: of acts, where not all are wanted; acts: those that are done,
    where an earlier run says which."""

    seed: int
    seconds: float
    hostile: bool | None = None
    kinds: Sequence[str] = ()
    acts: Sequence[Act] | None = None
    rounds: int = ROUNDS

    def drawn(self) -> list[list[Act]]:
        """For each hand."""
        if self.acts is not None:
            return [[act for act in self.acts if act.hand == hand] for hand in range(HANDS)]
        count = int(self.seconds) + 1  # each with its pause takes longer than that
        return [draw(self.seed, 2 * count, hand=hand, only=self.kinds) for hand in range(HANDS)]

    @property
    def is_hostile(self) -> bool:
        return is_hostile(self.seed) if self.hostile is None else self.hostile

    def to_record(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "seconds": self.seconds,
            "hostile": self.is_hostile,
            "kinds": list(self.kinds),
            "rounds": self.rounds,
            "acts": None if self.acts is None else [act.number for act in self.acts],
            "configuration": asdict(draw_configuration(self.seed)),
            "commit": _commit(),
        }

    @classmethod
    def of(cls, past: Past) -> Settings:
        """As an earlier run was made, with the acts that were done in it."""
        was = past.settings
        names = [each.name for each in fields(Act)]
        acts = [Act(**{name: fault[name] for name in names}) for fault in past.faults]
        acts.sort(key=lambda act: act.number)
        return cls(was["seed"], was["seconds"], was["hostile"], was["kinds"], acts, was["rounds"])


def _commit() -> str:
    """What is checked out where this file is; with a plus if it has been changed since."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(Path(__file__).parent), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    return git("rev-parse", "--short", "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")


@dataclass
class Samples:
    """Of the extenders' metrics, each second, in a thread of its own."""

    rig: Rig
    _ended: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._threads = [
            threading.Thread(target=self._run, args=(number,), name="samples", daemon=True)
            for number in range(len(self.rig.replicas))
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(30)

    def _run(self, number: int) -> None:
        replica = self.rig.replicas[number]
        while not self._ended.wait(1):
            values = of_interest(samples(replica.pair.extender.ops("/metrics")[1]))
            if values:
                self.rig.record.note("metrics", replica=replica.name, **values)


def fault_run(binaries: Binaries, folder: Path, settings: Settings, say: Say = lambda line: None) -> list[str]:
    """What was wrong, a sentence each; the record and the programs' logs are in the folder."""
    record = Record(folder)
    record.note("settings", **settings.to_record())
    plane = RigPlane(binaries, folder / "plane", folder)
    with ExitStack() as undo:
        undo.callback(record.close)
        undo.callback(plane.stop)
        plane.start()
        rig = Rig(plane, folder, record, settings.seed, draw_configuration(settings.seed))
        undo.callback(rig.stop)
        rig.start()
        _run(rig, settings, say, undo)
        past = Past(folder)
        record.note("judged", **past.shares)
        record.close()
        say(told_shares(past))
        return judge(past)


def _run(rig: Rig, settings: Settings, say: Say, undo: ExitStack) -> None:
    configuration = draw_configuration(settings.seed)
    say(f"configuration: {configuration}")
    _record_objects(rig, undo)
    provisioner, kubelets = Provisioner(rig.cluster, settings.seed), Kubelets(rig.cluster, settings.seed)
    for each in (provisioner.start(), kubelets.start()):
        undo.callback(each.stop)
    for watched in (Samples(rig), Pulse(rig.record)):
        watched.start()
        undo.callback(watched.stop)
    load = Load(rig, provisioner, settings.seed, configuration, hostile=settings.is_hostile, say=say)
    nemesis = Nemesis(rig, settings.drawn(), say)
    faults_from = time.time()
    nemesis.start()
    try:
        load.inject(settings.seconds)
    finally:
        nemesis.stop()
    faults = {"faults_from": faults_from, "faults_until": time.time()}
    load.calm()
    _ask_for_books(rig)
    load.check_preemption(settings.rounds)
    rig.record.note(
        "outcome",
        seed=settings.seed,
        ended=time.time(),
        calm=True,
        failpoints=nemesis.failpoints,
        **faults,
        **load.outcome(),
    )


def _ask_for_books(rig: Rig) -> None:
    """Both replicas, as soon as they are ready."""
    for replica in rig.replicas:
        extender = replica.pair.extender
        with suppress(AssertionError):  # it is judged as one that did not answer
            eventually(lambda: extender.ops("/readyz")[0] == 200, within=READY_SECONDS, what="it is ready", every=0.5)  # noqa: B023
        wrong = replica.books.wrong()
        leads = samples(extender.ops("/metrics")[1]).get("gang_extender_leading") == 1
        pages = {name: extender.ops(path) for name, path in BOOKS.items()}
        said = {name: json.loads(text) if status == 200 else None for name, (status, text) in pages.items()}
        pods = rig.cluster.api.items(ALL_PODS)
        rig.record.note("books", replica=replica.name, leads=leads, wrong=wrong, pods=pods, **said)


def _record_objects(rig: Rig, undo: ExitStack) -> None:
    api, record = rig.cluster.api, rig.record

    def broke(why: str) -> None:
        """The judges would read a past with a hole in it."""
        record.note("holes", why=why)

    def noting(kind: str) -> Callable[[str, Json], None]:
        return lambda what, item: record.note(kind, type=what, object=_without_fields(item))

    if isinstance(api, PatientApi):
        kinds = {path: kind for kind, path in (*FOLLOWED.items(), ("pods", ALL_PODS))}
        api.watches = lambda path, server: record.note("watches", objects=kinds[path], server=NAMES[server])
    rig.cluster.recorder = Recorder(api, note=noting("pods"), over_holes=True, clock=time.time)
    followers: list[Any] = [rig.cluster.recorder]
    followers += [Follower(api, path, noting(kind), broke, over_holes=True) for kind, path in FOLLOWED.items()]
    for each in followers:
        each.start()
        undo.callback(each.stop)


def _without_fields(item: Json) -> Json:
    """Its managed fields are most of an object."""
    metadata = {key: value for key, value in item["metadata"].items() if key != "managedFields"}
    return {**item, "metadata": metadata}

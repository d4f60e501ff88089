"""Does the acts of a fault run to its programs and lines, one after the other, and takes each back.

`undo`s are what the acts return: what ends a fault, at once where the run is to end. Each act is recorded with its moments. Used by `run`.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from extender.failpoints import VARIABLE
from tests.e2e.api import Refused
from tests.e2e.fault_run.acts import KINDS, Act
from tests.e2e.fault_run.etcd import READY_SECONDS, Etcd
from tests.e2e.fault_run.limits import Undo, few_descriptors, few_threads, little_memory
from tests.e2e.fault_run.rig import Replica, Rig, token_of
from tests.e2e.faulty_connection import ReadFault
from tests.e2e.link import PASS, Kind, Mode
from tests.e2e.processes import Program, eventually

ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/gang-extender"
DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podgroups.scheduling.x-k8s.io"


class Nemesis:
    """In a thread of its own from `start` to `stop`."""

    def __init__(self, rig: Rig, acts: Sequence[Act], say: Callable[[str], None]) -> None:
        self._rig = rig
        self._acts = acts
        self._say = say
        self._etcd = Etcd(rig, self._plane_ready)
        self._stopping = threading.Event()
        self._broken: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="nemesis", daemon=True)
        self._does: dict[str, Callable[[Act], Undo]] = {
            "kill": self._kill,
            "terminate": self._terminate,
            "freeze": self._freeze,
            "line": self._line,
            "partition": self._partition,
            "failing writes": self._failing_writes,
            "failing reads": self._failing_reads,
            "disturbed watches": self._disturbed_watches,
            "cut watches": self._cut_watches,
            "compact etcd": self._compact,
            "full etcd": self._fill_quota,
            "restored etcd": self._restore,
            "role without a rule": self._role_without_a_rule,
            "no PodGroups": self._no_pod_groups,
            "new tokens": self._new_tokens,
            "few descriptors": self._few_descriptors,
            "little memory": self._little_memory,
            "few threads": self._few_threads,
            "failpoint": self._failpoint,
            "clock": self._move_clock,
            "blocked stderr": self._block_stderr,
        }
        assert self._does.keys() == KINDS.keys()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Everything is taken back; raises what an act failed with."""
        self._stopping.set()
        self._thread.join(2 * READY_SECONDS)
        assert not self._thread.is_alive(), "the nemesis did not end"
        if self._broken is not None:
            raise self._broken

    def _run(self) -> None:
        try:
            for act in self._acts:
                if self._stopping.is_set():
                    return
                self.do(act)
                self._stopping.wait(act.pause)
        except BaseException as error:
            self._broken = error

    def do(self, act: Act) -> None:
        """Returns when it is over and taken back."""
        self._say(f"#{act.number} {act}")
        began = time.time()
        undo = self._does[act.name](act)
        try:
            self._stopping.wait(act.seconds)
        finally:
            undo()
            self._rig.record.note("faults", **act.to_dict(), text=str(act), began=began, ended=time.time())

    def _replica(self, act: Act) -> Replica:
        return next(each for each in self._rig.replicas if each.name == act.target)

    # Programs

    def _kill(self, act: Act) -> Undo:
        program = self._rig.programs()[act.target]
        program.kill()
        return lambda: self._back(program)

    def _terminate(self, act: Act) -> Undo:
        program = self._rig.programs()[act.target]
        program.signal(signal.SIGTERM)
        return lambda: self._ended_and_back(program)

    def _ended_and_back(self, program: Program) -> None:
        if self._is_of_the_plane(program):
            program.stop()
        self._back(program)

    def _freeze(self, act: Act) -> Undo:
        program = self._rig.programs()[act.target]
        frozen = program.pid
        program.signal_group(signal.SIGSTOP)

        def go_on() -> None:
            if program.running and program.pid == frozen:
                program.signal_group(signal.SIGCONT)

        return go_on

    def _is_of_the_plane(self, program: Program) -> bool:
        return program is self._rig.plane.etcd or program in self._rig.plane.servers

    def _back(self, program: Program) -> None:
        """Those of the replicas the kubelet starts again. An API server that does not find etcd ends itself, too."""
        if not self._is_of_the_plane(program):
            return
        if not program.running:
            program.start()
        self._plane_ready()

    def _plane_ready(self) -> None:
        def ready() -> bool:
            for each in (self._rig.plane.etcd, *self._rig.plane.servers):
                if not each.running:
                    each.start()
            return self._rig.cluster.api.ready()

        eventually(ready, within=READY_SECONDS, what="an API server is ready", every=0.5)

    # Lines

    def _line(self, act: Act) -> Undo:
        link = self._rig.links()[act.target]
        link.set(Mode(Kind[act.detail], act.amount))

        def pass_again() -> None:
            link.set(PASS)
            self._plane_ready()  # one that lost etcd for long has ended itself

        return pass_again

    def _partition(self, act: Act) -> Undo:
        """A replica from its API server; its two programs reach each other."""
        replica = self._replica(act)
        for link in (replica.api, replica.own):
            link.set(Mode(Kind[act.detail]))

        def heal() -> None:
            for link in (replica.api, replica.own):
                link.set(PASS)

        return heal

    def _failing_writes(self, act: Act) -> Undo:
        line = self._replica(act).line
        line.trouble(act.amount)
        return line.quiet

    def _failing_reads(self, act: Act) -> Undo:
        line = self._replica(act).line
        line.trouble_reads(act.amount, ReadFault[act.detail] if act.detail else None)
        line.cut()
        return line.quiet

    def _disturbed_watches(self, act: Act) -> Undo:
        line = self._replica(act).line
        line.trouble_watches(act.amount)
        line.cut()

        def end() -> None:
            line.quiet()
            line.cut()

        return end

    def _cut_watches(self, act: Act) -> Undo:
        self._replica(act).line.cut()
        return _nothing

    def _failpoint(self, act: Act) -> Undo:
        """The extender is started anew with it, and fails there as often as it gets there; then it is started without."""
        program = self._replica(act).pair.extender.program
        program.env[VARIABLE] = act.detail
        program.kill()

        def without() -> None:
            del program.env[VARIABLE]
            program.kill()

        return without

    # What is stored

    def _compact(self, act: Act) -> Undo:
        self._etcd.compact()
        return _nothing

    def _fill_quota(self, act: Act) -> Undo:
        """Until there is room again and the alarm is put out."""
        self._etcd.fill_quota()
        return self._etcd.make_room

    def _restore(self, act: Act) -> Undo:
        """All that is written meanwhile is lost."""
        self._etcd.save()
        return self._etcd.restore

    def _role_without_a_rule(self, act: Act) -> Undo:
        """The right to that resource is taken away."""
        api = self._rig.cluster.api
        rules = api.get(ROLE)["rules"]
        less = [
            {**rule, "resources": [each for each in rule["resources"] if each != act.target]}
            for rule in rules
            if rule["resources"] != [act.target]
        ]
        api.patch(ROLE, {"rules": less})
        return lambda: _quietly(lambda: api.patch(ROLE, {"rules": rules}))

    def _no_pod_groups(self, act: Act) -> Undo:
        """The API server serves none any more; they are kept in etcd."""
        api = self._rig.cluster.api
        versions = api.get(DEFINITION)["spec"]["versions"]
        api.patch(DEFINITION, {"spec": {"versions": [{**each, "served": False} for each in versions]}})
        return lambda: _quietly(lambda: api.patch(DEFINITION, {"spec": {"versions": versions}}))

    # What a pod is given

    def _new_tokens(self, act: Act) -> Undo:
        replica = self._replica(act)
        turn = 1 if replica.token_file.read_text() == token_of(replica.name, "extender", 0) else 0
        fresh = replica.token_file.with_suffix(".new")
        fresh.write_text(token_of(replica.name, "extender", turn))
        fresh.replace(replica.token_file)
        return _nothing

    def _few_descriptors(self, act: Act) -> Undo:
        return few_descriptors(self._extender(act))

    def _little_memory(self, act: Act) -> Undo:
        return little_memory(self._extender(act))

    def _few_threads(self, act: Act) -> Undo:
        undo = few_threads(self._extender(act), f"{os.getpid()}-{act.target}")
        if undo is None:
            self._say("this machine limits no threads")
        return undo or _nothing

    def _extender(self, act: Act) -> list[int]:
        """Its worker, and its master."""
        return _family(self._replica(act).pair.extender.program)

    def _move_clock(self, act: Act) -> Undo:
        clock = self._replica(act).clock
        clock.set(act.amount)
        return lambda: clock.set(0)

    def _block_stderr(self, act: Act) -> Undo:
        log = self._replica(act).log
        log.block()
        return log.flow


def _nothing() -> None:
    """There is nothing to take back."""


def _quietly(act: Callable[[], Any]) -> None:
    """Another act may have taken it back."""
    with suppress(Refused):
        act()


def _family(program: Program) -> list[int]:
    """The process and those that it started."""
    if not program.running:
        return []
    found = [program.pid]
    for parent in found:
        with suppress(OSError):
            found += map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split())
    return found

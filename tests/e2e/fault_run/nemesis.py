"""Does the acts of a fault run to its programs and lines, and takes each back: two hands side by side, each one act after the other.

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


STAGGER_SECONDS = 10.0
ARMED_SECONDS, SLEEP_SECONDS = 30.0, 4.0


class Nemesis:
    """In a thread for each hand from `start` to `stop`. failpoints: of each how often it was armed, and reached."""

    def __init__(self, rig: Rig, hands: Sequence[Sequence[Act]], say: Callable[[str], None]) -> None:
        self.failpoints: dict[str, list[int]] = {}
        self._rig = rig
        self._say = say
        self._plane = (
            threading.RLock()
        )  # is held while programs of the control plane are started, and while etcd is restored
        self._facts: dict[int, dict[str, Any]] = {}  # of acts, by number: what came of them
        self._etcd = Etcd(rig, self._plane_ready)
        self._stopping = threading.Event()
        self._broken: BaseException | None = None
        self._threads = [
            threading.Thread(target=self._run, args=(hand, acts), name=f"nemesis-{hand}", daemon=True)
            for hand, acts in enumerate(hands)
        ]
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
            "new certificates": self._new_certificates,
            "few descriptors": self._few_descriptors,
            "little memory": self._little_memory,
            "few threads": self._few_threads,
            "failpoint": self._failpoint,
            "clock": self._move_clock,
            "blocked stderr": self._block_stderr,
        }
        assert self._does.keys() == KINDS.keys()

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Everything is taken back; raises what an act failed with."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(3 * READY_SECONDS)
            assert not thread.is_alive(), f"{thread.name} did not end"
        if self._broken is not None:
            raise self._broken

    def _run(self, hand: int, acts: Sequence[Act]) -> None:
        try:
            self._stopping.wait(hand * STAGGER_SECONDS)
            for act in acts:
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
            told = {**act.to_dict(), "text": str(act), "began": began, "ended": time.time(), "done": True}
            self._rig.record.note("faults", **told | self._facts.pop(act.number, {}))

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
            with self._plane:
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
        with self._plane:
            if not program.running:
                program.start()
            self._plane_ready()

    def _plane_ready(self) -> None:
        def ready() -> bool:
            for each in (self._rig.plane.etcd, *self._rig.plane.servers):
                if not each.running:
                    each.start()
            return self._rig.cluster.api.ready()

        with self._plane:
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
        """Of the extender that leads, until it has been reached, or for so long; only then is it a fault."""
        replica = self._rig.leads() or self._replica(act)
        replica.books.arm(act.detail)
        counts = self.failpoints.setdefault(act.detail, [0, 0])
        counts[0] += 1
        if act.detail.startswith("relist"):
            self._have_it_list_again(replica)
        until = time.monotonic() + ARMED_SECONDS
        while (reached := replica.books.reached()) is None and time.monotonic() < until:
            if self._stopping.wait(0.1):
                break
        counts[1] += reached is not None
        done = {"done": reached is not None, "began": reached or time.time()}
        self._facts[act.number] = {"target": replica.name, **done}
        replica.books.arm("")
        asleep = SLEEP_SECONDS if reached and "sleep" in act.detail else 0.0
        return lambda: time.sleep(asleep)

    def _have_it_list_again(self, replica: Replica) -> None:
        with self._plane:
            self._etcd.compact()
        replica.line.cut()

    # What is stored

    def _compact(self, act: Act) -> Undo:
        with self._plane:
            self._etcd.compact()
        return _nothing

    def _fill_quota(self, act: Act) -> Undo:
        """Until there is room again and the alarm is put out."""
        with self._plane:
            self._etcd.fill_quota()
        return self._alone(self._etcd.make_room)

    def _restore(self, act: Act) -> Undo:
        """All that is written meanwhile is lost."""
        with self._plane:
            self._etcd.save()
        return self._alone(self._etcd.restore)

    def _alone(self, act: Callable[[], None]) -> Undo:
        def done() -> None:
            with self._plane:
                act()

        return done

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

    def _new_certificates(self, act: Act) -> Undo:
        """Of the verbs, with their CA. In the end no connection is left that began with the old ones, and only that is a fault."""
        replica = self._replica(act)
        replica.certificates.begin()

        def finish() -> None:
            self._facts[act.number] = {"began": time.time()}
            replica.certificates.finish()
            replica.verbs.cut()

        return finish

    def _few_descriptors(self, act: Act) -> Undo:
        return few_descriptors(self._extender(act))

    def _little_memory(self, act: Act) -> Undo:
        return little_memory(self._extender(act))

    def _few_threads(self, act: Act) -> Undo:
        undo = few_threads(self._extender(act), f"{os.getpid()}-{act.target}")
        if undo is None:
            self._say("this machine limits no threads")
            self._facts[act.number] = {"done": False}
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

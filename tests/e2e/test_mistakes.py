"""Mistakes of an installation on a real control plane: the doctor finds them, or the running extender says them, naming the setting."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.api import POD_GROUPS
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import MANIFESTS, ControlPlane
from tests.e2e.extender import SHIPPED_CONFIG
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually

Finding = dict[str, Any]
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
MEMBERS = 16  # kube-scheduler takes some milliseconds for each


def doctor(*arguments: str) -> list[Finding]:
    """What it finds; the exit code is of one mind with it."""
    command = [sys.executable, "-m", "extender.cli.main", "doctor", *arguments, "-o", "json"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    found: list[Finding] = json.loads(ended.stdout)
    assert ended.returncode == int(any(each["severity"] != "info" for each in found)), ended.stderr
    return found


def of_the_files(folder: Path, pair: Pair) -> list[Finding]:
    """The files that the two run with, and what the extender sees itself."""
    files = ["--kube-scheduler-config", str(folder / "kube-scheduler.yaml"), "--config", str(folder / "extender.yaml")]
    return doctor(*files, "--server", pair.extender.ops_url)


def seen(pair: Pair, code: str) -> str:
    """The line of /readyz?verbose, which does not fail for it, if it names the code."""
    status, text = pair.extender.ops("/readyz?verbose")
    assert status == 200
    (line,) = (line for line in text.splitlines() if "configuration" in line)
    return line if f"({code})" in line else ""


def is_foreign(cluster: Cluster, pair: Pair, name: str, *, waits: bool = True) -> None:
    """Condition, event, explain and metrics say so alike; the alert is on that metric, with this expression."""
    rules = (MANIFESTS / "monitoring/rules.yaml").read_text()
    assert "max(gang_extender_foreign_scheduler_gangs) > 0" in rules
    path = f"{POD_GROUPS.format(namespace='default')}/{name}"

    def conditions() -> dict[str, str]:
        found = cluster.api.get(path).get("status", {}).get("conditions", [])
        return {each["type"]: f"{each['status']} {each['reason']}" for each in found}

    def events() -> set[str]:
        found = cluster.api.items(EVENTS)
        return {each["reason"] for each in found if each["regarding"].get("name") == name}

    def explained() -> bool:
        gang = pair.extender.gang(f"default/{name}")
        return "ForeignScheduler" in json.dumps(gang)

    said = {
        "condition": lambda: conditions().get("Degraded") == "True ForeignScheduler",
        "event": lambda: "ForeignScheduler" in events(),
        "explain": explained,
        "metric": lambda: pair.extender.metric("gang_extender_foreign_scheduler_gangs") == 1,
        "reason": lambda: pair.extender.metric('gang_extender_waiting_gangs{reason="ForeignScheduler"}') == 1,
    }
    if not waits:
        del said["reason"]  # it has been whole: for the gang room it runs
    for what, says in said.items():
        eventually(says, within=15, what=f"the {what} says ForeignScheduler")


def short_timeout(config: dict[str, Any]) -> None:
    for entry in config["extenders"]:
        if "bindVerb" in entry:
            entry["httpTimeout"] = "1ms"


def no_bind_entry(config: dict[str, Any]) -> None:
    config["extenders"] = [entry for entry in config["extenders"] if "bindVerb" not in entry]


def no_entry(config: dict[str, Any]) -> None:
    config["extenders"] = []


def test_a_timeout_of_bind_that_is_far_too_short(cluster: Cluster, tmp_path: Path) -> None:
    """No member stays held, so a gang starts only where all its members come within a moment: another one is made then. Which setting
    that is stands in no message of kube-scheduler's."""
    cluster.node("node-1")
    names = (f"train-{number}" for number in count())
    line = ""

    def one_more_gang() -> None:
        name = next(names)
        cluster.pod_group(name, min_member=4)
        for number in range(4):
            cluster.pod(f"{name}-{number}", group=name, requests={"cpu": "1m"})

    def in_readyz() -> bool:
        nonlocal line
        one_more_gang()
        line = seen(pair, "BindTimeoutDiffers")
        return bool(line)

    def by_the_doctor() -> bool:
        one_more_gang()
        codes = [(each["code"], each["file"]) for each in of_the_files(tmp_path, pair)]
        assert ("ShortBindTimeout", str(tmp_path / "kube-scheduler.yaml")) in codes
        return ("BindTimeoutDiffers", pair.extender.ops_url) in codes

    with Pair.of(cluster.plane, tmp_path, change=short_timeout).running() as pair:
        eventually(in_readyz, within=60, what="the extender sees the timeout", every=2.0)
        assert "kube-scheduler hangs up on bind calls after" in line
        assert "the extender would hold them 120 s" in line
        assert pair.extender.metric('gang_extender_hang_ups_total{verb="bind"}') >= 3
        eventually(by_the_doctor, within=30, what="the doctor sees it", every=1.0)


@pytest.mark.parametrize(
    ("change", "in_the_file", "while_it_runs", "setting"),
    [
        pytest.param(no_bind_entry, "NoBindVerb", "NoBindVerb", "bindVerb", id="no entry that binds"),
        pytest.param(no_entry, "NoExtender", "NotAsked", "extenders", id="no entry at all"),
    ],
)
def test_pods_that_are_bound_past_the_extender(
    change: Callable[[dict[str, Any]], None],
    in_the_file: str,
    while_it_runs: str,
    setting: str,
    cluster: Cluster,
    tmp_path: Path,
) -> None:
    """Single pods, then a gang, which starts in part. For 30 s a binding may be that of a replica that led before."""
    cluster.node("node-1")
    names = (f"single-{number}" for number in count())

    def one_more_was_enough() -> str:
        name = next(names)
        cluster.pod(name, requests={"cpu": "1m"})
        cluster.recorder.await_bound(name, within=5)
        return seen(pair, while_it_runs)

    with Pair.of(cluster.plane, tmp_path, change=change).running() as pair:
        eventually(one_more_was_enough, within=60, what="the extender sees it", every=2.0)
        cluster.judged = True  # a part of a gang starts: that is what the setting costs
        cluster.pod_group("train", min_member=3)
        members = [f"train-{number}" for number in range(3 if change is no_bind_entry else 2)]
        for name in members:
            cluster.pod(name, group="train", requests={"cpu": "1m"})
        cluster.recorder.await_bound(*members, within=20)
        if change is no_bind_entry:  # filter lets only a whole gang pass, so a part is what is left of it
            cluster.delete_pod(members[-1])
        is_foreign(cluster, pair, "train", waits=change is not no_bind_entry)
        found = of_the_files(tmp_path, pair)
    assert in_the_file in [each["code"] for each in found]
    (running,) = (each for each in found if each["file"] == pair.extender.ops_url)
    assert (running["code"], setting in running["field"]) == (while_it_runs, True)


def ignorable(config: dict[str, Any]) -> None:
    for entry in config["extenders"]:
        entry["ignorable"] = True


def test_an_extender_that_is_ignored_while_it_is_away(cluster: Cluster, tmp_path: Path) -> None:
    cluster.judged = True  # a part of the gang starts: that is what the setting costs
    cluster.node("node-1")
    with Pair.of(cluster.plane, tmp_path, change=ignorable).running() as pair:
        pair.extender.stop()
        cluster.pod_group("train", min_member=3)
        for name in ("train-0", "train-1"):
            cluster.pod(name, group="train")
        cluster.recorder.await_bound("train-0", "train-1", within=20)
        pair.extender.start()
        eventually(lambda: pair.extender.gang("default/train"), within=15, what="the extender knows the gang")
        is_foreign(cluster, pair, "train")
        told = json.dumps(pair.extender.gang("default/train"))
        found = of_the_files(tmp_path, pair)
    assert "2 of minMember 3 run, and no other pod is to come to this scheduler" in told
    assert {each["field"] for each in found if each["code"] == "Ignorable"} == {
        "extenders[0].ignorable",
        "extenders[1].ignorable",
    }


def nothing_listens(config: dict[str, Any]) -> None:
    for entry in config["extenders"]:
        entry["urlPrefix"] = "http://127.0.0.1:1"


def test_a_port_where_nothing_listens(cluster: Cluster, tmp_path: Path) -> None:
    cluster.node("node-1")
    with Pair.of(cluster.plane, tmp_path, change=nothing_listens).running():
        cluster.pod("single")
        cluster.recorder.await_message("single", "connection refused", within=10)
        files = ["--kube-scheduler-config", str(tmp_path / "kube-scheduler.yaml")]
        assert "OtherPort" in [each["code"] for each in doctor(*files)]


def test_a_lease_that_no_kube_scheduler_takes(cluster: Cluster, tmp_path: Path) -> None:
    """The kube-scheduler beside it elects no leader, as the configuration of the tests has it."""
    cluster.node("node-1")
    settings = {"leaderLease": "kube-system/no-such-lease"}
    with Pair.of(cluster.plane, tmp_path, settings=settings).running() as pair:
        cluster.pod("single")
        cluster.recorder.await_message("single", "the Lease has no holder", within=10)
        assert "NoLeaderElection" in [each["code"] for each in of_the_files(tmp_path, pair)]


def another_name(config: dict[str, Any]) -> None:
    config["profiles"][0]["schedulerName"] = "batch"


def test_a_profile_whose_pods_the_extender_refuses(cluster: Cluster, tmp_path: Path) -> None:
    cluster.judged = True  # the pod is of a scheduler that the recorder does not know
    cluster.node("node-1")
    with Pair.of(cluster.plane, tmp_path, change=another_name).running() as pair:
        cluster.pod("single", scheduler_name="batch")
        eventually(lambda: seen(pair, "SchedulerNotServed"), within=30, what="the extender sees the name")
        assert "kube-scheduler asks about pods of 'batch', which the extender refuses" in seen(
            pair, "SchedulerNotServed"
        )
        found = of_the_files(tmp_path, pair)
    places = {each["file"] for each in found if each["code"] == "SchedulerNotServed"}
    assert places == {str(tmp_path / "kube-scheduler.yaml"), pair.extender.ops_url}


def test_mistakes_in_a_cluster(cluster: Cluster, plane: ControlPlane) -> None:
    """A policy without its binding, a typo in schedulerName, a key that nothing reads, and rights that were not given."""
    cluster.judged = True  # nothing schedules here
    gate, binding = str(MANIFESTS / "gate"), "mutatingadmissionpolicybinding/gang-extender-gate"
    plane.kubectl("apply", "--server-side", "-k", gate)
    try:
        plane.kubectl("delete", binding)
        cluster.pod_group("train", min_member=2)
        cluster.pod("train-0", group="train")
        cluster.pod("train-1", group="train", scheduler_name="gang-schduler")
        cluster.pod("stray", labels={"job-name": "train"})
        user = "system:serviceaccount:kube-system:default"
        found = doctor("--config", str(SHIPPED_CONFIG), "--kubeconfig", str(plane.kubeconfig()), "--user", user)
    finally:
        plane.kubectl("delete", "--ignore-not-found", "-k", gate)
    said = {each["code"]: each for each in found}
    assert said["PolicyNotInForce"]["field"] == "gang-extender-gate"
    assert "1 of gang-schduler; served here: gang-scheduler" in said["ForeignScheduler"]["message"]
    assert said["KeyNotRead"]["field"] == "job-name"
    missing = {each["field"] for each in found if each["code"] == "MissingRight"}
    assert {"pods/binding", "nodes", "podgroups.scheduling.x-k8s.io/status"} <= missing


def test_a_cluster_is_examined_without_its_files(cluster: Cluster, plane: ControlPlane, tmp_path: Path) -> None:
    """Those of its ConfigMap count; without one what is not known is said, and nothing of it is guessed."""
    cluster.judged = True  # nothing schedules here
    cluster.pod_group("train", min_member=2)
    cluster.pod("train-0", group="train")
    cluster.pod("train-1", group="train", scheduler_name="gang-schduler")
    cluster.pod("stray", labels={"job-name": "train"})
    online = ["--kubeconfig", str(plane.kubeconfig()), "--lease", "kube-system/no-such-lease"]

    def told() -> dict[str, Finding]:
        return {each["code"]: each for each in doctor(*online)}

    plane.kubectl("delete", "configmap", "-n", "kube-system", "-l", "app.kubernetes.io/part-of=gang-extender")
    unknown = told()
    assert "kube-system has no ConfigMap" in unknown["NotExamined"]["message"]
    assert not unknown.keys() & {"ForeignScheduler", "KeyNotRead"}
    assert unknown["NoLease"]["field"] == "leases kube-system/no-such-lease"

    theirs = tmp_path / "kube-scheduler.yaml"
    theirs.write_text(
        (MANIFESTS / "sidecar/kube-scheduler.yaml").read_text().replace("ignorable: false", "ignorable: true")
    )
    files = [f"--from-file={theirs}", f"--from-file={SHIPPED_CONFIG}"]
    plane.kubectl("create", "configmap", "gang-scheduler-config-e2e", "-n", "kube-system", *files)
    try:
        plane.kubectl(
            "label",
            "configmap",
            "gang-scheduler-config-e2e",
            "-n",
            "kube-system",
            "app.kubernetes.io/part-of=gang-extender",
        )
        known = told()
    finally:
        plane.kubectl("delete", "configmap", "gang-scheduler-config-e2e", "-n", "kube-system")
    assert "1 of gang-schduler; served here: gang-scheduler" in known["ForeignScheduler"]["message"]
    assert known["KeyNotRead"]["field"] == "job-name"
    assert known["Ignorable"]["file"] == "configmap/kube-system/gang-scheduler-config-e2e/kube-scheduler.yaml"
    assert "NoLease" in known
    assert "NotExamined" not in known


def test_the_log_tells_the_configuration_the_leader_and_each_decision_once(cluster: Cluster, tmp_path: Path) -> None:
    with Pair.of(cluster.plane, tmp_path, as_shipped=True).running() as pair:
        cluster.node("node-1", cpu="4")
        cluster.pod_group("train", min_member=2)
        cluster.pod("train-0", group="train")
        cluster.pod("train-1", group="train")
        cluster.pod_group("large", min_member=2)
        for name in ("large-0", "large-1"):
            cluster.pod(name, group="large", requests={"cpu": "3"})
        cluster.recorder.await_bound("train-0", "train-1", within=20)
        cluster.recorder.await_message("large-0", "does not fit", within=20)
        cluster.node("node-2", cpu="1")  # one more reason to plan, and no room
        cluster.recorder.await_message("large-1", "does not fit", within=20)
        log = pair.extender.log()
    for once in (
        "configuration in effect configuration={",
        "flags in effect version=",
        "leadership gained",
        "gang planned group=default/train",
        "gang starts group=default/train",
        "gang refused group=default/large reason=InsufficientResources",
    ):
        assert log.count(once) == 1, once
    assert '"leaderLease":"kube-system/gang-scheduler"' in log
    assert "right is missing" not in log

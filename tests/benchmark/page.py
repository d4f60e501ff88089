"""The page at 5,000 nodes and 1,000 gangs: first paint, updates, and what a viewer costs the extender, with one and without in turn.

`serve` on a cluster in memory, a Chromium of the distribution, no control plane. Half of the gangs run, half wait: most for room, some for
members. The load is one that any cluster has: each second ten filter calls for single pods, and a binding, so that nodes change. Targets:
first paint within 2 s, an update drawn within 200 ms, at most 1 % of the extender's CPU for a viewer. An update is measured by the page
itself, from the message to the frame that shows it; `screen` is from the bind call's answer to the page that shows the pod, with all that
lies between: the rest after the last update, sending, drawing. BENCHMARK_ROUNDS: how often each turn comes (5).
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import urllib3
import yaml
from selenium import webdriver

from tests.benchmark.contenders import processes_of
from tests.benchmark.table import Table
from tests.browser import chromium
from tests.e2e.processes import Program, free_port

NODES, GANGS, MEMBERS = 5_000, 1_000, 4
RACK = 40
ROUNDS = int(os.environ.get("BENCHMARK_ROUNDS", "5"))
TURN_SECONDS = 20.0
CALLS = 10  # of filter a second
OFFERED = 100  # nodes
SCHEDULER = "gang-scheduler"
GROUP = "scheduling.x-k8s.io/pod-group"
TICK = os.sysconf("SC_CLK_TCK")

Json = dict[str, Any]


def _metadata(name: str, **labels: str) -> Json:
    return {"name": name, "namespace": "default", "uid": name, "labels": labels}


def _objects() -> Iterator[Json]:
    for number in range(NODES):
        labels = {"kubernetes.io/hostname": f"n{number}", "example.com/rack": f"rack-{number // RACK}"}
        status = {
            "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"},
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        metadata = {"name": f"n{number}", "labels": labels}
        yield {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}
        yield _pod(f"single-{number}", "", f"n{number}", cpu="8", gpu="2")
    for number in range(GANGS):
        runs, short = number < GANGS // 2, number % 10 == 9
        yield {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": {"name": f"g{number}", "namespace": "default"},
            "spec": {"minMember": MEMBERS},
        }
        for member in range(MEMBERS - short):
            node = f"n{(number * MEMBERS + member) % NODES}" if runs and not short else ""
            yield _pod(f"g{number}-{member}", f"g{number}", node, cpu="8", gpu="2" if runs else "9")


def _pod(name: str, group: str, node: str, *, cpu: str, gpu: str) -> Json:
    requests = {"cpu": cpu, "memory": "4Gi", "nvidia.com/gpu": gpu}
    spec: Json = {"schedulerName": SCHEDULER, "containers": [{"name": "c", "resources": {"requests": requests}}]}
    if node:
        spec["nodeName"] = node
    elif group:
        spec["schedulingGates"] = [{"name": "scheduling.x-k8s.io/gang"}]
    labels = {GROUP: group} if group else {}
    status = {"phase": "Running" if node else "Pending"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": _metadata(name, **labels), "spec": spec, "status": status}


class Served:
    """The extender; `extra` pods wait for no gang, and are there to be bound."""

    def __init__(self, folder: Path, extra: int) -> None:
        cluster, configuration = folder / "cluster.yaml", folder / "extender.yaml"
        pods = [_pod(f"extra-{number}", "", "", cpu="1", gpu="1") for number in range(extra)]
        dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
        cluster.write_text(yaml.dump_all([*_objects(), *pods], Dumper=dumper))
        configuration.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "gang-extender.dev/v1alpha1",
                    "kind": "ExtenderConfiguration",
                    "schedulerNames": [SCHEDULER],
                    "topology": [{"name": "rack", "nodeLabel": "example.com/rack"}],
                }
            )
        )
        port, ops_port = free_port(), free_port()
        self.verbs, self.ops = f"http://127.0.0.1:{port}", f"http://localhost:{ops_port}"
        command = [
            sys.executable,
            "-m",
            "extender.cli.main",
            "serve",
            f"--cluster={cluster}",
            f"--config={configuration}",
        ]
        self.program = Program("extender", [*command, f"--port={port}", f"--ops-port={ops_port}", "-v=1"], folder)
        self._http = urllib3.PoolManager(retries=False, timeout=60)
        self._bound = 0

    def start(self) -> None:
        self.program.start()
        self.program.await_ready(lambda: self._ready(), within=180)

    def _ready(self) -> bool:
        try:
            return self._http.request("GET", f"{self.ops}/readyz").status == 200
        except urllib3.exceptions.HTTPError:
            return False

    def metric(self, name: str) -> float:
        text = self._http.request("GET", f"{self.ops}/metrics").data.decode()
        found = re.search(rf"^{name} (\S+)", text, re.MULTILINE)
        return float(found[1]) if found else 0.0

    def cpu(self) -> float:
        """Seconds of all its processes so far."""
        stats = (
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in processes_of(self.program.pid)
        )
        return sum(int(stat[11]) + int(stat[12]) for stat in stats) / TICK

    def ask(self, number: int) -> None:
        """One filter call for a pod of no gang."""
        first = number * OFFERED % NODES
        names = [f"n{(first + at) % NODES}" for at in range(OFFERED)]
        self._post("filter", {"Pod": _pod(f"asked-{number}", "", "", cpu="1", gpu="1"), "NodeNames": names})

    def bind_one(self) -> str:
        """The node that a pod more is on."""
        name, node = f"extra-{self._bound}", f"n{self._bound * 7 % NODES}"
        self._bound += 1
        answer = self._post("bind", {"PodName": name, "PodNamespace": "default", "PodUID": name, "Node": node})
        assert answer == {"Error": ""}, answer
        return node

    def _post(self, verb: str, body: Json) -> Any:
        return json.loads(self._http.request("POST", f"{self.verbs}/{verb}", body=json.dumps(body)).data)


def _turn(served: Served, seconds: float) -> float:
    """The load, for so long; the extender's CPU meanwhile, as a share of one."""
    began, cpu, calls = time.monotonic(), served.cpu(), 0
    while (now := time.monotonic() - began) < seconds:
        if calls <= now * CALLS:
            served.ask(calls)
            calls += 1
            if calls % CALLS == 0:
                served.bind_one()
        else:
            time.sleep(0.01)
    return (served.cpu() - cpu) / (time.monotonic() - began)


PAINTED = "return performance.getEntriesByName('first picture')[0]?.startTime ?? 0"
UPDATES = "return performance.getEntriesByName('update').map((entry) => entry.duration)"
TOTAL = "return document.getElementById('total').textContent"


def _open(driver: webdriver.Chrome, served: Served) -> float:
    """Milliseconds from the navigation to the first picture with all nodes and gangs."""
    driver.get(f"{served.ops}/ui")
    until = time.monotonic() + 30
    while not (painted := driver.execute_script(PAINTED)) and time.monotonic() < until:
        time.sleep(0.02)
    shown = driver.execute_script("return [picture.dataset.nodes, rows.dataset.gangs]")
    assert shown == [str(NODES), str(GANGS)], shown
    return float(painted)


def _on_the_screen(driver: webdriver.Chrome, served: Served) -> float:
    """Milliseconds from a binding to the page that counts it."""
    before = driver.execute_script(TOTAL)
    served.bind_one()
    began = time.monotonic()
    while driver.execute_script(TOTAL) == before and time.monotonic() - began < 10:
        time.sleep(0.005)
    return (time.monotonic() - began) * 1000


def run() -> None:
    try:
        driver = chromium.start()
    except chromium.NoBrowserError as error:
        print(f"  not run: {error}")
        return
    with tempfile.TemporaryDirectory() as folder:
        served = Served(Path(folder), extra=int(ROUNDS * (2 * TURN_SECONDS + 20)))
        try:
            _measure(driver, served)
        finally:
            driver.quit()
            served.program.stop()


def _measure(driver: webdriver.Chrome, served: Served) -> None:
    served.start()
    table = Table(f"{NODES} nodes, {GANGS} gangs, {CALLS} filter calls and a binding a second")
    _turn(served, TURN_SECONDS)  # what is new has been planned and told
    for _ in range(ROUNDS):
        driver.get("about:blank")
        table.add("without", cpu=100 * _turn(served, TURN_SECONDS))
        table.add("page", paint=_open(driver, served))
        work = served.metric("gang_extender_page_work_seconds_total")
        share = _turn(served, TURN_SECONDS)
        worked = served.metric("gang_extender_page_work_seconds_total") - work
        table.add("with", cpu=100 * share, work=100 * worked / TURN_SECONDS)
        for milliseconds in driver.execute_script(UPDATES)[1:]:
            table._values["page", "update"].append(milliseconds)
        for _ in range(5):
            table._values["page", "screen"].append(_on_the_screen(driver, served))
    table.row("page", "paint", "ms", "at most 2000")
    table.row("page", "update", "ms", "at most 200")
    table.row("page", "screen", "ms", "from the binding's answer")
    table.row("with", "work", "% CPU", "of one CPU, by the extender's own count; at most 1")
    table.row("without", "cpu", "% CPU", "of one CPU")
    table.row("with", "cpu", "% CPU", "of one CPU")
    table.ratio("cpu", "with", "without", "at most 1.01")

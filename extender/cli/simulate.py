"""`gang-extender simulate`: where the pods of a cluster would go, and why the rest would not."""

from __future__ import annotations

import argparse
import gc
import logging
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from extender.api.codec import DecodeError
from extender.cli import namespaces, standard_error
from extender.cli.errors import UsageError
from extender.cli.progress import progress
from extender.cli.terminal import printable

if TYPE_CHECKING:
    from extender.config.types import KubeSchedulerConfiguration
    from extender.simulation.clock import VirtualClock
    from extender.simulation.cluster import Cluster
    from extender.simulation.configuration import Files
    from extender.simulation.report import Report

BAR_AFTER_PODS = 200  # a run that is over at once needs no bar
SHOWN = 10  # of the gangs that are invalid

EXAMPLES = {
    "simulate nodes.yaml job.yaml": "where would the pods go?",
    "simulate cluster.yaml job.yaml -n team-a": "on a dump of a cluster, shown for one namespace",
    "simulate cluster.yaml --config kube-scheduler.yaml --config extender.yaml": "with the configuration that the cluster runs by",
    "simulate cluster.yaml -o json": "for programs; `gang-extender schema simulate` describes it",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        help="objects as `kubectl get -o yaml` gives them; YAML or JSON; - for standard input",
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        action="append",
        default=[],
        help="KubeSchedulerConfiguration, ExtenderConfiguration, or both, each by a --config (default: every plugin)",
    )
    parser.add_argument(
        "--call-extenders",
        action="store_true",
        help="ask the other HTTP extenders of the configuration to filter and prioritize (default: no connection is opened)",
    )
    parser.add_argument("-o", "--output", choices=("table", "json", "yaml"), default="table", help="(%(default)s)")
    parser.add_argument(
        "-n",
        "--namespace",
        type=namespaces.named,
        default="",
        metavar="NAMESPACE",
        help="show its pods and gangs only; all are simulated",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="for choices among equals (%(default)s)")
    parser.add_argument(
        "-v", "--v", dest="verbosity", type=int, default=0, metavar="N", help="log level (%(default)s: only faults)"
    )
    parser.add_argument(
        "--until", type=_seconds, default=86_400.0, metavar="SECONDS", help="the most virtual time (%(default)g)"
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds


def run(args: argparse.Namespace) -> int:
    from extender.cli.simulation_output import show
    from extender.simulation.clock import VirtualClock
    from extender.simulation.cluster import load_cluster
    from extender.simulation.configuration import gang_scheduler

    _log(args.verbosity)
    clock = VirtualClock()
    files = _read_configs(args.config)
    try:
        cluster = load_cluster(args.files, clock.text, gang_scheduler(files))
    except DecodeError as error:  # files are this command's arguments: wrong use
        raise UsageError(str(error)) from error
    report = _simulated(args, cluster, files, clock)
    for warning in report.warnings:
        standard_error.say(f"warning: {warning}")
    if not report.quiet:
        standard_error.say(f"warning: stopped after {args.until:g} virtual seconds: pods were still moving")
    show(report, args.output, args.namespace)
    return _say_what_is_invalid(report)


def _say_what_is_invalid(report: Report) -> int:
    """The exit code: 1 where a gang's PodGroup, or its labels, ask for nonsense. All others are simulated as ever."""
    from extender.simulation.report import INVALID

    invalid = [gang for gang in report.gangs if gang.state == INVALID]
    for gang in invalid[:SHOWN]:
        standard_error.say(f"gang-extender: {gang.message}")
    if len(invalid) > SHOWN:
        standard_error.say(f"gang-extender: {len(invalid) - SHOWN} more gangs are invalid")
    return 1 if invalid else 0


def _log(verbosity: int) -> None:
    """What goes wrong with a pod stands in its message; only what should not happen at all is said besides, once."""
    level = {0: logging.ERROR, 1: logging.ERROR, 2: logging.INFO}.get(verbosity, logging.DEBUG)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines("%(levelname).1s %(name)s] %(message)s"))
    if verbosity == 0:
        handler.addFilter(_Faults())
    logging.basicConfig(level=level, handlers=[handler], force=True)


class _Lines(logging.Formatter):
    """A message is one line, and a traceback several: files may have written anything into both."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        return printable(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802 - likewise
        return "\n".join(map(printable, super().formatException(ei).split("\n")))


class _Faults(logging.Filter):
    """Records with a traceback, one of a kind."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.exc_info or not isinstance(record.exc_info, tuple):
            return False
        kind = f"{record.msg} {record.args} {record.exc_info[1]}"
        new = kind not in self._seen
        self._seen.add(kind)
        return new


def _read_configs(paths: Sequence[str]) -> Files:
    """Told apart by their kinds; at most one of each."""
    from extender.simulation.configuration import Files

    files = Files()
    for path in paths:
        read = _read_config(path)
        for kind in ("kube_scheduler", "extender"):
            if getattr(read, kind) is not None and getattr(files, kind) is not None:
                raise UsageError(f"{path}: a file of this kind was given before")
        files = Files(files.kube_scheduler or read.kube_scheduler, files.extender or read.extender)
    return files


def _read_config(path: str) -> Files:
    from extender.config.kube_scheduler import load_kube_scheduler_configuration
    from extender.config.load import KIND, load_extender_configuration
    from extender.config.yaml_file import ConfigurationError, read_document
    from extender.simulation.configuration import Files

    try:
        value = read_document(path).value
        if isinstance(value, dict) and value.get("kind") == KIND:
            return Files(extender=load_extender_configuration(path))
        configuration = load_kube_scheduler_configuration(path)
    except ConfigurationError as error:
        raise UsageError(*map(str, error.mistakes)) from error
    _check_modelled(path, configuration)
    return Files(configuration)


def _check_modelled(path: str, configuration: KubeSchedulerConfiguration) -> None:
    """Nothing is answered as if a plugin were not there."""
    from extender.framework.runtime.plugin_sets import needed_plugins
    from extender.plugins.registry import new_registry

    registry = new_registry()
    for index, profile in enumerate(configuration.profiles):
        for name in needed_plugins(profile.plugins):
            if registry.get(name) is None:
                raise UsageError(f'{path}: profiles[{index}].plugins: plugin "{name}" is not modelled')


def _simulated(args: argparse.Namespace, cluster: Cluster, files: Files, clock: VirtualClock) -> Report:
    from extender.framework.runtime.plugin_sets import PluginSetError
    from extender.framework.runtime.registry import RegistryError
    from extender.profile import ProfileError
    from extender.scheduler.in_process.http_extender import ExtenderError
    from extender.simulation.configuration import configured
    from extender.simulation.simulate import Simulation

    waiting = sum(not pod.node_name for pod in cluster.pods)
    with progress("pods bound", waiting, BAR_AFTER_PODS) as bound, _loaded_objects_stay():
        try:
            by = configured(cluster, files, call_extenders=args.call_extenders)
            simulation = Simulation(
                cluster,
                by.kube_scheduler,
                clock,
                seed=args.seed,
                extender=by.extender,
                warnings=by.warnings,
                watched=lambda driver: bound(len(driver.bound_at)),
            )
        except (RegistryError, PluginSetError, ProfileError, ExtenderError) as error:
            raise UsageError(
                ": ".join([", ".join(args.config), str(error)] if args.config else [str(error)])
            ) from error
        return simulation.run(args.until)


@contextmanager
def _loaded_objects_stay() -> Iterator[None]:
    """The cyclic garbage collector need not look through the cluster again and again."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()

"""`gang-extender evaluate SCENARIOS.json`: what every plugin says of each scenario, preemption included."""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import sys
from pathlib import Path
from typing import Any

from extender.cli import output, standard_error, terminal
from extender.cli.errors import UsageError
from extender.cli.progress import progress
from extender.cli.table import natural, table

Json = dict[str, Any]
BAR_AFTER = 20
GZIP = b"\x1f\x8b"

EXAMPLES = {
    "evaluate scenarios.json": "every plugin's verdict on every node, as JSON",
    "evaluate scenarios.json -o table": "a line for each scenario",
    "evaluate - --name small < scenarios.json": "one of the scenarios of standard input",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "scenarios", metavar="SCENARIOS", help="a scenario or a list of them: JSON, also gzipped; - for standard input"
    )
    parser.add_argument(
        "-o", "--output", choices=("json", "yaml", "table"), default="json", help="json by default: the corpus' schema"
    )
    parser.add_argument(
        "--call-extenders",
        action="store_true",
        help="ask the HTTP extenders of a scenario's config to filter and prioritize (default: no connection is opened)",
    )
    parser.add_argument("--name", action="append", default=[], help="only the scenario of this name; may be repeated")


def run(args: argparse.Namespace) -> int:
    """0 if every scenario was evaluated; one that could not be has `error` in its answer, and is named on stderr."""
    from extender.plugins.registry import new_registry

    chosen = _chosen(_read(args.scenarios), args.name, args.scenarios)
    registry = new_registry()
    answers = []
    with progress("scenarios evaluated", len(chosen), BAR_AFTER) as evaluated:
        for path, entry in chosen:
            answers.append(_answer(entry, path, registry, args))
            evaluated(len(answers))
    _print(answers, args.output)
    failed = [answer for answer in answers if "error" in answer]
    for answer in failed:
        standard_error.say(f"gang-extender: {args.scenarios}: {answer['name']}: {answer['error']}")
    return 1 if failed else 0


def _read(name: str) -> list[tuple[str, Any]]:
    """Each scenario with its place in the file."""
    data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    try:
        if data.startswith(GZIP):
            data = gzip.decompress(data)
        loaded = json.loads(data)
    except json.JSONDecodeError as error:
        raise UsageError(f"{name}:{error.lineno}: expected JSON: {error.msg}") from error
    except (ValueError, EOFError, OSError, RecursionError) as error:
        raise UsageError(f"{name}: {error}") from error
    if isinstance(loaded, dict):
        return _listed(loaded, name)
    if not isinstance(loaded, list):
        raise UsageError(f"{name}: $: expected a list of scenarios")
    return [(f"$[{index}]", entry) for index, entry in enumerate(loaded)]


def _listed(loaded: Json, name: str) -> list[tuple[str, Any]]:
    """One scenario, or an object that holds a list of them and nothing else."""
    if set(loaded) != {"scenarios"}:
        return [("$", loaded)]
    if not isinstance(loaded["scenarios"], list):
        raise UsageError(f"{name}: $.scenarios: expected a list of scenarios")
    return [(f"$.scenarios[{index}]", entry) for index, entry in enumerate(loaded["scenarios"])]


def _chosen(entries: list[tuple[str, Any]], wanted: list[str], source: str) -> list[tuple[str, Any]]:
    if not wanted:
        return entries
    chosen = [(path, entry) for path, entry in entries if isinstance(entry, dict) and entry.get("name") in wanted]
    missing = set(wanted) - {entry["name"] for _, entry in chosen}
    if missing:
        raise UsageError(f"{source}: no scenario of the name {sorted(missing)[0]!r}")
    return chosen


def _answer(entry: Any, path: str, registry: Any, args: argparse.Namespace) -> Json:
    from extender.scheduler.in_process.schedule_one import NoNodesAvailableError
    from extender.simulation.evaluation import EvaluationError, evaluate
    from extender.simulation.scenario import BuiltScenario
    from extender.simulation.scenario_fields import ScenarioError

    name = entry.get("name", path) if isinstance(entry, dict) else path
    try:
        built = BuiltScenario(entry, registry, path=path, call_extenders=args.call_extenders)
        for warning in built.warnings:
            standard_error.say(f"gang-extender: {args.scenarios}: {path}.config.extenders: {warning}")
        with contextlib.closing(built):
            return {"name": name, **evaluate(built)}
    except (ScenarioError, EvaluationError, NoNodesAvailableError) as error:
        return {"name": name, "error": str(error)}


def _print(answers: list[Json], form: str) -> None:
    if form == "json":
        output.as_json(answers)
    elif form == "yaml":
        import yaml

        yaml.safe_dump(answers, sys.stdout, sort_keys=False)
    else:
        _table(answers)


def _table(answers: list[Json]) -> None:
    """A line each: where the pod would go, or why it would go nowhere and which pods it could preempt."""
    rows = []
    for answer in answers:
        preemption = answer.get("preemption") or {}
        feasible = f"{len(answer.get('feasible') or ())}/{len(answer.get('nodeOrder') or ())}"
        where = _some(_in_order(_preempts_on(preemption)))
        rows.append(
            (answer["name"], feasible, _some(_in_order(answer.get("bestSet"))), where, _message(answer, preemption))
        )
    heads = ("SCENARIO", "FEASIBLE", "BEST", "PREEMPTION", "MESSAGE")
    print("\n".join(table(heads, rows, terminal.of())))


def _preempts_on(preemption: Json) -> list[str] | None:
    """What comes of it: of the gang's plan where there is one, of what the guard lets through, else kube-scheduler's."""
    if "gang" in preemption:
        gang = preemption["gang"]
        return None if "whyNot" in gang else list(gang.get("perNode", ()))
    nodes: list[str] | None = preemption.get("guard", preemption).get("chosenSet")
    return nodes


def _message(answer: Json, preemption: Json) -> str:
    """kube-scheduler's, and what the extender has to add."""
    texts = [answer.get("error") or answer.get("fitError") or ""]
    guard, gang = preemption.get("guard", {}), preemption.get("gang", {})
    if gang:
        whole = "fits" if gang["fits"] else gang["message"] or gang["reason"]
        texts.append(f"gang {gang['group']}: {whole}")
        if "whyNot" not in gang:
            texts.append(_victims(gang))
        elif gang["whyNot"] != whole:
            texts.append(f"evicts no pod: {gang['whyNot']}")
    elif "message" in guard:
        texts.append(f"preempts no pod: {guard['message']}")
    return "; ".join(text.rstrip(".") if len(texts) > 1 else text for text in texts if text)


def _victims(gang: Json) -> str:
    victims = [victim["pod"] for victim in gang.get("victims", ())]
    return f"evicts {_some(victims)}" if victims else ""


def _in_order(names: list[str] | None) -> list[str]:
    return sorted(names or (), key=natural)


def _some(names: list[str] | None, at_most: int = 3) -> str:
    if not names:
        return "-"
    return ",".join(names[:at_most]) + (f",+{len(names) - at_most}" if len(names) > at_most else "")

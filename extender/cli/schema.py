"""`gang-extender schema [NAME]`: JSON schemas of what is written for the commands, and of what they print for programs."""

from __future__ import annotations

import argparse
import inspect
import json
import re
import sys
from collections.abc import Mapping
from typing import Any

from extender.cli.errors import UsageError
from extender.config.read_profile import camel

DIALECT = "https://json-schema.org/draft/2020-12/schema"

NAMES = {
    "configuration": "the extender's own file, ExtenderConfiguration",
    "simulate": "the report of `simulate -o json`",
    "evaluate": "the answers of `evaluate`, a list",
    "gangs": "the list of `explain -o json`, and of the page /gangs",
    "gang": "one gang: `explain NAMESPACE/NAME -o json`, and its page",
    "pod": "a pod and its gang: `why POD -o json`, and the page /pods",
    "whatif": "what would become of a gang: `whatif -o json`, and the page /whatif",
    "drain": "what a drain does to gangs: `drain NODE -o json`, and the page /drain",
    "doctor": "the findings of `doctor -o json`, a list",
}

EXAMPLES = {
    "schema": "which there are",
    "schema configuration > extender.schema.json": "for an editor: `# yaml-language-server: $schema=extender.schema.json`",
    "schema simulate": "what a program may rely on",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="of the schema; without it, a list of all")


def run(args: argparse.Namespace) -> int:
    if args.name is None:
        width = max(map(len, NAMES))
        print("\n".join(f"{name.ljust(width)}   {what}" for name, what in NAMES.items()))
    elif args.name not in NAMES:
        raise UsageError(f"schema: no schema of the name {args.name!r}; there are {', '.join(NAMES)}")
    else:
        sys.stdout.write(json.dumps(schema(args.name), indent=2) + "\n")
    return 0


def schema(name: str) -> Mapping[str, Any]:
    """name: one of NAMES."""
    if name == "configuration":
        from extender.config.schema import configuration_schema

        return configuration_schema()
    import msgspec

    (made,), components = msgspec.json.schema_components([_type(name)], ref_template="#/$defs/{name}")
    for each in components.values():
        if "description" in each:
            each["description"] = _in_json_words(each["description"])
    return {"$schema": DIALECT, "title": NAMES[name], **made, "$defs": components}


def _in_json_words(docstring: str) -> str:
    """A docstring names fields as Python does; a reader of the schema looks for them in camelCase."""
    return re.sub(r"\b[a-z]+(?:_[a-z]+)+\b", lambda word: camel(word[0]), inspect.cleandoc(docstring))


def _type(name: str) -> Any:
    from extender.config.findings import Finding
    from extender.plugins.coscheduling.report.gang_status import GangStatus, GangSummary
    from extender.plugins.coscheduling.report.outlook import DrainOutlook, PodStatus, WhatIf
    from extender.simulation.answer import Answer
    from extender.simulation.report import Report

    return {
        "simulate": Report,
        "evaluate": list[Answer],
        "gangs": list[GangSummary],
        "gang": GangStatus,
        "pod": PodStatus,
        "whatif": WhatIf,
        "drain": DrainOutlook,
        "doctor": list[Finding],
    }[name]

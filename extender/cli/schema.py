"""`gang-extender schema [NAME]`: JSON schemas of what is written for the commands, and of what they print for programs."""

from __future__ import annotations

import argparse
import importlib
import inspect
import re
from collections.abc import Mapping
from typing import Any

from extender.cli import output
from extender.cli.errors import UsageError
from extender.config.read_profile import camel

DIALECT = "https://json-schema.org/draft/2020-12/schema"

NAMES = {
    "configuration": "the extender's own file, ExtenderConfiguration",
    "simulate": "the report of `simulate -o json`",
    "evaluate": "the answers of `evaluate`, a list",
    "gangs": "the list of `list -o json`, and of the page /gangs",
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
        output.as_json(schema(args.name))
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
    """Only what is asked for is imported: those of kubectl gang need nothing of the server."""
    module, type_ = _TYPES[name]
    found: Any = getattr(importlib.import_module(f"extender.{module}"), type_)
    return list[found] if name in _LISTS else found


_LISTS = ("evaluate", "gangs", "doctor")
_TYPES = {
    "simulate": ("simulation.report", "Report"),
    "evaluate": ("simulation.answer", "Answer"),
    "gangs": ("plugins.coscheduling.report.gang_status", "GangSummary"),
    "gang": ("plugins.coscheduling.report.gang_status", "GangStatus"),
    "pod": ("plugins.coscheduling.report.outlook", "PodStatus"),
    "whatif": ("plugins.coscheduling.report.outlook", "WhatIf"),
    "drain": ("plugins.coscheduling.report.outlook", "DrainOutlook"),
    "doctor": ("config.findings", "Finding"),
}

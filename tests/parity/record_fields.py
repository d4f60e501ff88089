"""Records the fields of the Go types that we read, and which Go writes as null: `python -m tests.parity.record_fields`, with Go.

The names alone are what `simulate` knows a misspelt field by: a table in the package.
The oracle is tests/e2e/fieldoracle, built from the modules that tests/e2e/go.mod pins, and, for kinds that these do not have yet, from
those of go-1.37.mod beside it.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from extender.client import embedded

NAMES = Path(embedded.__file__).with_name("fields.json")
FIELDS = Path(__file__).parent / "data" / "go_fields.json"
E2E = Path(__file__).parent.parent / "e2e"


NEWER = ("-mod=mod", "-modfile=go-1.37.mod", "-tags=kubernetes_1_37")


def main() -> None:
    older, newer = oracle(), oracle(*NEWER)
    recorded = {table: {**newer[table], **older[table]} for table in older}
    recorded["types"] |= {name: {**newer["types"].get(name, {}), **fields} for name, fields in older["types"].items()}
    FIELDS.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n")
    NAMES.write_text(json.dumps(names(recorded), indent=1, sort_keys=True) + "\n")


def oracle(*flags: str) -> Any:
    done = subprocess.run(["go", "run", *flags, "./fieldoracle"], cwd=E2E, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def names(recorded: Any) -> Any:
    """`kinds`: API version and kind -> its type. `types`: type -> field -> the field's type, empty where it has no fields."""
    kinds = {kind: of for kind, of in {**recorded["kinds"], **recorded["workloads"]}.items() if "/" in kind}
    types: dict[str, dict[str, str]] = {}
    left = list(kinds.values())
    while left:
        name = left.pop()
        if name and name not in types:
            types[name] = {key: field.get("of", "") for key, field in recorded["types"][name].items()}
            left.extend(types[name].values())
    return {"kinds": kinds, "types": types}


if __name__ == "__main__":
    main()

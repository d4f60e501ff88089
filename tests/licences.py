"""`make licences`: writes docs/licences.md, the packages that are in the image and their licences.

`python -m tests.licences PIP_LICENSES PYTHON`: the program, and the interpreter whose packages it lists.
"""

from __future__ import annotations

import json
import subprocess
import sys

from tests.documented import PROJECT

PAGE = PROJECT / "docs" / "licences.md"
HEAD = """# Licences

The packages that are in the image beside gang-extender (Apache-2.0) and Python itself (PSF-2.0), by what they say of themselves.
`make licences` writes this page; a test holds it against `requirements.txt`. `make sbom` says the same as CycloneDX.

| package | version | licence |
|---|---|---|
"""


def rows(listed: list[dict[str, str]]) -> list[str]:
    """As pip-licenses lists them."""
    found = sorted((each["Name"].lower(), each["Version"], each["License"]) for each in listed)
    return [
        f"| {name} | {version} | {licence.replace(chr(10), ' ').replace('|', '/')} |"
        for name, version, licence in found
    ]


def main(pip_licenses: str, python: str) -> int:
    command = [
        pip_licenses,
        "--python",
        python,
        "--format=json",
        "--with-system",
        "--from=mixed",
        "--ignore-packages",
        "gang-extender",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    PAGE.write_text(HEAD + "\n".join(rows(json.loads(done.stdout))) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

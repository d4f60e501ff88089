"""`.ci/run` with programs that play make and those of the image: what it excuses, and what it does not."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.documented import PROJECT

NEEDED = ("bash", "dirname", "env", "timeout", "sh")
MAKE = """#!/bin/sh
echo "$1" >> {folder}/made
[ "$1" != "$FAILS" ]
"""


def run(
    folder: Path, *, fails: str = "", missing: str = "", user: str = "0", required: str = ""
) -> tuple[int, list[str]]:
    """Its exit code, and what it made."""
    programs = folder / "programs"
    programs.mkdir()
    for name in NEEDED:
        (programs / name).symlink_to(shutil.which(name) or "")
    played = {"make": MAKE.format(folder=folder), "id": f"#!/bin/sh\necho {user}\n"}
    played |= dict.fromkeys(("buildah", "debootstrap", "npm", "zsh", "fish", "chromedriver"), "#!/bin/sh\n")
    for name, text in played.items():
        if name != missing:
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
    environ = {"PATH": str(programs), "FAILS": fails, "CI_IMAGE": required, "HOME": os.environ.get("HOME", "")}
    done = subprocess.run([str(PROJECT / ".ci" / "run")], env=environ, capture_output=True, text=True, check=False)
    return done.returncode, (folder / "made").read_text().split()


BEFORE = ["check", "docs", "test", "sbom"]
DEBIAN = "build/image/debian"


def test_the_image_is_built_and_tested_at_the_end(tmp_path: Path) -> None:
    assert run(tmp_path) == (0, [*BEFORE, DEBIAN, "image-test"])


@pytest.mark.parametrize("fails", [*BEFORE, "image-test"])
def test_what_fails_is_not_excused(tmp_path: Path, fails: str) -> None:
    code, made = run(tmp_path, fails=fails)
    assert code != 0
    assert made[-1] == fails


@pytest.mark.parametrize(
    "there",
    [
        pytest.param({"missing": "buildah"}, id="no buildah"),
        pytest.param({"missing": "debootstrap"}, id="no debootstrap"),
        pytest.param({"fails": DEBIAN}, id="no Debian can be fetched"),
        pytest.param({"user": "1000"}, id="not root"),
    ],
)
def test_what_the_image_needs_may_be_missing_unless_it_is_required(tmp_path: Path, there: dict[str, str]) -> None:
    for required, code in (("", 0), ("required", 1)):
        folder = tmp_path / f"{required or 'excused'}"
        folder.mkdir()
        ended, made = run(folder, required=required, **there)
        assert ended == code
        assert "image-test" not in made

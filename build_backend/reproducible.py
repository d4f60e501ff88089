"""setuptools' build backend, with wheels and sdists that are byte for byte the same for all that build this commit.

Where SOURCE_DATE_EPOCH is set (reproducible-builds.org): times, owners, rights and the order of the files are no matter of the
machine. Used by pyproject.toml; `make dist` sets the variable.
"""

from __future__ import annotations

import gzip
import os
import tarfile
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]


def build_wheel(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """The file's name. The files' rights in it are those that the umask leaves."""
    before = os.umask(0o022)
    try:
        name: str = build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
        return name
    finally:
        os.umask(before)


def build_sdist(sdist_directory: str, config_settings: dict[str, Any] | None = None) -> str:
    """The file's name."""
    name: str = build_meta.build_sdist(sdist_directory, config_settings)
    if epoch := os.environ.get("SOURCE_DATE_EPOCH"):
        pack_again(Path(sdist_directory, name), int(epoch))
    return name


def pack_again(sdist: Path, epoch: int) -> None:
    """In place. epoch: seconds, the time of all files."""
    packed = sdist.with_suffix(".new")
    with (
        tarfile.open(sdist) as source,
        packed.open("wb") as file,
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=epoch) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as target,
    ):
        for member in sorted(source.getmembers(), key=lambda each: each.name):
            content = source.extractfile(member) if member.isfile() else None
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.mtime, member.pax_headers = epoch, {}
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            target.addfile(member, content)
    packed.replace(sdist)

"""Where a pipeline's file is: a path, or the name of one that comes with the package."""

from __future__ import annotations

import shlex
from pathlib import Path

import pyspark_zurau
from pyspark_zurau.engine.problems import did_you_mean
from zurau.errors import SettingsError

READY_MADE = Path(pyspark_zurau.__file__).parent / "pipelines"


def ready_made() -> dict[str, Path]:
    return {file.parent.name: file for file in sorted(READY_MADE.glob("*/pipeline.toml"))}


def locate(file_or_name: str) -> Path:
    file = Path(file_or_name)
    if file.suffix == ".toml" or file.is_file():
        return file
    if file.is_dir() and (file / "pipeline.toml").is_file():
        return file / "pipeline.toml"
    found = ready_made().get(file_or_name)
    if found is None:
        raise SettingsError(
            f"there is no file and no ready-made pipeline {file_or_name!r}{did_you_mean(file_or_name, ready_made())};"
            " see `zurau pipeline list`"
        )
    return found


def as_typed(file: Path) -> str:
    """What to type for it in a command: the other way round."""
    return next((name for name, its_file in ready_made().items() if its_file == file), shlex.quote(str(file)))

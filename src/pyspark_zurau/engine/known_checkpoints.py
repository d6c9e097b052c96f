"""Which checkpoints there are on this machine: those at home, and others that a pipeline was run with.

Each run notes its checkpoint in a small file, so that `zurau pipeline status` finds it wherever it is.
"""

from __future__ import annotations

import hashlib
import logging

from pyspark_zurau.engine.progress import FILE
from pyspark_zurau.engine.read import state_directory
from pyspark_zurau.spark.checkpoint_lock import local_path

logger = logging.getLogger(__name__)

DIRECTORY = "checkpoints"


def note_checkpoint(checkpoint: str) -> None:
    directory = local_path(checkpoint)
    if directory is None or directory.parent == state_directory():
        return
    noted = state_directory().parent / DIRECTORY / hashlib.sha256(str(directory).encode()).hexdigest()[:16]
    try:
        noted.parent.mkdir(parents=True, exist_ok=True)
        noted.write_text(str(directory), encoding="utf-8")
    except OSError as error:
        logger.warning("`zurau pipeline status` will need --checkpoint %s: %s", directory, error)


def known_checkpoints() -> list[str]:
    """Those in which a pipeline has run. A note whose checkpoint is gone is removed."""
    found = {str(file.parent) for file in state_directory().glob(f"*/{FILE}")}
    for noted in (state_directory().parent / DIRECTORY).glob("*"):
        directory = local_path(noted.read_text(encoding="utf-8"))
        if directory is not None and (directory / FILE).is_file():
            found.add(str(directory))
        else:
            noted.unlink(missing_ok=True)
    return sorted(found)

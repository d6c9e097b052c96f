"""Garbage collection in a worker leaves out what the worker has imported.

Spark keeps Python workers, and has each collect its garbage after every task. Nearly all that is looked at then belongs
to modules, pyarrow's and pyspark's above all, and never goes: 20 to 40 ms of CPU, in four workers for each batch that
goes from topic to topic, and far more than all else that they do for it.
"""

from __future__ import annotations

import gc
import itertools
import os

#: Spark sets it for workers that it keeps.
KEPT = "SPARK_REUSE_WORKER"
#: The first tasks of a worker import what is needed then, one more than another; later ones make objects that may go.
TASKS = 10

_tasks = itertools.count(1)


def freeze_imports() -> None:
    """At the beginning of a task: what is there now, all garbage just having been collected, is here to stay."""
    if os.environ.get(KEPT) and next(_tasks) <= TASKS:
        gc.freeze()

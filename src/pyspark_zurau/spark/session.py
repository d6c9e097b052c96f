"""A Spark session that is quick with small batches.

Spark's defaults cost a micro-batch some 100 ms that are nobody's work: Python is talked to over TCP, and checkpoints
are renamed by a class that starts twenty processes for each. Two settings spare that. The second is safe as long as one
driver uses a checkpoint, which is how Spark is meant to be used anyway.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from pyspark_zurau.spark.class_archive import JAVA_OPTIONS, with_classes_ready
from pyspark_zurau.spark.home import quick_home
from pyspark_zurau.spark.java import cache_directory, find_java_home
from zurau.errors import SettingsError

DEFAULTS = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.ui.showConsoleProgress": "false",
}

CONNECT_PORT = 15002
CONNECT_PATIENCE_S = 10.0


def session(
    name: str = "zurau",
    *,
    master: str = "local[*]",
    remote: str | None = None,
    settings: Mapping[str, str] | None = None,
    on_phase: Callable[[str], None] = lambda _: None,
) -> SparkSession:
    """A session, the running one if there is one. Java is found, and Python workers are of this Python's kind.

    With `remote`, an address like `sc://host:15002`, it is one of a Spark Connect server, which has its own Java,
    Python and static settings. `on_phase` is told what is being waited for.
    """
    if remote is not None:
        on_phase("Spark Connect")
        _find_server(remote)
        return _configured(SparkSession.builder.remote(remote), settings or {}).getOrCreate()
    on_phase("Java")
    java_home = find_java_home()
    if java_home is not None:
        os.environ["JAVA_HOME"] = str(java_home)
    if master.startswith("local"):
        # Spark listens where its driver is: here that is for this machine alone, its page too.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Another Python may have no pyspark but the one that Spark gives it.
    chosen = {**DEFAULTS, "spark.app.name": name, "spark.master": master, **(settings or {})}
    if os.environ.setdefault("PYSPARK_PYTHON", sys.executable) == sys.executable and master.startswith("local"):
        os.environ.setdefault("SPARK_HOME", str(quick_home(cache_directory())))
        chosen[JAVA_OPTIONS] = with_classes_ready(chosen.get(JAVA_OPTIONS, ""))
    _start_java(chosen)
    on_phase("session")
    return _configured(SparkSession.builder, chosen).getOrCreate()


def _start_java(settings: Mapping[str, str]) -> None:
    """The session would do it too, but then one could not tell which of the two takes its time."""
    from pyspark import SparkConf, SparkContext

    if SparkContext._active_spark_context is None:
        SparkContext._ensure_initialized(conf=SparkConf().setAll([*settings.items()]))


def _configured(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession.Builder:
    for setting, value in settings.items():
        builder = builder.config(setting, value)
    return builder


def _find_server(remote: str) -> None:
    """Raise when nobody listens there, which Spark's client would try again for ten minutes without a word."""
    address = urlsplit(remote)
    try:
        place = (address.hostname or "", address.port or CONNECT_PORT)
        socket.create_connection(place, CONNECT_PATIENCE_S).close()
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"there is no Spark Connect server at {remote} ({error}); start one, or give its address as sc://HOST:PORT"
        ) from None

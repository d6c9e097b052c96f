"""A Spark cluster of processes, from nothing but the pip package: a master, two workers, and a Spark Connect server."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from driver import wait_until
from drivers import TOO_BUSY

from pyspark_zurau.spark.class_archive import with_classes_ready
from pyspark_zurau.spark.home import quick_home
from pyspark_zurau.spark.java import cache_directory, find_java_home

#: A home whose Java has Spark's classes ready, and whose Python is this one.
HOME = quick_home(cache_directory())
ATTEMPTS = 4
CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
PATIENCE_S = 120


def small_jvm() -> str:
    """Options for a Java that starts quickly."""
    return with_classes_ready("-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def run_patiently(command: Sequence[str], **how: Any) -> subprocess.CompletedProcess[str]:
    """Again, if the machine was too busy for Spark, whose patience with Python cannot be set."""
    for _ in range(ATTEMPTS):
        done = subprocess.run(
            list(command), env=environment(), capture_output=True, text=True, timeout=900, check=False, **how
        )
        if done.returncode == 0 or TOO_BUSY not in done.stdout + done.stderr:
            break
    return done


def environment() -> dict[str, str]:
    """What a machine of a cluster needs: Java, and a Python that has this package."""
    java_home = find_java_home()
    java = {"JAVA_HOME": str(java_home)} if java_home else {}
    small = {"SPARK_DAEMON_MEMORY": "512m", "SPARK_DAEMON_JAVA_OPTS": small_jvm()}
    # Tests may run from a source tree that is on the path and not installed.
    found = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return os.environ | java | small | found | {"SPARK_HOME": str(HOME), "PYSPARK_PYTHON": sys.executable}


@contextmanager
def running(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            list(command), env=environment(), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


def said(log: Path, pattern: str, process: subprocess.Popen[bytes]) -> str:
    """What the pattern finds in a log, once it is there."""

    def look() -> re.Match[str] | None:
        assert process.poll() is None, f"it has stopped:\n{log.read_text()[-4000:]}"
        return re.search(pattern, log.read_text())

    wait_until(f"{pattern} in {log.name}", lambda: look() is not None, PATIENCE_S)
    found = look()
    assert found is not None
    return found.group(1)


@contextmanager
def standalone_cluster(directory: Path, worker_count: int = 2) -> Iterator[str]:
    """The address of the master of a cluster whose workers have one core each."""
    spark_class = str(HOME / "bin" / "spark-class")
    place = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    with ExitStack() as processes:
        log = directory / "master.log"
        master = processes.enter_context(running([spark_class, "org.apache.spark.deploy.master.Master", *place], log))
        address = said(log, r"Starting Spark master at (spark://\S+)", master)
        for number in range(worker_count):
            log = directory / f"worker-{number}.log"
            size = ("--cores", "1", "--memory", "600m", "--work-dir", str(directory / f"work-{number}"))
            command = [spark_class, "org.apache.spark.deploy.worker.Worker", *place, *size, address]
            worker = processes.enter_context(running(command, log))
            said(log, r"(Successfully registered) with master", worker)
        yield address


@contextmanager
def connect_server(directory: Path, master: str) -> Iterator[str]:
    """The address of a Spark Connect server that works on that master."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": small_jvm(),
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": small_jvm(),
        "spark.ui.enabled": "false",
    }
    options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    command = [str(HOME / "bin" / "spark-submit"), "--master", master, "--class", CONNECT, *options, "spark-internal"]
    with running(command, directory / "connect.log") as server:

        def listens() -> bool:
            assert server.poll() is None, f"it has stopped:\n{(directory / 'connect.log').read_text()[-4000:]}"
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        wait_until("the Spark Connect server listens", listens, PATIENCE_S)
        yield f"sc://127.0.0.1:{port}"

"""A process that keeps Spark running, so that others need not start it: `zurau pipeline host`.

Java and Spark take most of the time in which a small pipeline starts. A host has both up. Whoever wants a session, a
*guest*, connects to its socket, and is told the port and the secret of a gateway of its own into the host's Java, and
the name of a Spark session of its own there. From then on it is a driver like any other, in its own process: with its
own directory, Python code and signals. When its connection ends, however it ends, the host stops its queries.

The socket is a file that only its user can open.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from zurau.errors import ZurauError

logger = logging.getLogger(__name__)

FILE = "host.sock"
ANSWER_BYTES_MAX = 65536
CONNECT_PATIENCE_S = 5.0
#: Under this name and an id the Java process keeps what belongs to a guest: its session, and its locks.
PROPERTY = "zurau.host."


class NoHost(ZurauError):
    """There is no host to run on, or not one for us."""


def socket_file(state: Path) -> Path:
    return state / FILE


class Host:
    """Answers guests until it is closed. `spark` is the session that keeps everything alive."""

    def __init__(self, spark: SparkSession, file: Path) -> None:
        self._spark = spark
        self._java: Any = spark._jvm
        self._file = file
        self._guests: set[socket.socket] = set()
        # Only one at a time asks Java for things that are not a guest's own.
        self._asking = threading.Lock()
        file.parent.mkdir(parents=True, exist_ok=True)
        if _is_answering(file):
            raise ZurauError(f"a host is running already at {file}; stop it first, or use it with --host")
        file.unlink(missing_ok=True)
        self._server = socket.socket(socket.AF_UNIX)
        before = os.umask(0o177)
        try:
            self._server.bind(str(file))
        finally:
            os.umask(before)
        self._server.listen()

    @property
    def guest_count(self) -> int:
        return len(self._guests)

    def serve(self) -> None:
        """Until `close` is called by another thread, or a signal raises."""
        with contextlib.suppress(OSError):
            while True:
                guest, _ = self._server.accept()
                self._guests.add(guest)
                threading.Thread(target=self._entertain, args=(guest,), daemon=True).start()

    def close(self) -> None:
        self._file.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for guest in list(self._guests):
            with contextlib.suppress(OSError):
                guest.shutdown(socket.SHUT_RDWR)

    def _entertain(self, guest: socket.socket) -> None:
        name = uuid.uuid4().hex
        with guest:
            with self._asking:
                server, session = self._make_room(name)
            try:
                answer = {
                    "port": server.getListeningPort(),
                    "secret": server.secret(),
                    "name": name,
                    "python": sys.executable,
                    "pid": os.getpid(),
                    "page": self._spark.sparkContext.uiWebUrl,
                }
                with contextlib.suppress(OSError):
                    guest.sendall(json.dumps(answer).encode() + b"\n")
                    # Nothing more is said; the end of the connection is the end of the visit.
                    guest.recv(1)
            finally:
                self._guests.discard(guest)
                with self._asking:
                    self._clean_up(name, server, session)

    def _make_room(self, name: str) -> tuple[Any, Any]:
        server = self._java.org.apache.spark.api.python.Py4JServer(self._spark.sparkContext._jsc.sc().getConf())
        server.start()
        session = self._spark._jsparkSession.newSession()
        self._properties().put(PROPERTY + name, session)
        return server, session

    def _clean_up(self, name: str, server: Any, session: Any) -> None:
        for query in session.streams().active():
            query.stop()
        server.shutdown()
        properties = self._properties()
        properties.remove(PROPERTY + name)
        lock = properties.remove(PROPERTY + name + ".lock")
        if lock is not None:
            lock.close()

    def _properties(self) -> Any:
        return self._java.java.lang.System.getProperties()


@contextmanager
def visit(
    file: Path, settings: Mapping[str, str], on_phase: Callable[[str], None] = lambda _: None
) -> Iterator[SparkSession]:
    """A session of the host at this socket, for as long as the block runs. Raises `NoHost`."""
    on_phase("host")
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(CONNECT_PATIENCE_S)
    try:
        connection.connect(str(file))
    except OSError:
        connection.close()
        raise NoHost(f"no host is running at {file}; start one with `zurau pipeline host`") from None
    with connection:
        answer = _read_answer(connection)
        if answer["python"] != sys.executable:
            raise NoHost(
                f"the host (process {answer['pid']}) runs with {answer['python']} and this is {sys.executable}; start"
                " one from here"
            )
        on_phase("session")
        yield _attach(answer, settings)


def keep_with_session(spark: SparkSession, channel: Any) -> bool:
    """Have the host close a Java file lock when the visit is over, even if this process is killed.

    False where the session is no host's.
    """
    name = spark.conf.get(f"spark.{PROPERTY}name", None)
    if name:
        java: Any = spark._jvm
        java.java.lang.System.getProperties().put(f"{PROPERTY}{name}.lock", channel)
    return bool(name)


def _attach(answer: Mapping[str, Any], settings: Mapping[str, str]) -> SparkSession:
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_GATEWAY_PORT"] = str(answer["port"])
    os.environ["PYSPARK_GATEWAY_SECRET"] = answer["secret"]
    try:
        gateway = launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
    java = gateway.jvm
    session = java.java.lang.System.getProperties().get(PROPERTY + answer["name"])
    context = java.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(session.sparkContext())
    configuration = SparkConf(_jvm=java, _jconf=context.getConf())
    spark = SparkSession(SparkContext(gateway=gateway, jsc=context, conf=configuration), session)
    spark.conf.set(f"spark.{PROPERTY}name", answer["name"])
    for name, value in settings.items():
        try:
            spark.conf.set(name, value)
        except (PySparkException, Py4JError):
            if spark.conf.get(name, None) != value:
                logger.warning("%s is fixed when Spark starts; the host keeps its own", name)
    return spark


def _read_answer(connection: socket.socket) -> dict[str, Any]:
    read = b""
    try:
        while not read.endswith(b"\n") and len(read) < ANSWER_BYTES_MAX and (part := connection.recv(4096)):
            read += part
        answer: dict[str, Any] = json.loads(read)
    except (OSError, ValueError) as error:
        raise NoHost(f"the host does not answer ({error}); is it stopping?") from None
    return answer


def _is_answering(file: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(file))
        except OSError:
            return False
    return True

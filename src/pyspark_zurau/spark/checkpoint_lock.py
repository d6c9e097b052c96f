"""One driver for each checkpoint directory: a second one would write the same batches again, and both would be wrong.

The lock is the kernel's, on a file in the directory, so it ends with the process that holds it, however that ends. A
killed Python driver can leave its Java process running for a moment, and that one may still be finishing a batch;
`CheckpointLock.share_with_java` gives it a lock of its own, which the next driver waits for.

Works for directories, local or of a file system that has locks. Checkpoints in object stores have none: there is
nothing to hold on to, and whoever starts a second driver there has to know better.

    with CheckpointLock("checkpoints/counts") as lock:
        spark = session()
        lock.share_with_java(spark)
        ...
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from pyspark_zurau.spark.host import keep_with_session
from zurau.errors import ZurauError

FILE = "zurau.lock"
JAVA_FILE = "zurau-java.lock"
#: How long a Java process without its driver may take to end.
JAVA_PATIENCE_S = 60.0


class CheckpointBusy(ZurauError):
    """Somebody else is using the checkpoint."""


class CheckpointLock:
    def __init__(self, directory: str | Path) -> None:
        self._directory = local_path(str(directory))
        self._file: int | None = None
        self._java: Any = None

    def acquire(self) -> None:
        if self._directory is None:
            return
        self._directory.mkdir(parents=True, exist_ok=True)
        file = os.open(self._directory / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            raise CheckpointBusy(
                f"the checkpoint {self._directory} is in use by {_read_holder(self._directory)}; stop that one first,"
                " or choose another checkpoint"
            ) from None
        os.ftruncate(file, 0)
        os.write(file, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode())
        self._file = file

    def share_with_java(self, spark: SparkSession) -> None:
        """Let Spark's Java process hold a lock too. It is left out where Java runs elsewhere (Spark Connect)."""
        gateway = getattr(spark, "_jvm", None)
        if gateway is None or self._directory is None:
            return
        channel = gateway.java.io.RandomAccessFile(str(self._directory / JAVA_FILE), "rw").getChannel()
        deadline_s = time.monotonic() + JAVA_PATIENCE_S
        while not _try_lock(channel):
            if time.monotonic() > deadline_s:
                raise CheckpointBusy(
                    f"the checkpoint {self._directory} is in use by the Java process of a driver that has ended; wait"
                    " for it, or end it"
                )
            time.sleep(0.2)
        if not keep_with_session(spark, channel):
            self._java = channel

    def release(self) -> None:
        if self._java is not None:
            self._java.close()
            self._java = None
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def holder(directory: str | Path) -> int | None:
    """The process that holds the lock now; None when nobody does. 0 when it is on another machine."""
    path = local_path(str(directory))
    if path is None or not (path / FILE).is_file():
        return None
    file = os.open(path / FILE, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        found = _holder(path)
        return int(found.get("pid", 0)) if found.get("host") == socket.gethostname() else 0
    finally:
        os.close(file)
    return None


def local_path(location: str) -> Path | None:
    """A directory that this process can reach; None for one that only Spark can."""
    scheme, colon, rest = location.partition("://")
    if not colon:
        return Path(location.removeprefix("file:")).absolute()
    return Path(rest).absolute() if scheme == "file" else None


def _try_lock(channel: Any) -> bool:
    try:
        return channel.tryLock() is not None
    except Py4JJavaError as error:
        # Held in the same Java process, which is a host's: by a driver whose end it has not seen yet.
        if error.java_exception.getClass().getSimpleName() == "OverlappingFileLockException":
            return False
        raise


def _holder(directory: Path) -> dict[str, Any]:
    try:
        found = json.loads((directory / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _read_holder(directory: Path) -> str:
    found = _holder(directory)
    return f"process {found.get('pid', '(unknown)')} on {found.get('host', 'this machine')}"

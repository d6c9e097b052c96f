"""A broker in a thread of the calling process, with a loop of its own."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from zurau.node.run import Node
from zurau.node.settings import load

#: Tests want to see failures, not to wait for a disk: what a crash of the whole machine would take is not tested here.
TEST_DEFAULTS = {"kafka": "127.0.0.1:0", "flush": "os", "log_level": "warning", "session_timeout_min_ms": 100}


class Broker:
    """A real broker, ready when the `with` block begins and gone when it ends.

    Settings are those of `zurau serve`, by the same names: `Broker(num_partitions=4, max_message_bytes=1024)`.
    A setting that does not exist, or a wrong value, raises `SettingsError` at once. Without `dir` its data lives in a
    temporary directory and is removed at the end.
    """

    def __init__(self, **settings: Any) -> None:
        Node(load(TEST_DEFAULTS | settings))  # opens nothing; a wrong setting is noticed here, where it is written
        self._settings = settings
        self._has_own_directory = "dir" not in settings
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._thread: threading.Thread | None = None
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._stop_asked: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.host = "127.0.0.1"
        self.port = 0

    @property
    def bootstrap(self) -> str:
        """What clients call `bootstrap.servers`."""
        return f"{self.host}:{self.port}"

    @property
    def directory(self) -> Path:
        """Where its data lives, once it was started."""
        if "dir" not in self._settings:
            raise RuntimeError("a broker without `dir` gets its directory when it starts: call start() first")
        return Path(self._settings["dir"])

    def start(self) -> Self:
        if self._thread is not None:
            raise RuntimeError("this broker is running; make another Broker() for a second one")
        if self._has_own_directory:
            self._temporary = tempfile.TemporaryDirectory(prefix="zurau-")
            self._settings["dir"] = self._temporary.name
        self._ready.clear()
        self._thread = threading.Thread(target=self._run, name="zurau-broker", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            self.stop()
            raise failure
        return self

    def stop(self) -> None:
        """Stop in good order; what is stopped already stays so."""
        if self._loop is not None and self._stop_asked is not None:
            with suppress(RuntimeError):  # the loop has closed: it could not start, or ended by itself
                self._loop.call_soon_threadsafe(self._stop_asked.set)
        if self._thread is not None:
            self._thread.join()
        self._loop = self._stop_asked = self._thread = None
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits for the start
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop_asked = asyncio.Event()
        node = Node(load(TEST_DEFAULTS | self._settings))
        self.host, self.port = await node.start()
        self._ready.set()
        await self._stop_asked.wait()
        await node.stop()

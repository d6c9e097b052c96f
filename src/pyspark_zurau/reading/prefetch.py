"""Works ahead: while Spark takes one batch, the next ones are fetched and decoded, in a thread.

Spark reads a task's batches from a socket that holds less than one of them, so without this the two would take turns.
Both sides let go of Python's lock: one while it decodes, the other while it writes to the socket.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

#: How many are kept ready.
DEPTH = 4


class _End:
    """Comes after the last item, with what went wrong, if anything did."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


class _Worker(Generic[T]):
    def __init__(self, items: Iterator[T]) -> None:
        self._items = items
        self._ready: queue.Queue[T | _End] = queue.Queue(DEPTH)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="zurau-ahead", daemon=True)
        self._thread.start()

    def take(self) -> T | _End:
        return self._ready.get()

    def stop(self) -> None:
        """Returns when the thread has ended, and with it whatever the items held open."""
        self._stopping.set()
        while self._thread.is_alive():
            try:
                self._ready.get(timeout=0.05)  # it may be waiting for room
            except queue.Empty:
                continue
        self._thread.join()

    def _work(self) -> None:
        error: BaseException | None = None
        try:
            for item in self._items:
                if self._stopping.is_set():
                    break
                self._ready.put(item)
        except BaseException as failure:  # noqa: BLE001 - passed on to whoever takes the items
            error = failure
        finally:
            close = getattr(self._items, "close", None)
            if close is not None:
                close()
        self._ready.put(_End(error))


def prefetch(items: Iterator[T]) -> Iterator[T]:
    """The same items, made by another thread. Closing this closes them."""
    worker = _Worker(items)
    try:
        while True:
            item = worker.take()
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
            yield item
    finally:
        worker.stop()

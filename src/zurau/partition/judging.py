"""Where batches are examined that take longer than a loop may wait, and in which order they come back.

- Of a partition's batches one is examined at a time, and whatever comes for that partition meanwhile waits behind it:
  batches are written in the order in which they came, as producers with sequence numbers need it.
- Of all partitions' batches two are examined at a time, each in a worker: one in the lane of those that unpack to a
  few megabytes, and one in the lane of those that unpack to much more. Somebody who sends bombs holds up his own kind,
  and the workers that are left read cold data and compact.
- What waits is bounded in bytes. Past that a producer is told to come again, which it does by itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

from zurau.errors import Refused
from zurau.partition.admission import Admission
from zurau.pending import Pending
from zurau.ports import Workers
from zurau.records.batch import HEADER_BYTES, BatchHeader
from zurau.records.compression import TooLarge, likely_bytes
from zurau.records.record import UNPACKED_BYTES_MAX
from zurau.settings import MIB
from zurau.wire.kafka.error_codes import ErrorCode

T = TypeVar("T")

#: What unpacks to no more goes through the first lane: some ten milliseconds.
FIRST_LANE_BYTES = 8 * MIB
#: Batches that wait, of all partitions together.
WAITING_BYTES_MAX = 128 * MIB


class Lane:
    """Work for a worker, one piece at a time, in the order in which it came."""

    __slots__ = ("_closed", "_is_busy", "_waiting", "_workers")

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._waiting: deque[tuple[Callable[[], Any], Pending[Any]]] = deque()
        self._is_busy = False
        self._closed: Callable[[], Refused] | None = None

    def run(self, work: Callable[[], T]) -> Pending[T]:
        outcome: Pending[T] = Pending()
        if self._closed is not None:
            outcome.fail(self._closed())
            return outcome
        self._waiting.append((work, outcome))
        self._next()
        return outcome

    def close(self, error: Callable[[], Refused]) -> None:
        """Begin nothing more, and tell those who wait. Whoever is at work is waited for by nobody."""
        self._closed = error
        while self._waiting:
            self._waiting.popleft()[1].fail(error())

    def _next(self) -> None:
        while self._waiting and not self._is_busy:
            work, outcome = self._waiting.popleft()
            if not outcome.is_done:  # or else whoever asked has gone
                self._is_busy = True
                self._workers.run(work).then(partial(self._done, outcome))

    def _done(self, outcome: Pending[Any], worked: Pending[Any]) -> None:
        self._is_busy = False
        self._next()
        if worked.error is not None:
            outcome.fail(worked.error)
        else:
            outcome.resolve(worked.result())


class Judges:
    """The lanes of a broker, and how much waits in front of them."""

    __slots__ = ("first", "second", "waiting_bytes")

    def __init__(self, workers: Workers) -> None:
        self.first = Lane(workers)
        self.second = Lane(workers)
        self.waiting_bytes = 0

    def close(self, error: Callable[[], Refused]) -> None:
        self.first.close(error)
        self.second.close(error)


class _Waiting(NamedTuple):
    batch: memoryview
    header: BatchHeader
    outcome: Pending[Any]


class Line:
    """The batches of one partition that are not examined yet, in the order in which they came.

    `rules` gives those of the moment, and the moment; `write` takes a batch that has passed, its header as it came and
    the moment, and what it returns is the answer.
    """

    __slots__ = ("_is_under_way", "_judges", "_rules", "_waiting", "_write")

    def __init__(
        self,
        judges: Judges,
        rules: Callable[[], tuple[Admission, int]],
        write: Callable[[memoryview, BatchHeader, int], Any],
    ) -> None:
        self._judges = judges
        self._rules = rules
        self._write = write
        self._waiting: deque[_Waiting] = deque()
        #: Somebody's turn has come: whoever joins now is seen to when that is over.
        self._is_under_way = False

    def __len__(self) -> int:
        return len(self._waiting)

    def join(self, batch: memoryview, header: BatchHeader) -> Pending[Any]:
        """Wait for one's turn, then be examined and written. Raises `Refused` when too much waits already."""
        judges = self._judges
        if judges.waiting_bytes and judges.waiting_bytes + len(batch) > WAITING_BYTES_MAX:
            raise Refused(ErrorCode.NOT_ENOUGH_REPLICAS, "too many batches wait to be unpacked; send it again later")
        judges.waiting_bytes += len(batch)
        waiting = _Waiting(batch, header, Pending())
        self._waiting.append(waiting)
        if not self._is_under_way:
            self._is_under_way = True
            self._examine(waiting)
        return waiting.outcome

    def close(self, error: Callable[[], Refused]) -> None:
        """Nobody's turn comes any more. What is being examined is not written."""
        while self._waiting:
            waiting = self._waiting.popleft()
            self._judges.waiting_bytes -= len(waiting.batch)
            waiting.outcome.fail(error())

    def _go_on(self) -> None:
        """Do what can be done at once, up to the first that needs a worker."""
        while self._waiting:
            waiting = self._waiting[0]
            admission, now_ms = self._rules()
            if not admission.is_quick(waiting.batch, waiting.header):
                self._examine(waiting)
                return
            try:
                examined = admission.examine(*waiting[:2], now_ms, admission.quick_limit(waiting.header))
            except TooLarge:
                self._examine(waiting)
                return
            except Refused as refused:
                self._leave(waiting).fail(refused)
            else:
                self._enter(waiting, examined)
        self._is_under_way = False

    def _examine(self, waiting: _Waiting) -> None:
        if likely_bytes(waiting.batch[HEADER_BYTES:], waiting.header.compression) <= FIRST_LANE_BYTES:
            self._examine_in(self._judges.first, waiting, FIRST_LANE_BYTES)
        else:
            self._examine_in(self._judges.second, waiting, UNPACKED_BYTES_MAX)

    def _examine_in(self, lane: Lane, waiting: _Waiting, limit_bytes: int) -> None:
        admission, now_ms = self._rules()
        work = partial(admission.examine, waiting.batch, waiting.header, now_ms, limit_bytes)
        lane.run(work).then(partial(self._examined, waiting))

    def _examined(self, waiting: _Waiting, outcome: Pending[memoryview]) -> None:
        if not self._waiting or self._waiting[0] is not waiting:
            return  # the partition was closed meanwhile
        if isinstance(outcome.error, TooLarge):
            self._examine_in(self._judges.second, waiting, UNPACKED_BYTES_MAX)
            return
        if outcome.error is not None:
            self._leave(waiting).fail(outcome.error)
        else:
            self._enter(waiting, outcome.result())
        self._go_on()

    def _enter(self, waiting: _Waiting, examined: memoryview) -> None:
        try:
            appended = self._write(examined, waiting.header, self._rules()[1])
        except Refused as refused:
            self._leave(waiting).fail(refused)
        else:
            self._leave(waiting).resolve(appended)

    def _leave(self, waiting: _Waiting) -> Pending[Any]:
        assert self._waiting[0] is waiting, "batches leave in the order in which they came"
        self._waiting.popleft()
        self._judges.waiting_bytes -= len(waiting.batch)
        return waiting.outcome

"""Batches whose validation takes longer than a loop may wait, and in which order they are written.

- Of a client's batches for a partition one is validated at a time, and whatever it sends for that partition meanwhile
  waits behind it: batches of a client are written in the order in which they came, as sequence numbers need it.
  Another client's batches do not wait for them.
- How many are validated at a time in all partitions, and who is next, see `unpacking.py`.
- What waits is bounded in bytes. Past that a producer that has a batch waiting is told to come again, which it does by
  itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, NamedTuple

from zurau.errors import Refused
from zurau.partition.admission import Admission
from zurau.partition.unpacking import Unpacking
from zurau.pending import Pending
from zurau.records.batch import HEADER_BYTES, BatchHeader
from zurau.records.compression import TooLarge, likely_bytes
from zurau.settings import MIB
from zurau.wire.kafka.error_codes import ErrorCode

#: Batches that wait, of all partitions together.
WAITING_BYTES_MAX = 128 * MIB


class RecordValidator:
    """What the partitions of a broker share: who unpacks, and how many bytes wait for it."""

    __slots__ = ("unpacking", "waiting_bytes")

    def __init__(self, unpacking: Unpacking) -> None:
        self.unpacking = unpacking
        self.waiting_bytes = 0


class _Waiting(NamedTuple):
    client: Hashable
    batch: memoryview
    header: BatchHeader
    outcome: Pending[Any]


class ValidationQueue:
    """The batches of one partition that are not validated yet, for each client in the order in which they came.

    `rules` gives those of the moment, and the moment; `write` takes a batch that has passed, its header and the
    moment, and what it returns is the answer.
    """

    __slots__ = ("_clients", "_rules", "_under_way", "_validator", "_write")

    def __init__(
        self,
        validator: RecordValidator,
        rules: Callable[[], tuple[Admission, int]],
        write: Callable[[memoryview, BatchHeader, int], Any],
    ) -> None:
        self._validator = validator
        self._rules = rules
        self._write = write
        self._clients: dict[Hashable, deque[_Waiting]] = {}
        #: Those of whom one is seen to: whoever joins now is seen to when that is over.
        self._under_way: set[Hashable] = set()

    def has_waiting(self, client: Hashable) -> bool:
        """Whether a batch of this client waits, so that its next one has to."""
        return bool(self._clients) and client in self._clients

    def join(self, batch: memoryview, header: BatchHeader, client: Hashable) -> Pending[Any]:
        """Wait for one's turn, then be validated and written. Raises `Refused` when too much waits already."""
        validator = self._validator
        if client in self._clients and validator.waiting_bytes + len(batch) > WAITING_BYTES_MAX:
            raise Refused(ErrorCode.NOT_ENOUGH_REPLICAS, "too many batches wait to be unpacked; send it again later")
        validator.waiting_bytes += len(batch)
        waiting = _Waiting(client, batch, header, Pending())
        self._clients.setdefault(client, deque()).append(waiting)
        if client not in self._under_way:
            self._under_way.add(client)
            self._validate(waiting)
        return waiting.outcome

    def close(self, error: Callable[[], Refused]) -> None:
        """Nobody's turn comes any more. What is being validated is not written."""
        clients, self._clients = self._clients, {}
        for queue in clients.values():
            for waiting in queue:
                self._validator.waiting_bytes -= len(waiting.batch)
                waiting.outcome.fail(error())

    def _go_on(self, client: Hashable) -> None:
        """Do what can be done at once, up to the first that needs a worker."""
        while client in self._clients:
            waiting = self._clients[client][0]
            admission, now_ms = self._rules()
            if not admission.is_quick(waiting.batch, waiting.header):
                self._validate(waiting)
                return
            try:
                examined = admission.examine(waiting.batch, waiting.header, now_ms)
            except TooLarge:
                self._validate(waiting)
                return
            except Refused as refused:
                self._leave(waiting).fail(refused)
            else:
                self._enter(waiting, *examined)
        self._under_way.discard(client)

    def _validate(self, waiting: _Waiting) -> None:
        admission, now_ms = self._rules()
        likely = likely_bytes(waiting.batch[HEADER_BYTES:], waiting.header.compression)
        work = partial(admission.examine, waiting.batch, waiting.header, now_ms)
        self._validator.unpacking.run(waiting.client, work, likely).then(partial(self._validated, waiting))

    def _validated(self, waiting: _Waiting, outcome: Pending[tuple[memoryview, BatchHeader]]) -> None:
        queue = self._clients.get(waiting.client)
        if queue is None or queue[0] is not waiting:
            return  # the partition was closed meanwhile
        if outcome.error is not None:
            self._leave(waiting).fail(outcome.error)
        else:
            self._enter(waiting, *outcome.result())
        self._go_on(waiting.client)

    def _enter(self, waiting: _Waiting, batch: memoryview, header: BatchHeader) -> None:
        try:
            appended = self._write(batch, header, self._rules()[1])
        except Refused as refused:
            self._leave(waiting).fail(refused)
        else:
            self._leave(waiting).resolve(appended)

    def _leave(self, waiting: _Waiting) -> Pending[Any]:
        queue = self._clients[waiting.client]
        assert queue[0] is waiting, "batches leave in the order in which they came"
        queue.popleft()
        if not queue:
            del self._clients[waiting.client]
        self._validator.waiting_bytes -= len(waiting.batch)
        return waiting.outcome

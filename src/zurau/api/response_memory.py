"""Memory for answers that their clients have not taken yet, shared by all connections.

An answer takes memory from when its bytes are read until the client's socket has taken them, and a client that does
not read holds it for ever. So whoever is about to read asks first how much it may:

- while much is free, as much as it wants, up to a quarter of what is free: whoever comes next finds room too;
- when three quarters are used, a small answer; nearly all that clients wait for fit into one;
- when all is used, it waits its turn until others have taken their answers, or were closed because they do not.

A client of a broker with little room left gets smaller answers, which Kafka's protocol allows at any time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from zurau.broker.waiting import with_timeout
from zurau.counters import Counters
from zurau.pending import Pending
from zurau.ports import Clock
from zurau.settings import INT64_MAX, KIB, SECOND_MS

#: What may be read when memory is short. A single larger batch is read all the same, or its consumer would be stuck.
SMALL_BYTES = 64 * KIB
#: A fetch waits this long for room even if the client would not wait for records.
WAIT_MS_MIN = 1000
#: A large answer waits this long for room: who does not take an answer is closed within half of it.
GROW_WITHIN_MS = 20 * SECOND_MS


class ResponseMemory:
    """The budget of a whole broker."""

    __slots__ = (
        "_counters", "_growing", "_is_calling", "_is_making", "_line", "_makers", "limit_bytes", "reserve_bytes",
        "when_short",
    )  # fmt: skip

    def __init__(self, limit_bytes: int, counters: Counters) -> None:
        self.limit_bytes = limit_bytes
        #: Kept for small answers.
        self.reserve_bytes = limit_bytes // 4
        #: Called when memory gets short: somebody should look who does not take their answers.
        self.when_short: Callable[[], None] | None = None
        self._counters = counters
        self._line: deque[Pending[None]] = deque()
        self._is_calling = False
        #: A large answer of unknown size is being made; who else makes one stands in line.
        self._is_making = False
        self._makers: deque[Pending[None]] = deque()
        #: It waits for room.
        self._growing: Pending[None] | None = None

    @property
    def held_bytes(self) -> int:
        return self._counters.response_bytes

    @property
    def free_bytes(self) -> int:
        return self.limit_bytes - self._counters.response_bytes

    @property
    def is_short(self) -> bool:
        """Answers are made smaller than clients ask for."""
        return self.free_bytes < self.reserve_bytes or bool(self._line)

    def room(self) -> int:
        """How much an answer may take that is read now; 0 when it has to wait."""
        free = self.limit_bytes - self._counters.response_bytes
        if free <= 0 or self._line:
            return 0
        large = (free - self.reserve_bytes) // 4
        return max(SMALL_BYTES, large)

    def changed(self, change: int) -> None:
        self._counters.response_bytes += change
        if change < 0:
            if self._line:
                self.call_next()
            if self._growing is not None and self.free_bytes >= self.reserve_bytes:
                self._growing.resolve(None)
        elif self.free_bytes < self.reserve_bytes and self.when_short is not None:
            self.when_short()

    async def wait_for_room(self, wait_ms: float, clock: Clock) -> int:
        """As `room`, after waiting for one's turn; 0 when the time is over."""
        self._counters.fetches_delayed += 1
        deadline_ms = clock.monotonic_ms() + max(wait_ms, WAIT_MS_MIN)
        while True:
            turn: Pending[None] = Pending()
            self._line.append(turn)
            if self.when_short is not None:
                self.when_short()
            try:
                in_time = await with_timeout(deadline_ms - clock.monotonic_ms(), turn, clock)
            finally:
                if not turn.is_done:
                    self._line.remove(turn)
            free = self.free_bytes
            if free > 0 or not in_time:
                return max(SMALL_BYTES, (free - self.reserve_bytes) // 4) if free > 0 else 0

    async def turn_to_make(self) -> None:
        """Return when this answer may get large; then call `made`. How large it gets is known only when it is made, so
        one gets large after the other."""
        if self._is_making:
            await self._stand_in_line()
        self._is_making = True

    async def may_grow(self, clock: Clock) -> bool:
        """Whether the large answer that is being made may go on: what is kept for small ones is free, or gets free."""
        if self.free_bytes < self.reserve_bytes:
            self._growing = Pending()
            try:
                await with_timeout(GROW_WITHIN_MS, self._growing, clock)
            finally:
                self._growing = None
        return self.free_bytes >= self.reserve_bytes

    async def _stand_in_line(self) -> None:
        turn: Pending[None] = Pending()
        self._makers.append(turn)
        has_come = False
        try:
            await turn
            has_come = True
        finally:
            if not turn.is_done:
                self._makers.remove(turn)
            elif not has_come:  # its client left just when its turn came
                self.made()

    def made(self) -> None:
        if self._makers:
            self._makers.popleft().resolve(None)  # who is next makes its own: nobody can come in between
        else:
            self._is_making = False

    def call_next(self) -> None:
        """Call as many from the line as there may be room for; who finds none after all waits again."""
        if self._is_calling:
            return  # whoever was called gave something back
        self._is_calling = True
        count = self.free_bytes // SMALL_BYTES
        try:
            while self._line and count > 0:
                count -= 1
                self._line.popleft().resolve(None)
        finally:
            self._is_calling = False


class ResponseShare:
    """What the answers of one connection hold."""

    __slots__ = ("held_bytes", "memory")

    def __init__(self, memory: ResponseMemory) -> None:
        self.memory = memory
        self.held_bytes = 0

    def take(self, count: int) -> None:
        """Bytes were read, or (negative) dropped."""
        self.held_bytes += count
        self.memory.changed(count)

    def settle(self, held_bytes: int) -> None:
        """What is still held after all."""
        change = held_bytes - self.held_bytes
        if change:
            self.held_bytes = held_bytes
            self.memory.changed(change)


def unlimited() -> ResponseShare:
    """For worlds without sockets."""
    return ResponseShare(ResponseMemory(INT64_MAX, Counters()))

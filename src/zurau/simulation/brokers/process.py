"""One run of a broker's process, and the ports it is given: all of them end with it.

Whatever it has put down for later, what its threads are in the middle of, its open files: after a kill or a power
failure none of it happens. Its loop takes no time; its threads do, and are held at every operation of the disk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from zurau.errors import raise_if_broken
from zurau.partition.group_flush import Flush, flush_together
from zurau.pending import Pending, done
from zurau.ports import AfterAll, World
from zurau.simulation.brokers.fibers import Ended, Fiber, Work
from zurau.simulation.brokers.mount import MountedDisk
from zurau.simulation.brokers.observer import ReplicaObserver
from zurau.simulation.world import BEGINNING_MS, SeededRandomness

if TYPE_CHECKING:
    from zurau.simulation.brokers.node import SimulatedNode

T = TypeVar("T")
Job = tuple[Callable[[], Any], Pending[Any]]

#: How often logs that wait for a flush at the same time are flushed together: two are enough here.
TOGETHER_SHARE = 0.5


class Process:
    """What `node.start()` makes. Nobody touches the broker that runs in it but from its own events."""

    def __init__(self, node: SimulatedNode, number: int) -> None:
        self.node = node
        self.agenda = node.agenda
        self.number = number
        self.is_over = False
        self.chance = Random(f"process {node.swarm.seed} {node.broker_id} {number}")
        #: Its listener and loop have stopped: the threads finish what they have, and that is all.
        self.is_stopping = False
        #: Blocking work under way, and the one piece of it that runs right now; None while the loop does.
        self.fibers: dict[Fiber, None] = {}
        self.running: Fiber | None = None
        self._held_ms = 0.0
        #: What came up while it was paused, in order: bytes on a stream among others.
        self._paused: list[Callable[[], None]] = []
        #: How much of the work of threads is held in its middle; the rest is done in one go, early or late. To change
        #: from thread to thread is what takes longest in a simulation.
        self._held_share = self.chance.choice([0.1, 0.3, 1.0])
        self.observer = ReplicaObserver(node)
        self.workers = ProcessWorkers(self, self.chance.choice([1, 2, 4]))
        self.flusher = ProcessFlusher(self)

    def world(self) -> World:
        """The ports, for the broker of this process."""
        node = self.node
        randomness = SeededRandomness(self.chance.getrandbits(32))
        return World(
            disk=MountedDisk(node.disk, self),
            clock=ProcessClock(self),
            workers=self.workers,
            background=self.workers,
            flusher=self.flusher,
            randomness=randomness,
            boot_id=node.disk.boot_id,
            turns=ProcessTurns(self),
            observer=self.observer,
            fail=self._fail,
        )

    def _fail(self, error: BaseException) -> None:
        # Not from within the broker, which carries errors on to whoever asked.
        self.agenda.after(0, partial(self.node.cluster.unexpected, f"{self.node} ends its process", error))

    # Its loop

    def after(self, delay_ms: float, act: Callable[[], None]) -> None:
        self.at(self.agenda.now_ms + delay_ms, act)

    def at(self, at_ms: float, act: Callable[[], None]) -> None:
        # Of one that is over, handlers are ended when Python collects them, which is not the same from run to run.
        if not self.is_over:
            self.agenda.at(at_ms, partial(self._act, act))

    def _act(self, act: Callable[[], None]) -> None:
        if self._waits_for_pause(partial(self._act, act)) or self.is_stopping:
            return
        self.perform(act)

    def _waits_for_pause(self, again: Callable[[], None]) -> bool:
        """Whether this does not happen now: never, if the process is over, or `again` when it is resumed."""
        if not self.is_over and (self._paused or self.node.paused_until_ms > self.agenda.now_ms):
            self._paused.append(again)
            if len(self._paused) == 1:
                self.agenda.at(self.node.paused_until_ms, self.resume)
            return True
        return self.is_over

    def resume(self) -> None:
        """What came up during a pause happens now, unless it is paused for longer."""
        if self.node.paused_until_ms > self.agenda.now_ms:
            self.agenda.at(self.node.paused_until_ms, self.resume)
            return
        paused, self._paused = self._paused, []
        for act in paused:
            act()

    def perform(self, act: Callable[[], None]) -> None:
        """One step of the loop, which may turn out to be the last."""
        try:
            act()
        except Ended:
            self.node.power_failed(self)
        else:
            self.node.stepped(self)

    # Its threads

    @property
    def is_idle(self) -> bool:
        return self.workers.is_idle and self.flusher.is_idle

    def in_thread_after(self, delay_ms: float, act: Callable[[], None]) -> None:
        """For what threads do by themselves, whatever the loop is at."""
        self.agenda.after(delay_ms, partial(self._act_in_thread, act))

    def _act_in_thread(self, act: Callable[[], None]) -> None:
        if not self._waits_for_pause(partial(self._act_in_thread, act)):
            act()

    def work(self, work: Callable[[], Any], takes_ms: float, then: Callable[[Work], None]) -> None:
        """Run blocking work in a thread; `then` is called with it when it is done. `takes_ms`: unless it is held."""
        if self.chance.random() < self._held_share:
            fiber = Fiber(work)
            self.fibers[fiber] = None
            self._go_on(fiber, then)
        else:
            early = self.chance.choice([0.0, takes_ms])
            self.in_thread_after(early, lambda: self._do_at_once(Work(work), takes_ms - early, then))

    def _do_at_once(self, whole: Work, takes_ms: float, then: Callable[[Work], None]) -> None:
        whole.run()
        if isinstance(whole.error, Ended):
            self.node.power_failed(self)
        else:
            self.in_thread_after(takes_ms, lambda: then(whole))

    def _go_on(self, fiber: Fiber, then: Callable[[Work], None]) -> None:
        if fiber.is_done or self._waits_for_pause(partial(self._go_on, fiber, then)):
            return
        self.running = fiber
        fiber.resume()
        self.running = None
        if not fiber.is_done:
            self.agenda.after(self._held_ms, partial(self._go_on, fiber, then))
            return
        del self.fibers[fiber]
        if isinstance(fiber.error, Ended):
            self.node.power_failed(self)
        else:
            then(fiber)

    def end(self) -> None:
        """The process is no more."""
        self.is_over = True
        for fiber in list(self.fibers):
            if fiber is not self.running:
                fiber.end()
        self.fibers.clear()

    # The gate of its disk

    def read(self) -> None:
        if self.is_over:
            raise Ended
        if self.running is not None:
            self._hold(self.node.read_ms(self.chance))

    def change(self, what: str) -> None:
        self._operate(what)
        if self.running is not None:
            self._hold(self.node.change_ms(self.chance))

    def flush(self, what: str) -> None:
        self._operate(what)
        if self.running is not None:
            self._hold(self.node.flush_ms(self.chance))

    def _operate(self, what: str) -> None:
        if self.is_over:
            raise Ended
        if not self.node.has_power_for(what):
            self.is_over = True
            raise Ended

    def _hold(self, duration_ms: float) -> None:
        """The thread that runs waits for the disk, and everybody else goes on."""
        if duration_ms <= 0 or self.agenda.pass_if_idle(duration_ms):
            return
        self._held_ms = duration_ms
        assert self.running is not None
        self.running.hold()


class ProcessTimer:
    __slots__ = ("_callback",)

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self._callback = None

    def fire(self) -> None:
        if self._callback is not None:
            self._callback()


class ProcessClock:
    """The node's clock: it may be wrong, jump, and run fast or slow."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._node = process.node

    def now_ms(self) -> int:
        return BEGINNING_MS + int(self._process.agenda.now_ms + self._node.wall_error_ms)

    def monotonic_ms(self) -> float:
        return self._process.agenda.now_ms * self._node.clock_rate

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> ProcessTimer:
        timer = ProcessTimer(callback)
        self._process.after(max(0.0, delay_ms) / self._node.clock_rate, timer.fire)
        return timer


class ProcessTurns:
    """Turns that are over when chance says so."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._share = process.chance.choice([0.0, 0.1, 1.0])

    def is_over(self) -> bool:
        return self._process.chance.random() < self._share

    def next(self) -> Pending[None]:
        pending: Pending[None] = Pending()
        self._process.after(0, lambda: pending.resolve(None))
        return pending


class _Reports:
    """Carries outcomes of threads to the loop, in the order in which they were found."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._last_ms = 0.0

    def add(self, outcomes: list[tuple[Work, Pending[Any]]]) -> None:
        process = self._process
        self._last_ms = max(self._last_ms, process.agenda.now_ms + process.node.wake_ms(process.chance))
        process.at(self._last_ms, partial(_deliver, outcomes))


def _deliver(outcomes: list[tuple[Work, Pending[Any]]]) -> None:
    for work, pending in outcomes:
        if work.error is None:
            pending.resolve(work.value)
        else:
            raise_if_broken(work.error)
            pending.fail(work.error)


def _nothing() -> None:
    """No work is left."""


class ProcessWorkers:
    """A few threads: each takes the next piece of work when it is free, after a while."""

    def __init__(self, process: Process, count: int) -> None:
        self._process = process
        self._count = count
        self._busy = 0
        self._jobs: deque[Job] = deque()
        self._reports = _Reports(process)

    def run(self, work: Callable[[], T]) -> Pending[T]:
        pending: Pending[T] = Pending()
        self._jobs.append((work, pending))
        self._take()
        return pending

    @property
    def is_idle(self) -> bool:
        return not self._busy and not self._jobs

    def _take(self) -> None:
        if self._jobs and self._busy < self._count:
            self._busy += 1
            self._process.in_thread_after(self._process.node.wake_ms(self._process.chance), self._begin)

    def _begin(self) -> None:
        work, pending = self._jobs.popleft() if self._jobs else (_nothing, done(None))
        if pending.is_done:  # somebody else was quicker; or whoever asked has been ended, and wants no outcome
            self._is_free()
        else:
            takes_ms = self._process.node.change_ms(self._process.chance)
            self._process.work(work, takes_ms, lambda whole: self._done(whole, pending))

    def _done(self, done_work: Work, pending: Pending[Any]) -> None:
        self._reports.add([(done_work, pending)])
        self._is_free()

    def _is_free(self) -> None:
        self._busy -= 1
        self._take()


class ProcessFlusher:
    """One thread, as `node/threads.py` has it: what was asked for while it was busy is a group, reported together,
    and groups take turns, a flush each. Or else the whole disk is flushed for those of a group that can be together."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._disk = MountedDisk(process.node.disk, process)
        self._asked: list[Flush] = []
        self._groups: deque[tuple[deque[Flush], list[tuple[Work, Pending[Any]]]]] = deque()
        self._is_busy = False
        self._reports = _Reports(process)

    def flush(
        self, work: Callable[[], None], client: Hashable = None, after_all: AfterAll | None = None
    ) -> Pending[None]:
        pending: Pending[None] = Pending()
        self._asked.append(Flush(work, after_all, pending))
        if not self._is_busy:
            self._is_busy = True
            self._process.in_thread_after(self._process.node.wake_ms(self._process.chance), self._flush_next)
        return pending

    @property
    def is_idle(self) -> bool:
        return not self._is_busy

    def _flush_next(self) -> None:
        if self._asked:
            together = [flush for flush in self._asked if flush.after_all is not None]
            if len(together) > 1 and self._process.chance.random() < TOGETHER_SHARE:
                self._asked = [flush for flush in self._asked if flush.after_all is None]
                takes_ms = self._process.node.flush_ms(self._process.chance)
                self._process.work(partial(flush_together, self._disk, together), takes_ms, self._flushed_together)
                return
            self._groups.append((deque(self._asked), []))
            self._asked = []
        if not self._groups:
            self._is_busy = False
            return
        jobs, outcomes = group = self._groups.popleft()
        work, _, pending = jobs.popleft()

        def flushed(done_work: Work) -> None:
            outcomes.append((done_work, pending))
            if jobs:
                self._groups.append(group)
            else:
                self._reports.add(outcomes)
            self._process.in_thread_after(0, self._flush_next)

        self._process.work(work, self._process.node.flush_ms(self._process.chance), flushed)

    def _flushed_together(self, whole: Work) -> None:
        self._reports.add([(Work.that_is_done(value, error), pending) for pending, value, error in whole.value])
        self._process.in_thread_after(0, self._flush_next)

"""A log against a plain list of batches: whatever is done to it, and wherever the power goes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

import pytest
from drawn import drawn_constants
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from zurau.epochs import Position
from zurau.errors import DiskFault, OffsetOutOfRange
from zurau.log.epochs import end_offset_for
from zurau.log.last_known import LastKnown
from zurau.log.log import Log
from zurau.log.settings import LogSettings
from zurau.records.batch import BatchHeader, iter_batches, parse_header, stamp
from zurau.records.builder import NewRecord, build_batch
from zurau.records.compression import Compression
from zurau.records.record import iter_records
from zurau.settings import INT32_MAX
from zurau.simulation.constants import constants
from zurau.simulation.disk import SimulatedDisk

DIRECTORY = "logs/t-0"
SETTINGS = LogSettings(retention_ms=1000, segment_ms=700)
#: The small ones hold a batch or two: several segments are rolled before anything is flushed.
SEGMENT_BYTES = st.sampled_from([250, 900])
INDEX_INTERVAL_BYTES = st.sampled_from([150, 0, 4096])
#: Mostly small; now and then larger than many a window.
VALUES = st.binary(max_size=120) | st.integers(0, 20_000).map(bytes)


class LogMachine(RuleBasedStateMachine):
    """Invariant: the log holds exactly `batches`, as far as they are not before its start."""

    @initialize(
        seed=st.integers(0, 2**16),
        segment_bytes=SEGMENT_BYTES,
        index_interval_bytes=INDEX_INTERVAL_BYTES,
        sizes=drawn_constants("log", "records"),
    )
    def begin(self, seed: int, segment_bytes: int, index_interval_bytes: int, sizes: dict[str, int]) -> None:
        self.sizes = ExitStack()
        self.sizes.enter_context(constants(sizes))
        self.disk = SimulatedDisk(seed)
        self.settings = replace(SETTINGS, segment_bytes=segment_bytes, index_interval_bytes=index_interval_bytes)
        self.disk.make_directory("logs")
        self.batches: list[bytes] = []
        self.flushed_offset = 0
        self.deleted_before = 0
        self.epoch = 0
        self.now_ms = 1000
        self.flushing: Callable[[], None] | None = None
        self.flushing_upto = 0
        self.open(clean=False, last_known=None)

    def open(self, *, clean: bool, last_known: LastKnown | None) -> None:
        self.flushing = None
        self.log = Log.open(self.disk, DIRECTORY, self.settings, now_ms=self.now_ms, clean=clean, last_known=last_known)
        assert not self.log.damage, "the disk damages nothing here"

    def teardown(self) -> None:
        self.sizes.close()

    # What the loop does

    @rule(
        values=st.lists(VALUES, min_size=1, max_size=4),
        codec=st.sampled_from(list(Compression)),
        elapsed_ms=st.integers(-50, 200),
        new_epoch=st.booleans(),
    )
    def append(self, values: list[bytes], codec: Compression, elapsed_ms: int, new_epoch: bool) -> None:
        self.epoch += new_epoch
        self.now_ms = max(1000, self.now_ms + elapsed_ms)
        records = [NewRecord(b"key", value, timestamp=self.now_ms - n) for n, value in enumerate(values)]
        batch = build_batch(records, compression=codec)
        self.log.append(batch, stamp(batch, self.log.end_offset, self.epoch))
        self.batches.append(bytes(batch))

    @rule(count=st.integers(3, 8))
    def append_a_burst_and_lose_power(self, count: int) -> None:
        """Several segments are begun and none is flushed."""
        for _ in range(count):
            self.append([bytes(60)], Compression.NONE, 1, False)
        self.lose_power()

    @rule()
    def append_to_a_full_disk(self) -> None:
        self.disk.capacity_bytes = self.disk.used_bytes
        batch = build_batch([NewRecord(None, b"no room", timestamp=self.now_ms)])
        with pytest.raises(DiskFault):
            self.log.append(batch, stamp(batch, self.log.end_offset, self.epoch))
        self.disk.capacity_bytes = 1 << 40

    @rule()
    def begin_flush(self) -> None:
        if self.flushing is None:
            self.flushing = self.log.begin_flush()
            self.flushing_upto = self.log.end_offset

    @rule()
    def flush_in_a_worker(self) -> None:
        if self.flushing is not None:
            self.flushing()

    @rule()
    def finish_flush(self) -> None:
        if self.flushing is not None:
            self.flushing()
            self.log.flush_done()
            self.flushing = None
            self.flushed_offset = max(self.flushed_offset, self.flushing_upto)
            assert self.log.flushed_offset >= self.flushed_offset

    @rule()
    def expire(self) -> None:
        before = self.log.start_offset
        self.log.expire(self.now_ms, self.log.end_offset)
        assert before <= self.log.start_offset <= self.log.end_offset

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        start, end = self.log.start_offset, self.log.end_offset
        self.log.advance_start(start + int(share * (end - start)))
        self.deleted_before = self.log.start_offset

    @rule(share=st.floats(0, 1))
    def truncate(self, share: float) -> None:
        self.finish_flush()
        start, end = self.log.start_offset, self.log.end_offset
        self.log.truncate(Position(INT32_MAX, start + int(share * (end - start))))
        self.forget_from(self.log.end_offset)

    @rule()
    def remove_files(self) -> None:
        work = self.log.take_removals()
        if work is not None:
            work()

    # What happens to it

    @rule()
    def restart(self) -> None:
        self.log.close()
        self.flushed_offset = self.log.end_offset
        self.open(clean=True, last_known=LastKnown(self.flushed_offset, closed_offset=self.flushed_offset))
        assert self.log.end_offset == self.flushed_offset

    @rule()
    def kill_process(self) -> None:
        end_offset = self.log.end_offset
        self.open(clean=False, last_known=LastKnown(self.flushed_offset, kept_unflushed=True))
        assert self.log.end_offset == end_offset

    @rule(is_journal_there=st.booleans(), lag=st.integers(0, 3))
    def lose_power(self, is_journal_there: bool = True, lag: int = 0) -> None:
        self.disk.crash()
        self.open(clean=False, last_known=LastKnown(max(0, self.flushed_offset - lag)) if is_journal_there else None)
        assert self.log.end_offset >= self.flushed_offset
        assert self.log.start_offset >= self.deleted_before
        self.forget_from(self.log.end_offset)

    # What can be seen

    @precondition(lambda self: self.log.start_offset < self.log.end_offset)
    @rule(share=st.floats(0, 1), upto_share=st.floats(0, 1), max_bytes=st.integers(1, 3000))
    def read_anywhere(self, share: float, upto_share: float, max_bytes: int) -> None:
        start, end = self.log.start_offset, self.log.end_offset
        offset = start + int(share * (end - start))
        upto = start + int(upto_share * (end - start))
        data = self.log.read(offset, max_bytes, upto)
        expected = [b for b in self.batches if header(b).last_offset >= offset and header(b).next_offset <= upto]
        if offset >= upto:
            expected = []
        assert b"".join(expected).startswith(data)
        assert bool(data) == bool(expected)
        assert len(data) <= max_bytes or data == expected[0]

    @rule(offset=st.integers(-3, 200))
    def read_out_of_range(self, offset: int) -> None:
        if not self.log.start_offset <= offset <= self.log.end_offset:
            with pytest.raises(OffsetOutOfRange):
                self.log.read(offset, 100, self.log.end_offset)

    @rule(earlier_ms=st.integers(-100, 1500))
    def find_by_time(self, earlier_ms: int) -> None:
        wanted = self.now_ms - earlier_ms
        records = [record for b in self.batches for record in iter_records(b) if record.offset >= self.log.start_offset]
        expected = next(((r.offset, r.timestamp) for r in records if r.timestamp >= wanted), None)
        assert self.log.find_by_timestamp(wanted, self.log.end_offset) == expected
        latest = max(((r.timestamp, -r.offset) for r in records), default=None)
        found = self.log.find_max_timestamp(self.log.end_offset)
        assert found == (None if latest is None else (-latest[1], latest[0]))

    @invariant()
    def holds_what_was_appended(self) -> None:
        kept = [b for b in self.batches if header(b).next_offset > self.log.start_offset]
        assert [h.base_offset for h in self.log.headers(self.log.start_offset)] == [header(b).base_offset for b in kept]
        assert self.log.end_offset == (header(kept[-1]).next_offset if kept else self.log.start_offset)
        found = bytearray()
        offset = self.log.start_offset
        while offset < self.log.end_offset:
            data = self.log.read(offset, 500, self.log.end_offset)
            found += data
            offset = last_header(data).next_offset
        assert found == b"".join(kept)

    @invariant()
    def epochs_are_those_of_the_batches(self) -> None:
        for batch in self.batches:
            one = header(batch)
            if one.base_offset >= self.log.start_offset:
                known, end = end_offset_for(self.log.epochs, one.leader_epoch, self.log.end_offset)
                assert known == one.leader_epoch
                assert end > one.last_offset

    def forget_from(self, offset: int) -> None:
        self.batches = [b for b in self.batches if header(b).next_offset <= offset]
        self.flushed_offset = min(self.flushed_offset, offset)


def header(batch: bytes) -> BatchHeader:
    return parse_header(batch)


def last_header(data: bytes) -> BatchHeader:
    *_, (last, _) = iter_batches(data)
    return last


LogMachine.TestCase.settings = settings(stateful_step_count=40)
test_a_log_is_a_list_that_survives = LogMachine.TestCase

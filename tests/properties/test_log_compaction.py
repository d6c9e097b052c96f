"""Compaction against a dictionary: the last value of each key is what a reader of the whole log ends up with."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import pytest
from drawn import drawn_constants
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from zurau.errors import DiskFault
from zurau.log.compaction import CompactionJob
from zurau.log.last_known import LastKnown
from zurau.log.log import Log
from zurau.log.settings import LogSettings
from zurau.records.batch import check_crc, iter_batches, stamp
from zurau.records.builder import NewRecord, build_batch
from zurau.records.compression import Compression
from zurau.records.record import Record, iter_records
from zurau.simulation.constants import constants
from zurau.simulation.disk import SimulatedDisk

DIRECTORY = "logs/t-0"
SETTINGS = LogSettings(
    cleanup_policy=("compact",),
    min_cleanable_dirty_ratio=0.0,
    delete_retention_ms=500,
)
#: Mostly small; now and then larger than many a window.
VALUES = st.none() | st.binary(max_size=60) | st.integers(0, 5000).map(bytes)
KEYS = st.sampled_from([b"a", b"b", b"c", b"a key that is longer than its digest", b"another key that is long"])


class CompactionMachine(RuleBasedStateMachine):
    @initialize(
        seed=st.integers(0, 2**16),
        segment_bytes=st.sampled_from([700, 100, 5000]),
        index_interval_bytes=st.sampled_from([150, 0, 4096]),
        sizes=drawn_constants("log", "records"),
    )
    def begin(self, seed: int, segment_bytes: int, index_interval_bytes: int, sizes: dict[str, int]) -> None:
        self.sizes = ExitStack()
        self.sizes.enter_context(constants(sizes))
        self.settings = replace(SETTINGS, segment_bytes=segment_bytes, index_interval_bytes=index_interval_bytes)
        self.disk = SimulatedDisk(seed)
        self.disk.make_directory("logs")
        #: Everything ever appended and not lost, by offset.
        self.records: dict[int, Record] = {}
        self.sequences: dict[int, int] = {}
        self.now_ms = 1000
        self.flushed_offset = 0
        self.job: CompactionJob | None = None
        self.open(clean=False, last_known=None)

    def open(self, *, clean: bool, last_known: LastKnown | None) -> None:
        self.job = None
        self.log = Log.open(self.disk, DIRECTORY, self.settings, now_ms=self.now_ms, clean=clean, last_known=last_known)
        assert not self.log.damage, "the disk damages nothing here"

    def teardown(self) -> None:
        self.sizes.close()

    @rule(
        pairs=st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=5),
        codec=st.sampled_from(list(Compression)),
        producer_id=st.integers(-1, 1),
    )
    def append(self, pairs: list[tuple[bytes, bytes | None]], codec: Compression, producer_id: int) -> None:
        self.now_ms += 10
        batch = build_batch(
            [NewRecord(key, value, timestamp=self.now_ms + n) for n, (key, value) in enumerate(pairs)],
            compression=codec,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=self.log.end_offset,
        )
        header = stamp(batch, self.log.end_offset, 0)
        self.log.append(batch, header)
        self.records |= {record.offset: record for record in iter_records(batch)}
        if producer_id >= 0:
            self.sequences[producer_id] = header.base_sequence

    @rule()
    def flush(self) -> None:
        work = self.log.begin_flush()
        if work is not None:
            work()
            self.log.flush_done()
        self.flushed_offset = self.log.end_offset

    @rule()
    def plan(self) -> None:
        if self.job is None:
            self.job = self.log.plan_compaction(self.now_ms, self.log.end_offset)
            if self.job is not None:
                self.job.run()

    @rule()
    def finish(self) -> None:
        if self.job is not None:
            self.log.finish_compaction(self.job)
            self.job = None

    @rule()
    def compaction_without_room(self) -> None:
        if self.job is None:
            job = self.log.plan_compaction(self.now_ms, self.log.end_offset)
            if job is not None:
                self.disk.capacity_bytes = self.disk.used_bytes + 10
                with pytest.raises(DiskFault):
                    job.run()
                self.disk.capacity_bytes = 1 << 40
                self.log.finish_compaction(job)

    @rule(elapsed_ms=st.integers(0, 800))
    def wait(self, elapsed_ms: int) -> None:
        self.now_ms += elapsed_ms

    @rule()
    def remove_files(self) -> None:
        work = self.log.take_removals()
        if work is not None:
            work()

    @rule()
    def restart(self) -> None:
        self.log.close()
        self.flushed_offset = self.log.end_offset
        self.open(clean=True, last_known=LastKnown(self.flushed_offset, closed_offset=self.flushed_offset))

    @rule()
    def kill_process(self) -> None:
        self.open(clean=False, last_known=LastKnown(self.flushed_offset, kept_unflushed=True))

    @rule()
    def lose_power(self) -> None:
        self.disk.crash()
        self.open(clean=False, last_known=LastKnown(self.flushed_offset))
        assert self.log.end_offset >= self.flushed_offset
        self.records = {offset: one for offset, one in self.records.items() if offset < self.log.end_offset}
        self.sequences = {}  # those of lost batches are not wanted, and older ones not kept here

    @invariant()
    def says_the_same_as_the_whole_history(self) -> None:
        expected = {record.key: record.value for record in self.records.values()}
        found: dict[bytes | None, bytes | None] = {}
        last_offset = -1
        for record in self.read_all():
            assert record.offset > last_offset
            assert list(record[:4]) == list(self.records[record.offset][:4])
            last_offset = record.offset
            found[record.key] = record.value
        assert without_tombstones(found) == without_tombstones(expected)

    @invariant()
    def remembers_the_last_batch_of_each_producer(self) -> None:
        found = {header.producer_id: header.base_sequence for header in self.log.headers(0)}
        assert {producer: found.get(producer) for producer in self.sequences} == self.sequences

    def read_all(self) -> list[Record]:
        records = []
        offset = self.log.start_offset
        while offset < self.log.end_offset:
            data = self.log.read(offset, 400, self.log.end_offset)
            if not data:
                break  # nothing is left behind the last batch
            for header, batch in iter_batches(data):
                assert check_crc(batch, header)
                records += iter_records(batch)
                offset = header.next_offset
        return records


def without_tombstones(values: dict[bytes | None, bytes | None]) -> dict[bytes | None, bytes | None]:
    return {key: value for key, value in values.items() if value is not None}


CompactionMachine.TestCase.settings = settings(stateful_step_count=40)
test_a_compacted_log_is_a_dictionary_that_survives = CompactionMachine.TestCase

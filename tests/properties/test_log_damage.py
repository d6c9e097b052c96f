"""A log on a disk that loses or changes what was flushed: what is hit is told, and the rest is served.

The model is the list of batches that were flushed. A batch none of whose bytes were touched must be readable as it was
written; an offset of one that was touched must answer with an error or with bytes whose checksum shows the damage.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

from hypothesis import example, given
from hypothesis import strategies as st

from zurau.errors import CorruptData
from zurau.log.last_known import LastKnown
from zurau.log.log import Log
from zurau.log.settings import LogSettings
from zurau.records.batch import check_crc, iter_batches, parse_header, stamp
from zurau.records.builder import NewRecord, build_batch
from zurau.simulation.disk import SimulatedDisk

DIRECTORY = "logs/t-0"
WINDOWS = st.sampled_from([1, 61, 100, 300, 1 << 22])


@dataclass
class Hit:
    """One thing that goes wrong with one segment's file, at some share of its length."""

    kind: str
    segment: float
    position: float
    length: int


HITS = st.builds(
    Hit,
    kind=st.sampled_from(["flip", "zero", "truncate", "remove", "append", "noise"]),
    segment=st.floats(0, 1),
    position=st.floats(0, 1),
    length=st.integers(1, 400),
)


@contextmanager
def windows(scan_bytes: int, walk_bytes: int):
    with (
        patch("zurau.log.scan.SCAN_BYTES", scan_bytes),
        patch("zurau.log.batch_file.WALK_BYTES", walk_bytes),
        patch("zurau.log.segment_checks.WALK_BYTES", walk_bytes),
    ):
        yield


class Model:
    """The log, and which of its flushed batches nobody touched."""

    def __init__(self, sizes: list[tuple[int, int]], segment_bytes: int, index_interval_bytes: int) -> None:
        self.disk = SimulatedDisk()
        self.disk.make_directory("logs")
        self.settings = LogSettings(segment_bytes=segment_bytes, index_interval_bytes=index_interval_bytes)
        self.log = Log.open(self.disk, DIRECTORY, self.settings, now_ms=0, clean=False)
        self.batches: list[bytes] = []
        for number, (count, size) in enumerate(sizes):
            self.append(count, size, epoch=number // 5)
        self.known_end = self.log.end_offset
        self.touched: set[int] = set()

    def append(self, count: int, size: int, epoch: int) -> None:
        batch = build_batch([NewRecord(b"k", bytes([65 + size % 7]) * size, timestamp=1000 + n) for n in range(count)])
        self.log.append(batch, stamp(batch, self.log.end_offset, epoch))
        self.batches.append(bytes(batch))

    def open(self, *, clean: bool, last_known: LastKnown) -> None:
        self.log = Log.open(self.disk, DIRECTORY, self.settings, now_ms=0, clean=clean, last_known=last_known)

    def hit(self, hit: Hit) -> None:
        logs = [name for name in self.disk.list_directory(DIRECTORY) if name.endswith(".log")]
        if not logs:
            return
        path = f"{DIRECTORY}/{logs[min(len(logs) - 1, int(hit.segment * len(logs)))]}"
        content = bytearray(self.disk.read_file(path))
        at = min(max(0, len(content) - 1), int(hit.position * len(content)))
        damaged = bytearray(content)
        if hit.kind == "remove":
            self.touch(content, damaged[:0])
            self.disk.remove(path)
            return
        if hit.kind == "flip" and content:
            damaged[at] ^= 1 << hit.length % 8
        elif hit.kind in ("zero", "noise"):
            stop = min(len(content), at + hit.length)
            damaged[at:stop] = (bytes(hit.length) if hit.kind == "zero" else b"\x02\x01\0" * hit.length)[: stop - at]
        elif hit.kind == "truncate":
            del damaged[at:]
        elif hit.kind == "append":
            damaged += b"\x02" * hit.length
        self.touch(content, damaged)
        self.disk.replace_file(path, bytes(damaged))

    def touch(self, before: bytearray, after: bytearray) -> None:
        """Note the batches whose bytes are not what they were."""
        for batch in self.batches:
            at = before.find(batch)
            if at >= 0 and after[at : at + len(batch)] != batch:
                self.touched.add(parse_header(batch).base_offset)

    def check(self) -> None:
        log = self.log
        assert log.end_offset >= self.known_end, "offsets would be given out twice"
        for batch in self.batches:
            header = parse_header(batch)
            for offset in range(header.base_offset, header.next_offset):
                self.check_offset(offset, batch, is_touched=header.base_offset in self.touched)

    def check_offset(self, offset: int, batch: bytes, *, is_touched: bool) -> None:
        assert self.log.start_offset <= offset, f"{offset} is before the start, {self.log.start_offset}"
        try:
            data = self.log.read(offset, 1, self.log.end_offset, may_block=True)
        except CorruptData:
            assert is_touched, f"{offset} is whole and was refused: {self.log.damage}"
            return
        if not is_touched:
            assert data == batch
        else:
            header, found = next(iter_batches(data))
            assert not check_crc(found, header) or header.base_offset <= offset <= header.last_offset


@given(
    sizes=st.lists(st.tuples(st.integers(1, 4), st.integers(0, 500)), min_size=1, max_size=25),
    segment_bytes=st.sampled_from([300, 1000, 5000]),
    index_interval_bytes=st.sampled_from([0, 200, 10_000]),
    scan_bytes=WINDOWS,
    walk_bytes=WINDOWS,
    hits=st.lists(HITS, min_size=1, max_size=4),
    clean=st.booleans(),
    kept_unflushed=st.booleans(),
)
@example(
    sizes=[(1, 500)] * 3,
    segment_bytes=5000,
    index_interval_bytes=200,
    scan_bytes=100,
    walk_bytes=100,
    hits=[],
    clean=False,
    kept_unflushed=False,
)
def test_damage_costs_what_it_hits_and_nothing_else(
    sizes, segment_bytes, index_interval_bytes, scan_bytes, walk_bytes, hits, clean, kept_unflushed
):
    with windows(scan_bytes, walk_bytes):
        model = Model(sizes, segment_bytes, index_interval_bytes)
        model.log.close()
        for hit in hits:
            model.hit(hit)
        known_end = model.known_end
        if clean:
            model.open(clean=True, last_known=LastKnown(known_end, known_end))
        else:
            model.open(clean=False, last_known=LastKnown(known_end, kept_unflushed=kept_unflushed))
        start_offset = model.log.start_offset
        if not clean and start_offset > 0:
            # Nothing tells after a crash that the first segments did not simply expire.
            model.batches = [one for one in model.batches if parse_header(one).base_offset >= start_offset]
        model.check()
        # Life goes on, and the next start says the same.
        model.known_end = model.log.end_offset
        model.append(2, 30, epoch=9)
        model.known_end = model.log.end_offset
        model.check()
        model.log.close()
        model.open(clean=False, last_known=LastKnown(model.known_end))
        model.check()
        assert model.log.start_offset == start_offset

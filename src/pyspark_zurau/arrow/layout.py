"""What the compiled code and its plain Python twin agree on, reading and writing.

Reading: a *part* is one batch, decompressed, with the facts of its header. *Columns* are the plain buffers of Arrow's
format: for binary columns one int32 offset more than there are rows, the bytes behind each other, and a bitmap of what
is not null (None when everything is there). Either decoder, given the same parts, gives the same bytes.

Writing: *cells* are a column of Arrow as it lies in memory, and *packed* records are the inside of a batch, ready for
one partition.
"""

from __future__ import annotations

from typing import NamedTuple

from zurau.ports import Buffer
from zurau.records.batch import BatchHeader

#: What to copy; the rest is only checked.
KEYS, VALUES, HEADERS = 1, 2, 4

#: Spark's timestamps are microseconds in 64 bits. What a record claims beyond that is held to the ends.
TIMESTAMP_MS_MAX = (2**63 - 1) // 1000
TIMESTAMP_MS_MIN = -TIMESTAMP_MS_MAX


class Part(NamedTuple):
    header: BatchHeader
    payload: Buffer


class Binary(NamedTuple):
    """A column of bytes."""

    validity: Buffer | None
    offsets: Buffer
    data: Buffer
    null_count: int


class HeaderLists(NamedTuple):
    """A column of lists of (key, value). A record without headers has a null, not an empty list."""

    validity: Buffer | None
    offsets: Buffer
    null_count: int
    header_count: int
    keys: Binary
    values: Binary


class Columns(NamedTuple):
    """Columns that were not wanted are None."""

    row_count: int
    offsets: Buffer
    timestamps_us: Buffer
    keys: Binary | None
    values: Binary | None
    headers: HeaderLists | None


class Cells(NamedTuple):
    """A column of bytes to be written; its first row is number `first` in the buffers."""

    validity: Buffer | None
    offsets: Buffer
    data: Buffer
    first: int


class Numbers(NamedTuple):
    """A column of int32."""

    validity: Buffer | None
    data: Buffer
    first: int


class HeaderCells(NamedTuple):
    """A column of lists of (key, value)."""

    validity: Buffer | None
    offsets: Buffer
    first: int
    keys: Cells
    values: Cells


class Packed(NamedTuple):
    partition: int
    record_count: int
    payload: Buffer
    #: Of the first record, to which the others' are relative, and the largest.
    timestamps_ms: tuple[int, int]

"""The encoder in plain Python: the one to read, and the one that serves where nothing could be compiled.

`_encode.pyx` does the same; tests hold the two to the same bytes.
"""

from __future__ import annotations

from array import array

from pyspark_zurau.arrow.layout import Cells, HeaderCells, Numbers, Packed
from zurau.errors import CorruptData
from zurau.ports import Buffer
from zurau.records.builder import encode_record
from zurau.records.partitioner import partition_for_key
from zurau.records.record import Header


def choose_partitions(
    row_count: int, keys: Cells | None, given: Numbers | None, partition_count: int, fallback: int
) -> Buffer:
    """The partition of each row, as int32: the given one, else that of its key, else `fallback`."""
    chosen = array("i")
    for row in range(row_count):
        partition = _number(given, row)
        if partition is None:
            key = _cell(keys, row)
            partition = fallback if key is None else partition_for_key(key, partition_count)
        chosen.append(partition)
    return bytearray(chosen.tobytes())


def encode(
    row_count: int,
    keys: Cells | None,
    values: Cells,
    headers: HeaderCells | None,
    timestamps_ms: Buffer,
    partitions: Buffer,
    limit_bytes: int,
) -> list[Packed]:
    """Rows as records, packed for each partition in their order; a batch is closed when one more would pass the limit.

    Batches come in the order of their first rows.
    """
    done: list[tuple[int, int, bytearray, tuple[int, int]]] = []
    open_at: dict[int, int] = {}
    moments = memoryview(timestamps_ms).cast("B").cast("q")
    for row, partition in enumerate(memoryview(partitions).cast("B").cast("i")[:row_count]):
        fields = _cell(keys, row), _cell(values, row), _headers(headers, row)
        place = open_at.get(partition)
        if place is not None:
            _, count, payload, (first, largest) = done[place]
            size = len(payload)
            encode_record(payload, count, moments[row] - first, *fields)
            if len(payload) <= limit_bytes:
                done[place] = (partition, count + 1, payload, (first, max(largest, moments[row])))
                continue
            del payload[size:]
        payload = bytearray()
        encode_record(payload, 0, 0, *fields)
        open_at[partition] = len(done)
        done.append((partition, 1, payload, (moments[row], moments[row])))
    return [Packed(*batch) for batch in done]


def _is_valid(validity: Buffer | None, index: int) -> bool:
    return validity is None or bool(validity[index >> 3] >> (index & 7) & 1)


def _cell(cells: Cells | None, row: int) -> bytes | None:
    if cells is None or not _is_valid(cells.validity, cells.first + row):
        return None
    start, stop = _bounds(cells.offsets, cells.first + row)
    return bytes(cells.data[start:stop])


def _number(numbers: Numbers | None, row: int) -> int | None:
    if numbers is None or not _is_valid(numbers.validity, numbers.first + row):
        return None
    at = 4 * (numbers.first + row)
    return int.from_bytes(numbers.data[at : at + 4], "little", signed=True)


def _headers(cells: HeaderCells | None, row: int) -> list[Header]:
    if cells is None or not _is_valid(cells.validity, cells.first + row):
        return []
    found = []
    for index in range(*_bounds(cells.offsets, cells.first + row)):
        key = _cell(cells.keys, index)
        if key is None:
            raise CorruptData("a header has no key")
        found.append((key.decode(), _cell(cells.values, index)))
    return found


def _bounds(offsets: Buffer, index: int) -> tuple[int, int]:
    whole = memoryview(offsets).cast("B")[4 * index : 4 * index + 8].cast("i")
    return whole[0], whole[1]

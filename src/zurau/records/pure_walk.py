"""The walker in plain Python, for where nothing could be compiled. `_walk.pyx` is its twin.

It goes from record to record and makes nothing of them: each number is read, each field is stepped over. So it says
whether the records of a batch are what its header promises, at a fraction of what decoding them costs.
"""

from __future__ import annotations

from zurau.ports import Buffer
from zurau.settings import INT64_MAX

#: How many of the records at fault are named.
PLACES_MAX = 1000
#: A record has at least seven parts of one byte each.
RECORD_BYTES_MIN = 7
INT64_MIN = -INT64_MAX - 1
INT_BITS = 32
LONG_BITS = 64
_ZIGZAG = tuple((number >> 1) ^ -(number & 1) for number in range(128))

SOUND = 0
# Records that are in order, but not what is asked of them. Both can be true of a batch.
KEYLESS = 1
MISTIMED = 2
# Records that are not in order. The first of them ends the walk.
COUNT = 4
RECORD_LENGTH = 5
TIMESTAMP = 6
OFFSET = 7
KEY = 8
VALUE = 9
HEADERS = 10
LEFT_OVER = 11
IMPOSSIBLE_TIME = 12

#: What is wrong (one of the above), with which records (the first of them), and the largest timestamp or -1.
Walked = tuple[int, tuple[int, ...], int]


#: The fields of a `BatchHeader`, in their order.
PlainHeader = tuple[int, int, int, int, int, int, int, int, int, int, int, int, int]


class _Fault(Exception):
    def __init__(self, fault: int) -> None:
        self.fault = fault


def plain_header(*_: object) -> PlainHeader | None:
    """The compiled twin has a short way for batches as most are. Here every batch takes the long one."""
    return None


def walk(payload: Buffer, count: int, base_timestamp: int, earliest: int, latest: int, needs_keys: bool) -> Walked:
    """Go over the `count` records of a batch, which are to fill `payload` and have the offsets 0, 1, 2 and so on.

    Timestamps other than -1 are to be from `earliest` to `latest`.
    """
    data = bytes(payload)
    max_timestamp = -1
    if not 0 <= count <= len(data) // RECORD_BYTES_MIN:
        return COUNT, (), max_timestamp
    faults = position = place = 0
    places: list[int] = []
    try:
        for place in range(count):
            position, timestamp, has_key = _walk_record(data, position, place, base_timestamp)
            max_timestamp = max(max_timestamp, timestamp)
            if needs_keys and not has_key:
                faults |= KEYLESS
            elif timestamp != -1 and not earliest <= timestamp <= latest:
                faults |= MISTIMED
            else:
                continue
            if len(places) < PLACES_MAX:
                places.append(place)
    except _Fault as fault:
        return fault.fault, (place,), max_timestamp
    if position != len(data):
        return LEFT_OVER, (), max_timestamp
    return faults, tuple(places), max_timestamp


def find_time(
    payload: Buffer, count: int, base_timestamp: int, first: int, end: int, at_least: int, *, latest: bool
) -> tuple[int, int] | None:
    """Of the records from offset delta `first` to before `end`, the first that is as late as `at_least`.

    With `latest`, the first of the latest. Returns its offset delta and timestamp. The batch may have holes, and what
    is not in order ends the search: it may be of an older version that looked less closely.
    """
    data = bytes(payload)
    found: tuple[int, int] | None = None
    position = 0
    try:
        for _ in range(count):
            length, position = _read(data, position, len(data), RECORD_LENGTH)
            after = position + length
            if length < 1 or after > len(data):
                break
            delta_ms, position = _read(data, position + 1, after, TIMESTAMP, LONG_BITS)
            offset, _ = _read(data, position, after, OFFSET)
            timestamp = base_timestamp + delta_ms
            position = after
            if first <= offset < end and at_least <= timestamp <= INT64_MAX:
                found = offset, timestamp
                if not latest or timestamp == INT64_MAX:
                    break
                at_least = timestamp + 1
    except _Fault:
        pass
    return found


def _walk_record(data: bytes, position: int, place: int, base_timestamp: int) -> tuple[int, int, bool]:
    """Where the record ends, its timestamp and whether it has a key."""
    length, position = _read(data, position, len(data), RECORD_LENGTH)
    end = position + length
    if length < 1 or end > len(data):
        raise _Fault(RECORD_LENGTH)
    position += 1  # the attributes, which nothing uses
    delta_ms, position = _read(data, position, end, TIMESTAMP, LONG_BITS)
    timestamp = base_timestamp + delta_ms
    if not INT64_MIN <= timestamp <= INT64_MAX:
        raise _Fault(IMPOSSIBLE_TIME)
    offset, position = _read(data, position, end, OFFSET)
    if offset != place:
        raise _Fault(OFFSET)
    key_bytes, position = _read(data, position, end, KEY)
    if key_bytes > 0:
        position += key_bytes
    if key_bytes < -1 or position > end:
        raise _Fault(KEY)
    value_bytes, position = _read(data, position, end, VALUE)
    if value_bytes > 0:
        position += value_bytes
    if value_bytes < -1 or position > end:
        raise _Fault(VALUE)
    if position == end:
        raise _Fault(HEADERS)
    position = position + 1 if data[position] == 0 else _walk_headers(data, position, end)
    if position != end:
        raise _Fault(RECORD_LENGTH)
    return position, timestamp, key_bytes >= 0


def _walk_headers(data: bytes, position: int, end: int) -> int:
    count, position = _read(data, position, end, HEADERS)
    if not 0 <= count <= end - position:
        raise _Fault(HEADERS)
    for _ in range(count):
        length, position = _read(data, position, end, HEADERS)
        if not 0 <= length <= end - position:
            raise _Fault(HEADERS)
        try:
            data[position : position + length].decode()
        except UnicodeDecodeError:
            raise _Fault(HEADERS) from None
        length, position = _read(data, position + length, end, HEADERS)
        if not -1 <= length <= end - position:
            raise _Fault(HEADERS)
        position += max(length, 0)
    return position


def _read(data: bytes, position: int, end: int, fault: int, bits: int = INT_BITS) -> tuple[int, int]:
    """A zigzag number of so many bits, in no more bytes than they can take, and the position after it."""
    if position >= end:
        raise _Fault(fault)
    number = data[position]
    position += 1
    if number >= 0x80:  # most are smaller
        number &= 0x7F
        shift = 7
        byte = 0x80
        while byte >= 0x80:
            if position >= end or shift >= bits:
                raise _Fault(fault)
            byte = data[position]
            number |= (byte & 0x7F) << shift
            shift += 7
            position += 1
        if number >> bits:
            raise _Fault(fault)
    return _ZIGZAG[number] if number < 128 else (number >> 1) ^ -(number & 1), position

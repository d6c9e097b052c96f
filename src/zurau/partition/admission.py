"""What a producer's batch must satisfy before it may enter the log, and what a topic may make of it.

A batch is taken if every reader can read it, as Kafka has it: the header is looked at first, then the checksum, then
every record is walked over, unpacked if it was packed. Nothing is built from the records, and what is stored are the
producer's own bytes, unless `compression.type` asks for another codec or the header is wrong about the timestamps.

Looking at a header costs nothing. Walking over the records is *quick* for most batches and takes long for a few:
large ones, and those that unpack to much more than was sent. How far a batch may unpack is a number here, so that the
quick attempt ends early, with `TooLarge`, and whoever asked goes on elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastcrc import crc32

from zurau.errors import CorruptData, Refused
from zurau.log.settings import LogSettings
from zurau.records.batch import (
    APPEND_TIME_BIT,
    CHECKED_FROM,
    COMPRESSION_MASK,
    CONTROL_BIT,
    HEADER_BYTES,
    LENGTH_PREFIX_BYTES,
    MAGIC,
    TRANSACTIONAL_BIT,
    BatchHeader,
    parse_header,
    stamp_append_time,
    stamp_create_time,
)
from zurau.records.builder import repack
from zurau.records.compression import Compression, TooLarge, decompress, likely_bytes
from zurau.records.frame_sizes import is_lz4_for_java
from zurau.records.pure_walk import COUNT, IMPOSSIBLE_TIME, INT64_MIN, KEYLESS, PLACES_MAX
from zurau.records.record import UNPACKED_BYTES_MAX
from zurau.records.walk import FAULTS, IS_COMPILED, plain_header, walk
from zurau.settings import INT64_MAX, KIB, MIB
from zurau.wire.kafka.error_codes import ErrorCode

NO_TIMESTAMP = -1
#: What ordinary batches do not have, and one look tells.
RARE_BITS = APPEND_TIME_BIT | TRANSACTIONAL_BIT | CONTROL_BIT

KNOWN_CODECS = frozenset(map(int, Compression))
#: Values of `compression.type` that name a codec of our choice instead of the producer's.
CODECS = {"uncompressed": Compression.NONE} | {codec.name.lower(): codec for codec in Compression if codec}

# Records of so many bytes take about a millisecond: as they are, to be unpacked, and to be packed anew.
QUICK_BYTES = 2 * MIB
QUICK_UNPACKED_BYTES = 256 * KIB
QUICK_REPACKED_BYTES = 32 * KIB
if not IS_COMPILED:  # pragma: no cover - a process has one walker or the other
    QUICK_BYTES = QUICK_UNPACKED_BYTES = 64 * KIB


class InvalidRecords(Refused):
    """Some records of a batch are at fault, by their place in it; none of the batch is taken."""

    def __init__(self, code: ErrorCode, places: Sequence[int], message: str) -> None:
        super().__init__(code, message)
        self.places = places


def read_header(batch: memoryview) -> BatchHeader:
    """The header of what a producer sent. Raises `Refused` if it is none."""
    try:
        return parse_header(batch)
    except CorruptData as fault:
        claimed = int.from_bytes(batch[8:LENGTH_PREFIX_BYTES], "big", signed=True) + LENGTH_PREFIX_BYTES
        is_cut = len(batch) < LENGTH_PREFIX_BYTES or claimed >= HEADER_BYTES
        raise Refused(ErrorCode.INVALID_RECORD if is_cut else ErrorCode.CORRUPT_MESSAGE, str(fault)) from fault


class Admission:
    """The rules of a topic with these settings, which are looked up once and not for every batch."""

    __slots__ = (
        "_after_ms",
        "_before_ms",
        "_codec",
        "_gives_time",
        "_max_bytes",
        "_needs_keys",
        "_plain_bytes",
    )

    def __init__(self, settings: LogSettings) -> None:
        self._max_bytes = settings.max_message_bytes
        self._needs_keys = "compact" in settings.cleanup_policy
        #: The codec under which batches are stored, or None for the producer's.
        self._codec = CODECS.get(settings.compression_type)
        #: Whether the time of the append counts, and not what producers say.
        self._gives_time = settings.message_timestamp_type == "LogAppendTime"
        #: What may be taken as it is has no more bytes: none, where batches are changed.
        self._plain_bytes = 0 if self._codec or self._gives_time else min(self._max_bytes, QUICK_BYTES)
        self._before_ms = settings.message_timestamp_before_max_ms
        self._after_ms = settings.message_timestamp_after_max_ms

    def read_plain(self, batch: memoryview, now_ms: int) -> BatchHeader | None:
        """The header of a batch that may enter as it is, if one look tells so: most are not packed, and in order. Of
        others `read_header`, `check` and `examine` say what they are, or what is wrong with them."""
        fields = plain_header(batch, self._plain_bytes, *self._window(now_ms), self._needs_keys)
        if fields is None or crc32.iscsi(batch[CHECKED_FROM:]) != fields[4]:
            return None
        return BatchHeader(*fields)

    def check(self, batch: memoryview, header: BatchHeader) -> None:
        """Raise `Refused` for a batch whose header alone says that it may not enter."""
        is_ordinary = (
            header.magic == MAGIC
            and header.length == len(batch) <= self._max_bytes
            and header.attributes in KNOWN_CODECS  # and no other bits
            and header.base_offset == 0
            and header.last_offset_delta == header.record_count - 1 >= 0
            and (header.producer_id < 0 or (header.base_sequence >= 0 and header.producer_epoch >= 0))
        )
        if not is_ordinary:  # as nearly all are: only for others it is worth while to look at each rule by itself
            self._check_each_rule(batch, header)

    def _check_each_rule(self, batch: memoryview, header: BatchHeader) -> None:
        if header.magic != MAGIC:
            code = ErrorCode.INVALID_RECORD if 0 <= header.magic < MAGIC else ErrorCode.CORRUPT_MESSAGE
            raise Refused(code, f"batches of version {MAGIC} are taken, not {header.magic}")
        self._check_size(batch, header)
        attributes = header.attributes
        if attributes & COMPRESSION_MASK not in KNOWN_CODECS:
            raise Refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"there is no codec {header.compression}")
        if header.base_offset != 0:
            raise Refused(ErrorCode.INVALID_RECORD, f"a batch begins at offset 0, not {header.base_offset}")
        if header.record_count < 1 or header.last_offset_delta != header.record_count - 1:
            raise Refused(ErrorCode.INVALID_RECORD, "the batch's record count and last offset disagree")
        if header.producer_id >= 0 and header.base_sequence < 0:
            raise Refused(ErrorCode.INVALID_RECORD, "an idempotent batch needs a sequence number")
        if header.producer_id >= 0 and header.producer_epoch < 0:
            raise Refused(ErrorCode.INVALID_PRODUCER_EPOCH, "an idempotent batch needs an epoch")
        if attributes & RARE_BITS:
            self._check_rare(header)

    def _check_rare(self, header: BatchHeader) -> None:
        if header.is_control:
            raise Refused(ErrorCode.INVALID_RECORD, "producers may not write control batches")
        if header.is_transactional:
            raise Refused(ErrorCode.INVALID_TXN_STATE, "transactions are not supported yet")
        if header.uses_append_time and (self._gives_time or header.max_timestamp == NO_TIMESTAMP):
            places = range(min(header.record_count, PLACES_MAX))
            raise InvalidRecords(ErrorCode.INVALID_TIMESTAMP, places, "the time of the append is the broker's to give")

    def is_quick(self, batch: memoryview, header: BatchHeader) -> bool:
        """Whether `examine` will probably be done within about a millisecond."""
        codec = header.attributes & COMPRESSION_MASK
        if not (codec or self._codec):
            return header.length <= QUICK_BYTES
        return likely_bytes(batch[HEADER_BYTES:], codec) <= self._quick_limit(header)

    def _quick_limit(self, header: BatchHeader) -> int:
        """How far a batch may unpack while others wait."""
        return QUICK_UNPACKED_BYTES if self._codec in (None, header.compression) else QUICK_REPACKED_BYTES

    def examine(
        self, batch: memoryview, header: BatchHeader, now_ms: int, limit_bytes: int | None = None
    ) -> tuple[memoryview, BatchHeader]:
        """The batch as this topic stores it, and its header: in place, unless it has to be packed with another codec.

        Raises `Refused` for one that may not enter, and `TooLarge` if it cannot be told because the records unpack to
        more than `limit_bytes`, or else to more than is quick. Any thread may do it. It was checked before.
        """
        if crc32.iscsi(batch[CHECKED_FROM:]) != header.crc:
            raise Refused(ErrorCode.CORRUPT_MESSAGE, "the batch does not match its checksum")
        payload = batch[HEADER_BYTES:]
        codec = header.attributes & COMPRESSION_MASK
        if codec:
            payload = _unpack(payload, codec, self._quick_limit(header) if limit_bytes is None else limit_bytes)
        max_timestamp = self._walk(payload, header, now_ms)
        if self._codec is not None and self._codec != codec:
            batch = self._pack(payload, header, self._codec)
            header = parse_header(batch)
        if self._gives_time:
            stamp_append_time(batch, now_ms)
            return batch, parse_header(batch)
        if max_timestamp != header.max_timestamp or header.attributes & APPEND_TIME_BIT:
            stamp_create_time(batch, max_timestamp)
            return batch, parse_header(batch)
        return batch, header

    def _check_size(self, batch: memoryview, header: BatchHeader) -> None:
        if header.length > len(batch):
            raise Refused(ErrorCode.INVALID_RECORD, "the batch is cut short")
        if header.length < len(batch):
            raise Refused(ErrorCode.INVALID_RECORD, "send one batch for each partition in a request")
        if header.length > self._max_bytes:
            raise self._too_large(header.length)

    def _too_large(self, length: int) -> Refused:
        return Refused(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a batch of {length} bytes is over max.message.bytes={self._max_bytes}",
        )

    def _walk(self, payload: memoryview, header: BatchHeader, now_ms: int) -> int:
        """Raise `Refused` unless all records may enter. Returns their largest timestamp."""
        earliest, latest = self._window(now_ms)
        fault, places, max_timestamp = walk(
            payload, header.record_count, header.base_timestamp, earliest, latest, self._needs_keys
        )
        if not fault:
            return max_timestamp
        if fault >= COUNT and fault != IMPOSSIBLE_TIME:
            where = f" (record {places[0]} of the batch)" if places else ""
            raise Refused(ErrorCode.INVALID_RECORD, FAULTS[fault] + where)
        code = ErrorCode.INVALID_RECORD if fault == KEYLESS else ErrorCode.INVALID_TIMESTAMP
        raise InvalidRecords(code, places, FAULTS[fault])

    def _window(self, now_ms: int) -> tuple[int, int]:
        """From when to when records may be."""
        if self._gives_time:
            return INT64_MIN, INT64_MAX
        latest = now_ms + self._after_ms if self._after_ms < INT64_MAX - now_ms else INT64_MAX
        return now_ms - self._before_ms, latest  # never too small for 64 bits: both are positive

    def _pack(self, payload: memoryview, header: BatchHeader, codec: Compression) -> memoryview:
        """Under the topic's codec. What was small may become large: the limit is for what is stored."""
        if codec == Compression.NONE and HEADER_BYTES + len(payload) > self._max_bytes:
            raise self._too_large(HEADER_BYTES + len(payload))
        packed = repack(header, payload, codec)
        if len(packed) > self._max_bytes:
            raise self._too_large(len(packed))
        return memoryview(packed)


def _unpack(payload: memoryview, codec: int, limit_bytes: int) -> memoryview:
    if codec == Compression.LZ4 and not is_lz4_for_java(payload):
        raise Refused(ErrorCode.INVALID_RECORD, "lz4 has to be one frame of independent blocks, which all can read")
    try:
        return memoryview(decompress(payload, codec, min(limit_bytes, UNPACKED_BYTES_MAX)))
    except CorruptData as fault:
        if isinstance(fault, TooLarge) and limit_bytes < UNPACKED_BYTES_MAX:
            raise
        raise Refused(ErrorCode.INVALID_RECORD, str(fault)) from fault

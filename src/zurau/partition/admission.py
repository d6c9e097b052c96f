"""What a producer's batch must satisfy before it may enter the log, and what a topic may make of it.

Batches stay opaque: everything is judged by the 61 bytes of the header and the checksum. Only a compacted topic looks
inside, because a record without a key could never be compacted away, and only `compression.type` packs anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from zurau.errors import CorruptData, Refused
from zurau.log.settings import LogSettings
from zurau.records.batch import MAGIC, BatchHeader, check_crc, stamp_append_time
from zurau.records.builder import repack
from zurau.records.compression import Compression
from zurau.records.record import UNPACKED_BYTES_MAX, iter_records
from zurau.wire.kafka.error_codes import ErrorCode

NO_TIMESTAMP = -1

KNOWN_CODECS = frozenset(map(int, Compression))
#: Values of `compression.type` that name a codec of our choice instead of the producer's.
CODECS = {"uncompressed": Compression.NONE} | {codec.name.lower(): codec for codec in Compression if codec}


class InvalidRecords(Refused):
    """Some records of a batch are at fault, by their place in it; none of the batch is taken."""

    def __init__(self, places: Sequence[int], message: str) -> None:
        super().__init__(ErrorCode.INVALID_RECORD, message)
        self.places = places


class Admission:
    """The rules of one topic at one moment."""

    __slots__ = ("_now_ms", "_settings")

    def __init__(self, settings: LogSettings, now_ms: int) -> None:
        self._settings = settings
        self._now_ms = now_ms

    def check(self, batch: memoryview, header: BatchHeader) -> None:
        """Raise `Refused` for a batch that may not enter."""
        self._check_size(batch, header)
        if not check_crc(batch, header):
            raise Refused(ErrorCode.CORRUPT_MESSAGE, "the batch does not match its checksum")
        self._check_kind(header)
        self._check_timestamps(header)
        if "compact" in self._settings.cleanup_policy:
            _require_keys(batch)

    def make_ready(self, batch: memoryview, header: BatchHeader) -> memoryview:
        """The batch as this topic stores it: in place, unless it has to be packed with another codec."""
        codec = CODECS.get(self._settings.compression_type, header.compression)
        if codec != header.compression:
            try:
                batch = memoryview(repack(batch, header, Compression(codec), UNPACKED_BYTES_MAX))
            except CorruptData as fault:
                raise Refused(ErrorCode.INVALID_RECORD, str(fault)) from fault
        if self._settings.message_timestamp_type == "LogAppendTime":
            stamp_append_time(batch, self._now_ms)
        return batch

    def _check_size(self, batch: memoryview, header: BatchHeader) -> None:
        if header.length > self._settings.max_message_bytes:
            raise Refused(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"a batch of {header.length} bytes is over max.message.bytes={self._settings.max_message_bytes}",
            )
        if header.length > len(batch):
            raise Refused(ErrorCode.CORRUPT_MESSAGE, "the batch is cut short")
        if header.length < len(batch):
            raise Refused(ErrorCode.INVALID_RECORD, "send one batch for each partition in a request")

    def _check_kind(self, header: BatchHeader) -> None:
        if header.magic != MAGIC:
            raise Refused(ErrorCode.INVALID_RECORD, f"batches of version {MAGIC} are taken, not {header.magic}")
        if header.compression not in KNOWN_CODECS:
            raise Refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"there is no codec {header.compression}")
        if header.record_count < 1 or header.last_offset_delta != header.record_count - 1:
            raise Refused(ErrorCode.INVALID_RECORD, "the batch's record count and last offset disagree")
        if header.is_control:
            raise Refused(ErrorCode.INVALID_RECORD, "producers may not write control batches")
        if header.is_transactional:
            raise Refused(ErrorCode.INVALID_TXN_STATE, "transactions are not supported yet")
        if header.producer_id >= 0 and (header.base_sequence < 0 or header.producer_epoch < 0):
            raise Refused(ErrorCode.INVALID_RECORD, "an idempotent batch needs an epoch and a sequence number")

    def _check_timestamps(self, header: BatchHeader) -> None:
        settings = self._settings
        if settings.message_timestamp_type == "LogAppendTime" or header.max_timestamp == NO_TIMESTAMP:
            return
        ahead_ms = header.max_timestamp - self._now_ms
        behind_ms = self._now_ms - header.base_timestamp
        if ahead_ms > settings.message_timestamp_after_max_ms or behind_ms > settings.message_timestamp_before_max_ms:
            raise Refused(
                ErrorCode.INVALID_TIMESTAMP,
                f"timestamps {header.base_timestamp} to {header.max_timestamp} are too far from now ({self._now_ms})",
            )


def _require_keys(batch: memoryview) -> None:
    try:
        keyless = [place for place, record in enumerate(iter_records(batch)) if record.key is None]
    except CorruptData as fault:
        raise Refused(ErrorCode.INVALID_RECORD, str(fault)) from fault
    if keyless:
        raise InvalidRecords(keyless, "every record of a compacted topic needs a key")

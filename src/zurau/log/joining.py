"""A read that ends with a small segment goes on in the next ones.

Of a segment compaction may leave a single batch without records, and an answer with no record in it is a riddle to
clients: librdkafka takes it for a message that is too large.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from zurau.errors import DiskFault
from zurau.ids import Offset
from zurau.log.segment import Segment
from zurau.ports import WouldBlock
from zurau.records.batch import walked_end
from zurau.settings import KIB

#: A read that has so much is enough of an answer.
JOINED_BYTES = 16 * KIB


def join(
    data: bytes, segments: Sequence[Segment], following: int, max_bytes: int, upto: Offset, *, may_block: bool
) -> bytes:
    """`data`, and if it is little and reaches the end of its segment, what `segments[following:]` hold below `upto`.

    Nothing is added that is wrong in any way: whoever asks for that is told of it.
    """
    if not data or len(data) >= JOINED_BYTES or following == len(segments):
        return data
    if walked_end(data) < segments[following].base_offset:
        return data
    pieces, size = [data], len(data)
    for segment in islice(segments, following, None):
        if size >= min(JOINED_BYTES, max_bytes) or segment.base_offset >= upto:
            break
        try:
            piece = segment.read(segment.base_offset, max_bytes - size, upto, may_block=may_block)
        except (DiskFault, WouldBlock):
            break
        if segment.is_retired or not piece or size + len(piece) > max_bytes:
            break
        pieces.append(piece)
        size += len(piece)
        if walked_end(piece) < segment.end.offset:
            break
    return b"".join(pieces) if len(pieces) > 1 else data

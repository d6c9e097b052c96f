"""Damage that was found once is remembered over restarts, in a small file beside the segments.

A start looks only at the ends of segments, so it would forget what was found in the middle of one. What the file says
is held against the segment before it is believed: somebody may have restored that meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec

from zurau.log.damage import DamagedRange
from zurau.log.scan import BadStretch, Scan
from zurau.log.segment import Segment
from zurau.ports import Disk

log = logging.getLogger("zurau.log")

FILE_NAME = "damaged-ranges"


def restore_damage(disk: Disk, directory: str, segments: Sequence[Segment]) -> None:
    """Give segments the damage that was known before and is still there. Blocks."""
    content = disk.read_file(f"{directory}/{FILE_NAME}")
    if content is None:
        return
    try:
        remembered = msgspec.json.decode(content, type=list[DamagedRange])
    except msgspec.MsgspecError as error:
        log.warning("%s/%s cannot be read (%s): run `zurau log check`", directory, FILE_NAME, error)
        return
    by_path = {segment.path: segment for segment in segments}
    for one in remembered:
        segment = by_path.get(one.file)
        if segment is None or any(known.position == one.position for known in segment.damage):
            continue
        if _is_still_there(segment, one):
            segment.damage = tuple(sorted((*segment.damage, one)))
            log.error("%s; known from before", one)
        else:
            log.info("%s: no longer so", one)


def save_damage(disk: Disk, directory: str, damage: Sequence[DamagedRange]) -> None:
    """Write down what is damaged, if that is not what the file says. Blocks for a flush, if there is any damage."""
    path = f"{directory}/{FILE_NAME}"
    found = [one for one in damage if one.size_bytes]  # what is missing at the end of a segment is found again
    if not found:
        disk.remove(path)
        return
    content = msgspec.json.encode(found)
    if disk.read_file(path) != content:
        disk.replace_file(path, content)


def _is_still_there(segment: Segment, one: DamagedRange) -> bool:
    if not segment.base_offset <= one.first_offset <= one.next_offset <= segment.end.offset:
        return False
    scan = Scan(segment.file, segment.size, segment.end.offset)
    stretch = next(scan.stretches(one.position, one.first_offset), None)
    return isinstance(stretch, BadStretch) and stretch.end_position == one.end_position

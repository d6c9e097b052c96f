"""Bringing a partition back from its directory, and leaving it so that this is quick.

Beside the log a directory holds `partition.metadata` (which topic this is, by id: a topic may be deleted and created
again under its name) and, after a clean stop and now and then, `producers.snapshot` (the producer state at some offset,
even if that is none: without it every header of the log has to be read).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

from zurau.errors import CorruptData, DiskFault
from zurau.ids import TopicId, id_bytes, id_text
from zurau.log.files import LOG_SUFFIX, is_segment_file
from zurau.log.log import Log
from zurau.partition.producers import Producers
from zurau.ports import Disk
from zurau.settings import KIB

log = logging.getLogger("zurau.partition")

TOPIC_ID_FILE = "partition.metadata"
PRODUCERS_FILE = "producers.snapshot"
#: A log this small is walked at the next start sooner than it is flushed with a snapshot of no producers.
WALKED_BYTES = 64 * KIB

_TOPIC_ID_FORM = re.compile(rb"version: 0\ntopic_id: ([\w-]{22})\n")
#: What a power failure leaves of a file that was not flushed: its beginning, or nothing, or zeros.
_TORN_TOPIC_ID_FORM = re.compile(rb"(v|ve|ver|vers|versi|versio|version(: 0?)?|version: 0\n[\w: -]*)?\0*")


def holds_partition(disk: Disk, directory: str) -> bool:
    """Whether this is a partition's directory, and not something else that lies there, or cannot be looked into."""
    return TOPIC_ID_FILE in _names(disk, directory) or holds_segments(disk, directory)


def holds_segments(disk: Disk, directory: str) -> bool:
    """Whether there is a log in it."""
    return any(is_segment_file(name) and name.endswith(LOG_SUFFIX) for name in _names(disk, directory))


def _names(disk: Disk, directory: str) -> list[str]:
    try:
        return disk.list_directory(directory)
    except DiskFault as fault:
        log.warning("%s is left alone: %s", directory, fault)
        return []


def read_topic_id(disk: Disk, directory: str) -> TopicId | None:
    """The id of the topic whose data this is; None when the directory is new or a crash took or tore the file."""
    content = disk.read_file(f"{directory}/{TOPIC_ID_FILE}") or b""
    whole = _TOPIC_ID_FORM.fullmatch(content)
    if not whole and not _TORN_TOPIC_ID_FORM.fullmatch(content):
        log.warning("%s/%s is damaged, and made again from what the cluster says", directory, TOPIC_ID_FILE)
    return TopicId(id_bytes(whole[1].decode())) if whole else None


def write_topic_id(disk: Disk, directory: str, topic_id: TopicId) -> None:
    """Not flushed: it is written again should a crash take it."""
    file = disk.open(f"{directory}/{TOPIC_ID_FILE}")
    file.truncate(0)
    file.append([f"version: 0\ntopic_id: {id_text(topic_id)}\n".encode()])
    file.close()


def restore_producers(disk: Disk, partition_log: Log, now_ms: int) -> Producers:
    """The producer state of a log: from the snapshot as far as it goes, from batch headers from there on.

    When those batches were written is not known: their timestamps are the producer's own, and may be of last year. So
    they count as written now, and their producers are not forgotten too soon.
    """
    producers = Producers()
    from_offset = partition_log.start_offset
    path = f"{partition_log.directory}/{PRODUCERS_FILE}"
    content = disk.read_file(path)
    if content is not None:
        try:
            snapshot_offset = producers.restore(content)
        except CorruptData as damage:
            log.warning("%s: %s: the producers are learned again from the batches", path, damage)
            snapshot_offset = -1
        if partition_log.start_offset <= snapshot_offset <= partition_log.end_offset:
            from_offset = snapshot_offset
        else:
            # It tells of batches that a crash has cut off, or it is damaged: the log alone is right. It must not stay:
            # once others have come to the offsets of the lost batches, nothing would show that it is wrong.
            producers = Producers()
            disk.remove(path)
            disk.flush_directory(partition_log.directory)
    for header in partition_log.headers(from_offset):
        producers.written(header, now_ms)
    return producers


def producers_snapshot(
    disk: Disk,
    partition_log: Log,
    producers: Producers,
    replace_file: Callable[[str, bytes], None] | None = None,
) -> Callable[[], None]:
    """The work of writing a snapshot of the producers as they are now. It blocks for a flush.

    `replace_file`: another one than the disk's own.
    """
    path = f"{partition_log.directory}/{PRODUCERS_FILE}"
    if not len(producers) and partition_log.size_bytes < WALKED_BYTES:
        return lambda: disk.remove(path)
    encode = producers.snapshot(partition_log.end_offset)

    def work() -> None:
        content = encode()
        if disk.read_file(path) != content:
            (replace_file or disk.replace_file)(path, content)

    return work

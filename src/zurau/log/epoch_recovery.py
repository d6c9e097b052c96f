"""The epochs of a log that is opened: from their file and the broker's journal if those fit the batches, or from the
batches alone. Blocks."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from zurau.epochs import NO_EPOCH, EpochHistory, EpochMark
from zurau.errors import CorruptData
from zurau.ids import Epoch, Offset
from zurau.log import epochs as epoch_file
from zurau.log.epochs import encode_epochs, parse_epochs
from zurau.log.segment import Segment
from zurau.log.segment_checks import epochs_fit
from zurau.ports import Disk

log = logging.getLogger("zurau.log")


def load_epochs(
    disk: Disk,
    directory: str,
    segments: Sequence[Segment],
    checked: Sequence[EpochMark],
    noted: Sequence[EpochMark],
    start_offset: Offset | None,
) -> tuple[EpochHistory, Offset, Epoch]:
    """The epochs that the file names and those of the batches behind; all from the batches if they do not fit.

    `checked` are those of the batches that recovery has looked at, `noted` those that the journal has; `start_offset`
    is where the log starts, or None if that was written down and is lost. Also returns where the oldest epoch in the
    file begins: no later than the log; and the last epoch in the file.
    """
    path = f"{directory}/{epoch_file.FILE_NAME}"
    content = disk.read_file(path)
    # A log starts where it was told to, also if what is left of its segments ends before.
    end = max(segments[-1].end.offset, start_offset or 0)
    epochs_start = 0
    in_file: list[EpochMark] = []
    try:
        in_file = parse_epochs(content).marks if content is not None else []
        # Those whose batches are lost are forgotten, on disk too: other batches will come to their offsets.
        # What the journal has is later than the file: all else in it is of a log that has begun anew since.
        later = [mark for mark in noted if not in_file or mark.epoch > in_file[-1].epoch]
        epochs = _merged([*in_file, *later], checked, end)
        starts = max(start_offset, segments[0].base_offset) if start_offset is not None else -1
        if not in_file and segments[0].size and not (noted and noted[0].start_offset <= starts):
            raise CorruptData("it says nothing" if content is not None else "it is missing")
        if not epochs_fit(epochs, segments):
            raise CorruptData("it does not fit the batches")
        first = in_file[0].start_offset if in_file else 0
        if start_offset is not None and first > starts:
            # Believed, it would hide what lies before it. The file has no checksum.
            raise CorruptData("it begins later than the log")
        epochs_start = first
    except CorruptData as damage:
        log.warning("%s: %s: made again from the batches", path, damage)
        in_file = []
        epochs = _from_batches(segments)
        for mark in noted:
            if mark.epoch > epochs.last and mark.start_offset == end:
                epochs.add(mark)
    if {*epochs.marks} - {*noted} != {*in_file} - {*noted}:
        disk.replace_file(path, encode_epochs(epochs))
        in_file = epochs.marks
    return EpochHistory(epochs.marks), epochs_start, in_file[-1].epoch if in_file else NO_EPOCH


def _merged(stored: Iterable[EpochMark], seen: Iterable[EpochMark], end: Offset) -> EpochHistory:
    """The marks that were stored, and for later epochs those that batches show. Raises `CorruptData`."""
    epochs = EpochHistory()
    for mark in [*sorted(mark for mark in set(stored) if mark.start_offset <= end), *seen]:
        if mark.epoch > epochs.last:
            if epochs.marks and mark.start_offset < epochs.marks[-1].start_offset:
                raise CorruptData(f"{mark} comes after {epochs.marks[-1]}")
            epochs.add(mark)
    return epochs


def _from_batches(segments: Sequence[Segment]) -> EpochHistory:
    epochs = EpochHistory()
    for segment in segments:
        try:
            for _, header in segment.headers():
                if header.leader_epoch > epochs.last:
                    epochs.add(EpochMark(header.leader_epoch, header.base_offset))
        except CorruptData:
            continue  # said already
    return epochs

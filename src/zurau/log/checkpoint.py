"""Two offsets of a log that its segments do not tell: where it starts after records were deleted from the front, and
up to where it has been compacted; and, for a moment, that it begins anew (see restarting). A small text file that is
replaced as a whole, with a checksum: a wrong start would hide records, or bring deleted ones back."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from fastcrc import crc32

from zurau.errors import CorruptData, DiskFault
from zurau.ids import Epoch, Offset
from zurau.log.files import ASIDE_SUFFIX
from zurau.ports import Disk

log = logging.getLogger("zurau.log")

FILE_NAME = "log-checkpoint"
_VERSION = "1"
#: As it was written before there was a checksum.
_OLD_VERSION = "0"
_START = "start-offset"
_COMPACTED = "compacted-offset"
_RESTART = "restart-epoch"
_CHECKSUM = "checksum"
#: A path, and what the file holds from then on.
ReplaceFile = Callable[[str, bytes], None]


class Checkpoint(NamedTuple):
    start_offset: Offset = 0
    compacted_offset: Offset = 0
    #: Written by a release that left no mark when old segments expired (see Log).
    is_old: bool = False
    #: It is to begin anew at its start, after this epoch, and may not have done so yet; None: nothing is to be done.
    restart_epoch: Epoch | None = None

    def content(self) -> bytes:
        restart = f"{_RESTART} {self.restart_epoch}\n" if self.restart_epoch is not None else ""
        facts = f"{_VERSION}\n{_START} {self.start_offset}\n{_COMPACTED} {self.compacted_offset}\n{restart}".encode()
        return facts + f"{_CHECKSUM} {crc32.iscsi(facts)}\n".encode()


def parse_checkpoint(content: bytes) -> Checkpoint:
    """Raises `CorruptData` if it does not say what was written."""
    try:
        version, *lines = content.decode().splitlines()
        facts = {name: int(number) for name, number in (line.split() for line in lines)}
        checkpoint = Checkpoint(facts[_START], facts[_COMPACTED], restart_epoch=facts.get(_RESTART))
        if version == _OLD_VERSION:
            return checkpoint._replace(is_old=True)
        if content == checkpoint.content():
            return checkpoint
    except (ValueError, KeyError):
        pass
    raise CorruptData(f"{FILE_NAME} does not say two offsets and their checksum")


def load_checkpoint(disk: Disk, directory: str) -> Checkpoint | None:
    """What the file says; None, with the file put aside, if that cannot be read. Blocks."""
    path = f"{directory}/{FILE_NAME}"
    try:
        return parse_checkpoint(disk.read_file(path) or b"")
    except CorruptData as damage:
        disk.rename(path, path + ASIDE_SUFFIX)
        log.error(  # noqa: TRY400 - the message says it all
            "%s: %s: the log starts where its oldest segment or epoch does, so records that were deleted from the "
            "front may show again; the file is kept as %s%s",
            directory, damage, FILE_NAME, ASIDE_SUFFIX,
        )  # fmt: skip
        return None


class CheckpointFile:
    """What a log has written down, and what a worker is writing down at present: one at a time."""

    __slots__ = ("_directory", "_disk", "_saving", "saved")

    def __init__(self, disk: Disk, directory: str, saved: Checkpoint | None) -> None:
        self._disk = disk
        self._directory = directory
        #: None: there is no such file.
        self.saved = saved
        self._saving: Checkpoint | None = None

    @property
    def saved_start(self) -> Offset:
        """-1: it says nothing of a start."""
        return self.saved.start_offset if self.saved is not None else -1

    def save(self, checkpoint: Checkpoint, replace_file: ReplaceFile | None = None) -> None:
        """Blocks."""
        if self._saving is not None:
            raise DiskFault(f"where {self._directory} starts is just being written down")
        (replace_file or self._disk.replace_file)(self._path, checkpoint.content())
        self.saved = checkpoint

    def begin(self, checkpoint: Checkpoint) -> Callable[[], None]:
        """Blocking work that saves it. Then call `done`, or `given_up` if it failed."""
        assert self._saving is None
        self._saving = checkpoint
        return partial(self._disk.replace_file, self._path, checkpoint.content())

    def done(self) -> Checkpoint | None:
        """What the work has saved; None if it was given up meanwhile."""
        done, self._saving = self._saving, None
        if done is not None:
            self.saved = done
        return done

    def given_up(self) -> None:
        """It may be saved or not."""
        self._saving = None

    @property
    def _path(self) -> str:
        return f"{self._directory}/{FILE_NAME}"

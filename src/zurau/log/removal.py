"""Files that are no longer in a log: renamed at once, so that nobody takes them for segments, and removed by a worker.

When old segments expire, one of their files is kept, empty, until the checkpoint tells the new start: it shows that the
others did not get lost. The checkpoint is not written at once, because that blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

from zurau.errors import DiskFault
from zurau.log.files import empty_file, rename_away
from zurau.log.segment import Segment
from zurau.ports import Disk


class Removals:
    """Those of one log."""

    __slots__ = ("_directory", "_disk", "_paths", "expired_mark")

    def __init__(self, disk: Disk, directory: str, paths: list[str], expired_mark: str | None) -> None:
        self._disk = disk
        self._directory = directory
        self._paths = paths
        #: The file that shows that old segments went rightly.
        self.expired_mark = expired_mark

    def add(self, paths: Iterable[str]) -> None:
        self._paths += paths

    def put_away(self, segments: Iterable[Segment]) -> None:
        """Take the files of segments that are no longer in the log out of the way."""
        for segment in segments:
            segment.retire()
            segment.close()
            self._paths += rename_away(self._disk, segment.stem)

    def mark_expired(self, path: str | None) -> None:
        """Keep this one, which was put away, in the place of the one before. None: the checkpoint tells it now."""
        if self.expired_mark is not None:
            self._paths.append(self.expired_mark)
        self.expired_mark = path

    def take(self) -> Callable[[], None] | None:
        """Blocking work that removes what there is now, or None."""
        paths, self._paths = self._paths, []
        if not paths:
            return None
        mark = self.expired_mark

        def work() -> None:
            if mark is not None:
                self._disk.flush_directory(self._directory)  # it has its new name for good before it is emptied
            for path in paths:
                if path == mark:
                    empty_file(self._disk, path)
                else:
                    self._disk.remove(path)

        return work

    def remove_now(self) -> None:
        """As far as that goes. Blocks."""
        with suppress(DiskFault):
            for path in self._paths:
                self._disk.remove(path)

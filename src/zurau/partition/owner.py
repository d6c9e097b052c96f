"""Whom a shell tells what its replica decided."""

from __future__ import annotations

from typing import Any, Protocol

from zurau.errors import DiskFault
from zurau.ids import Epoch, Offset
from zurau.records.batch import BatchHeader
from zurau.replica.core.identity import ReplicaId
from zurau.replica.core.roles import Role


class Owner(Protocol):
    """The partition whose replica it is: told of what clients can see."""

    def high_watermark_moved(self, offset: Offset) -> None: ...

    def replicated_moved(self, offset: Offset) -> None: ...

    def role_changed(self, role: Role, epoch: Epoch, leader: ReplicaId | None) -> None: ...

    def leadership_established(self) -> None: ...

    def replicated(self, header: BatchHeader) -> None:
        """A follower has written a batch of its leader's."""

    def recover_producers(self) -> object:
        """Read the producers' state again from the shortened log. Blocks: it is called in a worker."""

    def truncated(self, producers: Any) -> None:
        """The log was shortened; this is what was read."""

    def flushed_moved(self, offset: Offset) -> None: ...

    def storage_fault(self, fault: DiskFault | None) -> None:
        """Nothing can be made safe at present; None: it can again."""

    def is_awaited(self, offset: Offset) -> bool: ...

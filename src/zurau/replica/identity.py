"""Who a replica is: a broker and the directory that holds the copy.

The directory's id is made once, when the directory is. A broker that comes back with an empty disk comes back as
somebody else, so it can neither vote twice in one epoch nor be counted for records that it has forgotten.
"""

from __future__ import annotations

from typing import NamedTuple

from zurau.ids import BrokerId


class ReplicaId(NamedTuple):
    broker: BrokerId
    directory: str

    def __str__(self) -> str:
        return f"{self.broker}{self.directory}"

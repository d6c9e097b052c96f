"""Who a replica is: a broker and the directory that holds the copy; and of what it is one.

The directory's id is made once, when the directory is. A broker that comes back with an empty disk comes back as
somebody else, so it can neither vote twice in one epoch nor be counted for records that it has forgotten.
"""

from __future__ import annotations

from zurau.ids import PartitionId, ReplicaId

__all__ = ["PartitionId", "ReplicaId"]

"""The feature levels of this broker (KIP-584): what clients turn on by themselves when a broker says that it has it.

A level that is claimed and not kept breaks clients without a word: `transaction.version` 2 changes how the Java
producer ends transactions, `group.version` 1 how consumers join. So everything that is not served yet stands here with
0, and the level of the metadata is the lowest that Kafka 4 knows: what came later is about records that we don't have.
"""

from __future__ import annotations

from typing import NamedTuple


class Level(NamedTuple):
    """The levels between which an operator may choose, and the one that holds."""

    lowest: int
    highest: int
    now: int


#: Called 3.3-IV3 by Kafka's tools: the first that Kafka itself recommended without ZooKeeper.
LOWEST_METADATA_VERSION = 7
NOT_SERVED = Level(0, 0, 0)

FEATURES = {
    "group.version": NOT_SERVED,
    "metadata.version": Level(LOWEST_METADATA_VERSION, LOWEST_METADATA_VERSION, LOWEST_METADATA_VERSION),
    "share.version": NOT_SERVED,
    "streams.version": NOT_SERVED,
    "transaction.version": NOT_SERVED,
}

"""Which follower a consumer should read from (KIP-392): one in its rack that has what it wants, if the leader is not.

There is nothing to switch on: a consumer that names its rack (`client.rack`) wants this, and without racks of brokers
(`broker.rack`) nobody is in it. A follower that was sent a consumer serves it up to the high watermark that it knows.
"""

from __future__ import annotations

from zurau.api.kafka.call import Call
from zurau.ids import BrokerId, Offset
from zurau.partition.partition import Partition

NO_REPLICA = BrokerId(-1)


def find_preferred_replica(partition: Partition, rack_id: str, offset: Offset, call: Call) -> BrokerId:
    """As Kafka's `RackAwareReplicaSelector`: of several, the one that has most."""
    brokers = call.broker.image.brokers
    me = brokers.get(call.broker.broker_id)
    if me is None or me.rack is None or me.rack == rack_id:
        return NO_REPLICA
    core = partition.shell.core
    followers = core.followers
    found = []
    for replica in core.in_step:
        broker, progress = brokers.get(replica.broker), followers[replica]
        is_near = broker is not None and broker.rack == rack_id and broker.is_active
        if is_near and progress.log_start <= offset <= progress.position.offset:
            found.append((progress.position.offset, -replica.broker))
    return BrokerId(-max(found)[1]) if found else NO_REPLICA

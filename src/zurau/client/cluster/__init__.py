"""The way to the right broker: metadata, leaders and coordinators, and the connections to them."""

from __future__ import annotations

from zurau.client.cluster.cluster import DEFAULT_BOOTSTRAP, Cluster, parse_addresses
from zurau.client.cluster.metadata import NO_LEADER, BrokerInfo, Metadata, PartitionInfo, TopicInfo

__all__ = [
    "DEFAULT_BOOTSTRAP",
    "NO_LEADER",
    "BrokerInfo",
    "Cluster",
    "Metadata",
    "PartitionInfo",
    "TopicInfo",
    "parse_addresses",
]

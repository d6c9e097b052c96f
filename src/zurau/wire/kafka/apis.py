"""Which APIs are served, in which versions. ApiVersions answers with this table, and dispatch goes by it.

Adding an API is one line here, one in `api/kafka/handlers.py`, and one file each in `messages/` and in `api/kafka/`.
"""

from __future__ import annotations

import re
from functools import cached_property
from importlib import import_module

import msgspec

from zurau.settings import INT32_MAX
from zurau.wire.kafka.schema import Message


class Api(msgspec.Struct, frozen=True, dict=True):
    key: int
    name: str
    #: Versions served, both included.
    first: int
    last: int
    #: The lowest version named to clients; below `first` when old clients draw conclusions from it.
    advertised_from: int | None = None

    @property
    def advertised_first(self) -> int:
        return self.first if self.advertised_from is None else self.advertised_from

    @cached_property
    def module(self) -> str:
        """What its files are called: `DescribeLogDirs` is in `describe_log_dirs.py`."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.name).lower()

    @cached_property
    def request(self) -> type[Message]:
        return self._message("Request")

    @cached_property
    def response(self) -> type[Message]:
        return self._message("Response")

    @cached_property
    def versions(self) -> range:
        """The versions served."""
        return range(self.first, self.last + 1)

    @cached_property
    def _flexible_since(self) -> int:
        since = self.request.flexible_since
        return INT32_MAX if since is None else since

    def is_flexible(self, version: int) -> bool:
        return version >= self._flexible_since

    def _message(self, kind: str) -> type[Message]:
        module = import_module(f"zurau.wire.kafka.messages.{self.module}")
        cls: type[Message] = getattr(module, self.name + kind)
        return cls


APIS: dict[int, Api] = {
    api.key: api
    for api in (
        # Clients on librdkafka before 2.11.1 stop compressing when they do not see Produce 0 (KAFKA-18659).
        Api(0, "Produce", 3, 11, advertised_from=0),
        Api(1, "Fetch", 4, 18),
        Api(2, "ListOffsets", 1, 11),
        Api(3, "Metadata", 0, 13),
        Api(8, "OffsetCommit", 2, 10),
        Api(9, "OffsetFetch", 1, 10),
        Api(10, "FindCoordinator", 0, 6),
        Api(11, "JoinGroup", 0, 9),
        Api(12, "Heartbeat", 0, 4),
        Api(13, "LeaveGroup", 0, 5),
        Api(14, "SyncGroup", 0, 5),
        Api(15, "DescribeGroups", 0, 6),
        Api(16, "ListGroups", 0, 5),
        Api(18, "ApiVersions", 0, 4),
        Api(19, "CreateTopics", 2, 7),
        Api(20, "DeleteTopics", 1, 6),
        Api(21, "DeleteRecords", 0, 2),
        Api(22, "InitProducerId", 0, 5),
        Api(23, "OffsetForLeaderEpoch", 2, 4),
        Api(29, "DescribeAcls", 1, 3),
        Api(30, "CreateAcls", 1, 3),
        Api(31, "DeleteAcls", 1, 3),
        Api(32, "DescribeConfigs", 1, 4),
        Api(33, "AlterConfigs", 0, 2),
        Api(34, "AlterReplicaLogDirs", 1, 2),
        Api(35, "DescribeLogDirs", 1, 5),
        Api(37, "CreatePartitions", 0, 3),
        Api(42, "DeleteGroups", 0, 2),
        Api(43, "ElectLeaders", 0, 2),
        Api(44, "IncrementalAlterConfigs", 0, 1),
        Api(45, "AlterPartitionReassignments", 0, 1),
        Api(46, "ListPartitionReassignments", 0, 0),
        Api(47, "OffsetDelete", 0, 0),
        Api(48, "DescribeClientQuotas", 0, 1),
        Api(49, "AlterClientQuotas", 0, 1),
        Api(50, "DescribeUserScramCredentials", 0, 0),
        Api(51, "AlterUserScramCredentials", 0, 0),
        Api(55, "DescribeQuorum", 0, 2),
        Api(57, "UpdateFeatures", 0, 2),
        Api(60, "DescribeCluster", 0, 2),
        Api(61, "DescribeProducers", 0, 0),
        Api(64, "UnregisterBroker", 0, 0),
        Api(65, "DescribeTransactions", 0, 0),
        Api(66, "ListTransactions", 0, 2),
        Api(74, "ListConfigResources", 0, 1),
        Api(75, "DescribeTopicPartitions", 0, 0),
        Api(80, "AddRaftVoter", 0, 0),
        Api(81, "RemoveRaftVoter", 0, 0),
    )
}

#: What our client can ask: all of the above, and what Apache Kafka serves and we do not yet.
CLIENT_APIS: dict[int, Api] = APIS | {
    api.key: api
    for api in (
        Api(17, "SaslHandshake", 1, 1),
        Api(36, "SaslAuthenticate", 0, 2),
    )
}

"""Every API with its handler and with what a caller must be allowed to do, at a glance.

Handlers and their messages are imported when they are first asked for, so that a broker starts quickly and holds only
what its clients use. A test holds this table against `wire/kafka/apis.py` and the handlers' own types.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cached_property
from importlib import import_module
from typing import cast

import msgspec

from zurau.api.kafka.call import Call
from zurau.broker.authorization import CLUSTER_NAME, Operation, Permission, ResourceType
from zurau.wire.kafka.apis import APIS, Api
from zurau.wire.kafka.schema import Message

#: Takes the request of its own API and answers with its response, or with None where the client wants no answer.
Handle = Callable[[Message, Call], Awaitable[Message | None]]

READ, WRITE, CREATE, DELETE = Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE
DESCRIBE, ALTER, IDEMPOTENT_WRITE = Operation.DESCRIBE, Operation.ALTER, Operation.IDEMPOTENT_WRITE
DESCRIBE_CONFIGS, ALTER_CONFIGS = Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS


def topic(operation: Operation) -> Permission:
    return Permission(operation, ResourceType.TOPIC)


def group(operation: Operation) -> Permission:
    return Permission(operation, ResourceType.GROUP)


def cluster(operation: Operation) -> Permission:
    return Permission(operation, ResourceType.CLUSTER)


def transactional_id(operation: Operation) -> Permission:
    return Permission(operation, ResourceType.TRANSACTIONAL_ID)


class Handler(msgspec.Struct, frozen=True, dict=True):
    """What is done about one API. It lives in the file that is named like the API."""

    api: Api
    #: What is checked before an answer. A request may name resources of several types; which of these permissions it
    #: needs, and whether one of them makes up for another, is said in the table.
    needs: tuple[Permission, ...]

    @cached_property
    def checks(self) -> tuple[tuple[Permission, str | None], ...]:
        """What is known to be needed before the request is looked at; there is but one cluster to name."""
        return tuple(
            (permission, CLUSTER_NAME if permission.resource_type == ResourceType.CLUSTER else None)
            for permission in self.needs
        )

    @cached_property
    def handle(self) -> Handle:
        return cast("Handle", import_module(f"zurau.api.kafka.{self.api.module}").handle)


def _by_key(needs: dict[str, tuple[Permission, ...]]) -> dict[int, Handler]:
    keys = {api.name: key for key, api in APIS.items()}
    return {keys[name]: Handler(APIS[keys[name]], permissions) for name, permissions in needs.items()}


HANDLERS = _by_key(
    {
        # Records
        "Produce": (topic(WRITE), transactional_id(WRITE)),  # the latter for transactional batches
        "Fetch": (topic(READ),),
        "ListOffsets": (topic(DESCRIBE),),
        "OffsetForLeaderEpoch": (topic(DESCRIBE),),
        "DeleteRecords": (topic(DELETE),),
        # With a transactional id, that; without one, either of the others (WRITE on any topic)
        "InitProducerId": (transactional_id(WRITE), cluster(IDEMPOTENT_WRITE), topic(WRITE)),
        "DescribeProducers": (topic(READ),),
        "DescribeTransactions": (transactional_id(DESCRIBE), topic(DESCRIBE)),
        "ListTransactions": (transactional_id(DESCRIBE),),
        # The cluster
        "ApiVersions": (),  # asked before anybody could say who it is
        "DescribeCluster": (),
        "DescribeQuorum": (cluster(DESCRIBE),),
        "AddRaftVoter": (cluster(ALTER),),
        "RemoveRaftVoter": (cluster(ALTER),),
        "UnregisterBroker": (cluster(ALTER),),
        "UpdateFeatures": (cluster(ALTER),),
        "ElectLeaders": (cluster(ALTER),),
        "AlterPartitionReassignments": (cluster(ALTER),),
        "ListPartitionReassignments": (cluster(DESCRIBE),),
        "AlterReplicaLogDirs": (cluster(ALTER),),
        "DescribeLogDirs": (cluster(DESCRIBE),),
        # Topics
        "Metadata": (topic(DESCRIBE), cluster(CREATE), topic(CREATE)),  # either CREATE for what is created on the way
        "DescribeTopicPartitions": (topic(DESCRIBE),),
        "CreateTopics": (cluster(CREATE), topic(CREATE), topic(DESCRIBE_CONFIGS)),  # either CREATE
        "CreatePartitions": (topic(ALTER),),
        "DeleteTopics": (cluster(DELETE), topic(DELETE), topic(DESCRIBE)),  # either DELETE
        # Groups
        "FindCoordinator": (group(DESCRIBE), transactional_id(DESCRIBE)),  # by the type of the key
        "JoinGroup": (group(READ),),
        "SyncGroup": (group(READ),),
        "Heartbeat": (group(READ),),
        "LeaveGroup": (group(READ),),
        "OffsetCommit": (group(READ), topic(READ)),
        "OffsetFetch": (group(DESCRIBE), topic(DESCRIBE)),
        "OffsetDelete": (group(DELETE), topic(READ)),
        "DescribeGroups": (group(DESCRIBE),),
        "ListGroups": (cluster(DESCRIBE), group(DESCRIBE)),  # the former shows all, the latter those
        "DeleteGroups": (group(DELETE),),
        # Settings: of what the request names
        "DescribeConfigs": (topic(DESCRIBE_CONFIGS), group(DESCRIBE_CONFIGS), cluster(DESCRIBE_CONFIGS)),
        "AlterConfigs": (topic(ALTER_CONFIGS), group(ALTER_CONFIGS), cluster(ALTER_CONFIGS)),
        "IncrementalAlterConfigs": (topic(ALTER_CONFIGS), group(ALTER_CONFIGS), cluster(ALTER_CONFIGS)),
        "ListConfigResources": (cluster(DESCRIBE_CONFIGS),),
        # Users
        "DescribeAcls": (cluster(DESCRIBE),),
        "CreateAcls": (cluster(ALTER),),
        "DeleteAcls": (cluster(ALTER),),
        "DescribeClientQuotas": (cluster(DESCRIBE_CONFIGS),),
        "AlterClientQuotas": (cluster(ALTER_CONFIGS),),
        "DescribeUserScramCredentials": (cluster(DESCRIBE),),
        "AlterUserScramCredentials": (cluster(ALTER),),
    }
)

"""Odd questions about what there is little of on one broker: ACLs, quotas, passwords, moves, elections, features.

They are asked like those of odd_requests.py, and change nothing.
"""

from __future__ import annotations

from odd_requests import Question, Questions

from zurau.wire.kafka.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from zurau.wire.kafka.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from zurau.wire.kafka.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from zurau.wire.kafka.messages.create_acls import AclCreation, CreateAclsRequest
from zurau.wire.kafka.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from zurau.wire.kafka.messages.describe_acls import DescribeAclsRequest
from zurau.wire.kafka.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from zurau.wire.kafka.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from zurau.wire.kafka.messages.describe_quorum import DescribeQuorumRequest, QuorumPartition, QuorumTopic
from zurau.wire.kafka.messages.describe_transactions import DescribeTransactionsRequest
from zurau.wire.kafka.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from zurau.wire.kafka.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from zurau.wire.kafka.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from zurau.wire.kafka.messages.list_config_resources import ListConfigResourcesRequest
from zurau.wire.kafka.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from zurau.wire.kafka.messages.list_transactions import ListTransactionsRequest
from zurau.wire.kafka.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from zurau.wire.kafka.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from zurau.wire.kafka.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

UNKNOWN_ID, NO_ID = b"nobody has this!", bytes(16)
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE = 0, 1


def admin_questions() -> Questions:
    table: Questions = {}
    for add in (_by_id, _acls, _quotas, _passwords, _elections, _moves, _quorum, _features, _transactions, _settings):
        add(table)
    return table


def _by_id(table: Questions) -> None:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="m")
    for ids in ([UNKNOWN_ID], [NO_ID], [UNKNOWN_ID, NO_ID], []):
        topics = [OffsetCommitRequestTopic(topic_id=one, partitions=[partition]) for one in ids]
        for group, member in (("by-id", ""), ("", ""), ("by-id", "nobody")):
            request = OffsetCommitRequest(group_id=group, member_id=member, topics=topics)
            table[f"OffsetCommit 10: {ids} of {group!r} by {member!r}"] = Question(request, 10)
        wanted = [OffsetFetchRequestTopics(topic_id=one, partition_indexes=[0, 9]) for one in ids]
        groups = [OffsetFetchRequestGroup(group_id="by-id", topics=wanted)]
        table[f"OffsetFetch 10: {ids}"] = Question(OffsetFetchRequest(groups=groups), 10)


def _acls(table: Questions) -> None:
    for version in (1, 2, 3):
        described = DescribeAclsRequest(resource_type_filter=1, operation=1, permission_type=1, pattern_type_filter=1)
        table[f"DescribeAcls {version}"] = Question(described, version)
        acl = AclCreation(
            resource_type=TOPIC, resource_name="ten", principal="User:a", host="*", operation=3, permission_type=3
        )
        unwanted = DeleteAclsFilter(resource_type_filter=1, operation=1, permission_type=1, pattern_type_filter=1)
        for count in (0, 1, 3):
            table[f"CreateAcls {version}: {count}"] = Question(CreateAclsRequest(creations=[acl] * count), version)
            table[f"DeleteAcls {version}: {count}"] = Question(DeleteAclsRequest(filters=[unwanted] * count), version)


def _quotas(table: Questions) -> None:
    for filters in (
        [], [("user", 0, "a")], [("user", 1, None)], [("user", 2, None)], [("user", 1, "a")], [("user", 2, "a")],
        [("user", 0, None)], [("user", 7, "a")], [("user", -1, "a")], [("planet", 0, "mars")], [("", 0, "a")],
        [("user", 0, "a"), ("user", 0, "a")], [("client-id", 0, "a"), ("user", 1, None)], [("ip", 2, None)],
        [("ip", 2, None), ("user", 2, None)], [("ip", 0, "a"), ("client-id", 0, "b")], [("ip", 0, "not an ip")],
    ):  # fmt: skip
        components = [ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in filters]
        for version in (0, 1):
            request = DescribeClientQuotasRequest(components=components, strict=True)
            table[f"DescribeClientQuotas {version}: {filters}"] = Question(request, version)


def _passwords(table: Questions) -> None:
    for names in (None, [], ["a"], ["a", "b", "a"], [""]):
        users = None if names is None else [UserName(name=name) for name in names]
        table[f"DescribeUserScramCredentials: {names}"] = Question(DescribeUserScramCredentialsRequest(users=users))
    for gone in ([], [("a", 1)], [("a", 1), ("a", 2)], [("a", 7)], [("a", -1)], [("", 1)]):
        deletions = [ScramCredentialDeletion(name=name, mechanism=mechanism) for name, mechanism in gone]
        request = AlterUserScramCredentialsRequest(deletions=deletions, upsertions=[])
        table[f"AlterUserScramCredentials: without {gone}"] = Question(request)


def _elections(table: Questions) -> None:
    for election in (0, 1, 7, -1):
        for topics in (
            [], [("two", [0])], [("two", [0, 9])], [("unknown", [0])], [("two", [])], [("two", [0]), ("two", [1])],
            [("two", [0, 0])], [("two", [-1])], [("", [0])],
        ):  # fmt: skip
            wanted = [TopicPartitions(topic=name, partitions=indexes) for name, indexes in topics]
            request = ElectLeadersRequest(election_type=election, topic_partitions=wanted)
            table[f"ElectLeaders of type {election}: {topics}"] = Question(request, 2)


def _moves(table: Questions) -> None:
    for topic, index, replicas in (
        ("two", 0, [1]), ("two", 0, []), ("two", 0, None), ("two", 0, [1, 1]), ("two", 0, [2]), ("two", 0, [1, 2]),
        ("two", 0, [-1]), ("two", 9, [1]), ("two", -1, [1]), ("unknown", 0, [1]), ("unknown", 0, None),
    ):  # fmt: skip
        partition = ReassignablePartition(partition_index=index, replicas=replicas)
        wanted = [ReassignableTopic(name=topic, partitions=[partition])]
        for version in (0, 1):
            request = AlterPartitionReassignmentsRequest(topics=wanted)
            name = f"AlterPartitionReassignments {version}: {topic}-{index} to {replicas}"
            table[name] = Question(request, version)
    for asked in (None, [], [("two", [0])], [("unknown", [0])], [("two", [9, -1])]):
        moving = (
            None
            if asked is None
            else [ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes) for name, indexes in asked]
        )
        table[f"ListPartitionReassignments: {asked}"] = Question(ListPartitionReassignmentsRequest(topics=moving))
    for path in ("/nowhere", "relative", ""):
        for topic in ("two", "unknown"):
            there = AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=topic, partitions=[0])])
            table[f"AlterReplicaLogDirs: {topic} to {path!r}"] = Question(AlterReplicaLogDirsRequest(dirs=[there]), 2)


def _quorum(table: Questions) -> None:
    for topics in ([], [("__cluster_metadata", [1])], [("ten", [0])], [("__cluster_metadata", [0, 1])]):
        wanted = [
            QuorumTopic(topic_name=name, partitions=[QuorumPartition(partition_index=index) for index in indexes])
            for name, indexes in topics
        ]
        table[f"DescribeQuorum: {topics}"] = Question(DescribeQuorumRequest(topics=wanted), 2)


def _features(table: Questions) -> None:
    for features in (
        [], [("unknown", 1)], [("group.version", 9)], [("metadata.version", 0)], [("metadata.version", 7)],
        [("group.version", -1)], [("group.version", 9), ("unknown", 1)], [("group.version", 1)],
    ):  # fmt: skip
        for version, way in ((0, 1), (1, 1), (2, 1), (2, 2), (2, 0), (2, 7)):
            updates = [
                FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=way) for name, level in features
            ]
            if version == 0 and features == [("group.version", 1)]:
                continue  # it cannot be only tried
            request = UpdateFeaturesRequest(feature_updates=updates, validate_only=version > 0)
            table[f"UpdateFeatures {version} in way {way}: {features}"] = Question(request, version)


def _transactions(table: Questions) -> None:
    for states in ([], ["Ongoing"], ["unknown"], ["ongoing"], ["Ongoing", "unknown", "unknown"]):
        request = ListTransactionsRequest(state_filters=states, producer_id_filters=[-1, 2**62])
        for version in (0, 1, 2):
            table[f"ListTransactions {version}: {states}"] = Question(request, version)
    for pattern in ("a.*", "", "["):
        request = ListTransactionsRequest(
            state_filters=[], producer_id_filters=[], transactional_id_pattern=pattern, duration_filter=-5
        )
        table[f"ListTransactions 2: like {pattern!r}"] = Question(request, 2)
    for ids in ([], [""]):
        table[f"DescribeTransactions: {ids}"] = Question(DescribeTransactionsRequest(transactional_ids=ids))


def _settings(table: Questions) -> None:
    for types in ([METRICS], [GROUP], [BROKER], [LOGGER], [LOGGER, BROKER, BROKER], [77], [TOPIC, 0]):
        table[f"ListConfigResources: {types}"] = Question(ListConfigResourcesRequest(resource_types=types), 1)
    table["ListConfigResources 0"] = Question(ListConfigResourcesRequest(), 0)
    for kind in (0, 1, TOPIC, BROKER, LOGGER, METRICS, GROUP, 64, -1):
        for name in ("", "g", "9", "a b"):
            resource = DescribeConfigsResource(resource_type=kind, resource_name=name)
            table[f"DescribeConfigs: {name!r} of type {kind}"] = Question(
                DescribeConfigsRequest(resources=[resource]), 4
            )
    for kind, name in (
        (METRICS, ""),
        (METRICS, "m"),
        (GROUP, ""),
        (GROUP, "g"),
        (LOGGER, ""),
        (LOGGER, "9"),
        (77, "x"),
    ):
        for edits in ([], [("unknown", SET, "1")], [("unknown", DELETE, None)]):
            configs = [AlterableConfig(name=one, config_operation=how, value=text) for one, how, text in edits]
            changed = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
            request = IncrementalAlterConfigsRequest(resources=[changed], validate_only=True)
            table[f"IncrementalAlterConfigs: {edits} on {name!r} of type {kind}"] = Question(request, 1)

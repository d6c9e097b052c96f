"""Requests of administration that name as many things as one message may hold: answered in turns.

What cannot be done here is refused for each thing that is named, so the answer grows with the question.
"""

from __future__ import annotations

from attack import resident_mb

from zurau.wire.kafka.frames import REQUEST_ELEMENTS_MAX
from zurau.wire.kafka.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, QuotaAlteration
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
from zurau.wire.kafka.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from zurau.wire.kafka.messages.describe_quorum import DescribeQuorumRequest, QuorumPartition, QuorumTopic
from zurau.wire.kafka.messages.describe_transactions import DescribeTransactionsRequest
from zurau.wire.kafka.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from zurau.wire.kafka.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from zurau.wire.kafka.messages.list_config_resources import ListConfigResourcesRequest
from zurau.wire.kafka.messages.list_transactions import ListTransactionsRequest
from zurau.wire.kafka.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

COUNT = REQUEST_ELEMENTS_MAX - 10
WAIT_ALLOWED_S = 5
MEMORY_ALLOWED_MB = 1000

INDEXES = list(range(COUNT))
NAMES = [f"n{number}" for number in INDEXES]
ACL = AclCreation(resource_type=2, resource_name="t", principal="User:a", host="*", operation=3, permission_type=3)
ALL_ACLS = DeleteAclsFilter(resource_type_filter=1, operation=1, permission_type=1)
QUOTA = QuotaAlteration(entity=[EntityData(entity_type="user", entity_name="a")], ops=[])
MOVED = [ReassignablePartition(partition_index=index, replicas=[7]) for index in INDEXES[::2]]
ELSEWHERE = AlterReplicaLogDir(path="/", topics=[AlterReplicaLogDirTopic(name="t", partitions=INDEXES)])
QUORUM = [QuorumTopic(topic_name="t", partitions=[QuorumPartition(partition_index=index) for index in INDEXES])]
FEATURE = FeatureUpdateKey(feature="metadata.version", max_version_level=7)
FILTER = ComponentData(entity_type="user", match_type=0, match="a")

FLOODS = [
    (CreateAclsRequest(creations=[ACL] * COUNT), 3),
    (DeleteAclsRequest(filters=[ALL_ACLS] * COUNT), 3),
    (AlterClientQuotasRequest(entries=[QUOTA] * (COUNT // 2), validate_only=False), 1),
    (DescribeClientQuotasRequest(components=[FILTER] * COUNT, strict=False), 1),
    (DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in NAMES]), 0),
    (
        AlterUserScramCredentialsRequest(
            deletions=[ScramCredentialDeletion(name=name, mechanism=1) for name in NAMES], upsertions=[]
        ),
        0,
    ),
    (ElectLeadersRequest(election_type=0, topic_partitions=[TopicPartitions(topic="t", partitions=INDEXES)]), 2),
    (AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="t", partitions=MOVED)]), 1),
    (AlterReplicaLogDirsRequest(dirs=[ELSEWHERE]), 2),
    (DescribeQuorumRequest(topics=QUORUM), 2),
    (UpdateFeaturesRequest(feature_updates=[FEATURE] * COUNT), 1),
    (DescribeTransactionsRequest(transactional_ids=NAMES), 0),
    (ListTransactionsRequest(state_filters=NAMES, producer_id_filters=[]), 2),
    (ListConfigResourcesRequest(resource_types=[2] * COUNT), 1),
]


def test_requests_that_name_very_many_things_hold_up_nobody_else(broker, connect, watch, record_property):
    attacker, bystander = connect(broker), watch(broker)
    for request, version in FLOODS:
        attacker.ask(request, version)
        assert bystander.longest_wait_s < WAIT_ALLOWED_S, type(request).__name__
    held = resident_mb(broker.pid)
    record_property("memory, MB", round(held))
    assert bystander.finish() < WAIT_ALLOWED_S
    assert held < MEMORY_ALLOWED_MB

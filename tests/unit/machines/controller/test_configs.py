from __future__ import annotations

import pytest

from zurau.errors import Refused
from zurau.ids import TopicId
from zurau.machines.controller.changes import BrokerConfigChanged, TopicConfigChanged
from zurau.machines.controller.commands import (
    AlterConfigs,
    ConfigEdit,
    ConfigOperation,
    CreateTopic,
    ReplaceConfigs,
    ResourceType,
)
from zurau.wire.kafka.error_codes import ErrorCode

SET, DELETE, APPEND, SUBTRACT = ConfigOperation


@pytest.fixture
def cluster(cluster_of):
    cluster = cluster_of(1)
    cluster.ask(CreateTopic("orders", TopicId(bytes(16)), 1, 1, configs={"retention.ms": "5"}))
    return cluster


def alter(*edits, resource_type=ResourceType.TOPIC, name="orders", validate_only=False):
    return AlterConfigs(resource_type, name, [ConfigEdit(*edit) for edit in edits], validate_only)


def refusal(cluster, command):
    with pytest.raises(Refused) as caught:
        cluster.ask(command)
    return caught.value


def test_a_setting_is_set_and_the_others_stay(cluster):
    cluster.ask(alter(("min.lag.ms", SET, "7")))
    assert cluster.image.topics["orders"].configs == {"retention.ms": "5", "min.lag.ms": "7"}
    assert cluster.changes[-1] == TopicConfigChanged(cluster.image.topics["orders"])


def test_a_deleted_setting_is_no_longer_the_topics_own(cluster):
    cluster.ask(alter(("retention.ms", DELETE)))
    assert cluster.image.topics["orders"].configs == {}


def test_a_word_is_appended_to_the_default_of_a_list(cluster):
    cluster.ask(alter(("cleanup.policy", APPEND, "compact")))
    assert cluster.image.topics["orders"].configs["cleanup.policy"] == "delete,compact"


def test_appending_a_word_that_is_there_changes_nothing(cluster):
    cluster.ask(alter(("cleanup.policy", SET, "compact")))
    cluster.ask(alter(("cleanup.policy", APPEND, "compact")))
    assert cluster.image.topics["orders"].configs["cleanup.policy"] == "compact"


def test_a_word_is_subtracted_from_a_list(cluster):
    cluster.ask(alter(("cleanup.policy", SET, "compact,delete")))
    cluster.ask(alter(("cleanup.policy", SUBTRACT, "delete")))
    assert cluster.image.topics["orders"].configs["cleanup.policy"] == "compact"


def test_only_lists_can_be_appended_to(cluster):
    assert refusal(cluster, alter(("retention.ms", APPEND, "1"))).code is ErrorCode.INVALID_CONFIG


def test_all_edits_of_a_command_are_made_or_none(cluster):
    epoch = cluster.image.epoch
    refused = refusal(cluster, alter(("min.lag.ms", SET, "7"), ("retention.ms", SET, "-2")))
    assert refused.code is ErrorCode.INVALID_CONFIG
    assert cluster.image.epoch == epoch


def test_several_edits_are_one_record_and_one_change(cluster):
    epoch = cluster.image.epoch
    cluster.ask(alter(("min.lag.ms", SET, "200"), ("max.lag.ms", SET, "300")))
    assert cluster.image.epoch == epoch + 1


def test_nothing_is_written_when_only_validating(cluster):
    cluster.ask(alter(("retention.ms", SET, "9"), validate_only=True))
    assert cluster.image.topics["orders"].configs == {"retention.ms": "5"}


def test_a_value_that_is_already_set_writes_nothing(cluster):
    epoch = cluster.image.epoch
    cluster.ask(alter(("retention.ms", SET, "5")))
    assert cluster.image.epoch == epoch


@pytest.mark.parametrize(
    ("edits", "code"),
    [
        ([("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", 9, "1")], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", SET, "1"), ("retention.ms", DELETE)], ErrorCode.INVALID_REQUEST),
        ([("retentions", DELETE)], ErrorCode.INVALID_CONFIG),
    ],
    ids=["no value", "no such operation", "twice", "unknown name"],
)
def test_edits_without_a_meaning_are_refused(cluster, edits, code):
    assert refusal(cluster, alter(*edits)).code is code


def test_replacing_configs_takes_the_others_back_to_their_default(cluster):
    cluster.ask(ReplaceConfigs(ResourceType.TOPIC, "orders", {"min.lag.ms": "1"}))
    assert cluster.image.topics["orders"].configs == {"min.lag.ms": "1"}


def test_the_default_of_all_topics_is_a_setting_of_the_brokers(cluster):
    cluster.ask(alter(("log.retention.ms", SET, "9"), resource_type=ResourceType.BROKER, name=""))
    assert cluster.image.broker_configs == {"": {"log.retention.ms": "9"}}
    assert cluster.changes[-1] == BrokerConfigChanged("")


def test_one_broker_can_have_a_default_of_its_own(cluster):
    cluster.ask(alter(("log.retention.ms", SET, "9"), resource_type=ResourceType.BROKER, name="1"))
    assert cluster.image.broker_configs == {"1": {"log.retention.ms": "9"}}


def test_a_setting_that_brokers_read_at_start_cannot_be_changed(cluster):
    refused = refusal(cluster, alter(("num.partitions", SET, "9"), resource_type=ResourceType.BROKER, name=""))
    assert refused.code is ErrorCode.INVALID_CONFIG
    assert "a running broker has no setting 'num.partitions'" in refused.message


@pytest.mark.parametrize(
    ("resource_type", "name", "code"),
    [
        (ResourceType.TOPIC, "nothing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ResourceType.BROKER, "9", ErrorCode.INVALID_REQUEST),
        (ResourceType.BROKER, "first", ErrorCode.INVALID_REQUEST),
        (77, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_resources_that_are_not_there_are_refused(cluster, resource_type, name, code):
    assert refusal(cluster, alter(resource_type=resource_type, name=name)).code is code


@pytest.mark.parametrize(
    ("resource_type", "name", "code", "reason"),
    [
        (ResourceType.GROUP, "g", ErrorCode.INVALID_CONFIG, "groups have no settings"),
        (ResourceType.CLIENT_METRICS, "m", ErrorCode.INVALID_REQUEST, "not asked for their metrics"),
        (ResourceType.BROKER_LOGGER, "1", ErrorCode.INVALID_CONFIG, "--log-level"),
        (ResourceType.BROKER_LOGGER, "9", ErrorCode.INVALID_REQUEST, "called '9'"),
        (ResourceType.GROUP, "", ErrorCode.INVALID_REQUEST, "called ''"),
    ],
)
def test_what_has_no_settings_here_says_why_and_lets_nothing_be_set(cluster, resource_type, name, code, reason):
    for command in (
        alter(("interval.ms", SET, "1000"), resource_type=resource_type, name=name),
        ReplaceConfigs(resource_type, name, {"interval.ms": "1000"}),
    ):
        refused = refusal(cluster, command)
        assert refused.code is code
        assert reason in refused.message


def test_deleting_what_a_group_does_not_have_changes_nothing(cluster):
    epoch = cluster.image.epoch
    cluster.ask(alter(("consumer.session.timeout.ms", DELETE, None), resource_type=ResourceType.GROUP, name="g"))
    assert cluster.image.epoch == epoch


def test_throttles_are_taken_and_taken_off_again_whether_they_are_there_or_not(cluster):
    cluster.ask(alter(("leader.replication.throttled.replicas", DELETE, None)))
    cluster.ask(alter(("leader.replication.throttled.replicas", SET, "0:1,1:2")))
    assert cluster.image.topics["orders"].configs["leader.replication.throttled.replicas"] == "0:1,1:2"
    cluster.ask(alter(("leader.replication.throttled.replicas", DELETE, None)))
    assert "leader.replication.throttled.replicas" not in cluster.image.topics["orders"].configs


def test_a_broker_is_drained_by_a_setting_of_its_own(cluster):
    cluster.ask(alter(("zurau.drain", SET, "leaders"), resource_type=ResourceType.BROKER, name="1"))
    assert cluster.image.is_drained(1)
    assert not cluster.image.is_leaving(1)
    refused = refusal(cluster, alter(("zurau.drain", SET, "dry"), resource_type=ResourceType.BROKER, name="1"))
    assert refused.code is ErrorCode.INVALID_CONFIG


def test_what_a_topic_goes_by_is_laid_over_what_brokers_go_by(cluster):
    cluster.ask(alter(("log.retention.ms", SET, "9"), resource_type=ResourceType.BROKER, name=""))
    cluster.ask(alter(("log.cleanup.policy", SET, "compact"), resource_type=ResourceType.BROKER, name="1"))
    rules = cluster.controller.rules
    assert rules.broker_defaults(cluster.image, 1).retention_ms == 9
    assert rules.broker_defaults(cluster.image, 1).cleanup_policy == ("compact",)
    assert rules.broker_defaults(cluster.image, 2).cleanup_policy == ("delete",)
    assert rules.topic_settings(cluster.image, 1, cluster.image.topics["orders"].configs).retention_ms == 5

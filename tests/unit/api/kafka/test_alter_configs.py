"""AlterConfigs and IncrementalAlterConfigs, which change the same things."""

from __future__ import annotations

import pytest

from zurau.api.kafka import alter_configs, incremental_alter_configs
from zurau.ids import TopicId
from zurau.machines.controller.commands import ConfigOperation, CreateTopic, ResourceType
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages import alter_configs as whole
from zurau.wire.kafka.messages import incremental_alter_configs as incremental


@pytest.fixture
def broker(broker, settle):
    async def create():
        await broker.controller.submit(CreateTopic("orders", TopicId(bytes(16)), configs={"retention.ms": "5"}))

    settle(create())
    return broker


@pytest.fixture
def replace(ask, broker):
    def run(configs, resource_type=ResourceType.TOPIC, name="orders", version=2, validate_only=False):
        entries = [whole.AlterableConfig(name=key, value=value) for key, value in configs.items()]
        resource = whole.AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=entries)
        request = whole.AlterConfigsRequest(resources=[resource], validate_only=validate_only)
        return ask(alter_configs, request, version, broker).responses[0]

    return run


@pytest.fixture
def alter(ask, broker):
    def run(key, operation, value=None, resource_type=ResourceType.TOPIC, name="orders", version=1):
        edit = incremental.AlterableConfig(name=key, config_operation=operation, value=value)
        resource = incremental.AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=[edit])
        request = incremental.IncrementalAlterConfigsRequest(resources=[resource])
        return ask(incremental_alter_configs, request, version, broker).responses[0]

    return run


@pytest.mark.parametrize("version", range(3))
def test_what_a_replacement_does_not_name_goes_back_to_its_default(replace, broker, version):
    assert replace({"segment.ms": "9"}, version=version).error_code == 0
    assert broker.image.topics["orders"].configs == {"segment.ms": "9"}


def test_a_replacement_can_be_tried_without_being_made(replace, broker):
    assert replace({"segment.ms": "9"}, validate_only=True).error_code == 0
    assert broker.image.topics["orders"].configs == {"retention.ms": "5"}


@pytest.mark.parametrize("version", range(2))
def test_a_changed_setting_is_what_the_log_goes_by_from_then_on(alter, broker, version):
    assert alter("max.message.bytes", ConfigOperation.SET, "77", version=version).error_code == 0
    assert broker.partition("orders", 0).log.settings.max_message_bytes == 77
    assert broker.partition("orders", 0).log.settings.retention_ms == 5


def test_a_list_is_appended_to(alter, broker):
    assert alter("cleanup.policy", ConfigOperation.APPEND, "compact").error_code == 0
    assert broker.partition("orders", 0).log.settings.cleanup_policy == ("delete", "compact")


def test_the_default_of_all_topics_reaches_the_logs_of_those_that_set_nothing(alter, broker):
    broker_wide = {"resource_type": ResourceType.BROKER, "name": ""}
    assert alter("log.segment.bytes", ConfigOperation.SET, "2097152", **broker_wide).error_code == 0
    assert alter("log.retention.ms", ConfigOperation.SET, "4096", **broker_wide).error_code == 0
    settings = broker.partition("orders", 0).log.settings
    assert (settings.segment_bytes, settings.retention_ms) == (2097152, 5)


def test_an_unknown_setting_is_refused_and_the_closest_one_is_named(alter):
    refused = alter("retention.mss", ConfigOperation.SET, "1")
    assert refused.error_code == ErrorCode.INVALID_CONFIG
    assert "did you mean 'retention.ms'" in refused.error_message


def test_a_refusal_names_the_resource(replace):
    refused = replace({"retention.ms": "1"}, name="nothing")
    assert (refused.error_code, refused.resource_name) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "nothing")


def test_a_list_grows_by_appending_up_to_what_can_be_read_back(alter, broker):
    name = "leader.replication.throttled.replicas"
    words = [f"{number}:1" for number in range(10_000)]
    half = ",".join(words)[:16_383].rpartition(",")[0]
    assert alter(name, ConfigOperation.SET, half).error_code == 0
    other = half.replace(":1", ":2")
    assert alter(name, ConfigOperation.APPEND, other).error_code == 0
    refused = alter(name, ConfigOperation.APPEND, "9999:1,9999:2")
    assert refused.error_code == ErrorCode.INVALID_CONFIG
    assert refused.error_message == f"the value of '{name}' has more than 32767 bytes"
    assert broker.image.topics["orders"].configs[name] == f"{half},{other}"

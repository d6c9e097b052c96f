from __future__ import annotations

import pytest

from zurau.api.kafka import describe_configs
from zurau.ids import TopicId
from zurau.log.settings import LogSettings
from zurau.machines.controller.commands import AlterConfigs, ConfigEdit, CreateTopic, ResourceType
from zurau.machines.controller.dynamic import DynamicTopicSettings
from zurau.settings import settings_of
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource


@pytest.fixture
def broker(make_broker, settle):
    broker = make_broker(log_settings=LogSettings(segment_bytes=2 << 20))

    async def prepare():
        await broker.controller.submit(CreateTopic("orders", TopicId(bytes(16)), configs={"retention.ms": "5"}))
        for_all = [ConfigEdit("log.retention.ms", 0, "6"), ConfigEdit("log.cleanup.policy", 0, "compact")]
        await broker.controller.submit(AlterConfigs(ResourceType.BROKER, "", for_all))
        for_one = [ConfigEdit("log.retention.ms", 0, "7")]
        await broker.controller.submit(AlterConfigs(ResourceType.BROKER, "1", for_one))

    settle(prepare())
    return broker


@pytest.fixture
def describe(ask, broker):
    def run(resource_type, name, keys=None, version=4, **rest):
        resource = DescribeConfigsResource(resource_type=resource_type, resource_name=name, configuration_keys=keys)
        request = DescribeConfigsRequest(resources=[resource], **rest)
        return ask(describe_configs, request, version, broker).results[0]

    return run


def value_and_source(result):
    return {config.name: (config.value, config.config_source) for config in result.configs}


@pytest.mark.parametrize("version", range(1, 5))
def test_every_setting_of_a_topic_is_shown_in_every_version(describe, version):
    result = describe(ResourceType.TOPIC, "orders", version=version)
    assert {config.name for config in result.configs} == {*settings_of(LogSettings), *settings_of(DynamicTopicSettings)}


def test_a_topics_value_comes_from_the_nearest_layer_that_has_one(describe):
    shown = value_and_source(describe(ResourceType.TOPIC, "orders"))
    assert shown["retention.ms"] == ("5", 1)
    assert shown["cleanup.policy"] == ("compact", 3)
    assert shown["segment.bytes"] == ("2097152", 4)
    assert shown["index.interval.bytes"] == ("4096", 5)


def test_synonyms_are_all_the_layers_in_order(describe):
    result = describe(ResourceType.TOPIC, "orders", ["retention.ms"], include_synonyms=True)
    (config,) = result.configs
    assert [(synonym.name, synonym.value, synonym.source) for synonym in config.synonyms] == [
        ("retention.ms", "5", 1),
        ("log.retention.ms", "7", 2),
        ("log.retention.ms", "6", 3),
        ("log.retention.ms", "604800000", 5),
    ]


def test_synonyms_and_documentation_are_shown_only_when_asked_for(describe):
    (plain,) = describe(ResourceType.TOPIC, "orders", ["retention.ms"]).configs
    assert (plain.synonyms, plain.documentation) == ([], None)
    (told,) = describe(ResourceType.TOPIC, "orders", ["retention.ms"], include_documentation=True).configs
    assert told.documentation == settings_of(LogSettings)["retention.ms"].doc


def test_settings_have_kafkas_types(describe):
    names = ["retention.ms", "segment.bytes", "cleanup.policy", "min.cleanable.dirty.ratio", "message.timestamp.type"]
    types = {config.name: config.config_type for config in describe(ResourceType.TOPIC, "orders", names).configs}
    assert [types[name] for name in names] == [5, 3, 7, 6, 2]


def test_an_empty_list_of_names_asks_for_all(describe):
    everything = [*settings_of(LogSettings), *settings_of(DynamicTopicSettings)]
    assert len(describe(ResourceType.TOPIC, "orders", []).configs) == len(everything)


def test_a_broker_shows_the_defaults_of_topics_and_what_it_was_started_with(describe):
    result = describe(ResourceType.BROKER, "1")
    shown = value_and_source(result)
    assert shown["log.retention.ms"] == ("7", 2)
    assert shown["num.partitions"] == ("1", 5)
    read_only = {config.name for config in result.configs if config.read_only}
    assert "num.partitions" in read_only
    assert "log.retention.ms" not in read_only


def test_what_holds_for_all_brokers_is_what_was_changed_for_all(describe):
    shown = value_and_source(describe(ResourceType.BROKER, ""))
    assert shown == {"log.retention.ms": ("6", 3), "log.cleanup.policy": ("compact", 3)}


@pytest.mark.parametrize(
    ("resource_type", "name"),
    [(ResourceType.BROKER_LOGGER, "1"), (ResourceType.GROUP, "g"), (ResourceType.CLIENT_METRICS, "m")],
)
def test_loggers_groups_and_subscriptions_to_metrics_have_no_settings_here(describe, resource_type, name):
    result = describe(resource_type, name)
    assert (result.error_code, result.configs) == (0, [])


@pytest.mark.parametrize(
    ("resource_type", "name", "code"),
    [
        (ResourceType.TOPIC, "nothing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ResourceType.TOPIC, "not a name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (ResourceType.BROKER, "2", ErrorCode.INVALID_REQUEST),
        (ResourceType.BROKER_LOGGER, "2", ErrorCode.INVALID_REQUEST),
        (ResourceType.GROUP, "", ErrorCode.INVALID_REQUEST),
        (77, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_resources_that_are_not_there_are_refused(describe, resource_type, name, code):
    result = describe(resource_type, name)
    assert (result.error_code, result.resource_name) == (code, name)

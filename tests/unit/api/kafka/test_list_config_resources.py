from __future__ import annotations

from zurau.api.kafka import list_config_resources
from zurau.machines.controller.commands import ResourceType
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.list_config_resources import ListConfigResourcesRequest

OFFSETS = "__consumer_offsets"


def listed(ask, broker, version, *types):
    answer = ask(list_config_resources, ListConfigResourcesRequest(resource_types=list(types)), version, broker)
    assert answer.error_code == ErrorCode.NONE
    return [(resource.resource_type, resource.resource_name) for resource in answer.config_resources]


def test_topics_and_brokers_have_settings(ask, broker):
    everything = [(ResourceType.TOPIC, OFFSETS), (ResourceType.BROKER, "1"), (ResourceType.BROKER_LOGGER, "1")]
    assert listed(ask, broker, 1) == everything
    assert listed(ask, broker, 1, ResourceType.TOPIC) == [(ResourceType.TOPIC, OFFSETS)]


def test_groups_and_subscriptions_to_metrics_have_none(ask, broker):
    assert listed(ask, broker, 1, ResourceType.GROUP, ResourceType.CLIENT_METRICS) == []
    assert listed(ask, broker, 0) == []


def test_an_unknown_type_is_refused(ask, broker):
    answer = ask(list_config_resources, ListConfigResourcesRequest(resource_types=[2, 77]), 1, broker)
    assert (answer.error_code, answer.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])

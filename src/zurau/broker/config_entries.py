"""The settings of topics and brokers as tools see them: each with its value, and where the value comes from.

A value is looked for in layers: on the topic, on this broker, on all brokers, in what the broker was started with,
and last in the declaration. The first layer that has one wins; all of them are its synonyms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

import msgspec

from zurau.broker.authorization import CLUSTER_NAME, Operation, Permission, ResourceType, authorize
from zurau.broker.broker import Broker
from zurau.broker.caller import Caller
from zurau.errors import Refused
from zurau.log.settings import LogSettings
from zurau.machines.controller.dynamic import DynamicBrokerSettings, DynamicTopicSettings
from zurau.machines.controller.image import ALL_BROKERS
from zurau.machines.controller.names import check_topic_name
from zurau.settings import Setting, settings_of
from zurau.wire.kafka.error_codes import ErrorCode

#: Written with their protocol in Kafka, which we may leave out.
ADDRESSES = ("listeners", "advertised.listeners")


class Source(IntEnum):
    """Kafka's numbers of where a value comes from."""

    TOPIC = 1
    THIS_BROKER = 2
    ALL_BROKERS = 3
    STARTED_WITH = 4
    DEFAULT = 5


class Layer(NamedTuple):
    name: str
    value: str
    source: Source


class ConfigEntry(msgspec.Struct, frozen=True):
    name: str
    setting: Setting
    is_read_only: bool
    #: Invariant: not empty; the first is what counts.
    layers: list[Layer]

    @property
    def value(self) -> str:
        return self.layers[0].value

    @property
    def source(self) -> Source:
        return self.layers[0].source


def _told(name: str, default: str, doc: str) -> Setting:
    return Setting(name, str, default, name, name, doc, at_least=None, at_most=None, choices=())


HEALTH = _told("zurau.health", "[]", "What is wrong with this broker, as JSON; see `zurau cluster health`.")
SEEN = _told(
    "zurau.seen", "[]", "When this broker last saw clients and other brokers, as JSON; see `zurau cluster seen`."
)
COUNTERS = _told("zurau.counters", "{}", "What this broker has counted since it started, as JSON.")


def describe_topic(name: str, caller: Caller, broker: Broker) -> list[ConfigEntry]:
    authorize(caller, Permission(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC), name)
    topic = broker.image.topics.get(name)
    if topic is None:
        check_topic_name(name)
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
    return topic_entries(topic.configs, broker)


def describe_broker(name: str, caller: Caller, broker: Broker) -> list[ConfigEntry]:
    """Of one broker, or (with an empty name) what was changed for all of them."""
    authorize(caller, Permission(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER), CLUSTER_NAME)
    if name == ALL_BROKERS:
        return all_brokers_entries(broker)
    if name == str(broker.broker_id):
        return broker_entries(broker)
    raise Refused(ErrorCode.INVALID_REQUEST, f"this is broker {broker.broker_id}; ask {name!r} itself")


def topic_entries(configs: Mapping[str, str], broker: Broker) -> list[ConfigEntry]:
    """Every setting of a topic that has these configs of its own."""
    entries = []
    for name, declared in settings_of(LogSettings).items():
        layers = list(_changeable_layers(declared, broker))
        if name in configs:
            layers.insert(0, Layer(name, configs[name], Source.TOPIC))
        entries.append(ConfigEntry(name, declared, False, layers))
    dynamic = [Level(configs, Source.TOPIC)]
    return [*entries, *_dynamic_entries(DynamicTopicSettings, dynamic)]


def broker_entries(broker: Broker) -> list[ConfigEntry]:
    """Every setting of this broker; those that are no topic's default are read at start."""
    entries = [
        ConfigEntry(declared.broker_name, declared, False, list(_changeable_layers(declared, broker)))
        for declared in settings_of(LogSettings).values()
    ]
    for settings in broker.fixed_settings:
        for name, declared in settings_of(type(settings)).items():
            entries.append(ConfigEntry(name, declared, True, list(_fixed_layers(name, declared, settings))))
    changed = broker.image.broker_configs
    dynamic = [
        Level(changed.get(str(broker.broker_id), {}), Source.THIS_BROKER),
        Level(changed.get(ALL_BROKERS, {}), Source.ALL_BROKERS),
    ]
    return [*entries, *_dynamic_entries(DynamicBrokerSettings, dynamic), *_health_entries(broker)]


class Level(NamedTuple):
    """Where something may have been set."""

    configs: Mapping[str, str]
    source: Source


def _dynamic_entries(declarations: type, levels: list[Level]) -> Iterator[ConfigEntry]:
    """Of what is no log's: set somewhere, or the default."""
    for name, declared in settings_of(declarations).items():
        layers = [Layer(name, level.configs[name], level.source) for level in levels if name in level.configs]
        default = Layer(name, declared.text(declared.default), Source.DEFAULT)
        yield ConfigEntry(name, declared, False, [*layers, default])


def _health_entries(broker: Broker) -> Iterator[ConfigEntry]:
    """No settings, but what this broker says of itself: here every tool can see it."""
    told = (
        (HEALTH, broker.health.text()),
        (SEEN, broker.last_seen.text()),
        (COUNTERS, broker.health.counters_text()),
    )
    for declared, value in told:
        yield ConfigEntry(declared.kafka_name, declared, True, [Layer(declared.kafka_name, value, Source.DEFAULT)])


def all_brokers_entries(broker: Broker) -> list[ConfigEntry]:
    """What was changed for all brokers, and nothing else: no one broker is meant, so none's values are shown."""
    changed = broker.image.broker_configs.get(ALL_BROKERS, {})
    return [
        ConfigEntry(name, declared, False, [Layer(name, changed[name], Source.ALL_BROKERS)])
        for declared in (*settings_of(LogSettings).values(), *settings_of(DynamicBrokerSettings).values())
        if (name := declared.broker_name) in changed
    ]


def _changeable_layers(declared: Setting, broker: Broker) -> Iterator[Layer]:
    name = declared.broker_name
    for resource, source in ((str(broker.broker_id), Source.THIS_BROKER), (ALL_BROKERS, Source.ALL_BROKERS)):
        changed = broker.image.broker_configs.get(resource, {})
        if name in changed:
            yield Layer(name, changed[name], source)
    yield from _fixed_layers(name, declared, broker.log_settings)


def _fixed_layers(name: str, declared: Setting, started_with: Any) -> Iterator[Layer]:
    value = getattr(started_with, declared.name)
    if value != declared.default:
        yield Layer(name, _as_kafka_writes(declared, value), Source.STARTED_WITH)
    yield Layer(name, _as_kafka_writes(declared, declared.default), Source.DEFAULT)


def _as_kafka_writes(declared: Setting, value: Any) -> str:
    """Tools split an address at "://"."""
    text = declared.text(value)
    is_bare_address = declared.kafka_name in ADDRESSES and text and "://" not in text
    return f"PLAINTEXT://{text}" if is_bare_address else text

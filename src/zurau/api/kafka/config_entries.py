"""The settings of topics and brokers as tools see them: each with its value, and where the value comes from.

A value is looked for in layers: on the topic, on this broker, on all brokers, in what the broker was started with,
and last in the declaration. The first layer that has one wins; all of them are its synonyms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

from zurau.broker.broker import Broker
from zurau.log.settings import LogSettings
from zurau.machines.controller.image import ALL_BROKERS
from zurau.settings import INT32_MAX, Setting, settings_of

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


@dataclass(frozen=True, slots=True)
class ConfigEntry:
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

    @property
    def type_number(self) -> int:
        """Kafka's number of the kind of value."""
        if self.setting.kind is int:
            is_wide = self.setting.at_most is None or self.setting.at_most > INT32_MAX
            return 5 if is_wide else 3
        return {bool: 1, str: 2, float: 6, tuple: 7}[self.setting.kind]


def _told(name: str, default: str, doc: str) -> Setting:
    return Setting(name, str, default, name, name, doc, at_least=None, at_most=None, choices=())


HEALTH = _told("zurau.health", "[]", "What is wrong with this broker, as JSON; see `zurau cluster health`.")
COUNTERS = _told("zurau.counters", "{}", "What this broker has counted since it started, as JSON.")


def topic_entries(configs: Mapping[str, str], broker: Broker) -> list[ConfigEntry]:
    """Every setting of a topic that has these configs of its own."""
    entries = []
    for name, declared in settings_of(LogSettings).items():
        layers = list(_changeable_layers(declared, broker))
        if name in configs:
            layers.insert(0, Layer(name, configs[name], Source.TOPIC))
        entries.append(ConfigEntry(name, declared, False, layers))
    return entries


def broker_entries(broker: Broker) -> list[ConfigEntry]:
    """Every setting of this broker; those that are no topic's default are read at start."""
    entries = [
        ConfigEntry(declared.broker_name, declared, False, list(_changeable_layers(declared, broker)))
        for declared in settings_of(LogSettings).values()
    ]
    for settings in broker.fixed_settings:
        for name, declared in settings_of(type(settings)).items():
            entries.append(ConfigEntry(name, declared, True, list(_fixed_layers(name, declared, settings))))
    return [*entries, *_health_entries(broker)]


def _health_entries(broker: Broker) -> Iterator[ConfigEntry]:
    """No settings, but what this broker says of itself: here every tool can see it."""
    for declared, value in ((HEALTH, broker.health.text()), (COUNTERS, broker.health.counters_text())):
        yield ConfigEntry(declared.kafka_name, declared, True, [Layer(declared.kafka_name, value, Source.DEFAULT)])


def all_brokers_entries(broker: Broker) -> list[ConfigEntry]:
    """What was changed for all brokers, and nothing else: no one broker is meant, so none's values are shown."""
    changed = broker.image.broker_configs.get(ALL_BROKERS, {})
    return [
        ConfigEntry(name, declared, False, [Layer(name, changed[name], Source.ALL_BROKERS)])
        for declared in settings_of(LogSettings).values()
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

"""Which settings can be changed while running, and which values they take.

A topic has the settings of a log. A broker has the same ones under its own names ("log.retention.ms" is the default
of every topic's "retention.ms"); whatever else it has is read once, when it starts. What a topic goes by is laid over
each other: what the broker was started with, what was changed for all brokers, what was changed for this one, and
what was set on the topic.

The settings of a log are handed in as a value: a machine does not know what a log is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, Protocol, TypeVar

from zurau.errors import Refused, SettingsError
from zurau.ids import BrokerId
from zurau.machines.controller.dynamic import DynamicBrokerSettings, DynamicTopicSettings
from zurau.machines.controller.image import ALL_BROKERS, ClusterImage
from zurau.settings import Setting, did_you_mean, settings_of, with_values
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.varints import STRING_BYTES_MAX


class TopicSettings(Protocol):
    """What the controller itself has to know of a topic's settings."""

    @property
    def replication_mode(self) -> str: ...

    @property
    def waits_for_flush(self) -> bool: ...


S = TypeVar("S", bound=TopicSettings)


class ConfigScope(Generic[S]):
    """The settings of one kind of resource, by the names they have there."""

    def __init__(self, defaults: S, settings: Mapping[str, Setting], dynamic: type, whose: str) -> None:
        """`dynamic`: those that are no log's, which are checked and handed on as they are."""
        self._defaults = defaults
        self._settings = settings
        self._all = {**settings, **settings_of(dynamic)}
        self._whose = whose

    def find(self, name: str) -> Setting:
        """Raises `Refused` with INVALID_CONFIG, naming the closest setting there is."""
        if (found := self._all.get(name)) is not None:
            return found
        hint = did_you_mean(name, self._all)
        raise Refused(ErrorCode.INVALID_CONFIG, f"{self._whose} has no setting {name!r} that can be changed{hint}")

    def checked(self, configs: Mapping[str, str | None]) -> dict[str, str]:
        """The same values in their plainest spelling. Raises `Refused` with INVALID_CONFIG."""
        try:
            checked = {name: self._plain(name, text) for name, text in configs.items()}
            # Some settings are lawful one by one and not together.
            self.laid_over(self._defaults, checked)
        except SettingsError as error:
            raise Refused(ErrorCode.INVALID_CONFIG, str(error)) from error
        return checked

    def laid_over(self, base: S, configs: Mapping[str, str]) -> S:
        """What is too small or too large was taken by an older release, and counts as the nearest that is allowed."""
        settings = {name: self._settings[name] for name in configs if name in self._settings}
        return with_values(
            base, {one.kafka_name: one.text(one.nearest(configs[name])) for name, one in settings.items()}
        )

    def _plain(self, name: str, text: str | None) -> str:
        setting = self.find(name)
        if text is None:
            raise Refused(ErrorCode.INVALID_CONFIG, f"{name!r} needs a value; to have the default, leave it out")
        plain = setting.text(setting.parse(text))
        if len(plain.encode()) > STRING_BYTES_MAX:  # appending to a list makes it longer than any request can say
            raise Refused(ErrorCode.INVALID_CONFIG, f"the value of {name!r} has more than {STRING_BYTES_MAX} bytes")
        return plain


class ConfigRules(Generic[S]):
    """`topic_defaults` are the settings of a log that this broker was started with."""

    def __init__(self, topic_defaults: S) -> None:
        by_topic_name = settings_of(type(topic_defaults))
        by_broker_name = {declared.broker_name: declared for declared in by_topic_name.values()}
        self._topic_defaults = topic_defaults
        self.topic = ConfigScope(topic_defaults, by_topic_name, DynamicTopicSettings, "a topic")
        self.broker = ConfigScope(topic_defaults, by_broker_name, DynamicBrokerSettings, "a running broker")

    def broker_defaults(self, image: ClusterImage, broker_id: BrokerId) -> S:
        """What a topic that sets nothing goes by on a broker."""
        return self.broker.laid_over(self._for_all(image), image.broker_configs.get(str(broker_id), {}))

    def cluster_settings(self, image: ClusterImage, configs: Mapping[str, str]) -> S:
        """What a topic with these configs goes by, on a broker that was started as the controller's."""
        return self.topic.laid_over(self._for_all(image), configs)

    def _for_all(self, image: ClusterImage) -> S:
        return self.broker.laid_over(self._topic_defaults, image.broker_configs.get(ALL_BROKERS, {}))

    def topic_settings(self, image: ClusterImage, broker_id: BrokerId, configs: Mapping[str, str]) -> S:
        """What a topic with these configs goes by on a broker."""
        return self.topic.laid_over(self.broker_defaults(image, broker_id), configs)

"""Which settings can be changed while running, and which values they take.

A topic has the settings of a log. A broker has the same ones under its own names ("log.retention.ms" is the default
of every topic's "retention.ms"), and others that it reads only once, when it starts. The class that declares a log's
settings is handed in: a machine does not know what a log is.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import Any, cast

from zurau.errors import Refused, SettingsError
from zurau.settings import Setting, did_you_mean, settings_of, with_values
from zurau.wire.kafka.error_codes import ErrorCode


class ConfigScope:
    """The settings of one kind of resource, by the names they have there."""

    def __init__(self, cls: type[Any], settings: Mapping[str, Setting], fixed: Collection[str] = ()) -> None:
        self._defaults = cls()
        self._settings = settings
        self._fixed = fixed

    def find(self, name: str) -> Setting:
        """Raises `Refused` with INVALID_CONFIG, naming the closest name or what to do."""
        if (found := self._settings.get(name)) is not None:
            return found
        if name in self._fixed:
            problem = f"{name!r} is read when a broker starts; set it there and start the broker again"
        else:
            problem = f"there is no setting {name!r}{did_you_mean(name, self._settings)}"
        raise Refused(ErrorCode.INVALID_CONFIG, problem)

    def checked(self, configs: Mapping[str, str | None]) -> dict[str, str]:
        """The same values in their plainest spelling. Raises `Refused` with INVALID_CONFIG."""
        try:
            checked = {name: self._plain(name, text) for name, text in configs.items()}
            # Some settings are lawful one by one and not together.
            with_values(self._defaults, {self._settings[name].kafka_name: text for name, text in checked.items()})
        except SettingsError as error:
            raise Refused(ErrorCode.INVALID_CONFIG, str(error)) from error
        return checked

    def _plain(self, name: str, text: str | None) -> str:
        setting = self.find(name)
        if text is None:
            raise Refused(ErrorCode.INVALID_CONFIG, f"{name!r} needs a value; to have the default, leave it out")
        return setting.text(setting.parse(text))


class ConfigRules:
    """`topic_settings` is the settings class of a log; `fixed_broker_names` are what brokers read only at start."""

    def __init__(self, topic_settings: type[Any], fixed_broker_names: Collection[str] = ()) -> None:
        by_topic_name = settings_of(cast("Hashable", topic_settings))
        by_broker_name = {declared.broker_name: declared for declared in by_topic_name.values()}
        self.topic = ConfigScope(topic_settings, by_topic_name)
        self.broker = ConfigScope(topic_settings, by_broker_name, fixed_broker_names)

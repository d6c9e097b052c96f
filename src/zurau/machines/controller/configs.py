"""Settings that are changed while the cluster runs.

Every question comes down to the same thing: what should the settings of the resource be afterwards? The difference to
what they are is the record.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from zurau.errors import Refused
from zurau.machines.controller.commands import AlterConfigs, ConfigEdit, ConfigOperation, ReplaceConfigs, ResourceType
from zurau.machines.controller.config_rules import ConfigRules, ConfigScope
from zurau.machines.controller.decided import Decided
from zurau.machines.controller.image import ALL_BROKERS, QUORUM, REPLICATION_MODE, ClusterImage, TopicImage
from zurau.machines.controller.records import ConfigsChanged, ConfigValue
from zurau.wire.kafka.error_codes import ErrorCode

#: What Kafka has settings of and we do not, with the code that Kafka refuses a wrong one with, and why.
WITHOUT_SETTINGS = {
    ResourceType.GROUP: (
        ErrorCode.INVALID_CONFIG,
        "groups have no settings of their own; their members set their timeouts (session.timeout.ms)",
    ),
    ResourceType.CLIENT_METRICS: (
        ErrorCode.INVALID_REQUEST,
        "clients are not asked for their metrics, so nothing can be subscribed to",
    ),
    ResourceType.BROKER_LOGGER: (
        ErrorCode.INVALID_CONFIG,
        "how much a broker tells is set when it starts, with --log-level",
    ),
}

#: Of those that there are, in an answer to whoever names another.
_LISTED_BROKERS = 10


def alter_configs(image: ClusterImage, rules: ConfigRules[Any], command: AlterConfigs) -> Decided:
    if command.resource_type in WITHOUT_SETTINGS:
        return _refuse_to_set(
            image, command, [edit for edit in command.edits if edit.operation != ConfigOperation.DELETE]
        )
    scope, before = _resource(image, rules, command)
    names = [edit.name for edit in command.edits]
    if len(set(names)) != len(names):
        raise Refused(ErrorCode.INVALID_REQUEST, "a setting is changed twice in one request")
    wanted: dict[str, str | None] = dict(before)
    for edit in command.edits:
        _edit(scope, wanted, edit)
    after = scope.checked(wanted)
    _check_fixed(image, rules, command, after)
    return _difference(command, before, after)


def replace_configs(image: ClusterImage, rules: ConfigRules[Any], command: ReplaceConfigs) -> Decided:
    if command.resource_type in WITHOUT_SETTINGS:
        return _refuse_to_set(image, command, command.configs)
    scope, before = _resource(image, rules, command)
    after = scope.checked({**_fixed(image.topics.get(command.resource_name), command), **command.configs})
    _check_fixed(image, rules, command, after)
    return _difference(command, before, after)


def _fixed(topic: TopicImage | None, command: AlterConfigs | ReplaceConfigs) -> dict[str, str]:
    """What a topic in in-sync mode was created with for good."""
    if command.resource_type != ResourceType.TOPIC or topic is None or not topic.is_in_sync_mode:
        return {}
    return {name: topic.configs[name] for name in (REPLICATION_MODE, "flush") if name in topic.configs}


def _check_fixed(
    image: ClusterImage, rules: ConfigRules[Any], command: AlterConfigs | ReplaceConfigs, after: Mapping[str, str]
) -> None:
    if command.resource_type == ResourceType.TOPIC:
        topic = image.topics[command.resource_name]
        if topic.configs.get(REPLICATION_MODE, QUORUM) != after.get(REPLICATION_MODE, QUORUM):
            raise Refused(ErrorCode.INVALID_CONFIG, f"{REPLICATION_MODE} is fixed when a topic is created")
        before_flush = rules.cluster_settings(image, topic.configs).waits_for_flush
        if topic.is_in_sync_mode and rules.cluster_settings(image, after).waits_for_flush != before_flush:
            # The controller goes by it when it judges what a broker may have lost.
            raise Refused(ErrorCode.INVALID_CONFIG, "whether a topic in mode isr waits for flushes is fixed with it")


def _resource(
    image: ClusterImage, rules: ConfigRules[Any], command: AlterConfigs | ReplaceConfigs
) -> tuple[ConfigScope[Any], Mapping[str, str]]:
    """The rules for a resource and what is set on it now. Raises `Refused` when there is no such resource."""
    name = command.resource_name
    if command.resource_type == ResourceType.TOPIC:
        topic = image.topics.get(name)
        if topic is None:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
        return rules.topic, topic.configs
    if command.resource_type == ResourceType.BROKER:
        if name != ALL_BROKERS and not _is_broker(image, name):
            raise Refused(ErrorCode.INVALID_REQUEST, f"there is no broker {name!r}, but {_listed(image)}")
        return rules.broker, image.broker_configs.get(name, {})
    raise Refused(ErrorCode.INVALID_REQUEST, f"resources of type {command.resource_type} have no settings to change")


def _listed(image: ClusterImage) -> str:
    return ", ".join(map(str, sorted(image.brokers)[:_LISTED_BROKERS]))


def _refuse_to_set(
    image: ClusterImage, command: AlterConfigs | ReplaceConfigs, settings: Collection[object]
) -> Decided:
    """What is not there can be deleted, and nothing can be set."""
    name = command.resource_name
    if not name or (command.resource_type == ResourceType.BROKER_LOGGER and not _is_broker(image, name)):
        raise Refused(ErrorCode.INVALID_REQUEST, f"nothing of that type is called {name!r}")
    if settings:
        raise Refused(*WITHOUT_SETTINGS[ResourceType(command.resource_type)])
    return Decided()


def _is_broker(image: ClusterImage, name: str) -> bool:
    return any(name == str(broker) for broker in image.brokers)


def _edit(scope: ConfigScope[Any], wanted: dict[str, str | None], edit: ConfigEdit) -> None:
    setting = scope.find(edit.name)
    if edit.operation == ConfigOperation.DELETE:
        wanted.pop(edit.name, None)
        return
    if edit.value is None:
        raise Refused(ErrorCode.INVALID_REQUEST, f"{edit.name!r} needs a value; to have the default, delete it")
    if edit.operation == ConfigOperation.SET:
        wanted[edit.name] = edit.value
        return
    if edit.operation not in (ConfigOperation.APPEND, ConfigOperation.SUBTRACT):
        raise Refused(ErrorCode.INVALID_REQUEST, f"there is no operation {edit.operation} on settings")
    if setting.kind is not tuple:
        raise Refused(ErrorCode.INVALID_CONFIG, f"{edit.name!r} is not a list; set it instead")
    now = wanted.get(edit.name)
    words = _words(setting.text(setting.default) if now is None else now)
    wanted[edit.name] = ",".join(_with_words(words, _words(edit.value), edit.operation))


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _with_words(words: Sequence[str], others: Sequence[str], operation: int) -> list[str]:
    if operation == ConfigOperation.SUBTRACT:
        gone = frozenset(others)
        return [word for word in words if word not in gone]
    known = frozenset(words)
    return [*words, *(word for word in others if word not in known)]


def _difference(command: AlterConfigs | ReplaceConfigs, before: Mapping[str, str], after: Mapping[str, str]) -> Decided:
    changes = [
        ConfigValue(name=name, value=after.get(name))
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]
    if not changes or command.validate_only:
        return Decided()
    return Decided(
        [ConfigsChanged(resource_type=command.resource_type, resource_name=command.resource_name, changes=changes)]
    )

"""Feature levels (KIP-584): what all brokers of a cluster have agreed to write and to offer.

A release says which levels of each feature it supports, and tells the controller when it registers. The level that
holds is a record in the metadata log. It is raised by an operator, when every broker runs a release that supports it,
so that brokers of two releases can work together while a cluster is upgraded one by one. A broker that does not
support a level that holds is not let in; one that finds such a level in its log stops.

`zurau.version` is about what brokers write for each other:

    1   what releases wrote that did not know levels
    2   levels themselves are records

The others are Kafka's, which clients act upon: a level that is claimed and not kept breaks them without a word.
`transaction.version` 2 changes how the Java producer ends transactions, `group.version` 1 how consumers join. So what
is not served stands here with 0, and the level of the metadata is the lowest that Kafka 4 knows: what came later is
about records that we don't have.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from zurau.errors import Refused, ReleaseTooOld
from zurau.machines.controller.commands import FeatureUpdate, RegisterBroker, UpdateFeatures, UpgradeType
from zurau.machines.controller.decided import Decided
from zurau.machines.controller.image import ClusterImage, FeatureRange
from zurau.machines.controller.records import FeatureLevelChanged
from zurau.wire.kafka.error_codes import ErrorCode

ZURAU_VERSION = "zurau.version"
#: Called 3.3-IV3 by Kafka's tools: the first that Kafka itself recommended without ZooKeeper.
LOWEST_METADATA_VERSION = 7


class Levels(NamedTuple):
    """Those that this release supports, and the one that holds where nothing is recorded."""

    lowest: int
    highest: int
    unrecorded: int


NOT_SERVED = Levels(0, 0, 0)

SUPPORTED: dict[str, Levels] = {
    "group.version": NOT_SERVED,
    "metadata.version": Levels(LOWEST_METADATA_VERSION, LOWEST_METADATA_VERSION, LOWEST_METADATA_VERSION),
    "share.version": NOT_SERVED,
    "streams.version": NOT_SERVED,
    "transaction.version": NOT_SERVED,
    ZURAU_VERSION: Levels(1, 2, 1),
}


def supported_ranges() -> tuple[FeatureRange, ...]:
    """What a broker of this release says when it registers."""
    return tuple(FeatureRange(name, levels.lowest, levels.highest) for name, levels in SUPPORTED.items())


def level_of(image: ClusterImage, feature: str) -> int:
    """The level that holds."""
    recorded = image.feature_levels.get(feature)
    return recorded if recorded is not None else SUPPORTED[feature].unrecorded


def check_supported(record: FeatureLevelChanged) -> None:
    """Raises `ReleaseTooOld` where this release would not know what else is written from here on."""
    levels = SUPPORTED.get(record.feature, NOT_SERVED)
    if not levels.lowest <= record.level <= levels.highest:
        raise ReleaseTooOld(
            f"the cluster is at level {record.level} of {record.feature}, and this release supports {_range(levels)}; "
            "start a release that supports it"
        )


def first_levels(image: ClusterImage, command: RegisterBroker) -> list[FeatureLevelChanged]:
    """A cluster begins with the highest levels of the broker that forms it."""
    if image.brokers or image.feature_levels:
        return []
    return [
        FeatureLevelChanged(feature=each.name, level=each.highest)
        for each in command.features
        if each.name in SUPPORTED and each.highest != SUPPORTED[each.name].unrecorded
    ]


def check_registration(image: ClusterImage, command: RegisterBroker) -> None:
    """Refuse a broker that would not understand the others."""
    for feature, level in image.feature_levels.items():
        supported = _range_of(command.features, feature)
        if not supported.lowest <= level <= supported.highest:
            raise Refused(
                ErrorCode.UNSUPPORTED_VERSION,
                f"the cluster is at level {level} of {feature}, and broker {command.broker_id} supports "
                f"{_range(supported)}: start it with a release that supports it",
            )


def update_features(image: ClusterImage, command: UpdateFeatures) -> Decided:
    """All of the updates or none."""
    records = []
    for update in command.updates:
        reason = _reason_against(image, update)
        if reason is not None:
            raise Refused(
                ErrorCode.INVALID_UPDATE_VERSION, f"{update.feature!r} cannot be set to level {update.level}: {reason}"
            )
        if update.level != level_of(image, update.feature):
            records.append(FeatureLevelChanged(feature=update.feature, level=update.level))
    return Decided([] if command.validate_only else [*records])


def _reason_against(image: ClusterImage, update: FeatureUpdate) -> str | None:
    levels = SUPPORTED.get(update.feature)
    if update.upgrade_type not in tuple(UpgradeType):
        return f"{update.upgrade_type} is no way to change it"
    if levels is None:
        return "it is not known here"
    now = level_of(image, update.feature)
    if update.level == now:
        return None
    if not levels.lowest <= update.level <= levels.highest:
        return f"it is at level {now}, and the controller supports {_range(levels)}"
    for broker in image.brokers.values():
        supported = _range_of(broker.features, update.feature)
        if not supported.lowest <= update.level <= supported.highest:
            return (
                f"broker {broker.broker_id} supports {_range(supported)}; upgrade it first, or take it out of the "
                "cluster with `zurau cluster decommission`"
            )
    return _reason_against_direction(update, now)


def _reason_against_direction(update: FeatureUpdate, now: int) -> str | None:
    if update.level > now:
        is_up = update.upgrade_type == UpgradeType.UPGRADE
        return None if is_up else f"it is at level {now}, so that is no downgrade"
    if update.upgrade_type == UpgradeType.UPGRADE:
        return f"it is at level {now}; to lower it, ask for a downgrade"
    if update.feature == ZURAU_VERSION and update.level == SUPPORTED[ZURAU_VERSION].unrecorded:
        return f"it is at level {now}, and releases of level {update.level} cannot read the records of levels"
    return None


def _range_of(ranges: Iterable[FeatureRange], feature: str) -> Levels:
    """What a broker supports. One that did not say supports what held before there were records of it."""
    unrecorded = SUPPORTED.get(feature, NOT_SERVED).unrecorded
    said = next((each for each in ranges if each.name == feature), None)
    return Levels(unrecorded, unrecorded, unrecorded) if said is None else Levels(said.lowest, said.highest, unrecorded)


def _range(levels: Levels) -> str:
    if levels.lowest == levels.highest:
        return f"level {levels.highest} only"
    return f"levels {levels.lowest} to {levels.highest}"

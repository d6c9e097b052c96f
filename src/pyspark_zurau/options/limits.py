"""Where to begin and where to end, as the user may say it: at an end of the log, at offsets, or at moments.

Which offset that is in each partition is found out later, from the brokers: see survey.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from zurau.errors import SettingsError
from zurau.ids import Offset, TopicPartition

#: In the place of an offset, in JSON too.
LATEST = -1
EARLIEST = -2


@dataclass(frozen=True, slots=True)
class AtEnd:
    """The first offset of every partition, or the one after the last."""

    which: int


@dataclass(frozen=True, slots=True)
class AtOffsets:
    offsets: Mapping[TopicPartition, Offset]


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first record of every partition that is not older."""

    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class AtTimes:
    timestamps_ms: Mapping[TopicPartition, int]


Limit = AtEnd | AtOffsets | AtTime | AtTimes

_NAMED = {"earliest": AtEnd(EARLIEST), "latest": AtEnd(LATEST)}


def parse_offsets(option: str, text: str) -> Limit:
    named = _NAMED.get(text.strip().lower())
    if named is not None:
        return named
    example = 'earliest, latest, or JSON such as {"topic": {"0": 23, "1": -2}}, with -2 for earliest and -1 for latest'
    offsets = parse_by_partition(option, text, example)
    if any(offset < EARLIEST for offset in offsets.values()):
        raise SettingsError(f"{option}: {text!r} has an offset below -2; it must be {example}")
    return AtOffsets(offsets)


def parse_timestamps(option: str, text: str) -> Limit:
    example = 'JSON such as {"topic": {"0": 1767225600000}}, in milliseconds since 1970'
    return AtTimes(parse_by_partition(option, text, example))


def parse_by_partition(option: str, text: str, example: str) -> dict[TopicPartition, int]:
    """`{"topic": {"0": 23}}` as a mapping."""
    document = parse_object(option, text, example)
    try:
        return {
            TopicPartition(topic, int(partition)): _whole(number)
            for topic, partitions in document.items()
            for partition, number in partitions.items()
        }
    except (AttributeError, TypeError, ValueError):
        raise SettingsError(f"{option}: {text!r} cannot be read; it must be {example}") from None


def parse_object(option: str, text: str, example: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise SettingsError(f"{option}: {text!r} is not JSON ({error}); it must be {example}") from None
    if not isinstance(document, dict):
        raise SettingsError(f"{option}: {text!r} is not a JSON object; it must be {example}")
    return document


def _whole(number: object) -> int:
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(number)
    return number

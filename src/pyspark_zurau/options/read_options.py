"""What a query asked of the source, read and checked in one place, before any broker is asked.

Names, defaults and rules are those of Spark's Kafka connector, so that a query moves from `kafka` to `zurau` by that
one word. Spark hands over every option of a reader, also those meant for others, so an unknown name is let pass, unless
it is nearly one of ours: that is a slip of the pen, and reading from the wrong place would be its price.
"""

from __future__ import annotations

import difflib
import logging
import re
from dataclasses import dataclass

from pyspark_zurau.options import limits
from pyspark_zurau.options.kafka_settings import Peer, parse_fetch_settings, parse_peer
from pyspark_zurau.options.limits import EARLIEST, LATEST, AtEnd, AtOffsets, AtTime, Limit
from pyspark_zurau.options.selection import Assigned, Matching, Named, Selection
from pyspark_zurau.options.values import Values
from zurau.client.consumer import FetchSettings
from zurau.errors import SettingsError
from zurau.ids import TopicPartition

logger = logging.getLogger(__name__)

SELECTIONS = ("subscribe", "subscribePattern", "assign")
ENDINGS = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
BY_TRIGGER = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
FOR_STREAMS = (*BY_TRIGGER, "mirrorToGroup")
KNOWN = (
    *SELECTIONS,
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsets",
    "startingOffsetsByTimestampStrategy",
    *ENDINGS,
    "failOnDataLoss",
    *BY_TRIGGER,
    "minPartitions",
    "maxRecordsPerPartition",
    "includeHeaders",
    "groupIdPrefix",
    "mirrorToGroup",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "partition.metadata.cache.ttl.ms",
    "history",
)
_NEARLY = 0.85


@dataclass(frozen=True, slots=True)
class ReadOptions:
    peer: Peer
    fetch: FetchSettings
    selection: Selection
    starting: Limit
    ending: Limit
    #: What a starting moment means in a partition where nothing is that young: its end, or an error.
    latest_when_too_young: bool
    fail_on_data_loss: bool
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_ms: int
    min_partitions: int | None
    max_records_per_partition: int | None
    with_headers: bool
    poll_timeout_s: float
    attempts: int
    attempt_interval_s: float
    metadata_ttl_ms: int
    #: The consumer group that is told how far a streaming query is.
    mirror_to_group: str | None
    #: A lake of archived topics, for what they no longer have themselves.
    history: str | None


def wants_headers(values: Values) -> bool:
    return values.truth("includeHeaders", default=False)


def check_options(values: Values) -> ReadOptions:
    """What can be told of them before it is known whether the query is a batch or a stream."""
    return _parse(values, starting_default=AtEnd(EARLIEST))


def parse_batch_options(values: Values) -> ReadOptions:
    options = _parse(values, starting_default=AtEnd(EARLIEST))
    _refuse_end(
        options.starting, LATEST, "startingOffsets cannot be latest (-1) in a batch query: nothing would be read"
    )
    _refuse_end(options.ending, EARLIEST, "endingOffsets cannot be earliest (-2): nothing would be read")
    for name in FOR_STREAMS:
        if name in values:
            logger.warning("the option %s has no meaning in a batch query and is ignored", name)
    return options


def parse_stream_options(values: Values) -> ReadOptions:
    for name in ENDINGS:
        if name in values:
            raise SettingsError(
                f"{name} has no meaning in a streaming query, which never ends; leave it out, or use spark.read"
            )
    return _parse(values, starting_default=AtEnd(LATEST))


def _parse(values: Values, *, starting_default: Limit) -> ReadOptions:
    _refuse_slips(values)
    least, most = (
        values.whole("minOffsetsPerTrigger", at_least=1),
        values.whole("maxOffsetsPerTrigger", at_least=1),
    )
    if least is not None and most is not None and least > most:
        raise SettingsError(f"minOffsetsPerTrigger ({least}) is more than maxOffsetsPerTrigger ({most})")
    if "groupIdPrefix" in values and "kafka.group.id" in values:
        logger.warning("groupIdPrefix is ignored: kafka.group.id is given")
    prefix = values.text("groupIdPrefix") or "spark-kafka-source"
    strategy = values.one_of("startingOffsetsByTimestampStrategy", ("error", "latest"), default="error")
    return ReadOptions(
        peer=parse_peer(values, client_id=values.text("kafka.group.id") or prefix),
        fetch=parse_fetch_settings(values),
        selection=_parse_selection(values),
        starting=_parse_limit(values, "starting", starting_default),
        ending=_parse_limit(values, "ending", AtEnd(LATEST)),
        latest_when_too_young=strategy == "latest",
        fail_on_data_loss=values.truth("failOnDataLoss", default=True),
        max_offsets_per_trigger=most,
        min_offsets_per_trigger=least,
        max_trigger_delay_ms=values.duration_ms("maxTriggerDelay", default="15m"),
        min_partitions=values.whole("minPartitions", at_least=1),
        max_records_per_partition=values.whole("maxRecordsPerPartition", at_least=1),
        with_headers=wants_headers(values),
        poll_timeout_s=values.whole_or("kafkaConsumer.pollTimeoutMs", 120_000, at_least=1) / 1000,
        attempts=values.whole_or("fetchOffset.numRetries", 3, at_least=1),
        attempt_interval_s=values.whole_or("fetchOffset.retryIntervalMs", 10, at_least=0) / 1000,
        metadata_ttl_ms=values.whole_or("partition.metadata.cache.ttl.ms", -1, at_least=-1),
        mirror_to_group=(values.text("mirrorToGroup") or "").strip() or None,
        history=(values.text("history") or "").strip() or None,
    )


def _parse_selection(values: Values) -> Selection:
    given = [name for name in SELECTIONS if name in values]
    if len(given) != 1:
        problem = f"these exclude each other: {', '.join(given)}" if given else "which topics to read is not said"
        raise SettingsError(f'{problem}; use one of subscribe (a,b), subscribePattern (a.*), assign ({{"a": [0, 1]}})')
    text = (values.text(given[0]) or "").strip()
    match given[0]:
        case "subscribe":
            names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
            if not names:
                raise SettingsError("subscribe names no topic; for example .option('subscribe', 'clicks,views')")
            return Named(names)
        case "subscribePattern":
            return Matching(_checked_pattern(text))
        case _:
            return Assigned(_parse_assignment(text))


def _checked_pattern(text: str) -> str:
    if not text:
        raise SettingsError("subscribePattern is empty; for example .option('subscribePattern', 'logs-.*')")
    try:
        re.compile(text)
    except re.error as error:
        raise SettingsError(f"subscribePattern: {text!r} is not a regular expression: {error}") from None
    return text


def _parse_assignment(text: str) -> frozenset[TopicPartition]:
    example = '{"topic": [0, 1]}'
    document = limits.parse_object("assign", text, example)
    try:
        partitions = frozenset(
            TopicPartition(topic, int(index)) for topic, indexes in document.items() for index in indexes
        )
    except (TypeError, ValueError):
        raise SettingsError(f"assign: {text!r} cannot be read; it must be like {example}") from None
    if not partitions:
        raise SettingsError(f"assign: {text!r} names no partition; it must be like {example}")
    return partitions


def _parse_limit(values: Values, side: str, default: Limit) -> Limit:
    """A moment for all, moments by partition, offsets: the first that is given counts."""
    timestamp_ms = values.whole(f"{side}Timestamp", at_least=0)
    if timestamp_ms is not None:
        return AtTime(timestamp_ms)
    timestamps = values.text(name := f"{side}OffsetsByTimestamp")
    if timestamps is not None:
        return limits.parse_timestamps(name, timestamps)
    offsets = values.text(name := f"{side}Offsets")
    return default if offsets is None else limits.parse_offsets(name, offsets)


def _refuse_end(limit: Limit, end: int, reason: str) -> None:
    if limit == AtEnd(end) or (isinstance(limit, AtOffsets) and end in limit.offsets.values()):
        raise SettingsError(reason)


def _refuse_slips(values: Values) -> None:
    known = {name.lower(): name for name in KNOWN}
    for given in values.names():
        if given not in known and not given.startswith("kafka."):
            nearest = difflib.get_close_matches(given, known, 1, _NEARLY)
            if nearest:
                raise SettingsError(f"there is no option {given}; did you mean {known[nearest[0]]}?")

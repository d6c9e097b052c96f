"""Makes room at the target before records arrive there: topics that are missing, partitions that were added.

It is done by the tasks, as the records pass through: so topics are found that appear while the pipeline runs, too. Two
tasks may want the same topic made; whoever comes second finds it there.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from pyspark_zurau.engine.client_config import client_options
from pyspark_zurau.options.kafka_settings import Peer, parse_peer
from pyspark_zurau.options.values import Values
from zurau.client.admin import Admin, NewTopic
from zurau.client.errors import BrokerRefused, UnknownTopic
from zurau.wire.kafka.error_codes import ErrorCode

COLUMNS = ("key", "value", "headers", "topic", "partition", "timestamp")
#: How many partitions topics have at the target, as far as this worker knows.
_known: dict[tuple[Peer, str], int] = {}


def copies(
    records: DataFrame, *, source: str, target: str, prefix: str, source_config: str = "", target_config: str = ""
) -> DataFrame:
    chosen = records.select(*COLUMNS)
    make_room = partial(_pass_through, _peer(source, source_config), _peer(target, target_config), prefix)
    return chosen.mapInArrow(make_room, chosen.schema).withColumn("topic", F.concat(F.lit(prefix), "topic"))


def _peer(bootstrap: str, config: str) -> Peer:
    values = Values({"kafka.bootstrap.servers": bootstrap, **client_options(config)})
    return parse_peer(values, client_id="zurau-mirror")


def _pass_through(
    source: Peer, target: Peer, prefix: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        groups = pa.Table.from_batches([batch]).group_by("topic").aggregate([("partition", "max")])
        for group in groups.to_pylist():
            ensure(source, group["topic"], target, prefix + group["topic"], group["partition_max"])
        yield batch


def ensure(source: Peer, topic: str, target: Peer, copy: str, partition: int) -> None:
    """The copy has this partition; it has at least as many as the topic."""
    if _known.get((target, copy), 0) > partition:
        return
    with source.open() as cluster:
        wanted = len(Admin(cluster).describe_topic(topic).partitions)
    with target.open() as cluster:
        _known[target, copy] = _make_room(Admin(cluster), copy, wanted)


def _make_room(admin: Admin, topic: str, wanted: int) -> int:
    try:
        there = len(admin.describe_topic(topic).partitions)
    except UnknownTopic:
        there = 0
    if there >= wanted:
        return there
    try:
        if there:
            return len(admin.add_partitions(topic, wanted).partitions)
        return len(admin.create_topic(NewTopic(topic, wanted)).partitions)
    except BrokerRefused as error:
        if error.code not in {ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.INVALID_PARTITIONS}:
            raise
    # Another task was quicker.
    return len(admin.describe_topic(topic).partitions)

"""Ten million records: written by the sink, counted and summed by Spark, and not one more or less."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'zurau[spark]'")

from pyspark.sql.types import StringType, StructType

from pyspark_zurau.options.values import Values
from pyspark_zurau.writing.sink import parse_write_options, write_rows
from zurau.client.offsets import end_offsets

pytestmark = pytest.mark.xdist_group("spark")

COUNT = 10_000_000
AT_ONCE = 250_000


def test_ten_million_records_are_counted_and_summed_exactly(broker, cluster, new_topic, read):
    topic = new_topic(4)
    options = Values({"kafka.bootstrap.servers": broker.bootstrap, "topic": topic, "kafka.compression.type": "lz4"})
    numbers = (pa.array(range(start, start + AT_ONCE)) for start in range(0, COUNT, AT_ONCE))
    batches = (pa.record_batch({"value": some.cast(pa.string())}) for some in numbers)
    write_rows(parse_write_options(options, StructType().add("value", StringType()), overwrite=False), batches)
    ends = end_offsets(cluster, cluster.partitions_of(topic)).values()
    frame = read(topic, schema="value binary, partition int, offset bigint")
    frame = frame.selectExpr("count(*)", "sum(bigint(string(value)))", "sum(offset)", "max(partition)")
    (found,) = frame.collect()
    assert tuple(found) == (COUNT, COUNT * (COUNT - 1) // 2, sum(end * (end - 1) // 2 for end in ends), 3)

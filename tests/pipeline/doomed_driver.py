"""A driver that tests kill: it copies one topic to a lake and to another topic, in small batches.

When all is copied it prints what Spark finds in the two, as JSON, and ends.

Run as a script, with one argument: JSON with `bootstrap`, `source` and `target` (topics) and `directory`, for the lake
and the checkpoints.
"""

from __future__ import annotations

import json
import sys

from pyspark_zurau import session

SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.memory": "512m",
    "spark.ui.enabled": "false",
}


def main() -> None:
    task = json.loads(sys.argv[1])
    spark = session("doomed", master="local[2]", settings=SETTINGS)
    spark.sparkContext.setLogLevel("OFF")
    reader = spark.readStream.format("zurau").option("kafka.bootstrap.servers", task["bootstrap"])
    reader = reader.option("subscribe", task["source"]).option("startingOffsets", "earliest")
    frame = reader.option("maxOffsetsPerTrigger", "100").load()
    lake = frame.selectExpr("partition", "offset", "string(value) AS value").writeStream.format("parquet")
    lake = lake.option("path", f"{task['directory']}/lake")
    topic = frame.select("key", "value").writeStream.format("zurau").option("topic", task["target"])
    topic = topic.option("kafka.bootstrap.servers", task["bootstrap"])
    queries = [
        writer.option("checkpointLocation", f"{task['directory']}/{name}-checkpoint").trigger(availableNow=True).start()
        for name, writer in (("lake", lake), ("topic", topic))
    ]
    for query in queries:
        query.awaitTermination()
    written = spark.read.format("zurau").option("kafka.bootstrap.servers", task["bootstrap"])
    frames = {
        "lake": spark.read.parquet(f"{task['directory']}/lake"),
        "topic": written.option("subscribe", task["target"]).load(),
    }
    numbers = {name: frame.selectExpr("int(string(value)) AS n").collect() for name, frame in frames.items()}
    print(json.dumps({name: sorted(row.n for row in rows) for name, rows in numbers.items()}))


if __name__ == "__main__":
    main()

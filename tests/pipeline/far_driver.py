"""A driver whose tasks run elsewhere: reads a topic as a batch and as a stream, and writes another topic.

Run as a script, with one argument: JSON with `bootstrap`, `source` and `target` (topics), `directory`,
`small_jvm` (options for Java), and `master` or `remote`. Prints what it found, as JSON.
"""

from __future__ import annotations

import json
import sys

from pyspark_zurau import session

SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.ui.enabled": "false",
}


def main() -> None:
    task = json.loads(sys.argv[1])
    if "remote" in task:
        spark = session(remote=task["remote"])
    else:
        java = {f"spark.{who}.extraJavaOptions": task["small_jvm"] for who in ("driver", "executor")}
        spark = session("far", master=task["master"], settings=SETTINGS | java)
    where = {"kafka.bootstrap.servers": task["bootstrap"], "subscribe": task["source"], "startingOffsets": "earliest"}

    table = spark.read.format("zurau").options(**where).load()
    (counted,) = table.selectExpr("count(*)", "sum(bigint(string(value)))").collect()

    stream = spark.readStream.format("zurau").options(**where).option("maxOffsetsPerTrigger", "600").load()
    writer = stream.select("key", "value").writeStream.format("zurau").option("topic", task["target"])
    writer = writer.option("kafka.bootstrap.servers", task["bootstrap"])
    writer = writer.option("checkpointLocation", f"{task['directory']}/checkpoint").trigger(availableNow=True)
    writer.start().awaitTermination()

    copied = spark.read.format("zurau").options(**where | {"subscribe": task["target"]}).load()
    copies = sorted(row.n for row in copied.selectExpr("int(string(value)) AS n").collect())
    print(json.dumps({"batch": list(counted), "copied": copies}))
    spark.stop()


if __name__ == "__main__":
    main()

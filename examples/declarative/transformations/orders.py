"""The topic `orders` becomes a table that grows; large orders go on to the topic `large-orders`."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()
BROKERS = {"kafka.bootstrap.servers": spark.conf.get("orders.bootstrap")}

dp.create_sink("large_orders", "zurau", {**BROKERS, "topic": "large-orders"})


@dp.table
def orders() -> DataFrame:
    topic = spark.readStream.format("zurau").options(**BROKERS, subscribe="orders", startingOffsets="earliest").load()
    parsed = topic.selectExpr("from_json(string(value), 'shop STRING, price DOUBLE') AS parsed", "timestamp AS at")
    return parsed.select("parsed.*", "at")


@dp.append_flow(target="large_orders")
def large_orders() -> DataFrame:
    large = spark.readStream.table("orders").where("price >= 100")
    return large.selectExpr("shop AS key", "to_json(struct(*)) AS value")

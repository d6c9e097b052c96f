"""Lakes after they were written: small files made into large ones, and records brought back into topics.

A lake is a directory of Parquet files, in folders like `topic=orders/date=2026-01-31`, or a Delta table. Files and
folders whose names begin with a dot are nobody's but ours. None of this needs Spark.
"""

"""Reading topics: what the driver plans, in batches and streams, and what a task does with its range.

Everything a task needs travels in its input partition. The driver asks brokers for offsets only.
"""

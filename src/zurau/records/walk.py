"""Whether the records of a batch are what its header promises: the compiled walker, or else its plain twin."""

from __future__ import annotations

from zurau.records import pure_walk

try:
    from zurau.records._walk import find_time, walk

    IS_COMPILED = True
except ImportError:  # nothing could be compiled where this was installed
    from zurau.records.pure_walk import find_time, walk

    IS_COMPILED = False
try:
    from zurau.records._walk import plain_header
except ImportError:  # nothing was compiled, or before there was this
    from zurau.records.pure_walk import plain_header  # type: ignore[assignment]

__all__ = ["FAULTS", "IS_COMPILED", "find_time", "plain_header", "walk"]

#: What is wrong, in words. A verdict of keys and timestamps is about some records, the others about the first.
FAULTS = {
    pure_walk.KEYLESS: "every record of a compacted topic needs a key",
    pure_walk.MISTIMED: "timestamps are too far from the broker's time",
    pure_walk.KEYLESS | pure_walk.MISTIMED: "timestamps are too far from the broker's time, and keys are missing",
    pure_walk.COUNT: "the batch is too short for as many records as it claims",
    pure_walk.RECORD_LENGTH: "a record's length and content disagree",
    pure_walk.TIMESTAMP: "a timestamp does not fit into its record",
    pure_walk.OFFSET: "the offsets of records must be 0, 1, 2 and so on within their batch",
    pure_walk.KEY: "a key does not fit into its record",
    pure_walk.VALUE: "a value does not fit into its record",
    pure_walk.HEADERS: "a header does not fit into its record, or has no key, or one that is not UTF-8",
    pure_walk.LEFT_OVER: "bytes follow the last record of the batch",
    pure_walk.IMPOSSIBLE_TIME: "a record's timestamp is not a time",
}

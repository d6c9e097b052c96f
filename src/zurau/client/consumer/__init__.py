"""Records in: batches fetched ahead from every leader, and the records in them."""

from __future__ import annotations

from zurau.client.consumer.consumer import AbortedProducers, Consumer, PartitionRecords, decode
from zurau.client.consumer.fetcher import FAIL, GO_TO_END, GO_TO_START, Fetched, Fetcher, FetchSettings

__all__ = [
    "FAIL",
    "GO_TO_END",
    "GO_TO_START",
    "AbortedProducers",
    "Consumer",
    "FetchSettings",
    "Fetched",
    "Fetcher",
    "PartitionRecords",
    "decode",
]

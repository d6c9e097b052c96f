"""A real broker whose buffers, windows and threads are tiny serves librdkafka as any other does.

ZURAU_SEED=17 pytest tests/compatibility/test_constants.py    draws the constants of one seed
"""

from __future__ import annotations

import os
import random

import pytest
from confluent_kafka import Consumer, Producer

from zurau.simulation.constants import DRAWN, as_text, constants, draw
from zurau.testing import Broker

PATIENCE_S = 30
#: Sizes at and around those that buffers commonly have, and many small ones.
SIZES = [0, 1, 60, 1023, 1024, 4097, 65_535, 200_000, *[100] * 200]
LEAST = DRAWN | {"node.acceptor.BACKLOG": 5}  # with less, connections wait for the kernel to repeat itself
SEEDS = [int(os.environ["ZURAU_SEED"])] if "ZURAU_SEED" in os.environ else [1, 3, 6, 19]


def write(bootstrap: str, values: list[bytes], codec: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "compression.type": codec})
    failures: list[str] = []
    for value in values:
        producer.produce("t", value, on_delivery=lambda error, _: failures.append(str(error)) if error else None)
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0
    assert not failures


def read(bootstrap: str, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])
    messages = consumer.consume(count, PATIENCE_S)
    consumer.commit(asynchronous=False)
    consumer.close()
    assert not [message.error() for message in messages if message.error()]
    return [message.value() for message in messages]


@pytest.mark.parametrize("sizes", [LEAST, *map(draw, SEEDS)], ids=["least", *map(str, SEEDS)])
def test_librdkafka_gets_back_what_it_wrote_whatever_the_constants_are(sizes, tmp_path):
    print(f"ZURAU_CONSTANTS={as_text(sizes)}")
    chance = random.Random(1)
    batches = {codec: [chance.randbytes(size) for size in SIZES] for codec in ("none", "lz4", "zstd", "snappy")}
    written = [value for values in batches.values() for value in values]
    with constants(sizes):
        with Broker(dir=str(tmp_path), max_message_bytes=2_000_000) as broker:
            for codec, values in batches.items():
                write(broker.bootstrap, values, codec)
            assert read(broker.bootstrap, len(written)) == written
        with Broker(dir=str(tmp_path)) as broker:
            write(broker.bootstrap, [b"one more"], "none")
            assert read(broker.bootstrap, 1) == [b"one more"]

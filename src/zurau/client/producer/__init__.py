"""Records out: gathered into batches, numbered, sent to the leaders, and tried again until they are acknowledged."""

from __future__ import annotations

from zurau.client.producer.accumulator import Delivery
from zurau.client.producer.producer import Producer
from zurau.client.producer.sender import ACKS_ALL, OnDelivered, ProducerSettings

__all__ = ["ACKS_ALL", "Delivery", "OnDelivered", "Producer", "ProducerSettings"]

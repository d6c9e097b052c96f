"""The client for asyncio: nothing here blocks the loop.

It is the same client. Each object has one thread, in which the synchronous code runs, with connections of its own; no
call starts another, and many tasks may use one object. What a cancelled call brought is not lost: records of a `poll`
that nobody waited for are those of the next one.
"""

from zurau.client.aio.admin import AsyncAdmin
from zurau.client.aio.consumer import AsyncConsumer, AsyncGroupConsumer
from zurau.client.aio.producer import AsyncProducer, RecordMetadata

__all__ = ["AsyncAdmin", "AsyncConsumer", "AsyncGroupConsumer", "AsyncProducer", "RecordMetadata"]

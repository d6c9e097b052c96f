"""A broker in a thread of the calling process, with a loop of its own."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from zurau.client.admin import Admin, NewTopic
from zurau.client.cluster import Cluster
from zurau.client.consumer import Consumer
from zurau.client.offsets import end_offsets, start_offsets
from zurau.client.producer import Producer
from zurau.ids import Address, TopicPartition
from zurau.node.run import Node
from zurau.node.settings import load
from zurau.records.record import Record

#: Tests want to see failures, not to wait for a disk: what a crash of the whole machine would take is not tested here.
TEST_DEFAULTS = {"kafka": "127.0.0.1:0", "flush": "os", "log_level": "warning", "session_timeout_min_ms": 100}


class Broker:
    """A real broker, ready when the `with` block begins and gone when it ends.

    Settings are those of `zurau serve`, by the same names: `Broker(num_partitions=4, max_message_bytes=1024)`.
    A setting that does not exist, or a wrong value, raises `SettingsError` at once. Without `dir` its data lives in a
    temporary directory and is removed at the end.
    """

    def __init__(self, **settings: Any) -> None:
        Node(load(TEST_DEFAULTS | settings))  # opens nothing; a wrong setting is noticed here, where it is written
        self._settings = settings
        self._has_own_directory = "dir" not in settings
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._thread: threading.Thread | None = None
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._stop_asked: asyncio.Event | None = None
        self._serving: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        #: Where to listen again after a restart.
        self._address: str | None = None
        self.host = "127.0.0.1"
        self.port = 0
        #: Where HTTP is spoken, if that was asked for: `Broker(http="127.0.0.1:0")`.
        self.http_address: Address | None = None

    @property
    def bootstrap(self) -> str:
        """What clients call `bootstrap.servers`."""
        return f"{self.host}:{self.port}"

    @property
    def directory(self) -> Path:
        """Where its data lives, once it was started."""
        if "dir" not in self._settings:
            raise RuntimeError("a broker without `dir` gets its directory when it starts: call start() first")
        return Path(self._settings["dir"])

    def start(self) -> Self:
        if self._thread is not None:
            raise RuntimeError("this broker is running; make another Broker() for a second one")
        if self._has_own_directory:
            self._temporary = tempfile.TemporaryDirectory(prefix="zurau-")
            self._settings["dir"] = self._temporary.name
        return self._begin()

    def _begin(self) -> Self:
        self._ready.clear()
        self._thread = threading.Thread(target=self._run, name="zurau-broker", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            self.stop()
        return self

    def restart(self) -> None:
        """Stop in good order and start again, at the same address and with the same data."""
        if self._thread is None:
            raise RuntimeError("this broker is not running; start() it first")
        self._halt()
        self._address = self.bootstrap
        self._begin()

    def create_topic(self, name: str, partitions: int = 1, **settings: str) -> str:
        """Settings are those of topics, by Kafka's names with underscores: `retention_ms="1000"`."""
        wanted = {setting.replace("_", "."): value for setting, value in settings.items()}
        with Cluster(self.bootstrap) as cluster:
            return Admin(cluster).create_topic(NewTopic(name, partitions, settings=wanted)).name

    def produce(
        self, topic: str, *values: bytes | str | None, key: bytes | str | None = None, partition: int | None = None
    ) -> None:
        """Write values, and return when they are stored. The topic is made if the broker makes topics by itself."""
        with Cluster(self.bootstrap) as cluster, Producer(cluster) as producer:
            for value in values:
                producer.send(topic, _encoded(value), key=_encoded(key), partition=partition)

    def consume(self, topic: str) -> list[Record]:
        """All that the topic holds at this moment, partition by partition."""
        with Cluster(self.bootstrap) as cluster, Consumer(cluster) as consumer:
            cluster.retry(lambda: cluster.topic(topic))
            partitions = [TopicPartition(topic, one.index) for one in cluster.topic(topic).partitions]
            ends = end_offsets(cluster, partitions)
            found: dict[TopicPartition, list[Record]] = {partition: [] for partition in sorted(partitions)}
            consumer.assign(start_offsets(cluster, partitions))
            while any(consumer.positions[partition] < end for partition, end in ends.items()):
                for partition, records, _ in consumer.poll():
                    found[partition] += records
        return [record for records in found.values() for record in records]

    def stop(self) -> None:
        """Stop in good order; what is stopped already stays so. Raises what stopped it before."""
        self._halt()
        self._address = None
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _halt(self) -> None:
        if self._loop is not None and self._stop_asked is not None:
            with suppress(RuntimeError):  # the loop has closed: it could not start, or ended by itself
                self._loop.call_soon_threadsafe(self._stop_asked.set)
        if self._thread is not None:
            self._thread.join()
        self._loop = self._stop_asked = self._thread = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that started or stops it
            self._failure = self._failure or error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop_asked = asyncio.Event()
        self._serving = asyncio.current_task()
        address = {"kafka": self._address} if self._address else {}
        node = Node(load(TEST_DEFAULTS | self._settings | address), self._fail)
        self.host, self.port = await node.start()
        self.http_address = node.http_address
        self._ready.set()
        await self._stop_asked.wait()
        await (node.stop() if self._failure is None else node.abandon())

    def _fail(self, error: BaseException) -> None:
        """An invariant is broken: a process would end here; a test fails with it."""
        assert self._stop_asked is not None
        assert self._serving is not None
        self._failure = self._failure or error
        self._stop_asked.set()
        if not self._ready.is_set():
            self._serving.cancel()


def _encoded(value: bytes | str | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value

"""The way to the right broker: metadata, leaders, coordinators, and a connection to each of them.

What is known may be out of date at any time; that shows as a refusal or a lost connection. `Cluster.retry` is the
answer to all of these: forget, wait a little, ask for metadata anew, try again, until the deadline.

A broker that hangs says nothing at all. Where another one could answer as well, one that does not answer within a
second is left for the next; it is given twice as long when its turn comes again, so that brokers that are merely slow
are heard in the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self, TypeVar

from zurau.client.cluster.connection import Connection
from zurau.client.cluster.metadata import NO_LEADER, Metadata, TopicInfo
from zurau.client.errors import (
    BrokerUnreachable,
    ClientError,
    ConnectionLost,
    NoLeader,
    NotTrusted,
    TimedOut,
    UnknownTopic,
    check,
)
from zurau.client.retry import Backoff, Deadline, retry
from zurau.client.security.settings import PLAIN_TEXT, Security
from zurau.errors import SettingsError
from zurau.ids import Address, BrokerId, TopicPartition
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.find_coordinator import FindCoordinatorRequest
from zurau.wire.kafka.messages.metadata import MetadataRequest, MetadataRequestTopic
from zurau.wire.kafka.schema import R, Request

T = TypeVar("T")

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
DEFAULT_PORT = 9092
GROUP_COORDINATOR = 0
START_PATIENCE_S = 5.0
#: How long a broker is waited for at first that another one could stand in for.
FIRST_PATIENCE_S = 1.0
#: A coordinator answers at once; one that does not may have been replaced.
COORDINATOR_PATIENCE_S = 2.0


class Cluster:
    """Open it in a `with` block; leaving closes its connections. Nothing is dialled before the first question."""

    def __init__(
        self,
        bootstrap: str = DEFAULT_BOOTSTRAP,
        *,
        client_id: str = "zurau",
        timeout_s: float = 30.0,
        security: Security = PLAIN_TEXT,
    ) -> None:
        self._bootstrap = parse_addresses(bootstrap)
        self._client_id = client_id
        self._security = security
        self.timeout_s = timeout_s
        self.metadata = Metadata()
        self._connections: dict[BrokerId, Connection] = {}
        self._first: Connection | None = None
        self._coordinators: dict[str, BrokerId] = {}
        #: How long to wait for those that did not answer in time, when it is their turn again.
        self._patience_s: dict[Address, float] = {}

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        if self._first is not None:
            self._first.close()
            self._first = None

    def sibling(self, timeout_s: float | None = None) -> Cluster:
        """Another way to the same cluster with connections of its own, for another thread or with another patience."""
        known = [broker.address for broker in self.metadata.brokers.values()]
        bootstrap = ",".join(str(address) for address in dict.fromkeys([*self._bootstrap, *known]))
        return Cluster(
            bootstrap,
            client_id=self._client_id,
            timeout_s=timeout_s or self.timeout_s,
            security=self._security,
        )

    def refresh(
        self,
        topics: Iterable[str] | None = None,
        *,
        may_create: bool = False,
        but: Address | None = None,
    ) -> None:
        """Ask for metadata, of all topics or of some. Not at the address `but`, if there is another one."""
        asked = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=asked, allow_auto_topic_creation=may_create)
        self.metadata.update(self._ask_whoever_answers(request, but))

    def topic(self, name: str, *, may_create: bool = False) -> TopicInfo:
        """What is known of a topic; asks for it when it is not known yet, and makes it if that is wanted."""
        if name not in self.metadata.topics:
            request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=may_create)
            answer = self._ask_whoever_answers(request)
            self.metadata.update(answer)
            for topic in answer.topics:
                if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and not may_create:
                    raise UnknownTopic(name)
                check(topic.error_code, f"topic {name!r}")
        return self.metadata.topics[name]

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        return [TopicPartition(topic, partition.index) for partition in self.topic(topic).partitions]

    def leader_of(self, partition: TopicPartition) -> BrokerId:
        """The broker that leads a partition; `NoLeader` when none does right now."""
        count = len(self.topic(partition.topic).partitions)
        if partition.partition >= count:  # it may be newer than what is known of the topic
            self.forget([partition.topic])
            count = len(self.topic(partition.topic).partitions)
        for known in self.topic(partition.topic).partitions:
            if known.index == partition.partition:
                if known.leader == NO_LEADER:
                    raise NoLeader(f"{partition} has no leader; check its brokers with `zurau topic describe`")
                return known.leader
        raise ClientError(
            f"topic {partition.topic!r} has no partition {partition.partition}; it has {count}, from 0 to {count - 1}"
        )

    def by_leader(self, partitions: Iterable[TopicPartition]) -> dict[BrokerId, list[TopicPartition]]:
        found: dict[BrokerId, list[TopicPartition]] = {}
        for partition in partitions:
            found.setdefault(self.leader_of(partition), []).append(partition)
        return found

    def coordinator_of(self, group: str) -> BrokerId:
        """The broker that looks after a group."""
        if group not in self._coordinators:
            request = FindCoordinatorRequest(key=group, key_type=GROUP_COORDINATOR, coordinator_keys=[group])
            found = self._ask_whoever_answers(request).coordinators[0]
            check(found.error_code, f"finding the coordinator of group {group!r}", found.error_message)
            if found.node_id not in self.metadata.brokers:
                self.refresh(())
            self._coordinators[group] = BrokerId(found.node_id)
        return self._coordinators[group]

    def forget(self, topics: Iterable[str] = ()) -> None:
        """Something turned out to be wrong: drop what was known of these topics and of every coordinator."""
        for topic in topics:
            self.metadata.topics.pop(topic, None)
        self._coordinators.clear()

    def retry(self, attempt: Callable[[], T], *, topics: Iterable[str] = ()) -> T:
        """The first success of `attempt` within the time-out, with fresh metadata of `topics` for each try."""
        names = list(topics)
        return retry(attempt, self.timeout_s, on_failure=lambda: self.forget(names))

    def ask_any(self, message: Request[R]) -> R:
        """Ask whichever broker answers. Tried on one more broker when a connection turns out to be dead."""
        try:
            return self.any_connection().request(message)
        except ConnectionLost:
            return self.any_connection().request(message)

    def _ask_whoever_answers(self, message: Request[R], but: Address | None = None) -> R:
        """What every broker knows and says at once: whoever does not say it in time is left for another."""
        tries = len(self._addresses())
        while True:
            tries -= 1
            connection = self.any_connection(but)
            try:
                return connection.request(message, self._patience_with(connection.address))
            except (ConnectionLost, TimedOut) as error:
                if isinstance(error, TimedOut):
                    self._did_not_answer(connection.address)
                if tries <= 0:
                    raise

    def ask_broker(self, broker: BrokerId, message: Request[R], timeout_s: float | None = None) -> R:
        return self.connection_to(broker).request(message, timeout_s)

    def ask_controller(self, message: Request[R]) -> R:
        """Ask the broker that changes the cluster (any broker, where it does not say who that is)."""
        if not self.metadata.brokers:
            self.refresh(())
        controller = self.metadata.controller_id
        return self.ask_broker(controller, message) if controller in self.metadata.brokers else self.ask_any(message)

    def ask_coordinator(self, group: str, message: Request[R], timeout_s: float | None = None) -> R:
        patience_s = min(self.timeout_s, COORDINATOR_PATIENCE_S) if timeout_s is None else timeout_s
        return self.ask_broker(self.coordinator_of(group), message, patience_s)

    def connection_to(self, broker: BrokerId) -> Connection:
        """The shared connection to a broker, dialled when there is none that works."""
        connection = self._connections.get(broker)
        if connection is None or not connection.is_open:
            connection = self._connections[broker] = self.dial(broker)
        return connection

    def dial(self, broker: BrokerId) -> Connection:
        """A new connection that is the caller's own."""
        if broker not in self.metadata.brokers:
            self.refresh(())
        known = self.metadata.brokers.get(broker)
        if known is None:
            raise ConnectionLost(f"broker {broker} is not in the cluster any more; see `zurau cluster`")
        return self._connect(known.address)

    def any_connection(self, but: Address | None = None) -> Connection:
        for connection in (*self._connections.values(), self._first):
            if connection is not None and connection.is_open and not connection.in_flight and connection.address != but:
                return connection
        addresses = self._addresses()
        others = [address for address in addresses if address != but] or addresses
        if self._first is not None:
            self._first.close()
        self._first = self._wait_for_first(sorted(others, key=lambda address: self._patience_s.get(address, 0.0)))
        return self._first

    def _addresses(self) -> list[Address]:
        known = [broker.address for broker in self.metadata.brokers.values()]
        return list(dict.fromkeys([*self._bootstrap, *known]))

    def _patience_with(self, address: Address) -> float:
        """How long to wait for a greeting, or for what others know as well."""
        has_others = len(self._addresses()) > 1
        return min(self.timeout_s, self._patience_s.get(address, FIRST_PATIENCE_S)) if has_others else self.timeout_s

    def _did_not_answer(self, address: Address) -> None:
        self._patience_s[address] = 2 * self._patience_s.get(address, FIRST_PATIENCE_S)

    def _wait_for_first(self, addresses: list[Address]) -> Connection:
        """A broker that refuses may just be starting, and gets a moment; a host that does not exist gets none."""
        deadline = Deadline(min(self.timeout_s, START_PATIENCE_S))
        backoff = Backoff()
        while True:
            try:
                return self._connect_first(addresses)
            except BrokerUnreachable as error:
                delay_s = backoff.next_delay_s()
                if not error.may_be_starting or delay_s > deadline.remaining_s:
                    raise
            time.sleep(delay_s)

    def _connect_first(self, addresses: list[Address]) -> Connection:
        reason, refused = "", False
        for address in dict.fromkeys(addresses):
            try:
                return self._connect(address)
            except NotTrusted:
                raise
            except ClientError as error:
                reason = str(error.__cause__.strerror) if isinstance(error.__cause__, OSError) else str(error)
                refused = refused or isinstance(error.__cause__, ConnectionRefusedError)
        named = ", ".join(str(address) for address in self._bootstrap)
        unreachable = BrokerUnreachable(named, reason, may_be_starting=refused)
        # A cluster that was there a moment ago is worth waiting for.
        raise ConnectionLost(str(unreachable)) if self.metadata.brokers else unreachable

    def _connect(self, address: Address) -> Connection:
        try:
            connection = Connection(
                address,
                client_id=self._client_id,
                timeout_s=self.timeout_s,
                security=self._security,
                greeting_s=self._patience_with(address),
            )
        except TimedOut:
            self._did_not_answer(address)
            raise
        self._patience_s.pop(address, None)
        return connection

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def parse_addresses(text: str) -> list[Address]:
    """`host:port,host:port`; the port may be left out, an IPv6 address stands in brackets."""
    addresses = []
    for part in (word.strip() for word in text.split(",")):
        host, _, port = part.rpartition(":") if ":" in part.rpartition("]")[2] else (part, "", str(DEFAULT_PORT))
        if not host.strip("[]") or not port.isdecimal() or not 0 < int(port) < 65536:
            raise SettingsError(f"{text!r} is not HOST:PORT; for example {DEFAULT_BOOTSTRAP}")
        addresses.append(Address(host.strip("[]"), int(port)))
    return addresses

"""Those who create, change, trim and delete topics, and who look at what is shown of them."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from zurau.ids import BrokerId, Offset, TopicPartition
from zurau.simulation.brokers.clients.consumers import Reader
from zurau.simulation.brokers.clients.producers import ACKS_ALL, VERSION, produce_request, produced
from zurau.simulation.brokers.connection import Unreachable
from zurau.simulation.brokers.history import brief
from zurau.simulation.brokers.invariants import broken, require
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from zurau.wire.kafka.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from zurau.wire.kafka.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from zurau.wire.kafka.messages.delete_topics import DeleteTopicsRequest
from zurau.wire.kafka.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from zurau.wire.kafka.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from zurau.wire.kafka.messages.metadata import MetadataRequest

if TYPE_CHECKING:
    from zurau.simulation.brokers.cluster import SimulatedCluster

TIMEOUT_MS = 2000
TOPIC_RESOURCE = 2
RAISED = "retention.ms"
#: Far above what any record's age will be.
RETENTION_MS = 10_000_000_000


class ShownTopics:
    """What clients were shown, by topic id: how many partitions, and whether somebody may have deleted it since."""

    def __init__(self) -> None:
        self.partitions: dict[bytes, int] = {}
        self.names: dict[bytes, str] = {}
        self.doomed: set[bytes] = set()
        #: Until when a topic of this name was being deleted.
        self._doomed_until_ms: dict[str, float] = {}

    def shown(self, topic_id: bytes, name: str, partitions: int, asked_at_ms: float) -> None:
        self.names[topic_id] = name
        self.partitions[topic_id] = max(partitions, self.partitions.get(topic_id, 0))
        if self._doomed_until_ms.get(name, -1) >= asked_at_ms:
            self.doomed.add(topic_id)  # it may have been deleted since it was shown

    def doom(self, name: str) -> None:
        """Somebody is about to delete it."""
        self._doomed_until_ms[name] = inf
        self.doomed |= {topic_id for topic_id, known in self.names.items() if known == name}

    def gone(self, name: str, now_ms: float) -> None:
        """It is deleted, and whatever has this name from now on is another."""
        self._doomed_until_ms[name] = now_ms


def is_fleeting(name: str) -> bool:
    return name.startswith("fleeting")


class Administrator(Reader):
    """Knows how to ask for topics, again and again until it is certain."""

    ends_abruptly = True

    def __init__(self, cluster: SimulatedCluster, name: str) -> None:
        super().__init__(cluster, name)
        #: One broker shows at once what it has done for somebody; others may be a little behind.
        self._asked = self.any_broker()

    async def create(self, name: str, partitions: int, configs: dict[str, str], *, is_fleeting: bool = False) -> None:
        wanted = [CreatableTopicConfig(name=key, value=value) for key, value in configs.items()]
        # Who is to go gets no new replicas.
        replicas = min(3, self.swarm.brokers - (is_fleeting and "Decommission" in self.swarm.operation_kinds))
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas, configs=wanted)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)
        await self._insist(request, 5, lambda answer: answer.topics[0].error_code, ErrorCode.TOPIC_ALREADY_EXISTS)

    async def delete(self, name: str) -> None:
        for shown in self.cluster.shown.values():
            shown.doom(name)
        request = DeleteTopicsRequest(topic_names=[name], timeout_ms=TIMEOUT_MS)
        await self._insist(
            request, 5, lambda answer: answer.responses[0].error_code, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
        for shown in self.cluster.shown.values():
            shown.gone(name, self.cluster.agenda.now_ms)

    async def add_partitions(self, name: str, count: int) -> None:
        request = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=name, count=count)], timeout_ms=TIMEOUT_MS)
        await self._insist(request, 1, lambda answer: answer.results[0].error_code, ErrorCode.INVALID_PARTITIONS)

    async def _insist(self, request: Any, version: int, code_of: Any, done_before: ErrorCode) -> None:
        """Until it is done; it may have been done by an earlier try whose answer was lost."""
        is_certain = True
        while True:
            try:
                code = code_of(await self.ask(self._asked, request, version))
            except Unreachable:
                is_certain = False
                self._asked = self.any_broker()
                self.history.trace.note(f"{self.name}: {type(request).__name__} is not answered")
            else:
                self.history.trace.note(f"{self.name}: {type(request).__name__} {ErrorCode(code).name}")
                if code == ErrorCode.NONE or (code == done_before and not is_certain):
                    return
                self.require_retriable(code, type(request).__name__)
                is_certain = False
            await self.rest()


class FleetingTopics(Administrator):
    """Creates a topic, writes to it, reads it, deletes it, and creates it again under the same name."""

    def __init__(self, cluster: SimulatedCluster, number: int) -> None:
        super().__init__(cluster, f"fleeting-{number}")
        self._count = 0
        #: What is known to have been in an earlier topic of this name.
        self._gone: set[bytes] = set()

    async def run(self) -> None:
        while self.goes_on:
            partitions = self.chance.randint(1, 2)
            await self.create(self.name, partitions, {}, is_fleeting=True)
            if self.chance.random() < 0.3:
                partitions += 1
                await self.add_partitions(self.name, partitions)
            names = [TopicPartition(self.name, index) for index in range(partitions)]
            known = {name: await self._write(name) for name in names}
            for name in names:
                while not await self._check(name, known[name]):
                    await self.rest()
            await self.delete(self.name)
            for acknowledged in known.values():
                self._gone.update(acknowledged.values())
            self.forget_topic(self.name)
            await self.think()

    async def _write(self, name: TopicPartition) -> dict[Offset, bytes]:
        acknowledged: dict[Offset, bytes] = {}
        for _ in range(self.chance.randint(0, 4)):
            self._count += 1
            value = self.values(self._count, 1)[0]
            leader = await self._leader_that_knows(name)
            try:
                result = produced(
                    await self.ask(leader, produce_request(name, self.batch([value]), ACKS_ALL, 1000), VERSION)
                )
            except Unreachable:
                continue
            if result.error_code == ErrorCode.NONE:
                acknowledged[result.base_offset] = value
                self.history.counts["acknowledged"] += 1
            elif result.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                self.forget_leader(name)
                self.require_retriable(result.error_code, f"{brief(value)} in {name}")
        return acknowledged

    async def _leader_that_knows(self, name: TopicPartition) -> BrokerId:
        """One whose metadata is behind takes the name for the earlier topic, which others have deleted: what it is
        given goes with that. Topics have ids against this, and produce requests do not say them yet."""
        while True:
            leader = await self.leader_of(name)
            broker = self.cluster.node(leader).broker
            topic = broker.image.topics.get(name.topic) if broker is not None else None
            if self.cluster.is_lone or topic is None or topic.topic_id == self.topic_id(name.topic):
                return leader
            self.forget_leader(name)
            await self.rest()

    async def _check(self, name: TopicPartition, known: dict[Offset, bytes]) -> bool:
        """Whether all of it is there, and nothing of an earlier topic. Who is behind is asked again: for ever, if the
        new topic has something of an old one (and that breaks BecomesWhole)."""
        found: dict[Offset, bytes | None] = {}
        offset: Offset = 0
        while True:
            data = await self.fetch(name, offset, patiently=True)
            if data is None or data.error_code != ErrorCode.NONE:
                return False
            records, following = self.records_of(data, name, offset)
            found |= {at: value for at, _, value in records}
            if following == offset:
                break
            offset = following
        if offset <= max(known, default=-1) and not self.cluster.is_lone:
            return False  # who leads does not know yet how far its predecessor came
        old = self._gone.intersection(value for value in found.values() if value is not None)
        if old and not self.cluster.is_lone:
            self.forget_leader(name)
            return False
        for at, value in known.items():
            seen = f"{name}: {brief(value)} was at {at}, found {brief(found.get(at))}"
            require(found.get(at) == value, "AcknowledgedStays", seen)
        require(not old, "OldTopicsStayGone", f"{name}, created anew, has {brief(next(iter(sorted(old)), None))}")
        return True


class Trimmer(Administrator):
    """Deletes records from the front of a partition."""

    def __init__(self, cluster: SimulatedCluster, names: list[TopicPartition]) -> None:
        super().__init__(cluster, "trimmer")
        self._names = names

    async def run(self) -> None:
        while self.goes_on:
            await self.sleep(self.swarm.think_ms * 5)
            name = self.chance.choice(self._names)
            known = self.history.of(name)
            if known.high_watermark <= known.may_start_at:
                continue
            offset = self.chance.randint(known.may_start_at, known.high_watermark)
            leader = await self.leader_of(name)
            known.may_start_at = max(offset, known.may_start_at)
            partitions = [DeleteRecordsPartition(partition_index=name.partition, offset=offset)]
            request = DeleteRecordsRequest(
                topics=[DeleteRecordsTopic(name=name.topic, partitions=partitions)], timeout_ms=TIMEOUT_MS
            )
            try:
                answer = (await self.ask(leader, request, 1)).topics[0].partitions[0]
            except Unreachable:
                continue
            if answer.error_code == ErrorCode.NONE:
                require(answer.low_watermark >= offset, "DeletedStaysDeleted", f"{name}: {answer.low_watermark}")
                if self.cluster.is_lone:  # or else another one may lead tomorrow who has not heard of it
                    known.starts_at = max(known.starts_at, offset)
                self.history.trace.note(f"{name} starts at {answer.low_watermark}")
            else:
                self.forget_leader(name)
                is_behind = answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and not self.cluster.is_lone
                if not is_behind:  # who leads does not know yet how far its predecessor came
                    self.require_retriable(answer.error_code, f"a deletion of records in {name}")


class Watcher(Administrator):
    """Looks at all topics, and at a setting that it raises itself."""

    def __init__(self, cluster: SimulatedCluster, topic: str) -> None:
        super().__init__(cluster, "watcher")
        self._topic = topic
        self._raised = 0
        #: By the broker that was asked, which shows what it has said.
        self._acknowledged: dict[BrokerId, int] = {}
        #: Asked for and never answered: a broker may have passed it on, and the controller hears of it later.
        self._unanswered: set[int] = set()

    async def run(self) -> None:
        while self.goes_on:
            await self.look()
            if self.chance.random() < 0.2:
                await self._raise()
            await self.think()
        while not (await self.look() and await self._look_at_setting(self.any_broker())):
            await self.rest()

    async def look(self) -> bool:
        broker = self.any_broker()
        shown, asked_at_ms = self.cluster.shown[broker], self.cluster.agenda.now_ms
        expected = {topic_id: count for topic_id, count in shown.partitions.items() if topic_id not in shown.doomed}
        try:
            answer = await self.ask(broker, MetadataRequest(topics=None), 12)
        except Unreachable:
            return False
        found = {topic.topic_id: topic for topic in answer.topics}
        for topic_id, count in expected.items():
            if topic_id not in shown.doomed and (self.cluster.is_lone or not is_fleeting(shown.names[topic_id])):
                partitions = len(found[topic_id].partitions) if topic_id in found else None
                if partitions is None or partitions < count:
                    name = shown.names[topic_id]
                    broken("WhatIsShownStays", f"{name} has {partitions} partitions, and had {count}")
        for topic in answer.topics:
            shown.shown(topic.topic_id, topic.name, len(topic.partitions), asked_at_ms)
        return True

    async def _raise(self) -> None:
        self._raised += 1
        config = AlterableConfig(name=RAISED, config_operation=0, value=str(RETENTION_MS + self._raised))
        resource = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=self._topic, configs=[config])
        raised, broker = self._raised, self.any_broker()
        try:
            answer = await self.ask(broker, IncrementalAlterConfigsRequest(resources=[resource]), 1)
        except Unreachable:
            self._unanswered.add(raised)
            return
        if answer.responses[0].error_code == ErrorCode.NONE:
            self._acknowledged[broker] = raised
            await self._look_at_setting(broker)
        else:
            self._unanswered.add(raised)
            self.require_retriable(answer.responses[0].error_code, "a setting")

    async def _look_at_setting(self, broker: BrokerId) -> bool:
        resource = DescribeConfigsResource(
            resource_type=TOPIC_RESOURCE, resource_name=self._topic, configuration_keys=[RAISED]
        )
        expected = self._acknowledged.get(broker, 0)
        try:
            answer = await self.ask(broker, DescribeConfigsRequest(resources=[resource]), 4)
        except Unreachable:
            return False
        found = int(answer.results[0].configs[0].value) - RETENTION_MS
        may_come_late = not self.cluster.is_lone and found in self._unanswered
        if expected and found < expected and not may_come_late:
            broken("WhatIsShownStays", f"{RAISED} of {self._topic} is {found}, and was set to {expected}")
        return True

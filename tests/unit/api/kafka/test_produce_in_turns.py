"""A produce to many partitions is cut into turns, and the next one of its client does not overtake it."""

from __future__ import annotations

from zurau.api.client import ConnectionState
from zurau.api.kafka.call import Call
from zurau.api.kafka.produce import handle
from zurau.broker.settings import BrokerSettings
from zurau.log.settings import LogSettings
from zurau.pending import Pending, start
from zurau.simulation.broker import CLIENT, SimulatedBroker
from zurau.simulation.client import SimulatedClient
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


class OneItemTurns:
    """Every turn is over at once."""

    def __init__(self) -> None:
        self.waiting: list[Pending[None]] = []

    def is_over(self) -> bool:
        return True

    def next(self) -> Pending[None]:
        self.waiting.append(Pending())
        return self.waiting[-1]


class CallInTurns(Call):
    turns = OneItemTurns()


def test_while_it_is_not_done_with_its_partitions_the_connection_says_so():
    client = SimulatedClient(SimulatedBroker(1, LogSettings(), BrokerSettings(offsets_topic_num_partitions=1)))
    client.create_topic("wide", partitions=3)
    data = [PartitionProduceData(index=n, records=memoryview(bytearray(client.batch(b"v")))) for n in range(3)]
    request = ProduceRequest(
        transactional_id=None, acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name="wide", partition_data=data)]
    )
    connection = ConnectionState()
    call = CallInTurns(client.broker.broker, 9, None, CLIENT._replace(connection=connection))
    answer = start(handle(request, call))
    seen = []
    while not answer.is_done:
        seen.append(connection.is_appending)
        call.turns.waiting.pop(0).resolve(None)
    assert seen[:2] == [True, True]
    assert not connection.is_appending
    codes = [each.error_code for each in answer.result().responses[0].partition_responses]
    assert codes == [ErrorCode.NONE] * 3

"""Whatever a request says, a whole broker answers it or calls it a violation, and goes on to serve others.

Requests of every API and version are made of values that mean something here (a topic that exists, a batch, a group)
and of values that should frighten (the largest and smallest numbers, names of its own topics, empty and long text).
Some have their bytes changed besides; those that have not are well-formed, and every one of them is answered.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from drawn import drawn_constants
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from zurau.api.kafka.dispatch import answer
from zurau.broker.settings import BrokerSettings
from zurau.errors import ProtocolViolation
from zurau.log.settings import LogSettings
from zurau.records.builder import NewRecord, build_batch
from zurau.settings import HOUR_MS
from zurau.simulation.broker import CLIENT, SimulatedBroker
from zurau.simulation.client import SimulatedClient
from zurau.simulation.constants import constants
from zurau.simulation.world import BEGINNING_MS
from zurau.wire.kafka.apis import APIS, Api
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.frames import RequestHeader, encode_request
from zurau.wire.kafka.layout import ArrayOf, Fixed, Kind, Part, Sized, layout
from zurau.wire.kafka.messages.api_versions import ApiVersionsRequest
from zurau.wire.kafka.messages.produce import ProduceRequest

HELLO = ApiVersionsRequest(client_software_name="fuzz", client_software_version="1")
ROOMS = ("records", "wire", "log", "journal", "partition", "machines", "api", "broker")
BATCH = bytes(build_batch([NewRecord(b"key", b"value", timestamp=BEGINNING_MS)]))
BITS = {"b": 8, "h": 16, "i": 32, "q": 64}

TEXTS = st.sampled_from(
    ["events", "readers", "", "member", "range", "consumer", "__consumer_offsets", "__cluster_metadata", "..", "a/b",
     "retention.ms", "cleanup.policy", "-1", "1", "compact", "x" * 300, "\0", "ünï"]
)  # fmt: skip
BLOBS = st.sampled_from([b"", BATCH, BATCH[:-1], BATCH + BATCH, b"\0\0\0\0", b"\xff" * 70]) | st.binary(max_size=80)


#: Stands for the id of the topic in a request that is being made up.
EVENTS_ID = b"the-id-of-events"


def numbers(bits: int, *, signed: bool = True) -> st.SearchStrategy[int]:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    wanted = [number for number in (0, 1, -1, 2, -2, 5, 100, low, high) if low <= number <= high]
    return st.sampled_from(wanted) | st.integers(low, high)


def values(kind: Kind) -> st.SearchStrategy[Any]:
    match kind:
        case Part():
            fields = {field.name: nullable(values(field.kind), field) for field in (*kind.fields, *kind.tags)}
            return st.builds(kind.cls, **fields)
        case ArrayOf(element):
            return st.lists(values(element), max_size=3)
        case Sized("string"):
            return TEXTS
        case Sized():
            return BLOBS
        case Fixed("16s"):
            return st.sampled_from([EVENTS_ID, bytes(16), b"x" * 16])
        case Fixed("?"):
            return st.booleans()
        case Fixed("d"):
            return st.floats(allow_nan=False)
        case Fixed(code):
            return numbers(BITS[code.lower()], signed=code.islower())


@cache
def requests(api: Api, version: int) -> st.SearchStrategy[Any]:
    return values(layout(api.request, version))


def nullable(strategy: st.SearchStrategy[Any], field: Any) -> st.SearchStrategy[Any]:
    return st.none() | strategy if field.nullable else strategy


def mutated(frame: bytes, changes: list[tuple[int, int]]) -> bytes:
    changed = bytearray(frame)
    for position, value in changes:
        changed[10 + position % (len(changed) - 10)] = value  # behind the fixed part of the header
    return bytes(changed)


@st.composite
def frames(draw: Any, api: Api, number: int) -> bytes:
    """A request of any version, some of its bytes changed."""
    version = draw(st.sampled_from(api.versions))
    request = draw(requests(api, version))
    frame = b"".join(encode_request(RequestHeader(api.key, version, number, "fuzz"), request))[4:]
    return mutated(frame, draw(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 255)), max_size=3)))


def answers_or_refuses(client: SimulatedClient, frame: bytes) -> None:
    try:
        _, pending = answer(memoryview(bytearray(frame)), CLIENT, client.broker.broker)
        client.broker.clock.advance(50)
        if pending.is_done:  # a long poll may take its time
            pending.result()
    except ProtocolViolation:
        pass


@pytest.mark.parametrize("api", [pytest.param(api, id=api.name) for api in APIS.values()])
@settings(max_examples=settings().max_examples // 5, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_broker_survives_any_two_requests(api: Api, data: st.DataObject):
    """Two, because what the first one leaves behind may frighten too; and whatever the broker's constants are."""
    with constants(data.draw(drawn_constants(*ROOMS))):
        client = SimulatedClient(SimulatedBroker(1, LogSettings(), BrokerSettings(offsets_topic_num_partitions=1)))
        client.create_topic("events")
        topic_id = client.broker.broker.image.topics["events"].topic_id
        for number in range(2):
            answers_or_refuses(client, data.draw(frames(api, number)).replace(EVENTS_ID, topic_id))

        assert client.broker.tell(HELLO, 3).error_code == ErrorCode.NONE
        client.create_topic("events")
        assert client.fetch("events", -5).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


#: Whatever is special about a number, at the edge of some width, just beside it, or small enough to name a thing.
EDGES = (0, 1, -1, 2, -2, 3, 15, 16, 127, 128, 255, 256, 999, 1000, 10_000, 10_001, 32767, 32768)
WORDS = ("events", "readers", "", "1", "retention.ms", "log.retention.ms", "cleanup.policy", "compact", "consumer",
         "__consumer_offsets", "__cluster_metadata", "\0" * 9000, "\u00fc" * 16_000, "x" * 32_767)  # fmt: skip


def edges(bits: int, *, signed: bool) -> st.SearchStrategy[int]:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    # Half of them mean something, or nothing but refusals would be tried.
    usual = st.sampled_from([0, -1 if signed else 1])
    return usual | st.sampled_from([n for n in (*EDGES, low, low + 1, high - 1, high) if low <= n <= high])


def extremes(kind: Kind) -> st.SearchStrategy[Any]:
    """As `values`, of nothing but edges: arrays are empty, short, or one thing many times."""
    match kind:
        case Part():
            fields = {field.name: nullable(extremes(field.kind), field) for field in (*kind.fields, *kind.tags)}
            return st.builds(kind.cls, **fields)
        case ArrayOf(element):
            several = st.lists(extremes(element), max_size=2)
            return several | st.builds(lambda one, times: [one] * times, extremes(element), st.sampled_from([2, 40]))
        case Sized("string"):
            return st.just("events") | st.sampled_from(WORDS)
        case Fixed(code) if code.lower() in BITS:
            return edges(BITS[code.lower()], signed=code.islower())
        case _:
            return values(kind)


@cache
def extreme_requests(api: Api, version: int) -> st.SearchStrategy[Any]:
    return extremes(layout(api.request, version))


@pytest.mark.parametrize("api", [pytest.param(api, id=api.name) for api in APIS.values()])
@settings(max_examples=settings().max_examples // 3, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_well_formed_request_is_answered_however_extreme(api: Api, data: st.DataObject):
    client = SimulatedClient(SimulatedBroker(1, LogSettings(), BrokerSettings(offsets_topic_num_partitions=1)))
    client.create_topic("events")
    topic_id = client.broker.broker.image.topics["events"].topic_id
    version = data.draw(st.sampled_from(api.versions))
    request = data.draw(extreme_requests(api, version))
    frame = b"".join(encode_request(RequestHeader(api.key, version, 1, "fuzz"), request))[4:]
    _, pending = answer(memoryview(bytearray(frame.replace(EVENTS_ID, topic_id))), CLIENT, client.broker.broker)
    client.broker.clock.advance(50)
    if not pending.is_done:  # a long poll, or a barrier
        client.broker.clock.advance(HOUR_MS)
    if pending.is_done and not wants_no_answer(request):
        assert pending.result()
    assert client.broker.tell(HELLO, 3).error_code == ErrorCode.NONE


def wants_no_answer(request: Any) -> bool:
    """With acks=0 an error can only be told by closing the connection."""
    return isinstance(request, ProduceRequest) and request.acks == 0

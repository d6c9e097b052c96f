"""Clients that ask for much and do not read it: memory stays within its budget, and others are served."""

from __future__ import annotations

from attack import FETCH_VERSION, WAIT_ALLOWED_S, fetch_request, resident_mb, some_batch, wait_until

from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.messages.describe_groups import DescribeGroupsRequest
from zurau.wire.kafka.messages.find_coordinator import FindCoordinatorRequest
from zurau.wire.kafka.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from zurau.wire.kafka.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

MIB = 1 << 20
BUDGET_MB = 128
#: Besides the budget: a worker's reads that are under way, pieces of answers, what the allocator keeps.
SLACK_MB = 120
CLIENTS = 60


def fill(client, topic: str, megabytes: int) -> None:
    client.create_topic(topic)
    batch = some_batch(bytes(1_000_000))
    for _ in range(megabytes):
        assert client.produce(topic, batch, acks=1).error_code == ErrorCode.NONE


def test_sixty_clients_that_do_not_read_large_fetches_stay_within_the_budget(
    start_broker, connect, watch, record_property
) -> None:
    broker = start_broker(queued_max_response_bytes=BUDGET_MB * MIB)
    fill(connect(broker), "big", 60)
    bystander, before_mb = watch(broker), resident_mb(broker.pid)
    most_mb = 0.0
    for client in [connect(broker, receive_bytes=4096) for _ in range(CLIENTS)]:
        client.send(fetch_request("big", 0), FETCH_VERSION)
        most_mb = max(most_mb, resident_mb(broker.pid) - before_mb)
    for _ in range(40):
        bystander.join(0.05)
        most_mb = max(most_mb, resident_mb(broker.pid) - before_mb)
    record_property("most memory besides what it had, MB", most_mb)
    assert most_mb < BUDGET_MB + SLACK_MB
    assert bystander.finish() < WAIT_ALLOWED_S


def test_many_who_have_a_large_group_described_and_do_not_read_stay_within_the_budget(
    start_broker, connect, watch, record_property
) -> None:
    broker = start_broker(queued_max_response_bytes=BUDGET_MB * MIB)
    member = connect(broker)
    wait_until(lambda: form_large_group(member), "the group to have its coordinator")
    bystander, before_mb = watch(broker), resident_mb(broker.pid)
    most_mb = 0.0
    for client in [connect(broker, receive_bytes=4096) for _ in range(CLIENTS)]:
        client.send(DescribeGroupsRequest(groups=["large"] * 20), 5)
    for _ in range(60):
        bystander.join(0.05)
        most_mb = max(most_mb, resident_mb(broker.pid) - before_mb)
    record_property("most memory besides what it had, MB", most_mb)
    assert most_mb < BUDGET_MB + SLACK_MB
    assert bystander.finish() < WAIT_ALLOWED_S


def form_large_group(member) -> bool:
    """Alone, with a subscription and an assignment of 3.5 MB in all."""
    member.ask(FindCoordinatorRequest(key="large", key_type=0), 3)
    join = JoinGroupRequest(
        group_id="large",
        session_timeout_ms=600_000,
        rebalance_timeout_ms=600_000,
        member_id="",
        group_instance_id="one",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=bytes(1_000_000))],
    )
    joined = member.ask(join, 5)
    if joined.error_code != ErrorCode.NONE:
        return False
    assigned = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=bytes(2_500_000))
    sync = SyncGroupRequest(
        group_id="large",
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        group_instance_id="one",
        assignments=[assigned],
    )
    return member.ask(sync, 3).error_code == ErrorCode.NONE


def test_who_reads_gets_everything_while_others_do_not_read(start_broker, connect, watch) -> None:
    broker = start_broker(queued_max_response_bytes=32 * MIB)
    reader = connect(broker)
    fill(reader, "big", 20)
    bystander = watch(broker)
    for client in [connect(broker, receive_bytes=4096) for _ in range(20)]:
        client.send(fetch_request("big", 0), FETCH_VERSION)
    offset, answers = 0, 0
    while offset < 20:
        answer = reader.fetch("big", offset)
        assert answer.error_code == ErrorCode.NONE
        offset += len(answer.records) // 1_000_000
        answers += 1
        assert answers < 200, "it gets nothing"
    assert bystander.finish() < WAIT_ALLOWED_S


def test_who_does_not_take_its_answer_is_closed_when_nothing_is_left_for_others(start_broker, connect, watch) -> None:
    broker = start_broker(queued_max_response_bytes=16 * MIB, max_message_bytes=10 * MIB)
    connect(broker).create_topic("big")
    assert connect(broker).produce("big", some_batch(bytes(9 * MIB))).error_code == ErrorCode.NONE
    bystander = watch(broker)
    for client in [connect(broker, receive_bytes=4096) for _ in range(20)]:  # the system takes a part of each answer
        client.send(fetch_request("big", 0), FETCH_VERSION)
    wait_until(lambda: "does not take the" in broker.log.read_text(), "nobody was closed", 20)
    assert bystander.finish() < WAIT_ALLOWED_S
    assert broker.log.read_text().count("does not take the") < 10


def test_answers_that_nobody_reads_stop_further_requests(broker, connect, watch, record_property) -> None:
    bystander, before_mb = watch(broker), resident_mb(broker.pid)
    lazy = [connect(broker) for _ in range(20)]
    for client in lazy:
        client.socket.setblocking(False)
    requests = b"\x00\x00\x00\x0a\x00\x12\x00\x00\x00\x00\x00\x01\xff\xff" * 10_000
    for _ in range(20):
        for client in lazy:
            try:
                client.socket.send(requests)
            except BlockingIOError:
                continue
        bystander.join(0.05)
    record_property("memory, MB", resident_mb(broker.pid) - before_mb)
    assert resident_mb(broker.pid) - before_mb < 20 * 10
    assert bystander.finish() < WAIT_ALLOWED_S

"""Whatever a client sends, however it is cut: nothing fails in the broker, and nothing is held."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.api.http.conftest import BODY_MAX_BYTES, Driver, request

from zurau.api.http.door import Door
from zurau.api.http.table import ROUTES
from zurau.broker.settings import BrokerSettings
from zurau.log.settings import LogSettings
from zurau.simulation.broker import SimulatedBroker

PATHS = sorted(
    {route.path.replace("{topic}", "t") for route in ROUTES} | {"/", "*", "/%", "/topics/%ff/partitions", "/?"}
)
BODIES = st.one_of(
    st.binary(max_size=100),
    st.sampled_from(
        [b"{}", b"[]", b"null", b'{"topic":"t"}', b'{"topic":"t","messages":[{}]}', b"topic=t", b"{" * 900]
    ),
    st.text(max_size=50).map(
        lambda text: f'{{"topic":"t","producer_id":"1-0","message":"{text}"}}'.encode("utf-8", "replace")
    ),
)
REQUESTS = st.builds(
    request,
    st.sampled_from(["GET", "POST", "DELETE", "HEAD", "PUT", "OPTIONS", "CONNECT"]),
    st.sampled_from(PATHS) | st.text("/%?&=abtopics{}.", min_size=1, max_size=30).map("/".__add__),
    BODIES,
    Content_Type=st.sampled_from(["application/json", "application/x-www-form-urlencoded", "text/plain", ""]),
    Connection=st.sampled_from(["keep-alive", "close", "upgrade"]),
    Expect=st.sampled_from(["100-continue", ""]),
)


@pytest.fixture(scope="module")
def door() -> Door:
    simulated = SimulatedBroker(1, LogSettings(), BrokerSettings(offsets_topic_num_partitions=1))
    return Door(simulated.broker, ROUTES, BODY_MAX_BYTES)


def statuses(sent: bytes) -> list[int]:
    """As far as they can be told without knowing what was asked."""
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", sent)]


@given(st.lists(REQUESTS | st.binary(max_size=60), max_size=5), st.data())
def test_no_client_makes_the_broker_fail(door, sent, data):
    client, stream = Driver(door), b"".join(sent)
    while stream and not client.session.inbox:
        size = data.draw(st.integers(1, len(stream)))
        client.send(stream[:size])
        stream = stream[size:]
    assert all(status < 500 for status in statuses(client.sent)), client.sent
    client.session.end()
    assert client.session.held_bytes == 0


@given(st.lists(REQUESTS, min_size=1, max_size=4), st.data())
def test_how_the_bytes_are_cut_makes_no_difference(door, sent, data):
    stream = b"".join(sent)
    whole, cut = Driver(door), Driver(door)
    whole.send(stream)
    while stream and not cut.session.inbox:
        size = data.draw(st.integers(1, len(stream)))
        cut.send(stream[:size])
        stream = stream[size:]
    # Whether somebody hears that a body is welcome depends on whether that has come already.
    assert without_continue(cut.sent) == without_continue(whole.sent)


def without_continue(sent: bytes) -> list[int]:
    return [status for status in statuses(sent) if status != 100]

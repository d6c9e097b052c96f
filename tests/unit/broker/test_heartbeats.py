"""A broker tells the controller that it is alive."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from zurau.broker.heartbeats import Heartbeats
from zurau.errors import Refused
from zurau.ids import BrokerId
from zurau.log.settings import LogSettings
from zurau.machines.controller.commands import BrokerHeartbeat, BrokerHeartbeatReply
from zurau.pending import Pending, done
from zurau.simulation.broker import SimulatedBroker
from zurau.simulation.world import VirtualClock
from zurau.wire.kafka.error_codes import ErrorCode

ALIVE = BrokerHeartbeat(BrokerId(1), 40, metadata_offset=50)
FENCED, UNFENCED = BrokerHeartbeatReply(is_fenced=True), BrokerHeartbeatReply(is_fenced=False)


class Answers:
    """Gives the answers that it is told to give, and the last of them again."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.heard = []

    def submit(self, command):
        self.heard.append(command)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if not isinstance(answer, Refused):
            return done(answer)
        refused = Pending()
        refused.fail(answer)
        return refused


@pytest.fixture
def clock():
    return VirtualClock()


def heartbeats(answers, clock):
    return Heartbeats(
        answers.submit, lambda wants_shutdown: replace(ALIVE, wants_shutdown=wants_shutdown), clock, interval_ms=400
    )


def test_a_broker_is_heard_of_at_once_and_at_every_interval(clock):
    answers = Answers(UNFENCED)
    heartbeats(answers, clock).begin()
    clock.advance(1000)
    assert answers.heard == [ALIVE] * 3


def test_it_waits_until_it_is_unfenced(clock):
    beats = heartbeats(Answers(FENCED, Refused(ErrorCode.NOT_CONTROLLER), UNFENCED), clock)
    beats.begin()
    clock.advance(700)
    assert not beats.unfenced.is_done
    clock.advance(200)
    assert beats.unfenced.is_done


def test_a_closed_one_is_not_heard_of_any_more(clock):
    answers = Answers(UNFENCED)
    beats = heartbeats(answers, clock)
    beats.begin()
    beats.close()
    clock.advance(5000)
    assert len(answers.heard) == 1


def test_a_broker_that_is_left_alone_for_long_is_not_fenced():
    broker = SimulatedBroker(seed=1, log_settings=LogSettings())
    broker.clock.advance(60_000)
    (known,) = broker.broker.image.brokers.values()
    assert known.broker_epoch == broker.broker.broker_epoch
    assert not known.is_fenced


def test_a_broker_that_wants_to_stop_asks_at_once_and_often_whether_it_may(clock):
    answers = Answers(UNFENCED, UNFENCED, UNFENCED, replace(UNFENCED, should_shut_down=True))
    beats = heartbeats(answers, clock)
    beats.begin()
    beats.want_shutdown()
    assert [each.wants_shutdown for each in answers.heard] == [False, True]
    assert (beats.is_heard, beats.may_stop) == (True, False)
    clock.advance(100)
    assert beats.may_stop

"""Bugs planted in the sessions between brokers: what absence says, and when quiescence ends. See mutations.py."""

from __future__ import annotations

from typing import Any

import msgspec
from planted import held, in_a_quorum

from zurau.broker.replication import Replication
from zurau.replica.core.events import Received
from zurau.replica.core.follower import Follower
from zurau.replica.core.identity import PartitionId
from zurau.replica.core.messages import Fetched, FetchRefused, Message
from zurau.replica.core.progress import Progress
from zurau.replica.core.roles import Role
from zurau.replica.session.client import SessionClient
from zurau.replica.session.messages import SessionRequest, SessionResponse
from zurau.replica.session.server import SessionServer
from zurau.replica.session.sessions import Sessions

# What absence says


def nobody_withdraws(self: Sessions, partition: PartitionId, but: Any = None) -> None:
    """Whoever turns to another leader is still counted by the first."""


def turned_without_closing(self: Sessions, partition: PartitionId, role: Role, epoch: int) -> None:
    """A deposed leader goes on answering by its absence."""


def news_leave_the_question_standing(self: SessionClient, partition: PartitionId) -> None:
    """It is asked once more while the answer is being written down."""


def answer_and_leave_standing(self: SessionServer) -> SessionResponse | None:
    asks = dict(self._waiting)
    response = _answer(self)
    self._waiting = asks
    return response


def closed_is_not_heard(self: SessionClient, response: SessionResponse, now_ms: int) -> Any:
    return _answered(self, msgspec.structs.replace(response, closed=()), now_ms)


def nothing_is_closed(self: SessionServer, partition: PartitionId) -> None:
    """A replica that fails on a broker that goes on."""


def any_question_will_do(self: SessionServer, request: SessionRequest, now_ms: int) -> Any:
    """A second copy of a question is taken for the next."""
    if self._session == request.session and not self.is_open:
        self._number = request.number - 1
    return _asked(self, request, now_ms)


def any_answer_will_do(self: SessionClient, response: SessionResponse, now_ms: int) -> Any:
    if not response.is_unknown:
        response = msgspec.structs.replace(response, session=self._session, number=self._answered + 1)
    return _answered(self, response, now_ms)


def answers_are_about_what_is_asked_now(self: SessionClient, partition: PartitionId) -> bool:
    """What was asked after a question is taken for answered with it."""
    return False


def answers_that_took_too_long(self: SessionServer, partition: PartitionId, message: Message) -> None:
    asked = self._waiting.get(partition)
    if isinstance(message, Fetched | FetchRefused) and asked is not None:
        message = msgspec.structs.replace(message, fetch_id=asked.fetch.fetch_id)
    _tell(self, partition, message)


# When quiescence ends


def nobody_hears_that_it_is_unquiesced(self: SessionClient | SessionServer, partition: PartitionId) -> None:
    self.quiesced.pop(partition, None)


def nobody_is_missed(self: SessionServer) -> bool:
    """Whoever asked once and then never again is believed to be there."""
    return False


def standing_is_forever(self: Progress, at_ms: int) -> None:
    """A leader goes on believing in whoever it heard once."""


def the_end_is_when_it_is_heard_of(self: Progress, at_ms: int) -> None:
    _unquiesced(self, 1 << 60)


def patience_begins_anew(self: Follower) -> None:
    if self.has_fetched and self._state.leader is not None:
        self._hear_again()
    _ask(self)


# How much is said


def nobody_waits(self: Sessions, sender: Any, it: Any, now_ms: int) -> Any:
    said = _heard(self, sender, it, now_ms)
    self._peer(sender).response_due_ms = now_ms
    return said


def bytes_are_no_sign_of_life(self: Sessions, broker: Any, now_ms: int) -> None:
    """An answer that takes long is given up, asked for again, and takes long again."""


# Topics


def known_by_number(self: Replication, partition: PartitionId, message: Message) -> None:
    """What is meant for a topic that is gone reaches another one."""
    shell = self._shells.get(partition)
    others = [each for key, each in self._shells.items() if key.partition == partition.partition]
    if shell is None and others and not others[-1].is_stopped:
        others[-1].tell(Received(message))
    else:
        _deliver(self, partition, message)


_unquiesced = Progress.unquiesced
_answer = SessionServer.next_response
_asked = SessionServer.receive
_tell = SessionServer.send
_answered = SessionClient.receive
_heard = Sessions.receive
_ask = Follower._ask
_deliver = Replication._deliver

SESSION_MUTATIONS = (
    held(
        "who turns to another leader still asks the first",
        "unit/replica/test_sessions.py::test_who_turns_to_another_leader_does_not_ask_the_first_by_quiescence",
        (Sessions, "_withdraw", nobody_withdraws),
    ),
    held(
        "a deposed leader answers by its absence",
        "unit/replica/test_sessions.py::test_who_leads_or_is_in_another_epoch_asks_no_more[leader-1]",
        (Sessions, "role_changed", turned_without_closing),
    ),
    held(
        "an answer with news leaves the fetch standing",
        "unit/replica/test_session.py::test_an_answer_with_news_uses_the_request_up",
        (SessionClient, "_use_up", news_leave_the_question_standing),
        (SessionServer, "next_response", answer_and_leave_standing),
    ),
    held(
        "a failed replica answers by its absence",
        "unit/replica/test_session.py::test_a_partition_that_fails_at_the_leader_is_not_made_to_look_alive",
        (SessionServer, "evict", nothing_is_closed),
    ),
    held(
        "a follower's patience begins anew when it asks",
        "unit/replica/test_quiescence.py::test_a_voter_is_patient_from_when_its_leader_was_last_heard",
        (Follower, "_ask", patience_begins_anew),
    ),
    held(
        "an evicted partition does not hear of it",
        "unit/replica/test_session.py::test_a_partition_that_fails_at_the_leader_is_not_made_to_look_alive",
        (SessionClient, "receive", closed_is_not_heard),
    ),
    held(
        "a second copy of a request is the next",
        "unit/replica/test_session.py::test_a_copy_of_a_request_that_was_answered_is_not_the_next",
        (SessionServer, "receive", any_question_will_do),
    ),
    held(
        "a response to another request will do",
        "unit/replica/test_session.py::test_an_answer_to_another_request_says_nothing_about_anybody[response0]",
        (SessionClient, "receive", any_answer_will_do),
    ),
    held(
        "an answer that took too long is to what is asked now",
        "unit/replica/test_session.py::test_an_answer_that_took_too_long_is_not_an_answer_to_what_is_asked_now",
        (SessionServer, "send", answers_that_took_too_long),
    ),
    held(
        "an answer is about what was asked after its request",
        "unit/replica/test_session.py::test_an_answer_says_nothing_about_what_was_asked_after_its_request",
        (SessionClient, "_has_asked_since", answers_are_about_what_is_asked_now),
    ),
    held(
        "nobody hears that it is unquiesced",
        "unit/replica/test_session.py::test_quiescence_was_a_sign_of_life_until_the_last_answer",
        (SessionClient, "_unquiesce", nobody_hears_that_it_is_unquiesced),
        (SessionServer, "_unquiesce", nobody_hears_that_it_is_unquiesced),
    ),
    held(
        "who stopped asking is not missed",
        "unit/replica/test_sessions.py::test_who_is_not_asked_again_in_time_stops_to_believe_in_the_one_who_asked",
        (SessionServer, "expects_request", property(nobody_is_missed)),
    ),
    held(
        "a leader believes for ever in who was quiesced",
        "unit/replica/test_quiescence.py::test_a_backup_whose_quiescence_ended_lags_from_when_it_was_last_heard",
        (Progress, "unquiesced", standing_is_forever),
    ),
    held(
        "quiescence counts until its end is heard of",
        "unit/replica/test_quiescence.py::test_a_backup_whose_quiescence_ended_lags_from_when_it_was_last_heard",
        (Progress, "unquiesced", the_end_is_when_it_is_heard_of),
    ),
    held(
        "a request without news is answered at once",
        "unit/replica/test_sessions.py::test_a_request_without_news_is_answered_after_a_while",
        (Sessions, "receive", nobody_waits),
    ),
    held(
        "an answer that takes long is given up",
        "unit/replica/test_sessions.py::test_an_answer_of_which_more_comes_is_not_given_up",
        (Sessions, "progressed", bytes_are_no_sign_of_life),
    ),
    in_a_quorum("a topic is known by its number", 20, (Replication, "_deliver", known_by_number), near=4),
)

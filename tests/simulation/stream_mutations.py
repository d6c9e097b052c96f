"""Bugs planted around the stream between brokers, topics, the controller and recovery: see mutations.py."""

from __future__ import annotations

from typing import Any

import msgspec
from planted import in_sync, quorum

from zurau.epochs import Position
from zurau.replica.core.events import PartitionChanged, RecordsOffered
from zurau.replica.core.follower import Follower
from zurau.replica.core.identity import PartitionId, ReplicaId
from zurau.replica.core.messages import Fetched, FetchRefused, Message
from zurau.replica.core.partition_state import PartitionState
from zurau.replica.core.progress import Progress
from zurau.replica.core.roles import Role
from zurau.replica.in_sync.replica import InSyncReplica
from zurau.replica.session.client import SessionClient
from zurau.replica.session.messages import SessionRequest, SessionResponse
from zurau.replica.session.server import SessionServer
from zurau.replica.session.sessions import Sessions
from zurau.simulation.cluster import controller as controller_module
from zurau.simulation.cluster import host as host_module
from zurau.simulation.cluster.controller import Controller
from zurau.simulation.cluster.node import Node
from zurau.simulation.cluster.service import Service
from zurau.simulation.cluster.storage import ReplicaDisk

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


def hear_what_is_replayed(self: InSyncReplica, event: Any) -> Any:
    """What a broker's own metadata said before it was stopped is taken for what is so now."""
    if isinstance(event, PartitionChanged):
        self._partition_changed(event.partition)
        return None
    return _in_sync_handle(self, event)


# How much is said


def nobody_waits(self: Sessions, sender: Any, it: Any, now_ms: int) -> Any:
    said = _streams_heard(self, sender, it, now_ms)
    self._peer(sender).response_due_ms = now_ms
    return said


def bytes_are_no_sign_of_life(self: Sessions, broker: Any, now_ms: int) -> None:
    """An answer that takes long is given up, asked for again, and takes long again."""


# Topics


def known_by_name(self: Node, partition: PartitionId, message: Message) -> None:
    host = self.host_of(partition.partition)
    if host is not None and host.is_up:
        host.receive(message)


# Recovery and clients


def lose_the_last_one(self: ReplicaDisk, rng: Any, *, loses: bool = True) -> None:
    """Recovery takes the last of what was flushed for torn."""
    _crash(self, rng, loses=loses)
    if loses and self.safe.items:
        self.safe.cut(Position(self.safe.items[-1].epoch, max(self.start_offset, self.safe.end_offset - 1)))
        self.seen = self.safe.copy()


def acknowledge_what_is_written(self: Service, client: int, value: bytes) -> None:
    host = self._host
    if host.leads and not host.is_paused:
        end = host.disk.seen.end_offset
        host.tell(RecordsOffered(value, 1))
        if host.disk.seen.end_offset > end:
            host.group.acknowledge(host, client, value, host.disk.seen.end_offset)
    else:
        _offer(self, client, value)


def always(*_: Any) -> bool:
    return True


def patience_begins_anew(self: Follower) -> None:
    if self.has_fetched and self._state.leader is not None:
        self._hear_again()
    _ask(self)


# The controller


def say_what_is_not_committed(self: Controller, broker: Any, incarnation: int) -> Any:
    known = self._image.registrations.get(broker)
    if not self.is_up or known is None or known.incarnation != incarnation:
        return None
    return known.broker_epoch, dict(self._image.partitions)


def first_by_name(able: list[ReplicaId], led: Any) -> ReplicaId | None:
    return min(able, default=None)


def go_on_where_the_other_was(self: Controller, controller_epoch: int) -> None:
    """It takes what the one before it had decided for committed."""
    if controller_epoch == self.controller_epoch:
        image = self._image
        _take_over(self, controller_epoch)
        self._image = image


def let_the_failed_lead(self: Controller, partition: PartitionId, broker: Any) -> None:
    known: PartitionState = self._image.partitions[partition]
    if self._image.registrations[broker].is_fenced or known.leader is None or known.leader.broker != broker:
        _leave(self, partition, broker)


_unquiesced = Progress.unquiesced
_answer = SessionServer.next_response
_asked = SessionServer.receive
_tell = SessionServer.send
_answered = SessionClient.receive
_streams_heard = Sessions.receive
_crash = ReplicaDisk.crash
_in_sync_handle = InSyncReplica._handle
_offer = Service.offer
_ask = Follower._ask
_take_over = Controller._take_over
_leave = Controller._leave

STREAM_MUTATIONS = (
    quorum("who turns to another leader still asks the first", 30, (Sessions, "_withdraw", nobody_withdraws)),
    quorum("a deposed leader answers by its absence", 300, (Sessions, "role_changed", turned_without_closing)),
    quorum(
        "an answer with news leaves the fetch standing",
        30,
        (SessionClient, "_use_up", news_leave_the_question_standing),
        (SessionServer, "next_response", answer_and_leave_standing),
    ),
    quorum("a failed replica answers by its absence", 400, (SessionServer, "evict", nothing_is_closed), near=23),
    quorum("a follower's patience begins anew when it asks", 1200, (Follower, "_ask", patience_begins_anew), near=322),
    quorum("an evicted partition does not hear of it", 400, (SessionClient, "receive", closed_is_not_heard)),
    quorum("a second copy of a request is the next", 300, (SessionServer, "receive", any_question_will_do)),
    quorum("a response to another request will do", 300, (SessionClient, "receive", any_answer_will_do)),
    quorum(
        "an answer that took too long is to what is asked now",
        300,
        (SessionServer, "send", answers_that_took_too_long),
        near=125,
    ),
    quorum(
        "an answer is about what was asked after its request",
        1500,
        (SessionClient, "_has_asked_since", answers_are_about_what_is_asked_now),
        near=325,
    ),
    quorum(
        "nobody hears that it is unquiesced",
        30,
        (SessionClient, "_unquiesce", nobody_hears_that_it_is_unquiesced),
        (SessionServer, "_unquiesce", nobody_hears_that_it_is_unquiesced),
    ),
    quorum(
        "who stopped asking is not missed",
        2500,
        (SessionServer, "expects_request", property(nobody_is_missed)),
        near=386,
    ),
    quorum("a leader believes for ever in who was quiesced", 100, (Progress, "unquiesced", standing_is_forever)),
    quorum(
        "quiescence counts until its end is heard of",
        600,
        (Progress, "unquiesced", the_end_is_when_it_is_heard_of),
        near=18,
    ),
    in_sync("metadata from before a start is heard", 60, (InSyncReplica, "_handle", hear_what_is_replayed)),
    quorum("a request without news is answered at once", 100, (Sessions, "receive", nobody_waits)),
    quorum("an answer that takes long is given up", 400, (Sessions, "progressed", bytes_are_no_sign_of_life), near=258),
    quorum("a topic is known by its name", 600, (Node, "deliver", known_by_name), near=180),
    quorum(
        "who lost what was flushed keeps its name",
        30,
        (ReplicaDisk, "crash", lose_the_last_one),
        (host_module, "is_intact", always),
    ),
    quorum("a record is acknowledged when it is written", 30, (Service, "offer", acknowledge_what_is_written)),
    in_sync(
        "a deposed leader answers by its absence, in sync",
        300,
        (Sessions, "role_changed", turned_without_closing),
        near=18,
    ),
    in_sync(
        "who lost what was flushed keeps its name, in sync",
        30,
        (ReplicaDisk, "crash", lose_the_last_one),
        (host_module, "is_intact", always),
    ),
    in_sync(
        "a record is acknowledged when it is written, in sync", 30, (Service, "offer", acknowledge_what_is_written)
    ),
    in_sync("the controller says what is not committed", 60, (Controller, "reply_to", say_what_is_not_committed)),
    in_sync("the first by name leads, however much it leads", 30, (controller_module, "choose_leader", first_by_name)),
    in_sync(
        "a new controller takes for committed what is not",
        300,
        (Controller, "_take_over", go_on_where_the_other_was),
        near=290,
    ),
    in_sync("a replica that failed leads on", 300, (Controller, "_leave", let_the_failed_lead)),
)

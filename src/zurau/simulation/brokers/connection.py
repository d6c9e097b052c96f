"""A client's connection to a broker, as bytes that take their time and arrive in order, until it breaks.

The broker's side is the real session (`api/kafka/session.py`), driven as `node/connection.py` drives it. When the
connection breaks, what is under way is lost; what has reached the broker may still be done, for a while.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from zurau.api.client import Client, ConnectionState
from zurau.api.kafka.dispatch import Answer
from zurau.api.kafka.session import KafkaSession
from zurau.broker.caller import ANONYMOUS, Caller
from zurau.errors import ProtocolViolation, raise_if_broken
from zurau.ids import Address
from zurau.pending import Pending
from zurau.settings import KIB
from zurau.simulation.brokers.process import Process
from zurau.wire.kafka.frames import RequestHeader, decode_response, encode_request
from zurau.wire.kafka.schema import Message

if TYPE_CHECKING:
    from zurau.simulation.brokers.cluster import SimulatedCluster
    from zurau.simulation.brokers.node import SimulatedNode

SCRATCH_BYTES = 64 * KIB
#: Where a client finds broker 3: at port 9003.
FIRST_PORT = 9000


class Unreachable(Exception):
    """There is no answer, and there will be none; whether the broker did what it was asked is not known."""


class Connection:
    """Both ends of it."""

    def __init__(self, cluster: SimulatedCluster, client: str, node: SimulatedNode) -> None:
        self._cluster = cluster
        self._agenda = cluster.agenda
        self._client = client
        self._node = node
        state = ConnectionState()
        self._peer = Client(
            Caller(ANONYMOUS, "127.0.0.1", "PLAINTEXT", state),
            Address("127.0.0.1", FIRST_PORT + node.broker_id),
            connection=state,
        )
        #: The process at the other end, once something has arrived there.
        self._process: Process | None = None
        self.is_broken = False
        self._is_closed_there = False
        #: What the client waits for, oldest first.
        self._asked: deque[tuple[RequestHeader, Pending[Any]]] = deque()
        self._session: KafkaSession | None = None
        self._is_serving = False
        #: What has arrived and is not read yet.
        self._unread: deque[memoryview] = deque()
        self._count = 0
        self._last_there_ms = self._last_here_ms = 0.0

    # The client's end

    def ask(self, request: Message, version: int, *, has_answer: bool = True) -> Pending[Any]:
        """The response; fails with `Unreachable`."""
        response: Pending[Any] = Pending()
        if self.is_broken:
            response.fail(Unreachable())
            return response
        self._count += 1
        header = RequestHeader(request.api_key, version, self._count, self._client)
        data = memoryview(b"".join(encode_request(header, request)))
        if has_answer:
            self._asked.append((header, response))
        else:
            response.resolve(None)
        arrives_ms = self._agenda.now_ms + self._cluster.network.to_broker_ms(self._node)
        self._last_there_ms = max(self._last_there_ms, arrives_ms)
        self._agenda.at(self._last_there_ms, partial(self._arrive, data))
        return response

    def close(self, *, abruptly: bool = False) -> None:
        """The client gives up. The broker hears of it after everything else that is on its way, or before."""
        if self.is_broken:
            return
        self._break()
        if abruptly:
            self._forget_requests()
        else:
            arrives_ms = self._agenda.now_ms + self._cluster.network.to_broker_ms(self._node)
            self._agenda.at(max(self._last_there_ms, arrives_ms), self._forget_requests)

    def reset(self) -> None:
        """The network breaks it: what is under way is lost."""
        self._is_closed_there = True
        self._forget_requests()
        self._break_later(0)

    def _break(self) -> None:
        self.is_broken = True
        self._node.connections.pop(self, None)
        asked, self._asked = self._asked, deque()
        for _, response in asked:
            response.fail(Unreachable())

    def _break_later(self, delay_ms: float) -> None:
        self._agenda.after(delay_ms, lambda: None if self.is_broken else self._break())

    def _hear(self, frame: memoryview) -> None:
        if not self.is_broken:
            header, response = self._asked.popleft()
            response.resolve(decode_response(header, frame))

    # The broker's end

    def server_gone(self) -> None:
        """The process at the other end is no more; the client notices when it notices."""
        self._is_closed_there = True
        self._break_later(self._cluster.network.notice_ms())

    def _arrive(self, data: memoryview) -> None:
        process = self._node.process
        if self._is_closed_there:
            return
        if process is None or self._node.broker is None or self._process not in (None, process):
            self.server_gone()
            return
        self._process = process
        self._node.connections[self] = None
        process.after(0, partial(self._receive, data))

    def _receive(self, data: memoryview) -> None:
        if not self._is_closed_there and self._node.broker is not None:
            if self._session is None:
                self._session = KafkaSession(self._peer, self, self._node.broker, bytearray(SCRATCH_BYTES))
            self._unread.append(data)
            self._serve()

    def _serve(self) -> None:
        """Start what may be started, and take bytes in only when nothing is left of those before."""
        session = self._session
        if session is None or self._is_serving or self._is_closed_there:
            return
        self._is_serving = True
        try:
            while session.inbox or session.more() or self._read(session):
                if not session.may_start():
                    break
                self._send_answer(session.start_next())
        except ProtocolViolation:
            self.server_gone()
        except Exception as error:  # noqa: BLE001 - a defect of the broker's, which a real connection would hide
            raise_if_broken(error)
            self._cluster.unexpected(f"a handler failed: {error!r}", error)
        finally:
            self._is_serving = False

    def _read(self, session: KafkaSession) -> bool:
        """Give the session bytes until it has a request."""
        while self._unread and not session.inbox:
            data = self._unread.popleft()
            room = session.get_buffer()
            count = min(len(room), len(data))
            room[:count] = data[:count]
            if count < len(data):
                self._unread.appendleft(data[count:])
            session.received(count)
        return bool(session.inbox)

    def answer_is_ready(self) -> None:
        """As the session asks of its link."""
        assert self._session is not None
        try:
            while not self._is_closed_there and (answer := self._session.next_answer()) is not None:
                self._send_answer(answer)
        except ProtocolViolation:
            self.server_gone()
        except Exception as error:  # noqa: BLE001 - as above
            raise_if_broken(error)
            self._cluster.unexpected(f"a handler failed: {error!r}", error)
        else:
            if self._process is not None:
                self._process.after(0, self._serve)

    def holds_more(self) -> None: ...

    def after_this_read(self, work: Callable[[], None]) -> None:
        if self._process is not None:
            self._process.after(0, work)

    def _send_answer(self, answer: Answer | None) -> None:
        frame = b"".join(answer or ())
        if frame and not self._is_closed_there:
            self._send(memoryview(frame)[4:])

    def _send(self, frame: memoryview) -> None:
        arrives_ms = self._agenda.now_ms + self._cluster.network.to_client_ms(self._node)
        self._last_here_ms = max(self._last_here_ms, arrives_ms)
        self._agenda.at(self._last_here_ms, partial(self._hear, frame))

    def _forget_requests(self) -> None:
        """As the real one does when its client has gone: handlers are ended where they wait."""
        self._is_closed_there = True
        self._unread.clear()
        if self._session is not None and self._process is not None and not self._process.is_over:
            self._process.after(0, self._session.end)

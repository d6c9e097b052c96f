"""HTTP's side of one connection, without the connection: bytes in, answers out, one after the other.

h11 cuts requests and knows what may follow what. It has no I/O either, and stops after each request until that is
answered. What arrives meanwhile is kept as it came, and nothing more is read from that client; so a connection holds
one request, up to its limit, and one read.

A client whose bytes make no sense, or whose body is too large, is told so, and then the connection ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum
from http import HTTPStatus
from typing import Protocol

import h11

from zurau.api.client import Client
from zurau.api.http.door import Door
from zurau.api.http.messages import HttpAnswer, HttpRequest
from zurau.api.http.refusals import refusal
from zurau.errors import Refused
from zurau.pending import Pending, start
from zurau.ports import Buffer
from zurau.settings import KIB

#: Path, query and headers together; what servers commonly allow.
HEAD_BYTES_MAX = 16 * KIB
#: Taken at a time from what has arrived: a body may come in chunks of a byte, and each costs as much as a large one.
EVENTS_AT_ONCE = 64


class Link(Protocol):
    """What a session may ask of the connection that it belongs to."""

    def answer_is_ready(self) -> None:
        """An answer is there that was waited for."""

    def after_this_read(self, work: Callable[[], None]) -> None:
        """Have it done soon, when what is under way has ended."""

    def finish(self) -> None:
        """Nothing more is served: close when the client has taken what was sent."""


class _Step(Enum):
    #: The client wants to hear that its body is welcome before it sends it.
    CONTINUE = 1
    #: What has arrived is not taken apart all at once.
    GO_ON = 2


class HttpSession:
    """What one client has asked and is yet to be told."""

    __slots__ = (
        "_answer",
        "_body",
        "_buffered_bytes",
        "_client",
        "_door",
        "_head",
        "_http",
        "_is_head",
        "_is_over",
        "_is_working",
        "_link",
        "_request_bytes",
        "_scratch",
        "_unread_bytes",
        "_work",
        "inbox",
    )

    def __init__(self, client: Client, link: Link, door: Door, scratch: bytearray) -> None:
        self._client = client
        self._link = link
        self._door = door
        self._scratch = memoryview(scratch)
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES_MAX)
        self._head: h11.Request | None = None
        self._body = bytearray()
        #: The body of a request that is not answered yet.
        self._request_bytes = 0
        #: What h11 has not handed on, at most.
        self._buffered_bytes = 0
        #: What to begin with next, and then what arrived since, as it came.
        self.inbox: deque[HttpRequest | HttpAnswer | _Step | bytes] = deque()
        #: Of the bytes in the inbox.
        self._unread_bytes = 0
        #: Under way.
        self._answer: Pending[HttpAnswer] | None = None
        self._is_working = False
        self._is_head = False
        #: What was begun last, for people.
        self._work = "a first request"
        self._is_over = False

    # What is known of it

    @property
    def held_bytes(self) -> int:
        """Memory of requests that are not answered yet."""
        of_requests = len(self._body) + self._request_bytes + self._buffered_bytes + self._unread_bytes
        return of_requests + self._client.connection.waiting_bytes

    @property
    def is_waiting(self) -> bool:
        return self._answer is not None

    @property
    def may_wait_long(self) -> bool:
        return self._answer is not None

    def describe(self) -> str:
        return f"{self._client.caller.host} (HTTP)"

    def describe_work(self) -> str:
        return f"{self._work} for {self.describe()}"

    # What happens to it

    def get_buffer(self) -> memoryview:
        return self._scratch

    def received(self, count: int) -> None:
        """Bytes were put into the buffer. Nothing more may be until the inbox is empty."""
        if self._is_over:
            return
        arrived = bytes(self._scratch[:count])
        if self._is_working or self.inbox:
            self._unread_bytes += count
            self.inbox.append(arrived)
        else:
            self._feed(arrived)

    def more(self) -> bool:
        return bool(self.inbox)

    def may_start(self) -> bool:
        return not self._is_working

    def start_next(self) -> list[Buffer] | None:
        """Begin with what is next; its answer, if that is known."""
        item = self.inbox.popleft()
        if isinstance(item, bytes):
            self._unread_bytes -= len(item)
            self._feed(item)
            return None
        if item is _Step.GO_ON:
            self._read()
            return None
        if item is _Step.CONTINUE:
            if not self._http.they_are_waiting_for_100_continue:
                return None  # it did not wait
            return [self._send(h11.InformationalResponse(status_code=100, headers=[]))]
        if isinstance(item, HttpAnswer):
            return self._respond(item)
        self._is_working, self._is_head, self._work = True, item.method == "HEAD", f"{item.method} {item.target}"
        answer = start(self._door.answer(item, self._client), self._client.resume)
        if answer.is_done:
            return self._respond(answer.result())
        self._answer = answer
        answer.then(self._answered)
        return None

    def next_answer(self) -> list[Buffer] | None:
        answer = self._answer
        if answer is None or not answer.is_done:
            return None
        self._answer = None
        return self._respond(answer.result())

    def end(self) -> None:
        """Nobody waits for any answer any more: end what is under way and give back what it holds."""
        self._is_over = True
        self.inbox.clear()
        self._body.clear()
        self._buffered_bytes = self._unread_bytes = self._request_bytes = 0
        answer, self._answer = self._answer, None
        if answer is not None:
            answer.end()
        self._client.connection.end()

    def _answered(self, _: Pending[HttpAnswer]) -> None:
        self._link.answer_is_ready()

    # From bytes to requests

    def _feed(self, arrived: bytes) -> None:
        self._buffered_bytes += len(arrived)
        self._http.receive_data(arrived)
        self._read()

    def _read(self) -> None:
        """Take what has arrived apart, up to the end of a request."""
        for _ in range(EVENTS_AT_ONCE):
            if self._is_over:
                return
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as error:
                self._refuse(HTTPStatus(error.error_status_hint), f"this is not HTTP as it should be: {error}")
                return
            if isinstance(event, h11.Request):
                self._begin(event)
            elif isinstance(event, h11.Data):
                self._body += event.data
                if len(self._body) > self._door.body_max_bytes:
                    self._refuse_large("more")
            elif isinstance(event, h11.EndOfMessage):
                self._complete()
                return
            else:  # it waits for more bytes, or for an answer
                self._buffered_bytes = len(self._http.trailing_data[0])
                return
        self.inbox.appendleft(_Step.GO_ON)

    def _begin(self, head: h11.Request) -> None:
        self._head = head
        head_bytes = len(head.target) + sum(len(name) + len(value) for name, value in head.headers)
        if head_bytes > HEAD_BYTES_MAX:
            self._refuse(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                f"path, query and headers may have {HEAD_BYTES_MAX} bytes, and these have {head_bytes}",
            )
            return
        size = next((value for name, value in head.headers if name == b"content-length"), b"0")
        if int(size) > self._door.body_max_bytes:
            self._refuse_large(size.decode())
        elif self._http.they_are_waiting_for_100_continue:
            self.inbox.appendleft(_Step.CONTINUE)

    def _complete(self) -> None:
        assert self._head is not None, "a request begins with its head"
        body, self._body = bytes(self._body), bytearray()
        head, self._head = self._head, None
        self._request_bytes = len(body)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
        # Before whatever else has arrived.
        self.inbox.appendleft(HttpRequest(head.method.decode("latin-1"), head.target.decode("latin-1"), headers, body))

    def _refuse_large(self, size: str) -> None:
        self._refuse(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"a body may have {self._door.body_max_bytes} bytes here (--http-body-max-bytes), and this one has {size}; "
            "send less at a time",
        )

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        """Say why, and listen no more."""
        self._is_over = True
        self._body.clear()
        self.inbox.clear()
        self._buffered_bytes = self._unread_bytes = 0
        self.inbox.append(refusal(Refused(status, message), is_last=True))

    # From answers to bytes

    def _respond(self, answer: HttpAnswer) -> list[Buffer]:
        is_head, self._is_working, self._is_head, self._request_bytes = self._is_head, False, False, 0
        headers = list(answer.headers)
        if answer.status != HTTPStatus.NO_CONTENT:  # of which HTTP wants no length
            headers += [("Content-Type", answer.content_type), ("Content-Length", str(len(answer.body)))]
        if answer.is_last:
            headers.append(("Connection", "close"))
        pieces: list[Buffer] = [
            self._send(
                h11.Response(status_code=answer.status, headers=headers, reason=HTTPStatus(answer.status).phrase)
            )
        ]
        if answer.body and not is_head:
            pieces.append(self._send(h11.Data(data=answer.body)))
        self._send(h11.EndOfMessage())
        if self._client.responses is not None:
            self._client.responses.take(sum(map(len, pieces)))
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE and not self._is_over:
            self._http.start_next_cycle()
            self._read()
        else:
            self._is_over = True
            self._link.after_this_read(self._link.finish)
        return pieces

    def _send(self, event: h11.Event) -> bytes:
        sent: bytes = self._http.send(event) or b""
        return sent

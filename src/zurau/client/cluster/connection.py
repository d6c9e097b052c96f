"""One socket to one broker: requests go out, answers come back in the same order.

`send` and `receive` are apart so that several requests can be on their way at once; `request` is the two together.
The versions that the broker speaks are asked for when the connection opens, and each request goes out in the highest
version that both sides know. A connection that failed in the middle of an answer is of no more use and is closed.
TLS, if it is asked for, is put on before the first byte, and proof of who we are is given before the first question.
"""

from __future__ import annotations

import select
import socket
from collections import deque
from typing import TYPE_CHECKING, cast

from zurau import __version__
from zurau.client.errors import BrokerTooOld, ConnectionLost, TimedOut, check
from zurau.client.security.settings import PLAIN_TEXT, Security, Tls
from zurau.errors import ProtocolViolation, ZurauError
from zurau.ids import Address
from zurau.records.buffers import new_buffer
from zurau.settings import INT32_MAX
from zurau.wire.kafka.apis import CLIENT_APIS
from zurau.wire.kafka.error_codes import ErrorCode
from zurau.wire.kafka.frames import RequestHeader, decode_response, encode_request
from zurau.wire.kafka.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from zurau.wire.kafka.schema import Message, R, Request

if TYPE_CHECKING:
    import ssl

#: A broker that announces a longer answer than this is not a Kafka broker.
ANSWER_BYTES_MAX = 1 << 30
ASK_VERSIONS_IN = 3

#: The oldest version in which this client fills and reads a request; older layouts name other fields.
NEEDED_FROM = {
    9: 8,  # OffsetFetch: several groups in one request
    10: 4,  # FindCoordinator: a list of keys
    13: 3,  # LeaveGroup: a list of members
    20: 6,  # DeleteTopics: names or ids
}


#: The newest version that this client fills: a newer one names topics by ids, which it does not look up.
NEEDED_UPTO = {
    8: 9,  # OffsetCommit
    9: 9,  # OffsetFetch
}


class Connection:
    """Use from one thread. Every wait ends after `timeout_s`, unless the caller names another time; those until the
    broker has greeted us after `greeting_s`, if that is given."""

    def __init__(
        self,
        address: Address,
        *,
        client_id: str,
        timeout_s: float,
        security: Security = PLAIN_TEXT,
        greeting_s: float | None = None,
    ) -> None:
        self.address = address
        self._client_id = client_id
        self._timeout_s = timeout_s if greeting_s is None else greeting_s
        self._correlation_id = 0
        self._awaited: deque[RequestHeader] = deque()
        self._offered: dict[int, range] = {}
        try:
            self._socket: socket.socket | None = socket.create_connection(address, self._timeout_s)
        except OSError as error:
            raise ConnectionLost(f"cannot connect to {address}: {error.strerror or error}") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._tls: ssl.SSLSocket | None = None
        try:
            self._greet(security)
        except ZurauError:
            self.close()
            raise
        self._timeout_s = timeout_s
        self._live_socket().settimeout(timeout_s)

    @property
    def is_open(self) -> bool:
        return self._socket is not None

    @property
    def in_flight(self) -> int:
        """Requests that wait for their answer."""
        return len(self._awaited)

    def request(self, message: Request[R], timeout_s: float | None = None) -> R:
        """Send, and wait for the answer. Only for a connection on which nothing else is on its way."""
        assert not self._awaited, "answers come in order: receive the earlier ones first"
        try:
            self.send(message)
            return cast("R", self._receive(timeout_s))
        except (KeyboardInterrupt, SystemExit):
            # A signal came in between. The answer is still to come, and would be taken for that of the next request.
            self.close()
            raise

    def send(self, message: Message, *, answered: bool = True) -> None:
        """Send without waiting. A request that gets no answer (produce with acks=0) is sent with `answered=False`."""
        self._send(self.version_of(message.api_key), message)
        if not answered:
            self._awaited.pop()

    def receive(self, kind: type[R], timeout_s: float | None = None) -> R:
        """The answer to the earliest request that has none yet, which is of this kind."""
        answer = self._receive(timeout_s)
        assert isinstance(answer, kind), "answers come in the order of the requests"
        return answer

    def _receive(self, timeout_s: float | None = None) -> Message:
        frame = self._receive_frame(self._timeout_s if timeout_s is None else timeout_s)
        return self._decode(self._awaited.popleft(), frame)

    def version_of(self, api_key: int) -> int:
        """The highest version of a request that both sides know."""
        api = CLIENT_APIS[api_key]
        first, last = max(api.first, NEEDED_FROM.get(api_key, 0)), NEEDED_UPTO.get(api_key, api.last)
        offered = self._offered.get(api_key)
        if offered is None:
            raise BrokerTooOld(f"the broker at {self.address} does not serve {api.name}; it needs a newer release")
        version = min(last, offered.stop - 1)
        if version < max(first, offered.start):
            raise BrokerTooOld(
                f"the broker at {self.address} speaks {api.name} {offered.start} to {offered.stop - 1} and this"
                f" client {first} to {last}; use Zurau, or Apache Kafka 3.0 or newer"
            )
        return version

    @property
    def has_buffered(self) -> bool:
        """Whether something of an answer was taken from the socket already, and waits in the TLS layer."""
        return self._tls is not None and self._tls.pending() > 0

    def wait_readable(self, timeout_s: float) -> bool:
        return bool(readable([self], timeout_s))

    def fileno(self) -> int:
        assert self._socket is not None
        return self._socket.fileno()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = self._tls = None
        self._awaited.clear()

    def _greet(self, security: Security) -> None:
        if security.tls is None:
            self._negotiate()
        else:
            self._negotiate_in_tls(security.tls)
        if security.login is not None:
            from zurau.client.security.sasl import log_in

            log_in(self.request, security.login, self.address)

    def _negotiate_in_tls(self, tls: Tls) -> None:
        import ssl

        from zurau.client.security.tls import no_agreement, secure

        self._socket = self._tls = secure(self._live_socket(), tls, self.address)
        try:
            self._negotiate()
        except ConnectionLost as error:
            # In TLS 1.3 a broker that does not like our certificate says so only when we ask it something.
            if isinstance(error.__cause__, ssl.SSLError):
                raise no_agreement(error.__cause__, self.address) from error
            raise

    def _negotiate(self) -> None:
        message = ApiVersionsRequest(client_software_name="zurau", client_software_version=__version__)
        self._send(ASK_VERSIONS_IN, message)
        answer = self.receive(ApiVersionsResponse)
        # A broker that does not know the version we asked in refuses, but says what it speaks all the same.
        if answer.error_code != ErrorCode.UNSUPPORTED_VERSION:
            check(answer.error_code, f"asking {self.address} for its versions")
        self._offered = {api.api_key: range(api.min_version, api.max_version + 1) for api in answer.api_keys}

    def _send(self, version: int, message: Message) -> None:
        self._correlation_id = (self._correlation_id + 1) & INT32_MAX
        header = RequestHeader(message.api_key, version, self._correlation_id, self._client_id)
        chunks = encode_request(header, message)
        try:
            self._live_socket().sendall(b"".join(chunks))
        except OSError as error:
            self.close()
            raise ConnectionLost(f"lost the connection to {self.address}: {error.strerror or error}") from error
        self._awaited.append(header)

    def _receive_frame(self, timeout_s: float) -> memoryview:
        try:
            self._live_socket().settimeout(timeout_s)
            size = int.from_bytes(self._receive_exactly(4), "big")
            if not 4 <= size <= ANSWER_BYTES_MAX:
                raise ConnectionLost(f"{self.address} does not answer like a Kafka broker; check host and port")
            return self._receive_exactly(size)
        except TimeoutError:
            self.close()
            raise TimedOut(
                f"{self.address} did not answer within {timeout_s:g} s; check the broker, or pass a longer --timeout"
            ) from None
        except OSError as error:
            self.close()
            raise ConnectionLost(f"lost the connection to {self.address}: {error.strerror or error}") from error
        except ConnectionLost:
            self.close()
            raise

    def _receive_exactly(self, size: int) -> memoryview:
        # Not filled with zeros first: an answer to a fetch has megabytes.
        view = memoryview(new_buffer(size))
        received = 0
        while received < size:
            count = self._live_socket().recv_into(view[received:])
            if count == 0:
                raise ConnectionLost(f"{self.address} closed the connection")
            received += count
        return view

    def _decode(self, header: RequestHeader, frame: memoryview) -> Message:
        try:
            return decode_response(header, frame)
        except ProtocolViolation as error:
            self.close()
            raise ConnectionLost(f"{self.address} sent an answer that cannot be read: {error}") from error

    def _live_socket(self) -> socket.socket:
        if self._socket is None:
            raise ConnectionLost(f"the connection to {self.address} is closed")
        return self._socket


def readable(connections: list[Connection], timeout_s: float, wake: int | None = None) -> list[Connection]:
    """Those of the connections with an answer to read, waiting up to `timeout_s` for the first, or until there is
    something to read at the descriptor `wake`."""
    buffered = [connection for connection in connections if connection.is_open and connection.has_buffered]
    if buffered:
        return buffered
    poller = select.poll()
    by_descriptor = {connection.fileno(): connection for connection in connections if connection.is_open}
    for descriptor in by_descriptor:
        poller.register(descriptor, select.POLLIN)
    if wake is not None:
        poller.register(wake, select.POLLIN)
    ready = poller.poll(max(0, timeout_s) * 1000)
    return [by_descriptor[descriptor] for descriptor, _ in ready if descriptor != wake]

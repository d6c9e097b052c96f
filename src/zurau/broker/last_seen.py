"""When each client and each broker was last seen by this one, kept over restarts.

Clients are told apart by what they are (producer, consumer, member of a group) and the id that they give themselves.
They are noted at most once a second each; the newest are kept, and written to a file of this broker once a minute and
at its end. Each broker knows what it has seen itself: whoever asks puts their answers together.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from enum import StrEnum
from functools import partial

import msgspec

from zurau.errors import DiskFault
from zurau.ids import BrokerId
from zurau.pending import Pending
from zurau.ports import Clock, Disk, Timer, Workers
from zurau.settings import MINUTE_MS, SECOND_MS

log = logging.getLogger("zurau.broker")

FILE = "last-seen.json"
WRITE_INTERVAL_MS = MINUTE_MS
#: A client that asks again so soon is not noted again.
NOTE_INTERVAL_MS = SECOND_MS
#: Of each kind; the one that was not seen for the longest time goes.
SEEN_MAX = 2000
#: Of a client's id, or a group's: what follows is left out, and a mark says so.
NAME_CHARACTERS_MAX = 200
#: A config may have a value of 32767 bytes in old versions of the protocol.
TEXT_BYTES_MAX = 30_000


class Kind(StrEnum):
    BROKER = "broker"
    PRODUCER = "producer"
    CONSUMER = "consumer"
    MEMBER = "member"


class Seen(msgspec.Struct, frozen=True, omit_defaults=True):
    kind: Kind
    #: The client's id, or the broker's.
    name: str
    #: By the wall clock.
    at_ms: int
    #: Of a member.
    group: str = ""


class LastSeen:
    def __init__(self, disk: Disk, clock: Clock, background: Workers) -> None:
        self._disk = disk
        self._clock = clock
        self._background = background
        #: By group and name, the latest last.
        self._times: dict[Kind, dict[tuple[str, str], int]] = {kind: {} for kind in Kind}
        self._connected: set[BrokerId] = set()
        self._has_changed = False
        self._timer: Timer | None = None
        self._read()

    def _read(self) -> None:
        content = self._disk.read_file(FILE)
        if content is None:
            return
        try:
            for seen in sorted(msgspec.json.decode(content, type=list[Seen]), key=lambda seen: seen.at_ms):
                self._note(seen.kind, seen.group, seen.name, seen.at_ms)
        except msgspec.MsgspecError as error:
            log.warning("%s cannot be read, so when clients were last seen is not known: %s", FILE, error)

    def begin(self) -> None:
        self._timer = self._clock.call_later(WRITE_INTERVAL_MS, self._write_due)

    # What happens

    def heard(self, kind: Kind, name: str | None, group: str = "") -> None:
        """A client has asked something."""
        name = name or ""
        now_ms = self._clock.now_ms()
        noted_ms = self._times[kind].get((group, name))
        if noted_ms is not None and 0 <= now_ms - noted_ms < NOTE_INTERVAL_MS:
            return
        if len(name) > NAME_CHARACTERS_MAX or len(group) > NAME_CHARACTERS_MAX:
            name, group = _shortened(name), _shortened(group)
        self._note(kind, group, name, now_ms)

    def connected(self, broker: BrokerId) -> None:
        self._connected.add(broker)

    def lost(self, broker: BrokerId) -> None:
        if broker in self._connected:
            self._connected.discard(broker)
            self._note(Kind.BROKER, "", str(broker), self._clock.now_ms())

    def _note(self, kind: Kind, group: str, name: str, at_ms: int) -> None:
        times, key = self._times[kind], (group, name)
        times.pop(key, None)
        times[key] = at_ms
        if len(times) > SEEN_MAX:
            del times[next(iter(times))]
        self._has_changed = True

    # Who asks

    def all(self) -> Iterator[Seen]:
        """Brokers first; of each kind the latest first."""
        for broker in sorted(self._connected):
            self._note(Kind.BROKER, "", str(broker), self._clock.now_ms())
        for kind, times in self._times.items():
            for (group, name), at_ms in reversed(times.items()):
                yield Seen(kind, name, at_ms, group)

    def text(self) -> str:
        """The latest as JSON, as many as fit; the last one says how many do not."""
        known = sorted(self.all(), key=lambda seen: (seen.kind is not Kind.BROKER, -seen.at_ms))
        encoded: list[bytes] = []
        size = 0
        for seen in known:
            one = msgspec.json.encode(seen)
            size += len(one) + 1
            if size > TEXT_BYTES_MAX:
                encoded.append(msgspec.json.encode({"more": len(known) - len(encoded)}))
                break
            encoded.append(one)
        return f"[{b','.join(encoded).decode()}]"

    # The file

    def _write_due(self) -> None:
        self.begin()
        if self._has_changed or self._connected:
            self._has_changed = False
            self._background.run(partial(self._write, list(self.all()))).then(_report)

    def _write(self, known: list[Seen]) -> None:
        self._disk.replace_file(FILE, msgspec.json.encode(known))

    def close(self) -> None:
        """Blocks."""
        if self._timer is not None:
            self._timer.cancel()
        try:
            self._write(list(self.all()))
        except DiskFault as fault:
            _warn(fault)


def _report(outcome: Pending[None]) -> None:
    if outcome.error is not None:
        if not isinstance(outcome.error, DiskFault):
            raise outcome.error
        _warn(outcome.error)


def _warn(fault: DiskFault) -> None:
    log.warning("when clients were last seen cannot be written down: %s", fault)


def _shortened(name: str) -> str:
    return name if len(name) <= NAME_CHARACTERS_MAX else name[:NAME_CHARACTERS_MAX] + "…"

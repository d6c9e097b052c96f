"""When clients and brokers were last seen."""

from __future__ import annotations

import json

from zurau.broker import last_seen as module
from zurau.broker.last_seen import FILE, Kind, LastSeen, Seen
from zurau.ids import BrokerId
from zurau.simulation.disk import SimulatedDisk
from zurau.simulation.world import VirtualClock, make_world


class Place:
    """A disk that stays, and one start after the other."""

    def __init__(self) -> None:
        self.disk = SimulatedDisk()
        self.clock = VirtualClock()

    def start(self) -> LastSeen:
        world = make_world(self.disk, self.clock, 1, self.disk.boot_id)
        started = LastSeen(world.disk, world.clock, world.workers)
        started.begin()
        return started


def test_the_latest_time_of_each_client_is_kept_and_the_latest_is_first():
    place = Place()
    seen = place.start()
    seen.heard(Kind.PRODUCER, "a")
    place.clock.advance(module.NOTE_INTERVAL_MS)
    seen.heard(Kind.PRODUCER, "b")
    place.clock.advance(10)
    seen.heard(Kind.PRODUCER, "a")
    now_ms = place.clock.now_ms()
    assert list(seen.all()) == [Seen(Kind.PRODUCER, "a", now_ms), Seen(Kind.PRODUCER, "b", now_ms - 10)]


def test_a_client_that_asks_again_at_once_is_noted_once_a_second():
    place = Place()
    seen = place.start()
    began_ms = place.clock.now_ms()
    seen.heard(Kind.PRODUCER, "a")
    place.clock.advance(module.NOTE_INTERVAL_MS - 1)
    seen.heard(Kind.PRODUCER, "a")
    assert [each.at_ms for each in seen.all()] == [began_ms]
    place.clock.advance(1)
    seen.heard(Kind.PRODUCER, "a")
    assert [each.at_ms for each in seen.all()] == [began_ms + module.NOTE_INTERVAL_MS]


def test_a_restart_remembers_and_so_does_one_after_a_kill_a_minute_later():
    place = Place()
    first = place.start()
    first.heard(Kind.MEMBER, "m", "readers")
    first.close()
    (kept,) = place.start().all()
    assert kept == Seen(Kind.MEMBER, "m", place.clock.now_ms(), "readers")
    second = place.start()
    second.heard(Kind.CONSUMER, "c")
    place.clock.advance(module.WRITE_INTERVAL_MS + 1)
    assert {each.name for each in place.start().all()} == {"m", "c"}


def test_a_connected_broker_is_seen_now_and_one_that_is_lost_was_seen_then():
    place = Place()
    seen = place.start()
    seen.connected(BrokerId(2))
    place.clock.advance(5)
    assert [each.at_ms for each in seen.all()] == [place.clock.now_ms()]
    seen.lost(BrokerId(2))
    seen.lost(BrokerId(3))
    lost_ms = place.clock.now_ms()
    place.clock.advance(5)
    assert list(seen.all()) == [Seen(Kind.BROKER, "2", lost_ms)]


def test_of_too_many_the_one_that_was_silent_longest_is_forgotten(monkeypatch):
    monkeypatch.setattr(module, "SEEN_MAX", 2)
    place = Place()
    seen = place.start()
    for name in ("a", "b", "a", "c"):
        seen.heard(Kind.PRODUCER, name)
        place.clock.advance(module.NOTE_INTERVAL_MS)
    seen.heard(Kind.CONSUMER, "d")
    assert {each.name for each in seen.all()} == {"a", "c", "d"}


def test_a_name_is_kept_whole_up_to_a_limit_and_marked_beyond():
    seen = Place().start()
    longest = "x" * module.NAME_CHARACTERS_MAX
    for name in (longest, longest + "y", None):
        seen.heard(Kind.PRODUCER, name)
    assert [each.name for each in seen.all()] == ["", longest + "…", longest]


def test_the_text_says_how_many_do_not_fit(monkeypatch):
    seen = Place().start()
    for number in range(10):
        seen.heard(Kind.PRODUCER, str(number))
    assert len(json.loads(seen.text())) == 10
    monkeypatch.setattr(module, "TEXT_BYTES_MAX", 200)
    *shown, more = json.loads(seen.text())
    assert 0 < len(shown) < 10
    assert more == {"more": 10 - len(shown)}


def test_a_damaged_file_is_said_and_begun_anew(caplog):
    place = Place()
    place.disk.replace_file(FILE, b"[{")
    assert list(place.start().all()) == []
    assert "cannot be read" in caplog.text

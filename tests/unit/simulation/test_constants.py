"""Drawing the broker's constants, and putting them back."""

from __future__ import annotations

import pytest

from zurau.log import batch_file, scan
from zurau.partition import replay
from zurau.simulation.constants import DRAWN, as_text, constants, draw, from_text, needed, usual

READ = "partition.replay.READ_BYTES"
WALK = "log.batch_file.WALK_BYTES"


def test_a_constant_has_its_value_within_the_block_and_the_usual_one_after_it():
    with constants({READ: 7, WALK: 9}):
        assert (replay.READ_BYTES, batch_file.WALK_BYTES) == (7, 9)
    assert (usual(READ), usual(WALK)) == (replay.READ_BYTES, batch_file.WALK_BYTES)


def test_the_usual_value_comes_back_after_a_failure_too():
    with pytest.raises(ZeroDivisionError), constants({READ: 7}):
        raise ZeroDivisionError
    assert usual(READ) == replay.READ_BYTES


def test_modules_that_imported_a_constant_see_the_value_too(monkeypatch):
    monkeypatch.setitem(DRAWN, "records.record.UNPACKED_BYTES_MAX", 1)
    from zurau.partition import admission
    from zurau.simulation import constants as module

    module._knowers.cache_clear()
    with constants({"records.record.UNPACKED_BYTES_MAX": 5}):
        assert admission.UNPACKED_BYTES_MAX == 5
    module._knowers.cache_clear()


def test_the_same_seed_draws_the_same_and_never_less_than_must_work():
    for seed in range(200):
        drawn = draw(seed)
        assert drawn == draw(seed)
        assert all(DRAWN[name] <= value <= usual(name) for name, value in drawn.items())


def test_every_constant_is_drawn_as_small_as_it_may_be_and_some_seeds_draw_nothing():
    many = [draw(seed) for seed in range(300)]
    assert {} in many
    assert {name for drawn in many for name, value in drawn.items() if value == DRAWN[name]} == DRAWN.keys()


def test_what_a_room_draws_does_not_depend_on_the_other_rooms():
    for seed in range(50):
        assert draw(seed, "log").items() <= draw(seed).items()


def test_values_as_text_come_back_as_they_were():
    values = draw(6)
    assert from_text(as_text(values)) == values
    assert from_text("") == {}


def test_a_constant_that_is_not_in_the_table_is_refused():
    with pytest.raises(ValueError, match=r"log\.scan.NOTHING"):
        from_text("log.scan.NOTHING=1")


def test_only_the_constants_that_matter_are_named():
    values = {READ: 7, WALK: 9, "log.scan.SCAN_BYTES": 1}

    def fails(tried: dict[str, int]) -> bool:
        with constants(tried):
            return batch_file.WALK_BYTES == 9 and scan.SCAN_BYTES == 1

    assert needed(values, fails) == {WALK: 9, "log.scan.SCAN_BYTES": 1}

from __future__ import annotations

import pytest

from zurau.journal.frames import MARK, Unreadable, encode_frame, read_frames

FRAMES = [encode_frame(payload) for payload in (b"first", b"second" * 20, b"third")]
CONTENT = b"".join(FRAMES)
FIRST, SECOND = len(FRAMES[0]), len(FRAMES[0]) + len(FRAMES[1])


def test_frames_come_back_in_their_order():
    assert list(read_frames(CONTENT)) == [b"first", b"second" * 20, b"third"]


@pytest.mark.parametrize("cut", range(1, len(FRAMES[2])))
def test_a_last_frame_that_was_cut_short_is_a_torn_end(cut):
    *whole, torn = read_frames(CONTENT[:-cut])
    assert whole == [b"first", b"second" * 20]
    assert torn == Unreadable(SECOND, len(CONTENT) - cut, is_torn_end=True)


@pytest.mark.parametrize("position", range(FIRST, SECOND))
@pytest.mark.parametrize("bit", [0, 7])
def test_any_bit_of_a_frame_in_the_middle_that_flips_is_damage(position, bit):
    damaged = bytearray(CONTENT)
    damaged[position] ^= 1 << bit
    assert list(read_frames(bytes(damaged))) == [b"first", Unreadable(FIRST, SECOND, is_torn_end=False), b"third"]


@pytest.mark.parametrize("content", [b"", b"\0" * 100, FRAMES[0][:-1], b"notes of mine\n"])
def test_a_file_without_its_first_frame_is_damaged_and_not_torn(content):
    (only,) = read_frames(content)
    assert isinstance(only, Unreadable)
    assert not only.is_torn_end


def test_zeroes_behind_the_last_frame_are_a_torn_end():
    *_, torn = read_frames(CONTENT + bytes(500))
    assert torn == Unreadable(len(CONTENT), len(CONTENT) + 500, is_torn_end=True)


def test_a_mark_that_begins_no_frame_is_passed_over():
    damaged = FRAMES[0] + MARK + b"no frame" + MARK + FRAMES[2]
    assert list(read_frames(damaged)) == [b"first", Unreadable(FIRST, len(damaged) - len(FRAMES[2]), False), b"third"]

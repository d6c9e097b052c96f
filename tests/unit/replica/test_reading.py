"""What consumers are told. The log here is 3 to 9, and 7 is committed as far as the replica knows."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from zurau.epochs import EpochMark
from zurau.replica.core.log_view import LogView
from zurau.replica.core.reading import Reading, reading
from zurau.replica.core.roles import Role


@dataclass
class Replica:
    role: Role
    epoch: int = 4
    high_watermark: int = 7
    log: LogView = LogView(3, 9, [EpochMark(2, 3)])  # noqa: RUF009  # nobody changes it


@pytest.mark.parametrize("role", [Role.LEADER, Role.FOLLOWER])
@pytest.mark.parametrize(
    ("offset", "told"),
    [
        (2, Reading.OUT_OF_RANGE),
        (3, Reading.RECORDS),
        (6, Reading.RECORDS),
        (7, Reading.NOTHING_YET),
        (9, Reading.NOTHING_YET),
    ],
)
def test_what_is_committed_can_be_read_and_what_is_not_yet_is_not_out_of_range(role, offset, told):
    assert reading(Replica(role), offset, 4) is told


def test_behind_the_end_only_a_leader_knows_that_there_is_nothing():
    assert reading(Replica(Role.LEADER), 10, 4) is Reading.OUT_OF_RANGE
    assert reading(Replica(Role.FOLLOWER), 10, 4) is Reading.ASK_ANOTHER


def test_a_leader_that_was_deposed_does_not_answer_one_who_has_read_from_a_later_one():
    assert reading(Replica(Role.LEADER), 10, 5) is Reading.ASK_ANOTHER
    assert reading(Replica(Role.LEADER), 3, 5) is Reading.ASK_ANOTHER

"""Many logs flushed with one flush of everything."""

from __future__ import annotations

import pytest

from zurau.errors import DiskFault, FlushFailed
from zurau.partition.group_flush import Flush, flush_together
from zurau.pending import Pending


@pytest.fixture
def done() -> list[tuple]:
    return []


@pytest.fixture
def group(done) -> list[Flush]:
    """Two who write down how they were flushed."""
    return [
        Flush(lambda n=n: done.append((n, "alone")), lambda fault, n=n: done.append((n, fault)), Pending())
        for n in (1, 2)
    ]


@pytest.fixture
def refuse(disk, monkeypatch):
    """Lets a flush of the whole disk fail."""

    def refuse(error: Exception) -> None:
        def flush_all() -> None:
            raise error

        monkeypatch.setattr(disk, "flush_all", flush_all)

    return refuse


def test_one_flush_is_for_all_of_them(disk, done, group):
    outcomes = flush_together(disk, group)
    assert done == [(1, None), (2, None)]
    assert outcomes == [(flush.pending, None, None) for flush in group]


def test_a_flush_that_failed_has_failed_for_each(disk, done, group, refuse):
    fault = FlushFailed("an error of the disk")
    refuse(fault)
    flush_together(disk, group)
    assert done == [(1, fault), (2, fault)]


def test_what_could_not_be_flushed_together_is_flushed_one_by_one(disk, done, group, refuse):
    refuse(DiskFault("not supported here"))
    flush_together(disk, group)
    assert done == [(1, "alone"), (2, "alone")]


def test_a_defect_is_carried_to_everybody_who_waits(disk, done, group, refuse):
    defect = ValueError("a defect")
    refuse(defect)
    assert flush_together(disk, group) == [(flush.pending, None, defect) for flush in group]
    assert done == []


def test_what_fails_for_one_is_told_to_that_one(disk, done, group):
    def fail(fault: FlushFailed | None) -> None:
        raise DiskFault("only here")

    first, second = flush_together(disk, [group[0]._replace(after_all=fail), group[1]])
    assert (str(first[2]), second[2], done) == ("only here", None, [(2, None)])

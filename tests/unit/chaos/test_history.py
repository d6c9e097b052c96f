"""Every rule has a history that keeps it and one that breaks it: a checker that finds nothing must have looked."""

from __future__ import annotations

import pytest

from zurau.chaos.history import History, value_of
from zurau.ids import TopicPartition

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
A, B, C = (value_of("once-a", number) for number in range(3))


@pytest.fixture
def history() -> History:
    return History()


def broken(history: History) -> list[str]:
    return [violation.invariant for violation in history.violations]


def test_a_history_without_faults_has_no_violation(history):
    history.acknowledged(P0, 0, [A, B])
    history.read(P0, [(0, A), (1, B)], high_watermark=2)
    history.acknowledged(P0, 2, [C])
    history.assigned("g", 1, "m1", [P0])
    history.committed("g", 1, {P0: 2}, newest_when_asked=1)
    history.assigned("g", 2, "m2", [P0])
    history.found_committed("g", {P0: 2}, history.known_commits("g"))
    history.found_all(P0, {0: A, 1: B, 2: C})
    assert broken(history) == []
    assert history.counts["acknowledged"] == 3
    assert history.counts["lost"] == 0


def test_an_acknowledged_record_that_is_not_found_is_lost(history):
    history.acknowledged(P0, 0, [A, B])
    history.found_all(P0, {0: A})
    assert broken(history) == ["AcknowledgedStays"]
    assert history.counts["lost"] == 1


def test_a_record_that_was_acknowledged_without_its_offset_must_be_somewhere(history):
    history.acknowledged_somewhere(P0, A)
    history.acknowledged_somewhere(P0, B)
    history.found_all(P0, {7: A})
    assert broken(history) == ["AcknowledgedStays"]
    assert (history.counts["acknowledged"], history.counts["lost"]) == (2, 1)


def test_a_record_that_was_read_and_is_not_found_is_lost_too(history):
    history.read(P0, [(0, A)], high_watermark=1)
    history.found_all(P0, {})
    assert broken(history) == ["AcknowledgedStays"]


def test_a_record_that_was_never_acknowledged_may_be_missing_or_there(history):
    history.acknowledged(P0, 0, [A])
    history.found_all(P0, {0: A, 1: B})
    assert broken(history) == []


def test_a_record_is_at_one_offset_only(history):
    history.acknowledged(P0, 0, [A])
    history.read(P0, [(0, A), (1, A)], high_watermark=2)
    assert broken(history) == ["NoneTwice"]


def test_an_unacknowledged_record_that_is_stored_twice_is_noticed_at_the_end(history):
    history.found_all(P0, {0: A, 1: A})
    assert "NoneTwice" in broken(history)


def test_the_same_value_in_two_partitions_is_no_repetition(history):
    history.acknowledged(P0, 0, [A])
    history.acknowledged(P1, 0, [A])
    assert broken(history) == []


def test_an_offset_has_one_value(history):
    history.acknowledged(P0, 0, [A])
    history.read(P0, [(0, B)], high_watermark=1)
    assert broken(history) == ["OneValueAtAnOffset"]


def test_two_producers_are_not_given_the_same_offset(history):
    history.acknowledged(P0, 0, [A])
    history.acknowledged(P0, 0, [value_of("once-b", 0)])
    assert broken(history) == ["OneValueAtAnOffset"]


def test_records_of_a_producer_keep_their_order_in_a_partition(history):
    history.found_all(P0, {0: B, 1: A})
    assert broken(history) == ["OrderIsKept"]


def test_records_of_two_producers_may_be_mixed(history):
    history.found_all(P0, {0: B, 1: value_of("once-b", 0), 2: C})
    assert broken(history) == []


def test_nobody_reads_at_the_high_watermark(history):
    history.read(P0, [(0, A), (1, B)], high_watermark=1)
    assert broken(history) == ["OnlyWhatIsCommitted"]


def test_a_consumer_that_is_not_told_the_high_watermark_is_not_held_to_it(history):
    history.read(P0, [(0, A)])
    assert broken(history) == []


def test_a_committed_offset_does_not_go_back(history):
    history.committed("g", 1, {P0: 7}, newest_when_asked=1)
    history.found_committed("g", {P0: 6}, history.known_commits("g"))
    assert broken(history) == ["CommittedOffsetsNeverGoBack"]


def test_a_commit_that_was_confirmed_after_the_question_need_not_be_in_its_answer(history):
    known = history.known_commits("g")
    history.committed("g", 1, {P0: 7}, newest_when_asked=1)
    history.found_committed("g", {P0: 0}, known)
    assert broken(history) == []


def test_a_partition_has_one_owner_in_a_generation(history):
    history.assigned("g", 3, "m1", [P0, P1])
    history.assigned("g", 3, "m2", [P1])
    assert broken(history) == ["OneOwner"]


def test_owners_of_different_groups_and_generations_may_differ(history):
    history.assigned("g", 3, "m1", [P0])
    history.assigned("g", 4, "m2", [P0])
    history.assigned("h", 3, "m3", [P0])
    assert broken(history) == []


def test_a_commit_of_an_older_generation_is_not_taken(history):
    history.assigned("g", 1, "m1", [P0])
    history.assigned("g", 2, "m2", [P0])
    history.committed("g", 1, {P0: 7}, history.newest_generation("g"))
    assert broken(history) == ["OneOwner"]


def test_a_commit_that_was_asked_for_before_the_next_generation_began_may_be_taken(history):
    newest = history.newest_generation("g")
    history.assigned("g", 2, "m2", [P0])
    history.committed("g", 1, {P0: 7}, newest)
    assert broken(history) == []

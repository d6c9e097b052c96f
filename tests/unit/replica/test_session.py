"""The stream between two brokers: silence means unchanged, and only while both mean the same by it."""

from __future__ import annotations

import pytest

from zurau.epochs import EpochMark, Position
from zurau.ids import BrokerId, TopicId
from zurau.replica.events import AnswerStands, FetchProgressed, FetchStands, StoodUntil
from zurau.replica.identity import PartitionId, ReplicaId
from zurau.replica.messages import BeginEpoch, Fetch, Fetched, FetchRefused, VoteAnswer
from zurau.replica.position import Batch
from zurau.replica.session import Answer, Answering, Asking, Question

FOLLOWER, LEADER = ReplicaId(BrokerId(1), "a"), ReplicaId(BrokerId(2), "a")
ORDERS = TopicId(bytes(15) + b"o")
P, Q = PartitionId(ORDERS, 0), PartitionId(ORDERS, 1)
BATCH = Batch(1, 5, 1, b"x")
NOW_MS = 1000


def fetch(fetch_id: int, offset: int = 5, epoch: int = 1) -> Fetch:
    return Fetch(FOLLOWER, epoch, fetch_id, Position(epoch, offset), 5)


def fetched(fetch_id: int = 0, *, high_watermark: int = 5, batches: tuple[Batch, ...] = ()) -> Fetched:
    return Fetched(LEADER, 1, fetch_id, high_watermark, (), batches)


@pytest.fixture
def pair() -> tuple[Asking, Answering]:
    """Two partitions that have asked and been told that there is nothing new, and ask the same again."""
    asking, answering = Asking(7), Answering(50)
    for partition in (P, Q):
        asking.tell(partition, fetch(1))
    assert answering.asked(asking.question(), NOW_MS) == ((P, fetch(1)), (Q, fetch(1)))
    for partition in (P, Q):
        answering.tell(partition, fetched(1))
    assert asking.answered(answering.answer(), NOW_MS) == ((P, fetched(1)), (Q, fetched(1)))
    for partition in (P, Q):
        asking.tell(partition, fetch(2))
    assert answering.notices == [(P, FetchStands(fetch(1))), (Q, FetchStands(fetch(1)))]
    assert asking.notices == [(P, AnswerStands(fetched(1))), (Q, AnswerStands(fetched(1)))]
    asking.notices, answering.notices = [], []
    return asking, answering


def test_who_asks_the_same_again_is_not_named_and_nobody_hears_of_it(pair):
    asking, answering = pair
    question = asking.question()
    assert question == Question(7, 2, name=52)
    assert (answering.asked(question, 2000), answering.notices) == ((), [])


def test_an_answer_without_news_is_silent_and_nobody_hears_of_it(pair):
    asking, answering = pair
    answering.asked(asking.question(), 2000)
    answering.tell(P, fetched(1))
    assert not answering.has_news
    assert (asking.answered(answering.answer(), 2001), asking.notices) == ((), [])


def test_silence_was_a_sign_of_life_until_the_last_answer(pair):
    asking, answering = pair
    answering.asked(asking.question(), 2000)
    asking.answered(answering.answer(), 2001)
    asking.question()
    asking.lost(99)
    assert asking.notices == [(P, StoodUntil(LEADER, 2001)), (Q, StoodUntil(LEADER, 2001))]


def test_silence_was_a_sign_of_life_until_the_last_question(pair):
    asking, answering = pair
    answering.asked(asking.question(), 2000)
    answering.lost()
    assert answering.notices == [(P, StoodUntil(FOLLOWER, 2000)), (Q, StoodUntil(FOLLOWER, 2000))]


def test_another_session_ends_what_silence_said_in_the_one_before(pair):
    _, answering = pair
    answering.asked(Question(8, 1, ((P, fetch(9)),)), 3000)
    assert answering.notices == [(P, StoodUntil(FOLLOWER, NOW_MS)), (Q, StoodUntil(FOLLOWER, NOW_MS))]


def test_who_asks_something_else_has_ended_its_silence_on_both_sides(pair):
    asking, answering = pair
    asking.tell(P, fetch(3, offset=6))
    assert asking.notices == [(P, StoodUntil(LEADER, NOW_MS))]
    assert answering.asked(asking.question(), 2000) == ((P, fetch(3, offset=6)),)
    assert answering.notices == [(P, StoodUntil(FOLLOWER, NOW_MS))]


def test_whoever_asks_the_same_once_more_is_told_once_more_that_silence_is_the_answer(pair):
    asking, _ = pair
    asking.tell(P, fetch(3))
    assert asking.notices == [(P, AnswerStands(fetched(1)))]


def test_news_reach_the_question_that_is_open_now(pair):
    asking, answering = pair
    answering.asked(asking.question(), NOW_MS)
    answering.tell(Q, fetched(1, high_watermark=6, batches=(BATCH,)))
    assert answering.has_news
    heard = dict(asking.answered(answering.answer(), NOW_MS))
    assert heard[Q] == fetched(2, high_watermark=6, batches=(BATCH,))


def test_an_answer_with_news_uses_the_question_up(pair):
    asking, answering = pair
    answering.asked(asking.question(), 2000)
    answering.tell(P, fetched(1, batches=(BATCH,)))
    asking.answered(answering.answer(), 2001)
    assert answering.notices == [(P, StoodUntil(FOLLOWER, 2000))]
    assert asking.notices == [(P, StoodUntil(LEADER, 2001))]
    question = asking.question()  # P writes down what it got, and does not ask meanwhile
    assert (question.said, question.closed) == ((), ())
    answering.asked(question, 2002)
    assert list(answering.asked_for) == [Q]


def test_a_refusal_uses_the_question_up_and_has_the_number_that_is_awaited(pair):
    asking, answering = pair
    answering.asked(asking.question(), NOW_MS)
    answering.tell(P, FetchRefused(LEADER, 1, 1, None))
    assert asking.answered(answering.answer(), NOW_MS) == ((P, FetchRefused(LEADER, 1, 2, None)),)
    answering.asked(asking.question(), NOW_MS)
    assert list(answering.asked_for) == [Q]


def test_an_answer_to_what_a_partition_asked_before_is_not_heard(pair):
    asking, answering = pair
    answering.asked(asking.question(), NOW_MS)
    asking.tell(P, fetch(3, offset=2))
    answering.tell(P, fetched(1, batches=(BATCH,)))
    assert P not in dict(asking.answered(answering.answer(), NOW_MS))
    assert asking.question().said == ((P, fetch(3, offset=2)),)


def test_an_answer_that_took_too_long_is_not_an_answer_to_what_is_asked_now(pair):
    asking, answering = pair
    asking.tell(P, fetch(3, offset=9))
    answering.asked(asking.question(), NOW_MS)
    answering.tell(P, fetched(1, batches=(BATCH,)))
    assert not answering.has_news


def test_a_partition_that_asks_something_else_is_answered_in_words(pair):
    asking, answering = pair
    asking.tell(P, fetch(3, offset=9))
    answering.tell(P, fetched(1, batches=(BATCH,)))
    answering.asked(asking.question(), NOW_MS)
    assert asking.question() is None
    assert P not in dict(asking.answered(answering.answer(), NOW_MS))
    answering.asked(asking.question(), NOW_MS)
    answering.tell(P, fetched(3))
    assert dict(asking.answered(answering.answer(), NOW_MS))[P] == fetched(3)


def test_a_partition_that_fails_at_the_leader_is_not_made_to_look_alive(pair):
    asking, answering = pair
    answering.asked(asking.question(), 2000)
    answering.close(P)
    answering.close(P)
    asking.answered(answering.answer(), 2001)
    assert asking.notices == [(P, StoodUntil(LEADER, NOW_MS))]
    answering.asked(asking.question(), 2002)
    assert list(answering.asked_for) == [Q]
    answering.tell(P, fetched(1))
    assert not answering.has_news


def test_who_asks_anew_before_it_hears_that_it_was_put_out_is_answered(pair):
    asking, answering = pair
    answering.close(P)
    asking.tell(P, fetch(3, offset=9))
    answering.asked(asking.question(), NOW_MS)
    answering.tell(P, fetched(3))
    answer = answering.answer()
    assert (answer.closed, dict(asking.answered(answer, NOW_MS))[P]) == ((), fetched(3))


def test_a_partition_that_fails_at_the_follower_asks_no_more(pair):
    asking, answering = pair
    asking.withdraw(Q)
    asking.withdraw(Q)
    question = asking.question()
    assert question.closed == (Q,)
    answering.asked(question, 2000)
    assert (list(answering.asked_for), answering.notices) == ([P], [(Q, StoodUntil(FOLLOWER, NOW_MS))])


def test_silence_is_no_answer_before_there_was_one_in_words():
    asking = Asking(1)
    asking.tell(P, fetch(1))
    asking.question()
    asking.tell(P, fetch(2))
    assert asking.notices == []


def test_a_fetch_that_is_not_answered_yet_is_not_delivered_again_with_the_next_question():
    asking, answering = Asking(1), Answering(50)
    asking.tell(P, fetch(1))
    answering.asked(asking.question(), NOW_MS)
    asking.answered(answering.answer(), NOW_MS)
    asking.tell(Q, fetch(1))
    assert answering.asked(asking.question(), NOW_MS) == ((Q, fetch(1)),)
    answering.tell(P, fetched(1, batches=(BATCH,)))
    assert asking.answered(answering.answer(), NOW_MS) == ((P, fetched(1, batches=(BATCH,))),)


def test_what_stands_is_what_silence_says(pair):
    asking, answering = pair
    assert asking.standing == answering.standing == {P: fetch(1), Q: fetch(1)}
    asking.withdraw(P)
    answering.close(Q)
    assert (asking.asks(P), asking.asks(Q)) == (None, fetch(2))
    assert (list(asking.standing), list(answering.standing)) == ([Q], [P])
    assert (list(asking.answered_for), list(answering.asked_for), answering.closing) == ([Q], [P], (Q,))


def test_other_messages_travel_along_both_ways(pair):
    asking, answering = pair
    begin, vote = BeginEpoch(FOLLOWER, 4), VoteAnswer(LEADER, 4, is_granted=True, is_pre=False)
    asking.tell(P, begin)
    assert (P, begin) in answering.asked(asking.question(), NOW_MS)
    answering.tell(P, vote)
    assert (P, vote) in asking.answered(answering.answer(), NOW_MS)


def test_a_session_that_is_not_known_is_begun_anew_and_everything_said_again(pair):
    asking, _ = pair
    forgetful = Answering(50)
    refusal = forgetful.asked(asking.question(), NOW_MS)
    assert refusal == Answer(7, 2, is_unknown=True)
    assert asking.answered(refusal, NOW_MS) == ()
    question = asking.question()
    assert question == Question(8, 1, ((P, fetch(2)), (Q, fetch(2))))
    assert forgetful.asked(question, NOW_MS) == question.said


def test_a_question_that_comes_twice_is_no_second_acknowledgement(pair):
    asking, answering = pair
    question = asking.question()
    answering.asked(question, NOW_MS)
    assert answering.asked(question, NOW_MS) == Answer(7, 2, is_unknown=True)


@pytest.mark.parametrize("answer", [Answer(7, 1), Answer(6, 2), Answer(7, 3)])
def test_an_answer_to_another_question_says_nothing_about_anybody(pair, answer):
    asking, _ = pair
    asking.question()
    assert asking.answered(answer, NOW_MS) == ()
    assert asking.question() is None


def test_what_comes_up_while_a_question_waits_is_asked_in_a_second_one(pair):
    asking, answering = pair
    answering.asked(asking.question(), NOW_MS)
    asking.tell(P, fetch(3, offset=6))
    second = asking.question()
    assert second == Question(7, 3, ((P, fetch(3, offset=6)),), name=52)
    assert asking.answered(answering.answer(), NOW_MS) == ()
    assert answering.asked(second, NOW_MS) == ((P, fetch(3, offset=6)),)


def test_no_more_than_two_questions_are_open(pair):
    asking, _ = pair
    asking.question()
    asking.tell(P, fetch(3, offset=6))
    asking.question()
    asking.tell(Q, fetch(3, offset=6))
    assert (asking.open_questions, asking.question()) == (2, None)


def test_a_second_question_is_not_asked_without_news(pair):
    asking, _ = pair
    asking.question()
    asking.tell(P, fetch(3, offset=6))
    asking.tell(P, fetch(4))  # as before
    assert asking.question() is None


def test_an_answer_says_nothing_about_what_was_asked_after_its_question(pair):
    asking, answering = pair
    answering.asked(asking.question(), NOW_MS)
    answering.tell(P, fetched(1, batches=(BATCH,)))
    answering.close(Q)
    for partition in (P, Q):
        asking.tell(partition, fetch(3, offset=6))
    second = asking.question()
    assert asking.answered(answering.answer(), NOW_MS) == ()
    assert answering.asked(second, NOW_MS) == ((P, fetch(3, offset=6)), (Q, fetch(3, offset=6)))
    for partition in (P, Q):
        answering.tell(partition, fetched(3))
    assert asking.answered(answering.answer(), NOW_MS) == ((P, fetched(3)), (Q, fetched(3)))


def test_a_session_whose_answers_come_out_of_order_is_begun_anew(pair):
    asking, _ = pair
    asking.question()
    asking.tell(P, fetch(3, offset=6))
    asking.question()
    assert asking.answered(Answer(7, 3, name=52), NOW_MS) == ()
    assert asking.question() == Question(8, 1, ((P, fetch(3, offset=6)), (Q, fetch(2))))


def test_without_a_question_there_is_nothing_to_answer(pair):
    _, answering = pair
    assert answering.answer() is None


def test_a_lost_connection_forgets_what_was_understood(pair):
    asking, _ = pair
    asking.question()
    asking.lost(99)
    assert asking.question() == Question(99, 1, ((P, fetch(2)), (Q, fetch(2))))


def test_a_first_question_that_comes_again_does_not_bring_back_a_session_that_was_forgotten():
    asking, answering = Asking(7), Answering(50)
    asking.tell(P, fetch(1))
    first = asking.question()
    answering.asked(first, NOW_MS)
    answering.tell(P, fetched(1))
    asking.answered(answering.answer(), NOW_MS)
    answering.lost()
    answering.asked(first, NOW_MS)
    answering.answer()
    assert answering.asked(asking.question(), NOW_MS) == Answer(7, 2, is_unknown=True)


def test_who_answers_forgets_everything_with_the_connection(pair):
    asking, answering = pair
    answering.lost()
    assert answering.asked(asking.question(), NOW_MS) == Answer(7, 2, is_unknown=True)


def test_an_idle_pair_says_and_hears_nothing_however_many_partitions_it_shares():
    asking, answering = Asking(1), Answering(50)
    for index in range(1000):
        asking.tell(PartitionId(ORDERS, index), fetch(1))
    for partition, _ in answering.asked(asking.question(), NOW_MS):
        answering.tell(partition, fetched(1))
    for partition, _ in asking.answered(answering.answer(), NOW_MS):
        asking.tell(partition, fetch(2))
    asking.notices, answering.notices = [], []
    question = asking.question()
    heard = answering.asked(question, NOW_MS)
    answer = answering.answer()
    heard += asking.answered(answer, NOW_MS)
    assert (question.said, answer.said, heard, asking.notices, answering.notices) == ((), (), (), [], [])


def test_an_answer_has_about_so_many_bytes_and_what_is_left_goes_first_in_the_next():
    asking, answering = Asking(1), Answering(50, max_bytes=2)
    for index in range(4):
        asking.tell(PartitionId(ORDERS, index), fetch(1))
    answering.asked(asking.question(), NOW_MS)
    for index in range(4):
        answering.tell(PartitionId(ORDERS, index), fetched(1, batches=(Batch(1, 5, 1, b"xy"[: 1 + index // 2]),)))
    first = answering.answer()
    assert [partition.partition for partition, _ in first.said] == [0, 1]
    assert [each.partition for each, _ in asking.answered(first, NOW_MS)] == [0, 1]
    answering.asked(asking.question(), NOW_MS)
    assert answering.has_news
    assert [partition.partition for partition, _ in answering.answer().said] == [2]


def test_who_waits_for_an_answer_hears_that_bytes_are_coming(pair):
    asking, _ = pair
    asking.tell(P, fetch(3, offset=6))
    asking.question()
    asking.notices = []
    asking.progressed()
    assert asking.notices == [(P, FetchProgressed())]


def test_corrections_are_news_and_are_said_once():
    asking, answering = Asking(1), Answering(50)
    asking.tell(P, fetch(1, offset=9))
    answering.asked(asking.question(), NOW_MS)
    correction = Fetched(LEADER, 1, 1, 5, (EpochMark(1, 0),), diverging=Position(1, 4))
    answering.tell(P, correction)
    assert asking.answered(answering.answer(), NOW_MS) == ((P, correction),)


def test_a_partition_is_named_by_its_topics_id_and_number():
    assert str(Q) == "AAAAAAAAAAAAAAAAAAAAbw-1"

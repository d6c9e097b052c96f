from __future__ import annotations

from kio.schema.errors import ErrorCode as KioErrorCode

from zurau.wire.kafka.error_codes import ErrorCode


def test_codes_and_what_may_be_retried_are_those_of_kafka():
    ours = {(code.name, int(code), code.retriable) for code in ErrorCode}
    assert ours == {(code.name.upper(), int(code), code.retriable) for code in KioErrorCode}


def test_a_code_is_found_by_its_number_and_says_what_it_means():
    assert ErrorCode(3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ErrorCode(3).message == "There is no such topic or partition here."


def test_every_message_is_a_sentence():
    assert [code.name for code in ErrorCode if not code.message.endswith(".")] == []

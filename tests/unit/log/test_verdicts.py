"""The table that tells damage from a torn tail, row by row."""

from __future__ import annotations

import pytest

from zurau.log.last_known import LastKnown
from zurau.log.verdicts import RULES, Evidence, Verdict, judge

RAN_ON, WENT_DOWN = LastKnown(10, None, kept_unflushed=True), LastKnown(10, None, kept_unflushed=False)

#: At offset 20, with everything below 10 flushed.
CASES = [
    (Evidence(20, True, 10, WENT_DOWN), Verdict.DAMAGED),
    (Evidence(9, False, 10, WENT_DOWN), Verdict.DAMAGED),
    (Evidence(20, False, 10, None, good_follows=True), Verdict.DAMAGED),
    (Evidence(20, False, 10, None), Verdict.TORN),
    (Evidence(20, False, 10, RAN_ON, is_last_write=True), Verdict.TORN),
    (Evidence(20, False, 10, RAN_ON), Verdict.DAMAGED),
    (Evidence(20, False, 10, WENT_DOWN, good_follows=True), Verdict.TORN),
]


@pytest.mark.parametrize(("evidence", "verdict"), CASES, ids=[rule[0] for rule in RULES])
def test_each_rule_decides_where_none_before_it_applies(evidence, verdict):
    applying = [number for number, (_, applies, _) in enumerate(RULES) if applies(evidence)]
    assert applying[0] == CASES.index((evidence, verdict))
    assert judge(evidence) is verdict


def test_what_was_flushed_is_never_called_torn():
    for last_known in (None, RAN_ON, WENT_DOWN):
        for good_follows in (False, True):
            for is_last_write in (False, True):
                evidence = Evidence(9, False, 10, last_known, good_follows, is_last_write)
                assert judge(evidence) is Verdict.DAMAGED

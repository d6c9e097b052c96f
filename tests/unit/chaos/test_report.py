from __future__ import annotations

from zurau.chaos.experiment import Injection, Outcome
from zurau.chaos.report import ALL, DEATHS, deaths, downtime_by_client, rows


def injection(fault: str, *gaps_s: float) -> Injection:
    return Injection(fault, (1,), 0.0, 1.0, {"zurau": list(gaps_s)}, acknowledged=5, duplicated=0)


def table(*injections: Injection) -> dict[str, dict]:
    return {row["fault"]: row for row in rows(Outcome(list(injections)))}


def test_every_fault_has_a_row_and_all_of_them_together():
    found = table(injection("leader killed", 0.5), injection("link cut", 3.0), injection("link cut", 1.0))
    assert list(found) == ["leader killed", "link cut", DEATHS, ALL]
    assert [row["times"] for row in found.values()] == [1, 2, 1, 3]
    assert [row["max"] for row in found.values()] == ["0.50 s", "3.00 s", "0.50 s", "3.00 s"]


def test_a_leaders_death_is_told_apart_from_faults_after_which_nobody_could_lead():
    found = table(injection("leader killed", 0.5), injection("controller killed", 0.7), injection("all killed", 9.0))
    assert (found[DEATHS]["times"], found[DEATHS]["max"]) == (2, "0.70 s")


def test_without_a_death_there_is_no_row_for_it():
    assert list(table(injection("link cut", 1.0))) == ["link cut", ALL]


def test_times_without_writes_are_told_for_each_kind_of_client():
    outcome = Outcome([injection("leader killed", 0.5, 0.6), injection("link cut", 3.0)])
    assert downtime_by_client(deaths(outcome))["zurau"].max_s == 0.6
    assert downtime_by_client(outcome.injections)["zurau"].max_s == 3.0

from __future__ import annotations

from zurau.simulation.brokers.agenda import Agenda


def test_events_happen_by_their_time_and_then_in_the_order_in_which_they_were_put_down():
    agenda, seen = Agenda(), []
    for at_ms, name in ((5, "c"), (1, "a"), (1, "b")):
        agenda.at(at_ms, lambda name=name: seen.append((agenda.now_ms, name)))
    agenda.run_until(10)
    assert seen == [(1, "a"), (1, "b"), (5, "c")]
    assert agenda.now_ms == 10


def test_what_is_put_down_for_the_past_happens_now():
    agenda, seen = Agenda(), []
    agenda.at(5, lambda: agenda.at(1, lambda: seen.append(agenda.now_ms)))
    agenda.run_until(10)
    assert seen == [5]


def test_time_passes_here_and_now_only_while_nothing_else_happens():
    agenda, seen = Agenda(), []
    agenda.at(1, lambda: seen.append((agenda.pass_if_idle(3), agenda.pass_if_idle(3), agenda.now_ms)))
    agenda.at(5, lambda: None)
    agenda.run_until(10)
    assert seen == [(True, False, 4)]

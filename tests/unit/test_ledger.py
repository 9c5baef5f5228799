from __future__ import annotations

from lastword.core.position import Position
from lastword.replica.store.position_ledger import Ledger


def at(text: str) -> Position:
    return Position.parse(text)


def test_what_comes_after_a_position_is_younger_than_the_moment_at_which_the_table_stood_before_it() -> None:
    ledger = Ledger([(1000, at("0:5,1:5")), (2000, at("0:9,1:5"))])
    assert ledger.all_after_is_younger(at("0:9,1:6"), 2000)
    assert ledger.all_after_is_younger(at("0:7,1:5"), 1000)
    assert not ledger.all_after_is_younger(at("0:7,1:5"), 1001)
    assert not ledger.all_after_is_younger(at("0:4,1:9"), 0)
    assert not ledger.all_after_is_younger(at("0:9"), 0)


def test_entries_divide_the_span_and_old_ones_go() -> None:
    ledger = Ledger()
    kept = [moment for moment in range(10_000) if ledger.note(moment, at("0:1"), span_ms=6400)]
    assert kept == list(range(0, 10_000, 100))
    assert [moment for moment, _ in ledger.entries] == list(range(3500, 10_000, 100))
    assert len(ledger.entries) <= 66

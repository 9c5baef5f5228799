"""Whether a pipeline runs is told by this server's clock, and not by that of the pipeline."""

from __future__ import annotations

from lastword.serve.cluster.pipelines import Age

NOW_MS = 1_794_800_000_000
ROW = ("statuses", b"teams")


def ages(*looks: tuple[float, int, int]) -> list[float]:
    """How old the row is at looks, each so many seconds after the first: at this offset, with a time so much ahead."""
    age, found = Age(), []
    for after_s, offset, ahead_ms in looks:
        now_ms = NOW_MS + int(after_s * 1000)
        found.append(age.of_all({ROW: ((0, offset), NOW_MS + ahead_ms)}, now_ms, 50 + after_s)[ROW])
    return found


def test_a_row_that_does_not_change_gets_old_also_when_its_time_is_ahead() -> None:
    assert ages((0, 7, 600_000), (4, 7, 600_000), (12, 7, 600_000)) == [0, 4, 12]


def test_a_row_that_changes_is_young_also_when_its_time_is_behind() -> None:
    assert ages((0, 7, -60_000), (2, 8, -58_000), (4, 8, -58_000), (6, 9, -54_000)) == [60, 0, 2, 0]


def test_a_row_that_was_gone_is_judged_by_its_own_time_again() -> None:
    age = Age()
    assert age.of_all({ROW: ((0, 7), NOW_MS)}, NOW_MS, 50) == {ROW: 0}
    assert age.of_all({}, NOW_MS, 52) == {}
    assert age.of_all({ROW: ((0, 9), NOW_MS - 30_000)}, NOW_MS, 54) == {ROW: 30}

"""A steady pace, on a clock that the tests turn."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from lastword.teams.users.pace import steady, unpaced


@dataclass
class Clock:
    """Stands still but for sleeps, and for the stalls that are planted at some of them."""

    now: float = 100.0
    stalls: dict[int, float] = field(default_factory=dict)
    slept: int = 0

    def sleep(self, seconds: float) -> None:
        self.slept += 1
        self.now += seconds + self.stalls.get(self.slept, 0.0)

    def portions(self, per_second: float, seconds: float) -> list[int]:
        began = self.now
        return list(steady(per_second, lambda: self.now >= began + seconds, clock=lambda: self.now, sleep=self.sleep))


@pytest.mark.parametrize("per_second", [1, 7, 100, 500, 33_333])
def test_as_many_are_due_in_an_hour_as_the_rate_says(per_second: int) -> None:
    assert sum(Clock().portions(per_second, 3600)) == pytest.approx(3600 * per_second, abs=per_second / 50 + 1)


def test_at_500_a_second_five_are_due_at_a_time() -> None:
    assert max(Clock().portions(500, 60)) <= 6


def test_at_one_a_second_the_first_is_due_at_once_and_nothing_is_given_in_between() -> None:
    assert Clock().portions(1, 4.5) == [1, 1, 1, 1, 1]


def test_what_a_short_stall_missed_is_made_up_for() -> None:
    portions = Clock(stalls={10: 0.5}).portions(100, 10)
    assert max(portions) in (51, 52)
    assert sum(portions) == pytest.approx(1000, abs=3)


def test_of_a_long_stall_only_a_second_is_made_up_for() -> None:
    portions = Clock(stalls={10: 60.0}).portions(100, 70)
    assert max(portions) in (100, 101, 102)
    assert sum(portions) == pytest.approx(100 * 10 + 100, abs=5)


def test_without_a_pace_there_is_always_more_until_it_is_stopped() -> None:
    asked = iter([False, False, False, True])
    assert list(unpaced(lambda: next(asked))) == [1000, 1000, 1000]

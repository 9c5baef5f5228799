"""Rates over ten seconds: between two looks at a counter, and of events."""

from __future__ import annotations

from lastword.core.rates import EventRate, RecentSamples


def test_samples_are_those_of_ten_seconds_and_the_newest_before_them() -> None:
    samples = RecentSamples[str]()
    firsts = []
    for second in (0, 4, 8, 12, 16):
        samples.add(second, f"at {second}")
        firsts.append(samples.ends and samples.ends[0])
    assert firsts == [None, (0, "at 0"), (0, "at 0"), (0, "at 0"), (4, "at 4")]
    samples.clear()
    assert samples.ends is None


def test_two_samples_stay_however_far_apart_they_are() -> None:
    samples = RecentSamples[int]()
    for second in (0, 100):
        samples.add(second, second)
    assert samples.ends == ((0, 0), (100, 100))


def test_the_rate_of_events_falls_to_nothing_while_none_happen() -> None:
    rate = EventRate()
    rate.add(0.0, 100)
    rate.add(5.0, 23)
    assert [rate.per_s(now) for now in (5.0, 10.0, 10.1, 15.0, 15.1)] == [12.3, 12.3, 2.3, 2.3, 0.0]

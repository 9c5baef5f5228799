from __future__ import annotations

import pytest

from lastword.core.errors import ClusterUnreachable, HistoryLost
from lastword.pipeline.running.source_ends import LogEnds


class Log:
    """A log of two partitions that may not answer, and a clock."""

    def __init__(self) -> None:
        self.ends: dict[int, int] | None = {0: 5, 1: 5}
        self.now = 100.0
        self.events: list[str] = []
        self.looked = LogEnds("users", self._ask, self.events.append, patience_s=30, clock=lambda: self.now)

    def _ask(self) -> dict[int, int]:
        if self.ends is None:
            raise ClusterUnreachable("away")
        return dict(self.ends)


def test_partitions_that_have_more_are_told_with_their_ends() -> None:
    assert Log().looked.past({0: 3, 1: 5}) == {0: 5}


def test_a_cluster_that_does_not_answer_has_nothing_new_until_patience_ends() -> None:
    log = Log()
    log.ends = None
    for log.now in (100.0, 120.0, 130.0):
        assert log.looked.past({0: 3, 1: 3}) == {}
    log.now = 130.1
    with pytest.raises(ClusterUnreachable):
        log.looked.past({0: 3, 1: 3})


def test_an_answer_gives_all_of_the_patience_back() -> None:
    log = Log()
    log.ends = None
    assert log.looked.past({0: 3, 1: 3}) == {}
    log.ends, log.now = {0: 5, 1: 5}, 125.0
    assert log.looked.past({0: 3, 1: 5}) == {0: 5}
    log.ends, log.now = None, 140.0
    assert log.looked.past({0: 3, 1: 3}) == {}


def test_a_log_that_stays_shorter_than_what_was_read_is_an_error() -> None:
    log = Log()
    for log.now in (100.0, 110.0):
        assert log.looked.past({0: 6, 1: 4}) == {1: 5}
    log.now = 110.1
    with pytest.raises(HistoryLost, match=r"users\[0\] ends at 5, but was read up to 6"):
        log.looked.past({0: 6, 1: 4})


def test_a_log_that_was_shorter_for_a_while_is_an_event() -> None:
    log = Log()
    log.looked.past({0: 6, 1: 5})
    log.ends = {0: 7, 1: 5}
    assert log.looked.past({0: 6, 1: 5}) == {0: 7}
    assert len(log.events) == 1
    assert "ended for a while before the offset that was read" in log.events[0]
    log.looked.past({0: 6, 1: 5})
    assert len(log.events) == 1

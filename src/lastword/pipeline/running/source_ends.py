"""Where the source ends, asked again and again, with patience for a cluster that changes its leaders."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from lastword.core.errors import ClusterUnreachable, HistoryLost, NotFound

# A leader that is new may show an earlier end for a while.
_SHORTER_S = 10.0


class LogEnds:
    """`ask` gives the ends of all partitions; `tell` gets a line for what whoever runs it should know."""

    def __init__(
        self,
        topic: str,
        ask: Callable[[], dict[int, int]],
        tell: Callable[[str], None],
        *,
        patience_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._topic = topic
        self._ask = ask
        self._tell = tell
        self._patience_s = patience_s
        self._clock = clock
        self._silent_since: float | None = None
        self._shorter_since: float | None = None

    def past(self, reached: Mapping[int, int]) -> dict[int, int]:
        """Of each partition that goes on past what was reached: where it ends.

        HistoryLost when one has ended before that for long: the next takeover tells what can be done.
        """
        asked_at = self._clock()
        try:
            ends = self._ask()
        except (ClusterUnreachable, NotFound):
            self._silent_since = self._silent_since or asked_at
            if self._clock() - self._silent_since > self._patience_s:
                raise
            return {}
        self._silent_since = None
        self._look_for_shorter(ends, reached)
        return {partition: ends[partition] for partition, offset in reached.items() if ends[partition] > offset}

    def _look_for_shorter(self, ends: Mapping[int, int], reached: Mapping[int, int]) -> None:
        shorter = [partition for partition, offset in reached.items() if ends[partition] < offset]
        if not shorter:
            if self._shorter_since is not None:
                self._tell(
                    f"{self._topic} ended before what was read for a while: if its brokers have lost records, those "
                    "that were written in their place were not read"
                )
            self._shorter_since = None
            return
        self._shorter_since = self._shorter_since or self._clock()
        if self._clock() - self._shorter_since > _SHORTER_S:
            partition = shorter[0]
            raise HistoryLost(
                f"{self._topic}[{partition}] ends at {ends[partition]}, and was read up to {reached[partition]}"
            )

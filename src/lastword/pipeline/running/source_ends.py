"""The ends of the source, asked for again and again; a cluster that changes its leaders gets time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from lastword.core.errors import ClusterUnreachable, HistoryLost, NotFound

# A new leader may show an earlier end for this long.
_SHORTER_S = 10.0


class LogEnds:
    """`ask` gives the ends of all partitions; `on_event` gets a line for the operator."""

    def __init__(
        self,
        topic: str,
        ask: Callable[[], dict[int, int]],
        on_event: Callable[[str], None],
        *,
        patience_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._topic = topic
        self._ask = ask
        self._on_event = on_event
        self._patience_s = patience_s
        self._clock = clock
        self._silent_since: float | None = None
        self._shorter_since: float | None = None

    def past(self, reached: Mapping[int, int]) -> dict[int, int]:
        """The end of each partition that has unread records, by the offsets `reached`.

        HistoryLost if a partition ends before its offset in `reached` for ten seconds: the next takeover says what
        to do.
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
                self._on_event(
                    f"{self._topic} ended for a while before the offset that was read: if its brokers have lost "
                    "records, the records that were written in their place were not read"
                )
            self._shorter_since = None
            return
        self._shorter_since = self._shorter_since or self._clock()
        if self._clock() - self._shorter_since > _SHORTER_S:
            partition = shorter[0]
            raise HistoryLost(
                f"{self._topic}[{partition}] ends at {ends[partition]}, but was read up to {reached[partition]}"
            )

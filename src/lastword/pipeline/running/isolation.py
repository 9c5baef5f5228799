"""The search for a record that fails every task which evaluates it.

Most records that an expression fails on say so themselves (see `guarding`). An error that nobody can catch there, like
a stack that runs out, fails the task and with it the batch. Then batches are made smaller until one of a single record
fails, and that record is rejected without being evaluated. What is committed on the way is not done again. Of the
largest batch nine fail until the record is found, and fewer for the next one if it is near.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from lastword.pipeline.running.source import Share
from lastword.spark.session.failures import is_of_the_query, reason_of

# What ended a task, after its number and place.
_ENDED_BY = re.compile(r"\(TID \d+\) \([^)]*\): ([\w.$]+(?:Error|Exception))\b")
# Of the machine or the network, or an error of ours in a worker: no record is to blame.
_OTHERS = (
    *("java.io.", "java.net.", "java.nio.", "java.util.concurrent.", "org.apache.spark.", "org.apache.arrow."),
    *("java.lang.NoClassDefFoundError", "java.lang.NoSuchMethodError", "java.lang.LinkageError"),
)


# The same of the machine, in an error that a record may cause, too.
_SHORT_OF = ("unable to create native thread", "Metaspace", "Compressed class space")

# A batch that fails takes longer than several that do not.
_STEP = 4


class Isolation:
    """How large a batch may be."""

    def __init__(self) -> None:
        self._limit: int | None = None
        # As much of a batch that failed has not been read yet.
        self._suspected = 0

    def bounded(self, shares: Mapping[int, Share]) -> dict[int, Share]:
        """As much of these shares as a batch may have now: of the first partitions, so that the search has an end."""
        if self._limit is None:
            return dict(shares)
        room, found = self._limit, dict[int, Share]()
        for partition, share in shares.items():
            if room > 0:
                found[partition] = share._replace(end=min(share.end, share.begin + room))
                room -= found[partition].end - share.begin
        return found

    def narrow(self, shares: Sequence[Share]) -> Share | None:
        """After a batch that failed: the next one is smaller. The share, if it was of a single offset."""
        size = _size(shares)
        self._limit = max(1, size // _STEP)
        self._suspected = size if size > 1 else 0
        return shares[0] if size == 1 else None

    def widen(self, shares: Sequence[Share]) -> None:
        """After a batch that went well: the next one is larger, unless it would have the same record again."""
        if self._limit is None:
            return
        self._suspected -= _size(shares)
        if self._suspected <= 0:
            # One that is larger than all that there is ends the search.
            self._limit = self._limit * _STEP if _size(shares) >= self._limit else None


def blame_of(failure: PySparkException | Py4JError) -> str | None:
    """What a record did to the task that evaluated it; None when something else has failed."""
    if isinstance(failure, PySparkException) and is_of_the_query(failure):
        return reason_of(failure)
    ended_by = _ENDED_BY.search(str(failure))
    if ended_by is None or ended_by[1].startswith(_OTHERS) or any(what in str(failure) for what in _SHORT_OF):
        return None
    return f"it ends a task of Spark's: {ended_by[1]}"


def _size(shares: Sequence[Share]) -> int:
    return sum(share.end - share.begin for share in shares)

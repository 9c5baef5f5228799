"""The search for a record that fails every task which evaluates it.

`guarding` rejects most records that an expression fails on. It can't catch an error like a stack that runs out, which
fails the task and with it the batch. Then batches get smaller until a batch with a single record fails. That record is
rejected without being evaluated. Records that were committed meanwhile are not processed again. From the largest batch,
nine batches fail until the record is found; for the next record, if it is near, fewer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from lastword.pipeline.running.source import Share
from lastword.spark.session.failures import is_of_the_query, reason_of

# The error that ended a task, after the task's number and place.
_ENDED_BY = re.compile(r"\(TID \d+\) \([^)]*\): ([\w.$]+(?:Error|Exception))\b")
# Errors of the machine, of the network, or of our code in a worker: no record is to blame.
_OTHERS = (
    *("java.io.", "java.net.", "java.nio.", "java.util.concurrent.", "org.apache.spark.", "org.apache.arrow."),
    *("java.lang.NoClassDefFoundError", "java.lang.NoSuchMethodError", "java.lang.LinkageError"),
)


# Shortages of the machine, in an error that a record may cause too.
_SHORT_OF = ("unable to create native thread", "Metaspace", "Compressed class space")

# A batch becomes smaller by this factor: one batch that fails takes longer than several that succeed.
_STEP = 4


class Isolation:
    """How large the next batch may be."""

    def __init__(self) -> None:
        self._limit: int | None = None
        # How many offsets of the failed batch have not been read yet.
        self._suspected = 0

    def bounded(self, shares: Mapping[int, Share]) -> dict[int, Share]:
        """The part of these shares that the next batch may have: the first partitions first, so the search ends."""
        if self._limit is None:
            return dict(shares)
        room, part = self._limit, dict[int, Share]()
        for partition, share in shares.items():
            if room > 0:
                part[partition] = share._replace(end=min(share.end, share.begin + room))
                room -= part[partition].end - share.begin
        return part

    def narrow(self, shares: Sequence[Share]) -> Share | None:
        """After a failed batch: the next one is smaller. Returns the share if it was a single offset."""
        size = _size(shares)
        self._limit = max(1, size // _STEP)
        self._suspected = size if size > 1 else 0
        return shares[0] if size == 1 else None

    def widen(self, shares: Sequence[Share]) -> None:
        """After a batch that succeeded: the next one is larger, unless it would contain the bad record again."""
        if self._limit is None:
            return
        self._suspected -= _size(shares)
        if self._suspected <= 0:
            # A limit that is larger than everything left to read ends the search.
            self._limit = self._limit * _STEP if _size(shares) >= self._limit else None


def blame_of(failure: PySparkException | Py4JError) -> str | None:
    """How a record ended the task that evaluated it; None if no record is to blame."""
    if isinstance(failure, PySparkException) and is_of_the_query(failure):
        return reason_of(failure)
    ended_by = _ENDED_BY.search(str(failure))
    if ended_by is None or ended_by[1].startswith(_OTHERS) or any(shortage in str(failure) for shortage in _SHORT_OF):
        return None
    return f"it ends a task of Spark's: {ended_by[1]}"


def _size(shares: Sequence[Share]) -> int:
    return sum(share.end - share.begin for share in shares)

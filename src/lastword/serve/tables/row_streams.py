"""All rows of a table as one array, sent slice by slice. The array is closed only when every row was sent.

Whatever keeps the array from its end (damage, a store that is replaced, a stop) ends the connection, so that no client
takes a part for the whole. While an array is sent, RocksDB keeps all rows of its moment: no longer than their store is
shown, and no more of them in memory than all unsent answers may take.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple

from lastword.core.errors import LastwordError, StoreDamaged
from lastword.replica.reads import RowListing, Slice, StoredRow, TableReads
from lastword.serve.http.answers import COMMON, Answer, Headers, Refused, answered_at, stopping
from lastword.serve.http.backpressure import BoundedStream, Gone, Stalled
from lastword.serve.http.compression import GZIPPED, VARIES, GzipParts, takes_gzip
from lastword.serve.http.limits import Limits
from lastword.serve.http.unsent_answers import LARGE_BYTES, Hold, too_many_unsent
from lastword.serve.tables.row_answer import value_body
from lastword.serve.tables.served_table import ServedTable

# A table smaller than a slice is an ordinary answer.
_SLICE_ROWS = 5000
_SLICE_BYTES = LARGE_BYTES
# The least that a stream counts for among the unsent answers: a slice as rows, as JSON, compressed and being sent.
_STREAM_BYTES = 4 * _SLICE_BYTES
_RETRY_S = 0.1
_LOOK_EVERY_S = 0.25
# How long a stream may last once the server stops: shorter than the server waits for open requests.
_LAST_S = 2.0

# Runs a function in another thread: (function, *arguments) -> its result.
OffLoop = Callable[..., Awaitable[Any]]

_log = logging.getLogger(__name__)


class _ArrayPiece(NamedTuple):
    """A part of the array, and where the listing continues; its slice has been emptied."""

    content: bytes
    after: Slice


class _Begun(NamedTuple):
    listing: RowListing
    first: _ArrayPiece


class RowStreams:
    """The open streams. Used from one event loop."""

    def __init__(self, limits: Limits, off_loop: OffLoop) -> None:
        self.limits = limits
        self.off_loop = off_loop
        # In the order in which they began.
        self.open: dict[RowStream, None] = {}
        # Streams that the server ended, by the reason.
        self.cut: Counter[str] = Counter()
        self._is_stopping = False
        self._looking: asyncio.Task[None] | None = None

    async def begin(self, table: ServedTable, hold: Hold, accepted: str | None) -> Answer | RowStream:
        """All rows: one answer for a small table, else a stream to run and close; Refused when it can't begin."""
        begun: _Begun = await self.off_loop(_begun, table)
        if self._is_stopping:
            raise stopping()
        first = begun.first
        if first.after.is_last:
            return Answer(200, [*COMMON, answered_at(begun.listing.position)], first.content)
        hold.resize(max(_STREAM_BYTES, len(first.content)))
        stream = RowStream(self, table, begun, hold, GzipParts() if takes_gzip(accepted) else None)
        self.open[stream] = None
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        return stream

    def stop(self) -> None:
        """Begins no more streams, and soon cuts those that are still open."""
        self._is_stopping = True
        for stream in self.open:
            asyncio.get_running_loop().call_later(_LAST_S, stream.end, stopping())

    async def _look(self) -> None:
        """Ends the streams of a replaced store, and the oldest streams when they pin too much memory."""
        while self.open:
            for stream in [each for each in self.open if not each.is_shown]:
                # An open stream would keep the store from being opened again.
                stream.end(stream.table.not_ready())
            oldest = {stream.table.name: stream for stream in reversed(self.open)}
            for stream in oldest.values():
                if stream.pinned_bytes > self.limits.unsent_bytes:
                    stream.end(too_many_unsent())
            await asyncio.sleep(_LOOK_EVERY_S)


class RowStream:
    def __init__(
        self, streams: RowStreams, table: ServedTable, begun: _Begun, hold: Hold, gzip: GzipParts | None
    ) -> None:
        self.table = table
        self._streams = streams
        self._listing, self._first = begun
        self._hold = hold
        self._gzip = gzip
        self._why: Refused | None = None
        self._deadline: asyncio.Timeout | None = None
        encoding = [VARIES] if gzip is None else [VARIES, GZIPPED]
        self.headers: Headers = [*COMMON, answered_at(begun.listing.position), *encoding]

    @property
    def is_shown(self) -> bool:
        """Whether the table still has the store of this stream."""
        with suppress(LastwordError):
            return self.table.replica.ask(lambda reads: reads.is_store_of(self._listing))
        return False

    @property
    def pinned_bytes(self) -> int:
        """The memory that RocksDB keeps for the streams of this table; 0 after the store was closed."""
        with suppress(LastwordError):
            return self.table.replica.ask(lambda reads: reads.pinned_bytes)
        return 0

    def end(self, why: Refused) -> None:
        """Cuts the stream now, wherever it is."""
        self._why = self._why or why
        if self._deadline is not None and not self._deadline.expired():
            self._deadline.reschedule(0)

    async def run(self, outlet: BoundedStream) -> None:
        """Returns when all rows were sent, the client has left, or the connection was cut."""
        is_whole = False
        try:
            async with asyncio.timeout(None) as self._deadline:
                if self._why is not None:
                    self._deadline.reschedule(0)
                await self._send_all(outlet)
            is_whole = True
        except Gone:
            pass
        except Stalled:
            self._note("stalled", "the client read nothing for too long")
        except StoreDamaged:
            self._note("store_damaged", str(self.table.damaged()))
        except TimeoutError:
            why = self._why or stopping()
            self._note(why.code, str(why))
        except Refused as refused:
            self._note(refused.code, str(refused))
        except LastwordError as failure:
            self._note("internal", str(failure))
        finally:
            self._deadline = None
            if not is_whole:
                outlet.cut()

    def close(self) -> None:
        self._streams.open.pop(self, None)
        self._listing.close()

    async def _send_all(self, outlet: BoundedStream) -> None:
        part: _ArrayPiece | None = self._first
        del self._first  # it may be large
        while part is not None:
            after, content = part.after, part.content
            del part
            if self._gzip is not None:
                content = await self._streams.off_loop(_compressed, self._gzip, content, after.is_last)
            await outlet.send(content)
            del content
            part = None if after.is_last else await self._next(after)

    async def _next(self, after: Slice) -> _ArrayPiece:
        """The next part, once there is room for it among the unsent answers."""
        loop = asyncio.get_running_loop()
        self._listing.advance(after)
        give_up_at = loop.time() + self._streams.limits.stall_s
        while True:
            if not self.is_shown:
                raise self.table.not_ready()
            part: _ArrayPiece = await self._streams.off_loop(_read, self._listing, self.table, b",")
            try:
                self._hold.resize(max(_STREAM_BYTES, len(part.content)))
            except Refused:
                # No room for a large row now: drop the row and read it again later, so that nothing is kept.
                del part
                if loop.time() >= give_up_at:
                    raise
                await asyncio.sleep(_RETRY_S)
            else:
                return part

    def _note(self, reason: str, why: str) -> None:
        self._streams.cut[reason] += 1
        _log.warning("the answer with all rows of the table %s was cut off: %s", self.table.name, why)


def _begun(table: ServedTable) -> _Begun:
    """A listing with its first part; Refused while the table can't be read."""

    def begin(reads: TableReads) -> _Begun:
        listing = reads.listing()
        return _Begun(listing, _read(listing, table, b"["))

    return table.ask(begin)


def _read(listing: RowListing, table: ServedTable, begin: bytes) -> _ArrayPiece:
    """The next part of the array, which begins with a bracket or a comma."""
    key_codec, value_codec = table.key_codec, table.value_codec

    def shape(row: StoredRow) -> bytes:
        return value_body(row, key_codec, value_codec)

    found = listing.next_slice(shape, most_rows=_SLICE_ROWS, most_bytes=_SLICE_BYTES)
    end = b"]" if found.is_last else b""
    content = b"%b%b%b" % (begin if found.rows or begin == b"[" else b"", b",".join(found.rows), end)
    return _ArrayPiece(content, found._replace(rows=[]))


def _compressed(gzip: GzipParts, content: bytes, is_last: bool) -> bytes:
    return gzip.compressed(content, is_last=is_last)

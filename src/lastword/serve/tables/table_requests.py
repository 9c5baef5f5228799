"""The requests about tables: their status, rows, pages and counts, and writes."""

from __future__ import annotations

from collections.abc import Mapping

from lastword.core.shapes.rows import CountAnswer
from lastword.core.shapes.tables import TablesAnswer
from lastword.serve.http.answers import Answer, Refused, answered_at, json_answer
from lastword.serve.http.backpressure import Streamed
from lastword.serve.http.bodies import Bodies
from lastword.serve.http.limits import Limits
from lastword.serve.http.queries import NoQuery, PageQuery, PositionQuery, RowsQuery
from lastword.serve.http.requests import Request
from lastword.serve.tables.keys import key_of
from lastword.serve.tables.pages import range_of, rows_answer, values_answer
from lastword.serve.tables.position_wait import PositionWaits, position_of
from lastword.serve.tables.row_answer import point_read, value_body
from lastword.serve.tables.row_streams import OffLoop, RowStreams
from lastword.serve.tables.served_table import ServedTable
from lastword.serve.tables.table_status import table_status
from lastword.serve.tables.writes import delete_of, lines_answer, put_of, single_answer, writes_of


class TableRequests:
    """Used from one event loop."""

    def __init__(
        self, tables: Mapping[str, ServedTable], limits: Limits, waiting: PositionWaits, off_loop: OffLoop
    ) -> None:
        self._tables = tables
        self._limits = limits
        self._waiting = waiting
        self._off_loop = off_loop
        self._bodies = Bodies(limits)
        self.row_streams = RowStreams(limits, off_loop)

    def table(self, name: str) -> ServedTable:
        """The table of a name; Refused when none is served under it."""
        table = self._tables.get(name)
        if table is None:
            raise Refused("no_such_table", "no table of this name is served")
        return table

    async def list_tables(self, _request: Request, _query: NoQuery) -> Answer:
        return json_answer(TablesAnswer([table_status(table) for table in self._tables.values()]))

    async def read_status(self, _request: Request, query: PositionQuery, name: str) -> Answer:
        table = self.table(name)
        await self._reached(table, query)
        return json_answer(table_status(table))

    async def count(self, _request: Request, query: PositionQuery, name: str) -> Answer:
        table = self.table(name)
        await self._reached(table, query)
        position, count = table.ask(lambda reads: (reads.position, len(reads)))
        return json_answer(CountAnswer(count), answered_at(position))

    async def read_row(self, request: Request, query: PositionQuery, name: str, key_text: str) -> Answer:
        table = self.table(name)
        key = key_of(key_text, table.key_codec, self._limits)
        # Nearly every request comes here, so there is no further call.
        if query.min_position is not None:
            await self._reached(table, query)
        return point_read(table, key, request.headers.get("if-none-match"))

    async def read_value(self, request: Request, query: PositionQuery, name: str, key_text: str) -> Answer:
        table = self.table(name)
        key = key_of(key_text, table.key_codec, self._limits)
        await self._reached(table, query)
        return point_read(table, key, request.headers.get("if-none-match"), value_body)

    async def read_rows(self, _request: Request, query: RowsQuery, name: str) -> Answer:
        table = self.table(name)
        # A request that can never be answered is refused before it waits.
        wanted = range_of(table, query, self._limits)
        await self._reached(table, query)
        answer: Answer = await self._off_loop(rows_answer, table, wanted, self._limits)
        return answer

    async def read_values(self, request: Request, query: PageQuery, name: str) -> Answer | Streamed:
        table = self.table(name)
        wanted = range_of(table, RowsQuery(limit=query.limit, cursor=query.cursor), self._limits)
        await self._reached(table, query)
        if query.limit is None and query.cursor is None:
            return await self.row_streams.begin(table, request.hold, request.headers.get("accept-encoding"))
        answer: Answer = await self._off_loop(values_answer, table, wanted, query.limit, self._limits)
        return answer

    async def put_row(self, request: Request, _query: NoQuery, name: str, key_text: str) -> Answer:
        table = self.table(name)
        key = key_of(key_text, table.key_codec, self._limits)
        async with self._bodies.received(request.body, request.headers) as body:
            return single_answer(await table.writes.send([put_of(key, body, table.key_codec, table.value_codec)]))

    async def delete_row(self, _request: Request, _query: NoQuery, name: str, key_text: str) -> Answer:
        table = self.table(name)
        key = key_of(key_text, table.key_codec, self._limits)
        return single_answer(await table.writes.send([delete_of(key)]))

    async def write_lines(self, request: Request, _query: NoQuery, name: str) -> Answer:
        table = self.table(name)
        async with self._bodies.received(request.body, request.headers) as body:
            # In another thread, because many lines take long.
            writes = await self._off_loop(writes_of, body, table.key_codec, table.value_codec, self._limits)
            return lines_answer(await table.writes.send(writes))

    async def _reached(self, table: ServedTable, query: PositionQuery) -> None:
        """Waits until the table has reached the `min_position` of the query, if there is one."""
        if query.min_position is not None:
            await self._waiting.until(table, position_of(query.min_position))

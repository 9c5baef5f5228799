"""The requests about the server itself: health, readiness, metrics, the OpenAPI document."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lastword.core.shapes.tables import HealthAnswer
from lastword.serve.guest import Guest
from lastword.serve.http.answers import COMMON, Answer, json_answer
from lastword.serve.http.queries import NoQuery
from lastword.serve.http.requests import Request
from lastword.serve.metrics import Metrics
from lastword.serve.tables.served_table import ServedTable
from lastword.serve.tables.table_status import readiness

_HEALTHY = json_answer(HealthAnswer())


class ServerStatus:
    def __init__(
        self, tables: Collection[ServedTable], guests: Sequence[Guest], metrics: Metrics, document: bytes
    ) -> None:
        self._tables = tables
        self._guests = guests
        self._metrics = metrics
        self._document = Answer(200, COMMON, document)

    async def health(self, _request: Request, _query: NoQuery) -> Answer:
        return _HEALTHY

    async def ready(self, _request: Request, _query: NoQuery) -> Answer:
        return readiness(self._tables, (guest.why_not_ready() for guest in self._guests))

    async def metrics(self, _request: Request, _query: NoQuery) -> Answer:
        return self._metrics.answer()

    async def openapi(self, _request: Request, _query: NoQuery) -> Answer:
        return self._document
